"""Numbers of bytes, as people write them and as they like to read them."""

from __future__ import annotations

from compilescope.base.patterns import late

_UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}
_UNITS |= {
    unit: 2**power
    for letter, power in (("k", 10), ("m", 20), ("g", 30), ("t", 40))
    for unit in (letter, f"{letter}ib")
}
_BYTES = late(r"^\s*(\d[\d_]*(?:\.\d+)?(?:[eE]\+?\d+)?)\s*([a-zA-Z]*)(?:(?<=[a-zA-Z])\s*)?$")


def parse_bytes(value: object) -> int:
    """A number of bytes, or a text such as `16 GiB` and `1.5e9`; ValueError for what is none."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise ValueError(f"{value!r} is not a number of bytes")
    number: float = 0
    if isinstance(value, str):
        match = _BYTES.match(value)
        if match is None or match[2].lower() not in _UNITS:
            raise ValueError(f'{value!r} is not a number of bytes such as 1048576 or "16 GiB"')
        number = float(match[1].replace("_", "")) * _UNITS[match[2].lower()]
    else:
        number = value
    if not 1 <= number < 2**63:
        raise ValueError(f"{value!r} is not a positive number of bytes")
    return int(number)


def shown_bytes(size: int) -> str:
    for unit, factor in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if size >= factor:
            number = f"{size / factor:.1f}".removesuffix(".0")
            return f"{number} {unit}"
    return f"{size} byte{'' if size == 1 else 's'}"
