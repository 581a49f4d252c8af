"""What a fix is: one file, which says what it is for, when it fits, and what it changes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from compilescope.fixes.patch import Patch
from compilescope.fixes.subject import Subject

Kind = Literal["source", "caller", "config", "scaffold"]
"""`source` changes the lines concerned; `caller` changes how a library is used; `config` sets a
flag of PyTorch's; `scaffold` is a beginning that a person has to finish."""


@dataclass(frozen=True)
class FixExample:
    """A program that loses something, and what the fix makes of it, byte for byte."""

    bad: str
    good: str
    note: str = ""
    """Why it is here, where that is not plain."""


@dataclass(frozen=True)
class RefusalExample:
    """A program that the fix must leave alone, and a part of the reason that it gives."""

    program: str
    because: str


@dataclass(frozen=True)
class Fix:
    """A way to win one kind of loss back; of those that fit, the first by `order` comes first."""

    id: str
    """Kebab-case; names the change: `where-for-if`."""
    title: str
    """What it does, in a few words, for tables: `torch.where instead of if`."""
    rules: frozenset[str]
    """Keys of a subject (see `Subject.keys`): rule ids, graph-break ids, categories."""
    order: int
    """Below 100: same behaviour by construction. Below 200: states what changes, or a flag.
    From 200 on: a last resort, a scaffold."""
    kind: Kind
    why: str
    """Why the result is the same, or what changes; for the documentation."""
    propose: Callable[[Subject], Patch]
    """Raises `Refused` with the reason where it does not fit."""
    examples: tuple[FixExample, ...]
    refusals: tuple[RefusalExample, ...] = ()
    only_run_tells: bool = False
    """It switches off something that the program may need: without a run it is no advice."""
