"""Every figure of `compare_tensors`, and every kind of tensor."""

from __future__ import annotations

import json
import math

import pytest

torch = pytest.importorskip("torch")

from compilescope.base.errors import ToolError  # noqa: E402
from compilescope.measure.tensors.comparison import compare_tensors  # noqa: E402
from compilescope.measure.tensors.tolerances import ComparisonConfig, Tolerance  # noqa: E402

pytestmark = pytest.mark.torch
NAN, INF = math.nan, math.inf


def test_the_figures_are_what_they_are_called() -> None:
    reference = torch.tensor([[1.0, -2.0, 0.0], [4.0, 0.5, 8.0]])
    test = torch.tensor([[1.0, -2.5, 0.25], [4.0, 0.5, 6.0]])
    found = compare_tensors(reference, test, "x", ComparisonConfig(atol=0.0, rtol=0.1))
    told = found.metrics
    assert found.verdict == "fail" and found.name == "x"
    assert told["max_abs"] == 2.0 and told["mean_abs"] == pytest.approx(2.75 / 6)
    assert told["rmse"] == pytest.approx(math.sqrt((0.25 + 0.0625 + 4) / 6))
    # The relative error of what is 0 in the reference would be infinite: it is counted instead.
    assert told["max_rel"] == 0.25 and told["mean_rel"] == pytest.approx(0.5 / 5)
    assert told["appeared"] == 1
    assert told["mismatched"] == 3 and told["mismatch_percentage"] == 50
    cosine = torch.nn.functional.cosine_similarity(reference.flatten(), test.flatten(), dim=0)
    assert told["cosine"] == pytest.approx(float(cosine))
    assert [(w.index, w.reference, w.test, w.error) for w in found.worst] == [
        ((1, 2), 8.0, 6.0, 2.0),
        ((0, 1), -2.0, -2.5, 0.5),
        ((0, 2), 0.0, 0.25, 0.25),
    ]
    assert found.worst_relative is not None and found.worst_relative.index == (0, 1)
    rows, columns = found.profiles
    assert rows.max_abs == (0.5, 2.0) and rows.mismatched == (2, 1)
    assert columns.mean_abs == (0.0, 0.25, 1.125)
    json.dumps(found.to_dict(), allow_nan=False)


@pytest.mark.parametrize(
    ("dtype", "ulp"), [("float32", 2**-23), ("float64", 2**-52), ("float16", 2**-10)]
)
def test_units_in_the_last_place(dtype: str, ulp: float) -> None:
    kind = getattr(torch, dtype)
    one = torch.tensor([1.0, 1.0, 0.0, -1.0], dtype=kind)
    other = torch.tensor([1 + ulp, 1 - ulp / 2, -0.0, -1 - 3 * ulp], dtype=kind)
    found = compare_tensors(one, other)
    assert found.metrics["max_ulp"] == 3 and found.metrics["mean_ulp"] == 5 / 4


def test_units_are_counted_across_zero_and_through_subnormal_numbers() -> None:
    least = 2.0**-149
    found = compare_tensors(torch.tensor([least, -least]), torch.tensor([-least, 3 * least]))
    assert found.metrics["max_ulp"] == 4 and found.metrics["mean_ulp"] == 3
    wide = torch.finfo(torch.float64)
    found = compare_tensors(torch.tensor(wide.max, dtype=torch.float64), -wide.max)
    assert found.metrics["max_ulp"] == pytest.approx(2 * 0x7FEFFFFFFFFFFFFF)


def test_what_is_not_finite() -> None:
    reference = torch.tensor([NAN, INF, -INF, INF, 1.0, NAN, 2.0])
    test = torch.tensor([NAN, INF, -INF, -INF, NAN, 1.0, 2.0])
    found = compare_tensors(reference, test)
    told = found.metrics
    assert found.verdict == "fail" and told["disagreeing"] == 3 and told["max_abs"] == 0
    assert found.disagreements == ((3,), (4,), (5,)) and len(found.nonfinite) == 6
    assert (told["nan_reference"], told["nan_test"], told["nan_both"]) == (2, 2, 1)
    assert (told["inf_reference"], told["inf_test"], told["inf_both"]) == (3, 3, 2)
    assert [w.error for w in found.worst] == [INF] * 3
    assert compare_tensors(reference[:3], test[:3]).verdict == "pass"
    strict = ComparisonConfig(equal_nan=False)
    assert compare_tensors(reference[:3], test[:3], config=strict).verdict == "fail"
    lenient = ComparisonConfig(max_mismatch_percentage=100.0)
    assert compare_tensors(reference, test, config=lenient).verdict == "fail"


@pytest.mark.parametrize(
    ("one", "other", "verdict"),
    [
        (torch.tensor(1.5), torch.tensor(1.5), "pass"),
        (torch.tensor(1.5), torch.tensor(2.5), "fail"),
        (torch.empty(0, 3), torch.empty(0, 3), "pass"),
        (torch.empty(0, 3), torch.empty(3, 0), "fail"),
        (torch.tensor([0.0]), torch.tensor([-0.0]), "pass"),
        (torch.tensor([True, False]), torch.tensor([True, True]), "fail"),
        (torch.tensor(2**24), torch.tensor(2**24 + 1), "fail"),
        (torch.tensor(2**62), torch.tensor(2**62 + 1), "fail"),
        (torch.tensor(-(2**63)), torch.tensor(2**63 - 1), "fail"),
        (torch.tensor([1 + 2j]), torch.tensor([1 + 2j]), "pass"),
        (torch.tensor([1 + 2j]), torch.tensor([1 + 3j]), "fail"),
        (torch.tensor([complex(NAN, 1)]), torch.tensor([complex(0, NAN)]), "pass"),
        (torch.tensor(1 + 1e-6).double(), torch.tensor(1.0).double(), "fail"),
        (torch.ones(3, device="meta"), torch.ones(3, device="meta"), "unknown"),
        (torch.ones(3), torch.ones(3, dtype=torch.float64), "fail"),
        (torch.ones(4).expand(3, 4), torch.ones(3, 4), "pass"),
        (torch.arange(12.0).view(3, 4).T, torch.arange(12.0).view(3, 4).T.contiguous(), "pass"),
        (torch.eye(3).to_sparse(), torch.eye(3).to_sparse_csr(), "fail"),
        (torch.eye(3).to_sparse_csr(), torch.eye(3).to_sparse_csr(), "pass"),
        (torch.ones(2).to(torch.float8_e4m3fn), torch.ones(2).to(torch.float8_e4m3fn), "pass"),
        (1.0, 1.0, "pass"),
        (1.0, 1.001, "fail"),
        (3, 4, "fail"),
        (2**70, 2**70, "pass"),
    ],
)
def test_any_tensor(one: object, other: object, verdict: str) -> None:
    found = compare_tensors(one, other)
    assert found.verdict == verdict, found.reason
    json.dumps(found.to_dict(), allow_nan=False)


def test_sparse_tensors_are_compared_where_either_has_a_number() -> None:
    one = torch.sparse_coo_tensor([[0, 2], [1, 3]], [1.0, 5.0], (10**6, 10**6))
    other = torch.sparse_coo_tensor([[0, 7], [1, 8]], [1.0, 2.0], (10**6, 10**6))
    found = compare_tensors(one, other)
    assert found.verdict == "fail"
    assert [w.index for w in found.worst] == [(2, 3), (7, 8)]


@pytest.mark.filterwarnings("ignore")
def test_quantized_and_nested_tensors() -> None:
    one = torch.quantize_per_tensor(torch.tensor([0.1, 0.7]), 0.1, 0, torch.qint8)
    other = torch.quantize_per_tensor(torch.tensor([0.1, 0.9]), 0.1, 0, torch.qint8)
    assert compare_tensors(one, one).verdict == "pass"
    assert compare_tensors(one, other).metrics["max_abs"] == pytest.approx(0.2)
    rows = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])
    other_rows = torch.nested.nested_tensor([torch.ones(3), torch.ones(2)])
    assert compare_tensors(rows, rows).verdict == "pass"
    assert compare_tensors(rows, other_rows).verdict == "unknown"


def test_numbers_that_differ_in_place_of_memory_keep_their_index() -> None:
    one = torch.zeros(2, 3, 4).permute(2, 0, 1)
    other = one.clone()
    other[3, 1, 2] = 1
    found = compare_tensors(one, other)
    assert found.worst[0].index == (3, 1, 2)
    assert [p.max_abs.index(1.0) for p in found.profiles] == [3, 1, 2]


def test_a_long_dimension_is_told_in_stretches() -> None:
    one = torch.zeros(5000)
    other = one.clone()
    other[4999] = 1
    (profile,) = compare_tensors(one, other, config=ComparisonConfig(profile_bins=100)).profiles
    assert profile.size == 5000 and len(profile.starts) == 100 and profile.starts[-1] == 4950
    assert profile.mismatched[-1] == 1 and profile.mean_abs[-1] == pytest.approx(1 / 50)


