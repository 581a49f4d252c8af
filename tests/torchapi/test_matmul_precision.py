"""How exact float32 products are, whichever of torch's two ways says so."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

torch = pytest.importorskip("torch")

from compilescope.instrument.torchapi.matmul_precision import matmul_precision  # noqa: E402

pytestmark = pytest.mark.torch


@pytest.fixture
def _as_it_was() -> Iterator[None]:
    before = torch.backends.fp32_precision
    yield
    torch.backends.fp32_precision = before
    torch.set_float32_matmul_precision("highest")


@pytest.mark.usefixtures("_as_it_was")
def test_either_way_is_read() -> None:
    """transformers' Trainer takes the second where it compiles on a GPU with TF32."""
    assert matmul_precision() == "highest"
    torch.set_float32_matmul_precision("high")
    assert matmul_precision() == "high"
    torch.set_float32_matmul_precision("highest")
    torch.backends.fp32_precision = "tf32"
    assert matmul_precision() == "high"
    torch.backends.fp32_precision = "ieee"
    assert matmul_precision() == "highest"
