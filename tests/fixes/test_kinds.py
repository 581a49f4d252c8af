"""What is known of dtypes, held against torch itself: promotion, and what operators refuse."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest

pytest.importorskip("torch")

import torch

from compilescope.change.fixes.values.kinds import Kind, joined_kind, number_kind
from compilescope.knowledge.source.flow import operators

pytestmark = pytest.mark.torch

DTYPES = ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32")
DTYPES += ("float64",)
PYTHON = {"bool": True, "int64": 2, "float32": 2.5}
FORMS: tuple[Callable[[Any], tuple[Any, ...]], ...] = (
    lambda x: (x,),
    lambda x: (x, x),
    lambda x: (x, 1),
    lambda x: (x, x, x),
    lambda x: ([x, x],),
    lambda x: (x, x > 0, 1),
    lambda x: (x, 0),
)


def _values() -> Iterator[tuple[Kind, Any]]:
    for dtype in DTYPES:
        made = getattr(torch, dtype)
        yield Kind(dtype, (2,)), torch.ones(2, dtype=made)
        yield Kind(dtype, ()), torch.ones((), dtype=made)
    for dtype, value in PYTHON.items():
        yield number_kind(dtype), value


def test_promotion_is_torchs() -> None:
    wrong = []
    for (one, a), (other, b) in itertools.product(_values(), repeat=2):
        if one.python and other.python:
            continue
        truth = str(torch.result_type(a, b)).removeprefix("torch.")
        if joined_kind([one, other]).dtype != truth:
            wrong.append((one, other, joined_kind([one, other]).dtype, truth))
    assert not wrong


def _function(name: str) -> Callable[..., Any] | None:
    homes = (torch, torch.nn.functional, torch.special, torch.linalg, torch.Tensor)
    return next((f for home in homes if callable(f := getattr(home, name, None))), None)


def _raises(name: str, dtype: Any) -> bool | None:
    """In some form that numbers with a fraction take; None where they take none of them."""
    function = _function(name)
    plain = torch.tensor([[1.0, 1.0], [0.0, 1.0]])
    asked: bool | None = None
    for form in FORMS if function is not None else ():
        if not _works(function, form(plain)):
            continue
        asked = asked or not _works(function, form(plain.to(dtype)))
    return asked


def _works(function: Any, given: tuple[Any, ...]) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            function(*given)
        except (RuntimeError, TypeError, ValueError, IndexError, AttributeError):
            return False
    return True


@pytest.mark.parametrize(
    ("dtype", "table"),
    [
        (torch.bool, operators.NOT_OF_TRUTHS | operators.NOT_OF_WHOLE_NUMBERS),
        (torch.int64, operators.NOT_OF_WHOLE_NUMBERS),
    ],
)
def test_what_operators_refuse(dtype: Any, table: frozenset[str]) -> None:
    asked = operators.PLAIN | operators.STEEP | (operators.VIEWS - {"cuda"})
    missing = {name for name in asked if _raises(name, dtype)} - table
    assert not missing
    needless = {name for name in table & asked if _raises(name, dtype) is False}
    assert not needless
