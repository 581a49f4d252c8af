"""Dispatch keys that a guard missed, without those that differ for reasons of torch's own;
and names of dtypes.
"""

from __future__ import annotations

import re

from compilescope.rules.causes.rule import RecompileCase

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
_SUBJECT = "dispatch keys of "
_ALWAYS = {"BackendSelect"}
"""In the guard's text, not in a tensor's own keys (torch 2.13)."""
DEVICES = (
    "CPU",
    "CUDA",
    "Meta",
    "XPU",
    "MPS",
    "HPU",
    "XLA",
    "MTIA",
    "PrivateUse1",
    "IPU",
    "VE",
    "Lazy",
    "MAIA",
)


def dispatch_tensor(miss: RecompileCase) -> str:
    """The tensor whose dispatch keys changed; else empty."""
    subject = miss.finding.subject
    return subject[len(_SUBJECT) :] if subject.startswith(_SUBJECT) else ""


def keys_gone_and_new(miss: RecompileCase) -> tuple[set[str], set[str]]:
    """Keys that the compilation had and this call lacks, and the reverse."""
    if not dispatch_tensor(miss):
        return set(), set()
    gone = set(re.findall(r"\w+", miss.finding.expected)) - _ALWAYS
    new = set(re.findall(r"\w+", miss.finding.actual)) - _ALWAYS
    # A tensor's own keys name its autocast even when that is off: it says something only alone.
    others = {key for key in gone | new if not key.startswith("Autocast")}
    return (gone & others, new & others) if others else (gone, new)


def device_among(keys: set[str]) -> str:
    """The device that a set of keys belongs to, as torch spells it; else empty."""
    return next((device.lower() for device in DEVICES if device in keys), "")


# Torch's numbers for dtypes, as its guards on global state write them.


def dtype_of_code(code: str) -> str:
    return _CODES.get(code, code)
