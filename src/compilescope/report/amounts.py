"""Bytes and floating point operations as people read them. Unknown is never zero."""

from __future__ import annotations

from compilescope.graphs.statistics import Amount

_BYTES = ("B", "KB", "MB", "GB", "TB")
_FLOPS = ("FLOPs", "kFLOPs", "MFLOPs", "GFLOPs", "TFLOPs", "PFLOPs")


def shown_bytes(amount: Amount) -> str:
    """`1.5 MB`, `at least 2.0 KB`, `unknown`; a kilobyte is 1024 bytes."""
    return _shown(amount, _BYTES, 1024)


def shown_flops(amount: Amount) -> str:
    return _shown(amount, _FLOPS, 1000)


def _shown(amount: Amount, units: tuple[str, ...], step: int) -> str:
    if amount.at_least and not amount.known:
        return "unknown"
    value, unit = float(amount.known), 0
    while value >= step and unit < len(units) - 1:
        value, unit = value / step, unit + 1
    number = f"{value:.0f}" if not unit or value >= 100 else f"{value:.1f}"
    return f"{'at least ' if amount.at_least else ''}{number} {units[unit]}"


def shown_number(number: float) -> str:
    """With a letter of the decimal system: `918k`, `2.1T`."""
    for letter, scale in (("P", 1e15), ("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if number >= scale:
            value = number / scale
            return f"{value:.2g}{letter}" if value < 99 else f"{value:.0f}{letter}"
    return f"{number:.0f}" if number >= 10 else f"{number:.2g}"


def shown_rate(number: float, unit: str) -> str:
    """`790 TFLOP/s`."""
    text = shown_number(number)
    return f"{text[:-1]} {text[-1]}{unit}" if text[-1].isalpha() else f"{text} {unit}"
