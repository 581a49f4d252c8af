"""Arithmetic with sizes, of which some are known only when the program runs.

torch writes such a size as a formula of symbols: `s0`, `8*s0 + 16`, `s27*s31`. Formulas are held
as sums of products, and what cannot be read is a symbol of its own.
"""

from __future__ import annotations

import ast
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from compilescope.knowledge.rules.hardware.constraint import is_input, is_parameter, shown_shape
from compilescope.knowledge.rules.hardware.op_names import OpPatterns
from compilescope.record.device import ALL_DIMS, AlignedDims, Alignment
from compilescope.record.graph import Node, TensorInfo

Size = int | str
_Term = tuple[str, ...]
"""Symbols that are multiplied, sorted."""
Sum = dict[_Term, int]
"""What is added up: products of symbols, and how many of each."""

_LONGEST = 300
"""Letters of a formula that is taken apart. Chosen: it bounds the time; a longer one is one
unknown."""
_BACKED = re.compile(r"^s\d+$")
_MOST_TERMS = 50
"""Of a sum. Chosen: products grow with the square of it; beyond, the formula is one unknown."""


def read_size(size: Size) -> Sum:
    """A size as a sum of products."""
    if isinstance(size, int):
        return {(): size} if size else {}
    return dict(_read_text(size))


@lru_cache(maxsize=4096)
def _read_text(text: str) -> tuple[tuple[_Term, int], ...]:
    whole: Sum = {(text.strip(),): 1}
    if len(text) > _LONGEST:
        return tuple(whole.items())
    try:
        read = _read(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        read = whole
    return tuple((read if len(read) <= _MOST_TERMS else whole).items())


def _read(tree: ast.expr) -> Sum:
    if isinstance(tree, ast.Constant) and type(tree.value) is int:
        return read_size(tree.value)
    if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.USub):
        return multiply({(): -1}, _read(tree.operand))
    if isinstance(tree, ast.BinOp):
        left = _read(tree.left)
        if isinstance(tree.op, ast.Add):
            return _add(left, _read(tree.right))
        if isinstance(tree.op, ast.Sub):
            return _add(left, multiply({(): -1}, _read(tree.right)))
        if isinstance(tree.op, ast.Mult):
            return multiply(left, _read(tree.right))
        power = tree.right.value if isinstance(tree.right, ast.Constant) else None
        if isinstance(tree.op, ast.Pow) and type(power) is int and 2 <= power <= 4:
            whole = left
            for _ in range(power - 1):
                whole = multiply(whole, left)
            return whole
    return {(ast.unparse(tree),): 1}


def read_stride(stride: Size, shape: Sequence[Size]) -> Sum:
    """A stride of a tensor of that shape.

    torch writes `Max(1, s0 - 2)` where a size may be 0. Then the tensor is empty and its strides
    mean nothing, so they are taken for the sizes that they are made of.
    """
    if isinstance(stride, int) or "Max(1, " not in stride:
        return read_size(stride)
    return dict(_read_stride(stride, tuple(size for size in shape if isinstance(size, str))))


@lru_cache(maxsize=4096)
def _read_stride(stride: str, sizes: tuple[str, ...]) -> tuple[tuple[_Term, int], ...]:
    factors = [_unparsed(factor) for size in sizes for factor in _factors(size)]
    for factor in sorted(factors, key=len, reverse=True):
        stride = stride.replace(f"Max(1, {factor})", f"({factor})")
    return tuple(read_size(stride).items())


def _factors(size: str) -> Iterator[ast.expr]:
    """A product is 0 where one of these is."""
    try:
        waiting = [ast.parse(size.strip(), mode="eval").body]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    while waiting:
        tree = waiting.pop()
        yield tree
        if isinstance(tree, ast.BinOp) and isinstance(tree.op, ast.Mult):
            waiting += [tree.left, tree.right]
        elif isinstance(tree, ast.BinOp) and isinstance(tree.op, ast.Pow):
            waiting.append(tree.left)


def _unparsed(tree: ast.expr) -> str:
    return ast.unparse(tree).replace(" ** ", "**").replace(" * ", "*").replace(" // ", "//")


def _add(left: Sum, right: Sum) -> Sum:
    total = Counter(left)
    total.update(right)
    return {term: count for term, count in total.items() if count}


def multiply(left: Sum, right: Sum) -> Sum:
    if len(left) * len(right) > _MOST_TERMS * _MOST_TERMS:
        raise ValueError("too long a formula")
    total: Counter[_Term] = Counter()
    for one, count in left.items():
        for other, times in right.items():
            total[tuple(sorted((*one, *other)))] += count * times
    return {term: count for term, count in total.items() if count}


def is_multiple(size: Size, of: int) -> bool | None:
    """None where it depends on what a symbol will be."""
    if isinstance(size, int):
        return size % of == 0
    return True if all(count % of == 0 for count in read_size(size).values()) else None


