"""Torch's numbers for dtypes, as its guards on global state write them."""

from __future__ import annotations

_CODES = {
    "0": "torch.uint8",
    "1": "torch.int8",
    "2": "torch.int16",
    "3": "torch.int32",
    "4": "torch.int64",
    "5": "torch.float16",
    "6": "torch.float32",
    "7": "torch.float64",
    "9": "torch.complex64",
    "10": "torch.complex128",
    "11": "torch.bool",
    "15": "torch.bfloat16",
}


def dtype_of_code(code: str) -> str:
    return _CODES.get(code, code)
