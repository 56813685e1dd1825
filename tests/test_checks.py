"""Checks of single arguments: each error names the argument, its range and what was given."""

import math

import numpy as np
import pytest
import torch

from regard.checks import (
    check_choice,
    check_integer,
    check_integers,
    check_number,
    check_positive,
    check_probability,
    is_index,
    is_integer,
    is_number,
)
from regard.errors import ArgumentError

NOT_INTEGERS = [True, False, 2.0, "2", None, [2], math.nan, np.bool_(True), np.float32(2), torch.tensor(2)]


@pytest.mark.parametrize("given", NOT_INTEGERS, ids=repr)
def test_what_is_not_an_integer(given):
    assert not is_integer(given)
    assert not is_index(given, 5)
    with pytest.raises(ArgumentError, match=r"heads must be a whole number, 1 or more. Got heads = "):
        check_integer("heads", given)


@pytest.mark.parametrize("given", [True, "2", None, [2.0], math.nan, math.inf, 2j], ids=repr)
def test_what_is_not_a_number(given):
    assert not is_number(given)


@pytest.mark.parametrize("given", [2, 2.0, np.int64(2), np.float32(2), torch.tensor(2.0)], ids=repr)
def test_what_is_a_number(given):
    assert is_number(given)


@pytest.mark.parametrize("given", [2, np.int64(2), np.uint8(2)], ids=repr)
def test_integers_become_plain_ones(given):
    assert type(check_integer("heads", given)) is int
    assert check_integers("layers", [given, 0]) == (2, 0)
    assert check_integers("layers", given) == (2,)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: check_integer("n", 0), r"n must be a whole number, 1 or more. Got n = 0\. Pass a positive"),
        (lambda: check_integer("n", -1, least=0), "0 or more. Got n = -1. Pass an integer in range"),
        (lambda: check_integer("n", 0, example=16), "Got n = 0. Try 16"),
        (
            lambda: check_integer("n", 2000, least=0, most=1000),
            "n must be a whole number from 0 to 1,000. Got",
        ),
        (lambda: check_integer("n", "x" * 200), "Got n = 'x{59}. Pass"),
        (lambda: check_integers("layers", -1), "layers must be whole numbers, 0 or more. Got -1"),
        (lambda: check_integers("layers", [0, True]), "Got True. Pass one number or a list of them"),
        (lambda: check_integers("layers", 1.5), "Got 1.5"),
        (lambda: check_integers("layers", ()), "layers must name at least one. Got an empty list. Omit it"),
        (
            lambda: check_number("x", 2, 0, 1),
            "x must be a number from 0 to 1. Got x = 2. Omit it to use the def",
        ),
        (
            lambda: check_number("x", math.nan, -1e8, 1e8, example=1.0),
            r"-1e\+08 to 1e\+08. Got x = nan. Try 1",
        ),
        (lambda: check_number("x", math.inf, 0), "x must be a finite number, 0 or more. Got x = inf"),
        (lambda: check_number("x", "0.5", 0, 1), "Got x = '0.5'"),
        (lambda: check_number("x", True, 0, 1), "Got x = True"),
        (lambda: check_number("x", torch.ones(2), 0, 1), "Got x = tensor"),
        (lambda: check_positive("x", 0), "x must be a finite number above 0. Got x = 0. Omit it"),
        (lambda: check_positive("x", math.inf, example=3), "Got x = inf. Try 3"),
        (
            lambda: check_probability("p", 1.0),
            "p must be a probability, at least 0 and below 1. Got p = 1.0. Try 0.1",
        ),
        (lambda: check_probability("p", None), "Got p = None"),
        (
            lambda: check_choice("norm", "x", ("pre", None)),
            "norm must be one of pre, None. Got norm = 'x'. Choose",
        ),
        (lambda: check_choice("norm", ["pre"], {"pre": 1}), r"Got norm = \['pre'\]"),
    ],
)
def test_each_message(call, message):
    with pytest.raises(ArgumentError, match=message) as caught:
        call()
    assert caught.value.in_words("zh") != str(caught.value)


def test_numbers_of_every_kind():
    for given in (0.5, np.float32(0.5), torch.tensor(0.5)):
        assert (
            check_number("x", given, 0, 1)
            == check_positive("x", given)
            == check_probability("x", given)
            == 0.5
        )
    assert check_number("x", 1, 1, 1) == 1.0
    assert check_choice("norm", "post", ("pre", "post")) == "post"