def equal(left: Sum, right: Sum) -> bool | None:
    """None where it depends on what the symbols will be."""
    gap = _add(left, _minus(right))
    if not gap:
        return True
    try:
        return False if _least(gap) > 0 or _least(_minus(gap)) > 0 else None
    except ValueError:  # Too long a formula.
        return None


def at_least(left: Sum, right: Sum) -> bool:
    """Is it never less, whatever the symbols will be?"""
    try:
        return _least(_add(left, _minus(right))) >= 0
    except ValueError:  # Too long a formula.
        return False


def _minus(size: Sum) -> Sum:
    return {term: -count for term, count in size.items()}


def _least(size: Sum) -> float:
    """The smallest that it can be, as far as one can tell.

    Written in what each symbol has beyond its smallest value: `s0**2 - s0` is never below 2.
    """
    beyond: Sum = {}
    for term, count in size.items():
        whole: Sum = {(): count}
        for symbol in term:
            whole = multiply(whole, {(symbol,): 1, (): _least_symbol(symbol)})
        beyond = _add(beyond, whole)
    least = beyond.pop((), 0)
    return -math.inf if any(count < 0 for count in beyond.values()) else least


def _least_symbol(symbol: str) -> int:
    """torch makes sizes of 0 and 1 constants, unless they are unbacked (`u0`)."""
    return 2 if _BACKED.match(symbol) else 0


# Sizes that break an alignment rule: where each was met first, and what to do about it.


class SizePlace(NamedTuple):
    """Where a size was met."""

    dims: tuple[int, ...]
    shaped: TensorInfo

    @property
    def words(self) -> str:
        name = "dimension" if len(self.dims) == 1 else "dimensions"
        return f"{name} {', '.join(map(str, self.dims))} of {shown_shape(self.shaped)}"


Broken = dict[Size, list[tuple[Alignment, SizePlace, str]]]


def note_odd(broken: Broken, rule: Alignment, shaped: TensorInfo, op: str) -> None:
    for size, dims in sizes_in(shaped.shape, rule.dims):
        if not is_multiple(size, rule.multiple):
            broken.setdefault(size, []).append((rule, SizePlace(dims, shaped), op))


def all_sizes(shapes: Iterable[TensorInfo]) -> dict[Size, SizePlace]:
    """All sizes, and where each was met first."""
    found: dict[Size, SizePlace] = {}
    for shaped in shapes:
        for size, dims in sizes_in(shaped.shape, tuple(range(len(shaped.shape)))):
            found.setdefault(size, SizePlace(dims, shaped))
    return found


@lru_cache(maxsize=16384)
def sizes_in(
    shape: tuple[Size, ...], dims: AlignedDims
) -> tuple[tuple[Size, tuple[int, ...]], ...]:
    """The sizes of these dimensions, and which of the dimensions have it."""
    rank = len(shape)
    if dims == ALL_DIMS:
        dims = tuple(dim for dim in range(rank) if shape[dim] != 1)
    at: dict[Size, list[int]] = {}
    for dim in sorted({dim % rank for dim in dims if -rank <= dim < rank}):
        at.setdefault(shape[dim], []).append(dim)
    return tuple((size, tuple(where)) for size, where in at.items())


def concerned(node: Node, patterns: OpPatterns) -> list[tuple[TensorInfo, str]]:
    """What the operators in question give and take."""
    if not node.calls:
        return []
    own = patterns.match(node.target)
    found: dict[tuple[TensorInfo, str], None] = {}
    for call in node.calls:
        if own or patterns.match(call.op):
            for shaped in (*call.outputs, *call.inputs):
                found[shaped, call.op] = None
    return list(found)


def rule_words(rule: Alignment) -> str:
    words = f"multiples of {rule.multiple}"
    return f"{words} for {', '.join(rule.ops)}" if rule.ops else words


def split_words(node: Node, place: SizePlace, size: int, most: int) -> str:
    if is_parameter(node):
        return f"Split the layer into {-(-size // most)} parts."
    return f"Process it in pieces: `.split({most}, dim={place.dims[0]})`."


def pad_words(node: Node, place: SizePlace, size: int, padded: int) -> str:
    if is_parameter(node):
        return f"Create the layer with {padded} instead of {size}, or pad its weights with zeros."
    rank = len(place.shaped.shape)
    widths = [0] * rank
    for dim in place.dims:
        widths[dim] = padded - size
    while widths and widths[0] == 0:
        del widths[0]
    zeros = ", ".join(f"0, {width}" for width in reversed(widths))
    when = " before the call" if is_input(node) else ""
    return f"Pad {size} to {padded}{when}: `torch.nn.functional.pad(x, ({zeros}))`."
