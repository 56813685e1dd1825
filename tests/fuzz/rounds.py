"""How long a fuzzer runs: a bounded number of cases in `make test`, many times that in `make fuzz`."""

import os
import random
import subprocess
import sys
from pathlib import Path

ROUNDS = int(os.environ.get("REGARD_FUZZ_ROUNDS", "1"))


def cases(count):
    """Numbered sources of chance, each the same in every run; ``make fuzz`` multiplies them."""
    for number in range(count * ROUNDS):
        yield number, random.Random(number)


def killed_again_and_again(kind, folder):
    """What ``killed_process`` reports about its rounds, in a separate Python."""
    call = [sys.executable, "-m", "fuzz.killed_process", kind, str(folder), str(ROUNDS)]
    tests = Path(__file__).parent.parent
    done = subprocess.run(call, capture_output=True, text=True, cwd=tests, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout
