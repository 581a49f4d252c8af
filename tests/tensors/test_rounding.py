"""Rounding told from wrongness, on real operations in three dtypes."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402

from compilescope.measure.tensors.comparison import compare_tensors  # noqa: E402
from compilescope.measure.tensors.rounding import RoundingJudgement, judge  # noqa: E402
from compilescope.measure.tensors.tolerances import ComparisonConfig  # noqa: E402

pytestmark = pytest.mark.torch
Tensor = torch.Tensor
DTYPES = (torch.float32, torch.float16, torch.bfloat16)


def judged(
    op: Callable[..., Tensor],
    other: Callable[..., Tensor],
    inputs: tuple[Tensor, ...],
    dtype: torch.dtype = torch.float32,
    reduction: int | None = None,
) -> RoundingJudgement:
    args = [value.to(dtype) for value in inputs]
    exact = op(*(value.double() for value in args))
    return judge(op(*args), other(*args), exact, reduction=reduction)


def numbers(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


X, W = numbers(128, 256), numbers(256, 256, seed=1) / 16
A, B = numbers(64, 512, seed=2), numbers(512, 48, seed=3)


def wide(op: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """In float32 inside, as compilers do."""
    return lambda *args: op(*(value.float() for value in args)).to(args[0].dtype)


def halves(a: Tensor, b: Tensor) -> Tensor:
    middle = a.shape[1] // 2
    return a[:, :middle] @ b[:middle] + a[:, middle:] @ b[middle:]


def one_by_one(values: Tensor) -> Tensor:
    found = torch.zeros_like(values[..., 0])
    for at in range(values.shape[-1]):
        found = found + values[..., at]
    return found


def softmax(x: Tensor) -> Tensor:
    powers = (x - x.amax(-1, keepdim=True)).exp()
    return powers / powers.sum(-1, keepdim=True)


def layer_norm(x: Tensor) -> Tensor:
    off = x - x.mean(-1, keepdim=True)
    return off * torch.rsqrt((off * off).mean(-1, keepdim=True) + 1e-5)


def unfolded(x: Tensor, w: Tensor) -> Tensor:
    columns = F.unfold(x, 3, padding=1)
    return (w.flatten(1) @ columns).view(x.shape[0], w.shape[0], *x.shape[2:])


def convolution(x: Tensor, w: Tensor) -> Tensor:
    return F.conv2d(x, w, padding=1)


def chain(x: Tensor, w: Tensor, steps: int = 8) -> Tensor:
    for _ in range(steps):
        x = torch.tanh(x @ w) + x
    return x


RIGHT = {
    "matmul": (torch.matmul, halves, (A, B)),
    "softmax": (lambda x: F.softmax(x, -1), softmax, (X * 3,)),
    "layer norm": (lambda x: F.layer_norm(x, (256,)), layer_norm, (X,)),
    "layer norm far from 0": (lambda x: F.layer_norm(x, (256,)), wide(layer_norm), (X + 10,)),
    "sum": (lambda x: x.sum(-1), wide(one_by_one), (X,)),
    "variance": (lambda x: x.var(-1), wide(lambda x: x.flip(-1).var(-1)), (X + 5,)),
    "gelu": (F.gelu, lambda x: 0.5 * x * torch.erfc(-x / math.sqrt(2)), (X,)),
    "exp": (torch.exp, lambda x: torch.exp2(x * 1.4426950408889634), (X,)),
    "relu": (lambda x, w: torch.relu(x @ w), lambda x, w: torch.relu(halves(x, w)), (X, W)),
    "chain": (chain, wide(chain), (X[:32], W)),
    "convolution": (convolution, unfolded, (numbers(2, 8, 12, 12), numbers(6, 8, 3, 3, seed=4))),
    "cancellation": (
        lambda x: (x + 100) - 100 - x,
        wide(lambda x: (x + 100) - 100 - x),
        (X,),
    ),
}


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", RIGHT)
def test_another_order_of_the_same_computation_does_not_fail(name: str, dtype: torch.dtype) -> None:
    op, other, inputs = RIGHT[name]
    found = judged(op, other, inputs, dtype)
    assert found.verdict == "pass", found.reason


def half_sum(a: Tensor, b: Tensor) -> Tensor:
    a, b = a.half(), b.half()
    found = torch.zeros(a.shape[0], b.shape[1], dtype=torch.half)
    for at in range(a.shape[1]):
        found = found + a[:, at : at + 1] * b[at]
    return found.float()


def row_copied(values: Tensor) -> Tensor:
    values = values.clone()
    values[5] = values[6]
    return values


def one_changed(values: Tensor) -> Tensor:
    values = values.clone()
    values[5, 7] = values[5, 7] * 2 + 1
    return values


WRONG = {
    "a term dropped": (torch.matmul, lambda a, b: a[:, :-1] @ b[:-1], (A, B), DTYPES),
    "summed in half": (torch.matmul, half_sum, (A, B), DTYPES[:1]),
    "wrong dim": (lambda x: F.softmax(x, -1), lambda x: F.softmax(x, 0), (X * 3,), DTYPES),
    "gelu by tanh": (F.gelu, lambda x: F.gelu(x, approximate="tanh"), (X,), DTYPES[:1]),
    "wrong eps": (
        lambda x: F.layer_norm(x, (256,)),
        lambda x: F.layer_norm(x, (256,), eps=1e-6),
        (X,),
        DTYPES[:1],
    ),
    "unbiased": (
        lambda x: x.var(-1, correction=0),
        lambda x: x.var(-1),
        (X,),
        DTYPES[:1],
    ),
    "one row": (chain, lambda x, w: row_copied(chain(x, w)), (X, W), DTYPES),
    "one element": (chain, lambda x, w: one_changed(chain(x, w)), (X, W), DTYPES),
    "a step left out": (chain, lambda x, w: chain(x, w, 7), (X, W), DTYPES),
    "scaled": (chain, lambda x, w: 1.3 * chain(x, w), (X, W), DTYPES),
    "no bias": (lambda x, w: x @ w + 0.2, torch.matmul, (X, W), DTYPES),
}


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        pytest.param(name, dtype, marks=pytest.mark.slow if number else ())
        for name, (*_, dtypes) in WRONG.items()
        for number, dtype in enumerate(dtypes)
    ],
    ids=str,
)
def test_what_is_wrong_fails(name: str, dtype: torch.dtype) -> None:
    op, other, inputs, _ = WRONG[name]
    found = judged(op, other, inputs, dtype, 512)
    assert found.verdict == "fail", found.reason


def test_small_rows_are_not_hidden_by_large_ones() -> None:
    rows = torch.logspace(0, 6, 128)[:, None]

    def op(x: Tensor, w: Tensor) -> Tensor:
        return (x * rows.to(x.dtype)) @ w

    def wrong(x: Tensor, w: Tensor) -> Tensor:
        found = op(x, w)
        found[0] *= 1.01
        return found

    assert judged(op, wrong, (X, W)).verdict == "fail"
    assert judged(op, lambda x, w: halves(x * rows, w), (X, W)).verdict == "pass"


def test_the_nearer_one_passes_however_far_the_reference_is() -> None:
    args = [value.to(torch.bfloat16) for value in (X[:32], W)]
    exact = chain(args[0].double(), args[1].double(), 16)
    reference, test = chain(*args, 16), wide(lambda x, w: chain(x, w, 16))(*args)
    found = compare_tensors(reference, test, exact=exact)
    assert found.verdict == "pass" and "closer to float64" in found.reason
    assert found.judgement is not None and found.metrics["mismatched"] > 100
    # A tolerance that is broken is no fault where float64 says who is nearer.
    strict = ComparisonConfig(atol=1e-5, rtol=1e-4)
    assert compare_tensors(reference, test, config=strict, exact=exact).verdict == "pass"


def test_wrong_fails_where_the_reference_is_far_off_too() -> None:
    """float16 that loses a fifth of its digits, and a test that is plainly another function."""
    x = (numbers(64, 128) * 20).half()

    def unstable(x: Tensor) -> Tensor:
        return ((x + 2000) - 2000) * 3

    exact, reference = unstable(x.double()), unstable(x)
    assert float((reference - exact).abs().mean() / exact.abs().mean()) > 0.005
    assert judge(reference, (reference * 1.2).half(), exact).verdict == "fail"
    assert judge(reference, (x * 3).half(), exact).verdict == "pass"


def test_between_rounding_and_wrong_nobody_can_tell() -> None:
    exact = X.double()
    found = judge(X, X * (1 + 6 * 2**-23), exact)
    assert found.verdict == "unknown" and "inconclusive" in found.reason
    given = ComparisonConfig(rtol=1e-8, atol=0.0)
    assert judge(X, X * (1 + 6 * 2**-23), exact, given).verdict == "fail"


def test_without_float64_the_tolerance_decides_and_cancellation_is_not_blamed() -> None:
    big = torch.tensor([1e6, 0.0])
    assert judge(big, big + torch.tensor([0.0, 0.1]), None).verdict == "unknown"
    assert judge(big, big + torch.tensor([0.0, 50.0]), None).verdict == "fail"
    assert judge(X, F.gelu(X), None).verdict == "fail"
    assert judge(X, X * (1 + 2**-23), None).verdict == "pass"
    # float64 is no finer than itself.
    found = judge(X.double(), X.double() * (1 + 1e-6), X.double())
    assert found.verdict == "fail" and "not precise enough" in found.reason


@pytest.mark.parametrize(
    ("reference", "test", "exact", "verdict"),
    [
        ([math.inf, 1.0], [math.nan, 1.0], [1e39, 1.0], "unknown"),
        ([math.inf, 1.0], [65504.0, 1.0], [65504.0, 1.0], "pass"),
        ([2.0, 1.0], [math.nan, 1.0], [2.0, 1.0], "fail"),
        ([math.nan, 1.0], [math.nan, 1.0], [math.nan, 1.0], "pass"),
        ([math.nan, 1.0], [2.0, 1.0], [math.nan, 1.0], "fail"),
        ([math.inf, 1.0], [-math.inf, 1.0], [math.inf, 1.0], "fail"),
    ],
)
def test_what_is_not_finite(
    reference: list[float], test: list[float], exact: list[float], verdict: str
) -> None:
    wide = torch.tensor(exact, dtype=torch.float64)
    sides = torch.tensor(reference), torch.tensor(test), wide
    assert judge(*sides).verdict == verdict


def test_whole_numbers_that_come_from_rounded_ones() -> None:
    exact = torch.arange(1000)
    flipped = exact.clone()
    flipped[:3] += 1
    other = exact.clone()
    other[5:8] += 1
    assert judge(exact, other, exact).verdict == "fail"
    assert judge(flipped, other, exact).verdict == "pass"
    assert judge(flipped, exact + 1, exact).verdict == "fail"


def test_a_single_number() -> None:
    def loss(x: Tensor) -> Tensor:
        return ((x - 1) ** 2).mean()

    for dtype in DTYPES:
        right = judged(loss, wide(lambda x: ((x - 1) ** 2).sum() / x.numel()), (X,), dtype)
        assert right.verdict == "pass", right.reason
        assert judged(loss, lambda x: 1.2 * loss(x), (X,), dtype).verdict == "fail"
