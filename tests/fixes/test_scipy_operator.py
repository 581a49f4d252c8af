"""The operators made of SciPy's functions: what the table says of sizes and dtypes is so."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest

from compilescope.change.fixes.breaks.scipy_operator import FIX, HOSTS
from compilescope.knowledge.source.refusals import Refused
from fixes.repertoire import subjects

pytest.importorskip("scipy")
pytestmark = pytest.mark.torch
SIZES = [(4, 3), (3, 4), (1, 1), (2, 5)]
DTYPES = ["float32", "float64", "float16", "int64", "int32", "uint8", "bool"]


def _function(name: str) -> Any:
    module, _, last = name.rpartition(".")
    return getattr(importlib.import_module(module), last)


@pytest.mark.parametrize("name", HOSTS)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_table_is_true(name: str, size: tuple[int, int], dtype: str) -> None:
    """The same numbers as float64 give the same, of the size and dtype that the table names."""
    import torch

    host = HOSTS[name]
    torch.manual_seed(0)
    given = {each: (torch.randn(size) * 3).to(getattr(torch, dtype)) for each in host.inputs}
    found = _function(name)(*(each.numpy() for each in given.values()))
    again = _function(name)(*(each.double().numpy() for each in given.values()))
    found = found if isinstance(found, tuple) else (found,)
    again = again if isinstance(again, tuple) else (again,)
    expected = torch.empty(eval(host.size, {"min": min, **given}))
    assert len(found) == len(host.results)
    for one, other in zip(found, again, strict=True):
        assert one.shape == tuple(expected.shape)
        assert str(one.dtype) == host.dtype == str(other.dtype)
        assert (one == other).all()


@pytest.mark.parametrize(
    ("call", "because"),
    [
        ("linear_sum_assignment(cost_matrix=x.numpy())", "not passed by position"),
        ("linear_sum_assignment(*[x.numpy()])", "not passed by position"),
        ("linear_sum_assignment(x.numpy(), maximize=bool(len(x)))", "is no constant"),
    ],
)
def test_what_it_leaves_alone(call: str, because: str, tmp_path: Path) -> None:
    text = f"""
import torch
from scipy.optimize import linear_sum_assignment

def f(x):
    rows, columns = {call}
    return x[torch.as_tensor(rows), torch.as_tensor(columns)]

torch.compile(f, backend="eager")(torch.randn(3, 4))
"""
    found = [each for each in subjects(tmp_path, text) if FIX.rules & each.keys]
    with pytest.raises(Refused, match=because):
        FIX.propose(found[0])


def test_a_tensor_with_a_gradient_is_told_of(tmp_path: Path) -> None:
    text = """
import torch
from scipy.optimize import linear_sum_assignment

def f(x):
    rows, columns = linear_sum_assignment(x.detach(), maximize=True)
    return x[torch.as_tensor(rows), torch.as_tensor(columns)]

torch.compile(f, backend="eager")(torch.randn(3, 4))
"""
    found = [each for each in subjects(tmp_path, text) if FIX.rules & each.keys]
    patch = FIX.propose(found[0])
    assert "requires a gradient" in patch.states
    (text,) = patch.files.values()
    assert "linear_sum_assignment(cost_matrix.numpy(), maximize=True)" in text
