"""Dispatch keys that a guard missed, without those that differ for reasons of torch's own."""

from __future__ import annotations

import re

from compilescope.rules.causes.rule import RecompileCase

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
