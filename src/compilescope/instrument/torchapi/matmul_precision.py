"""How exact float32 products are, whichever of torch's two ways a program says so."""

from __future__ import annotations

_OF_BACKEND = {"tf32": "high", "bf16": "medium"}


def matmul_precision() -> str:
    """As `torch.get_float32_matmul_precision`, which raises where the program has set
    `torch.backends.fp32_precision` or a backend's (torch 2.9 to 2.13)."""
    import torch

    try:
        return str(torch.get_float32_matmul_precision())
    except RuntimeError:
        return _OF_BACKEND.get(torch.backends.cuda.matmul.fp32_precision, "highest")