def test_very_large_and_very_small_numbers() -> None:
    huge = torch.tensor([1e200, -1e200], dtype=torch.float64)
    assert compare_tensors(huge, huge * 2).metrics["cosine"] == pytest.approx(1.0)
    assert compare_tensors(huge, huge * 2).metrics["rmse"] == pytest.approx(1e200)
    tiny = torch.tensor([1e-200, 1e-200], dtype=torch.float64)
    assert compare_tensors(tiny, -tiny).metrics["cosine"] == pytest.approx(-1.0)


def test_tolerances() -> None:
    one, other = torch.ones(1000), torch.ones(1000)
    other[0] = 1.01
    assert compare_tensors(one, other).verdict == "fail"
    assert compare_tensors(one, other, config=ComparisonConfig(rtol=0.1)).verdict == "pass"
    few = ComparisonConfig(atol=1e-5, rtol=1e-4, max_mismatch_percentage=0.2)
    assert compare_tensors(one, other, config=few).verdict == "pass"
    named = ComparisonConfig(per_dtype={"float32": (0.1, 0.0), torch.float16: Tolerance(0, 0)})
    assert compare_tensors(one, other, config=named).verdict == "pass"
    assert compare_tensors(one.half(), other.half(), config=named).verdict == "fail"
    usual = ComparisonConfig()
    assert usual.tolerance(torch.float32, 10**6).rtol > 50 * usual.tolerance(torch.float32).rtol
    assert usual.tolerance(torch.int64) == (0, 0)
    for wrong in ({"atol": -1}, {"per_dtype": {"no": (1, 1)}}, {"worst": 1.5}, {"rtol": "x"}):
        with pytest.raises(ToolError):
            ComparisonConfig(**wrong)


OLDER = (
    *("max_absolute_error", "mean_absolute_error", "max_relative_error", "mean_relative_error"),
    "rmse",
)


def test_the_names_that_older_users_know() -> None:
    one = torch.tensor([[1.0, 2.0], [0.0, 4.0]])
    other = torch.tensor([[1.0, 3.0], [0.5, 4.0]])
    found = compare_tensors(one, other, "logits", ComparisonConfig(max_mismatch_percentage=50))
    assert (found.max_absolute_error, found.mean_absolute_error) == (1.0, 0.375)
    assert found.rmse == pytest.approx(math.sqrt(1.25 / 4))
    # The element whose reference is 0 has no relative error.
    assert (found.max_relative_error, found.mean_relative_error) == (0.5, pytest.approx(0.5 / 3))
    assert (found.total_elements, found.mismatched_elements, found.mismatch_count) == (4, 2, 2)
    assert found.mismatch_percentage == 50
    assert found.max_error_indices == (0, 1)
    assert (found.max_error_ref_value, found.max_error_test_value) == (2.0, 3.0)
    assert not found.passed_atol and found.passed_rtol
    assert "logits" in found.summary() and "Max Abs Error: 1.0" in found.summary()
    same = compare_tensors(one, one)
    assert same.passed and same.passed_atol and same.passed_rtol and same.error_message == ""
    assert same.max_error_indices is None and same.max_error_ref_value is None


def test_older_names_where_there_is_no_figure() -> None:
    nan = math.nan
    for one, other in ((torch.empty(0, 3), torch.empty(0, 3)), (tensor(nan), tensor(nan))):
        found = compare_tensors(one, other)
        assert [getattr(found, name) for name in OLDER] == [0.0] * 5
        assert (found.mismatch_count, found.mismatch_percentage) == (0, 0.0)
    half = compare_tensors(tensor(1.0, nan), tensor(1.0, 2.0))
    assert [getattr(half, name) for name in OLDER] == [math.inf] * 5
    assert half.mismatch_percentage == 50 and "finite on one side" in half.error_message
    shapes = compare_tensors(torch.ones(3), torch.ones(4))
    assert [getattr(shapes, name) for name in OLDER] == [math.inf] * 5
    assert (shapes.mismatched_elements, shapes.mismatch_percentage) == (3, 100.0)
    assert (shapes.shape, shapes.test_shape) == ((3,), (4,))
    assert not shapes.passed_atol and not shapes.passed_rtol
    unknown = compare_tensors(torch.ones(3, device="meta"), torch.ones(3, device="meta"))
    assert all(math.isnan(getattr(unknown, name)) for name in OLDER)
    assert (unknown.mismatched_elements, unknown.mismatch_percentage) == (3, 100.0)


def tensor(*values: float) -> torch.Tensor:
    return torch.tensor(values)
