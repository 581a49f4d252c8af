"""The compiled pass says what torch's own operations say, and gives way where it cannot work."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from compilescope.measure.tensors import native_pass  # noqa: E402
from compilescope.measure.tensors.chunked_pass import Rules, walk  # noqa: E402
from compilescope.measure.tensors.comparison import compare_tensors  # noqa: E402
from compilescope.measure.tensors.pairs import pair_up  # noqa: E402
from compilescope.measure.tensors.tolerances import ComparisonConfig, Tolerance  # noqa: E402

pytestmark = pytest.mark.torch
FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
WHOLE = (torch.int8, torch.int16, torch.int32, torch.int64, torch.bool)
WHOLE += (torch.uint8, torch.uint16, torch.uint32, torch.uint64)
BY_DEFAULT = (torch.int32, torch.int64, torch.bool, torch.uint64)
"""A pass is compiled for each dtype: one that is like all others, and those that are not."""


@pytest.fixture(autouse=True)
def at_any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native_pass, "_WORTH_BUILDING", 0)
    monkeypatch.setattr(native_pass, "_WORTH_CALLING", 0)


@pytest.fixture
def cc() -> None:
    if native_pass._compiler() is None:
        pytest.skip("no C compiler")


def agree(one: torch.Tensor, other: torch.Tensor, rules: Rules) -> None:
    pair = pair_up(one, other)
    found = native_pass.native_walk(pair, rules, 3)
    assert found is not None
    same(found, walk(pair, rules), "tally")


def same(found: Any, wanted: Any, name: str) -> None:
    if dataclasses.is_dataclass(wanted):
        for field in dataclasses.fields(wanted):
            same(getattr(found, field.name), getattr(wanted, field.name), f"{name}.{field.name}")
    elif isinstance(wanted, (list, tuple)):
        assert len(found) == len(wanted), name
        for mine, its in zip(found, wanted, strict=True):
            same(mine, its, name)
    elif isinstance(wanted, float):
        assert found == wanted or math.isclose(found, wanted, rel_tol=1e-9), (name, found, wanted)
    else:
        assert found == wanted, (name, found, wanted)


@pytest.mark.usefixtures("cc")
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_floats(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    for shape in ((2500,), (3, 5, 7, 11), (), (40, 150), (900, 3), (1, 5, 1)):
        one = (torch.randn(shape) * torch.exp(4 * torch.randn(shape))).to(dtype)
        other = (one.double() * (1 + 1e-3 * torch.randn(shape))).to(dtype)
        for bins, equal_nan in ((1024, True), (7, False)):
            agree(one, other, Rules(Tolerance(1e-3, 1e-3), equal_nan, 5, bins))
            spoil(one, other)


def spoil(one: torch.Tensor, other: torch.Tensor) -> None:
    """Everything that is no ordinary number, on either side and on both."""
    if one.numel() < 100:
        return
    flat, twin = one.view(-1), other.view(-1)
    for number, value in enumerate((math.nan, math.inf, -math.inf, 0.0, -0.0)):
        flat[number::59], twin[10 + number :: 61] = value, value
        flat[20 + number :: 67] = twin[20 + number :: 67] = value
    flat[7] = torch.finfo(one.dtype).tiny / 4
    twin[7] = -torch.finfo(one.dtype).tiny / 8


@pytest.mark.usefixtures("cc")
@pytest.mark.parametrize(
    "dtype",
    [pytest.param(d, marks=() if d in BY_DEFAULT else pytest.mark.slow) for d in WHOLE],
    ids=str,
)
def test_whole_numbers(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    one = torch.randint(0, 2 if dtype is torch.bool else 100, (37, 110))
    other = one.clone()
    other[::3] = torch.randint(0, 2, other[::3].shape)
    one, other = one.to(dtype), other.to(dtype)
    if dtype is torch.int64:
        one[0, 0], other[0, 0] = 2**63 - 1, -(2**63)
        one[1, 1], other[1, 1] = 2**60, 2**60 + 1
    if dtype is torch.uint64:
        one, other = ((t.view(torch.int64) - 2**63).view(torch.uint64) for t in (one, other))
    agree(one, other, Rules(Tolerance(0, 0), True, 5, 1024))
    agree(one, other, Rules(Tolerance(1.5, 0.1), True, 5, 16))


@pytest.mark.usefixtures("cc")
@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128], ids=str)
def test_complex_numbers(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    one = torch.randn(37, 110, dtype=dtype)
    other = one + 1e-3 * torch.randn_like(one)
    agree(one, other, Rules(Tolerance(1e-3, 1e-3), True, 5, 1024))
    other[3, ::3] = complex(math.nan, 0)
    one[4, ::5] = other[4, ::5] = complex(math.inf, 1)
    one[6, 6] = complex(math.inf, math.nan)
    agree(one, other, Rules(Tolerance(1e-3, 1e-3), False, 5, 1024))


@pytest.mark.usefixtures("cc")
def test_tensors_that_do_not_lie_flat() -> None:
    torch.manual_seed(0)
    rules = Rules(Tolerance(1e-3, 1e-3), True, 5, 1024)
    values = torch.randn(6, 10, 14)
    near = values + 0.01 * torch.randn_like(values)
    agree(values.permute(2, 0, 1), near.permute(2, 0, 1), rules)
    agree(values.permute(2, 0, 1), near.permute(2, 0, 1).contiguous(), rules)
    agree(values[:, ::2], near[:, 1::2], rules)
    agree(values[0].expand(6, 10, 14), near, rules)
    agree(torch.nn.Parameter(values), near, rules)


def test_without_a_compiler_torch_does_it(monkeypatch: pytest.MonkeyPatch) -> None:
    one = torch.randn(3000)
    expected = compare_tensors(one, one + 1, config=ComparisonConfig(fused=False))
    monkeypatch.setattr(native_pass, "_compiler", lambda: None)
    found = compare_tensors(one, one + 1)
    assert found.metrics == expected.metrics and found.worst == expected.worst


def test_a_compiler_that_fails_is_told_of_and_harms_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(native_pass, "_compiler", lambda: "/bin/false")
    monkeypatch.setattr(native_pass, "_folder", lambda: tmp_path)
    assert native_pass.find_pass(torch.float32, build=True) is None
    assert list(tmp_path.iterdir()) == []
    assert compare_tensors(torch.ones(3000), torch.ones(3000)).verdict == "pass"


@pytest.mark.usefixtures("cc")
def test_a_cache_that_others_may_write_to_is_not_used(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels").chmod(0o777)
    monkeypatch.setattr(native_pass, "cache_folder", lambda: tmp_path)
    assert native_pass._folder.__wrapped__() != tmp_path / "kernels"
    (tmp_path / "kernels").chmod(0o700)
    assert native_pass._folder.__wrapped__() == tmp_path / "kernels"


@pytest.mark.usefixtures("cc")
def test_a_difference_beyond_float64_is_left_to_torch() -> None:
    one = torch.full((2000,), 1.5e308, dtype=torch.float64)
    assert compare_tensors(one, -one).metrics["max_abs"] == math.inf
