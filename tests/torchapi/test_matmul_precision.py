"""How exact float32 products are, whichever of torch's two ways says so."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

torch = pytest.importorskip("torch")

from compilescope.instrument.torchapi.matmul_precision import matmul_precision  # noqa: E402

pytestmark = pytest.mark.torch


@pytest.fixture
def _as_it_was() -> Iterator[None]:
    matmul = torch.backends.cuda.matmul
    before = torch.backends.fp32_precision, matmul.fp32_precision
    yield
    torch.backends.fp32_precision, matmul.fp32_precision = before


@pytest.mark.usefixtures("_as_it_was")
def test_either_way_is_read() -> None:
    """transformers' Trainer takes the second where it compiles on a GPU with TF32."""
    torch.backends.cuda.matmul.fp32_precision = "none"
    torch.backends.fp32_precision = "tf32"
    assert matmul_precision() == "high"
    torch.backends.fp32_precision = "ieee"
    assert matmul_precision() == "highest"
    torch.set_float32_matmul_precision("medium")
    assert matmul_precision() == "medium"
    torch.set_float32_matmul_precision("highest")
