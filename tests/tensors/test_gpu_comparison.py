"""Tensors on an accelerator are compared there, stretch by stretch."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from compilescope.measure.tensors.comparison import compare_tensors  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.gpu]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.int64])
def test_the_same_figures_as_on_the_host(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    one = (10 * torch.randn(300, 500)).to(dtype)
    other = (one.double() * (1 + 1e-2 * torch.randn(300, 500))).to(dtype)
    host = compare_tensors(one, other)
    for sides in ((one.cuda(), other.cuda()), (one.cuda(), other), (one, other.cuda())):
        found = compare_tensors(*sides)
        assert found.metrics == pytest.approx(host.metrics)
        assert found.worst == host.worst and found.verdict == host.verdict


def test_memory_on_the_device_is_bounded() -> None:
    one = torch.randn(1 << 27, device="cuda")
    other = one * (1 + 1e-7)
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    assert compare_tensors(one, other).verdict == "pass"
    assert torch.cuda.max_memory_allocated() - before < 256 * 2**20


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_reductions_in_half_on_the_device_are_judged(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    a = torch.randn(256, 2048, device="cuda", dtype=dtype)
    b = torch.randn(2048, 256, device="cuda", dtype=dtype)
    exact, reference = a.double() @ b.double(), a @ b
    split = (a.float() @ b.float()).to(dtype)
    assert compare_tensors(reference, split, exact=exact).verdict == "pass"
    short = a[:, :-1] @ b[:-1]
    assert compare_tensors(reference, short, exact=exact).verdict == "fail"


def test_tf32_is_told_from_float32() -> None:
    torch.manual_seed(0)
    a, b = (torch.randn(512, 512, device="cuda") for _ in range(2))
    before = torch.backends.cuda.matmul.allow_tf32
    try:
        torch.backends.cuda.matmul.allow_tf32 = False
        reference = a @ b
        torch.backends.cuda.matmul.allow_tf32 = True
        test = a @ b
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before
    assert compare_tensors(reference, test, exact=a.double() @ b.double()).verdict == "fail"
