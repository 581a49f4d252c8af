"""What arithmetic of several values gives: torch's rules of promotion and broadcasting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from compilescope.texts import whole_number

_CATEGORIES = {"bool": 0, "uint": 1, "int": 1, "float": 2, "bfloat": 2, "complex": 3}


@dataclass(frozen=True)
class Kind:
    """Of one value; None is what nobody can tell."""

    dtype: str | None = None
    shape: tuple[int, ...] | None = None
    python: bool = False
    """A number of Python's, which widens no tensor of its category."""
    dims: int | None = None
    """How many dimensions it has, where that is known and its sizes are not."""
    grad: bool | None = None
    """Does it require a gradient?"""


UNKNOWN = Kind()


def number_kind(dtype: str | None) -> Kind:
    """Of a Python number."""
    return Kind(dtype, (), python=True, grad=False)


def made_floating(kind: Kind) -> Kind:
    """As a division does."""
    whole = kind.dtype is not None and category(kind.dtype) < 2
    return replace(kind, dtype="float32") if whole else kind


def category(dtype: str) -> int:
    """Truths, whole numbers, numbers with a fraction, complex ones."""
    return _CATEGORIES.get(dtype.rstrip("0123456789"), 2)


def joined_kind(parts: Sequence[Kind]) -> Kind:
    """What arithmetic of these gives, by torch's rules of promotion and broadcasting."""
    shape = broadcast([part.shape for part in parts])
    python = all(part.python for part in parts)
    return replace(Kind(_joined_dtype(parts), shape, python), grad=_joined_grad(parts))


def _joined_grad(parts: Sequence[Kind]) -> bool | None:
    grads = {part.grad for part in parts}
    if True in grads:
        return True
    return None if None in grads else False


def _joined_dtype(parts: Sequence[Kind]) -> str | None:
    if any(part.dtype is None for part in parts):
        return None
    # A tensor with dimensions decides before one without, and that before a number.
    ranks = [0 if part.shape != () else (2 if part.python else 1) for part in parts]
    if any(part.shape is None for part in parts) and len({part.dtype for part in parts}) > 1:
        numbers = [part for part in parts if not part.python]
        if len(numbers) != 1:
            return None
    found: str | None = None
    for rank in range(3):
        for part, own in zip(parts, ranks, strict=True):
            if own != rank:
                continue
            assert part.dtype is not None
            same_rank = found is not None and any(
                own == rank and other.dtype == found
                for other, own in zip(parts, ranks, strict=True)
            )
            found = _wider(found, part.dtype, same_rank)
    return found


def _wider(one: str | None, other: str, same_rank: bool) -> str:
    if one is None or category(other) > category(one):
        return other
    if same_rank and category(other) == category(one) and other != one:
        return _both(one, other)
    return one


def _both(one: str, other: str) -> str:
    """The narrowest dtype that holds the numbers of two of a category."""
    wide = max(one, other, key=_bits)
    if category(one) == 2 and _bits(one) == _bits(other):
        return "float32"  # float16 and bfloat16
    unsigned = [each for each in (one, other) if each.startswith("uint")]
    if (len(unsigned) == 1 and unsigned[0] == wide) or _bits(one) == _bits(other):
        return f"int{2 * _bits(wide)}"
    return wide


def _bits(dtype: str) -> int:
    digits = "".join(each for each in dtype if each.isdigit())
    return whole_number(digits) or 1


def broadcast(shapes: Sequence[tuple[int, ...] | None]) -> tuple[int, ...] | None:
    if any(shape is None for shape in shapes):
        return None
    known = [shape for shape in shapes if shape is not None]
    length = max((len(shape) for shape in known), default=0)
    made = []
    for place in range(-length, 0):
        sizes = {shape[place] for shape in known if len(shape) >= -place} - {1}
        if len(sizes) > 1:
            return None
        made.append(sizes.pop() if sizes else 1)
    return tuple(made)


def completed(found: Kind, seen: Kind) -> Kind:
    """What the source tells, with what a run adds to it."""
    if found.python:
        return found
    return replace(
        found,
        dtype=found.dtype or seen.dtype,
        shape=seen.shape if found.shape is None else found.shape,
        dims=seen.dims if found.dims is None else found.dims,
        grad=seen.grad if found.grad is None else found.grad,
    )
