"""How long a fuzzer goes on: a bounded number of cases in `make test`, many times that in `make fuzz`."""

import os
import random

ROUNDS = int(os.environ.get("REGARD_FUZZ_ROUNDS", "1"))


def cases(count):
    """So many numbered sources of chance, each the same in every run; ``make fuzz`` multiplies them."""
    for number in range(count * ROUNDS):
        yield number, random.Random(number)
