"""A patch: what one fix would change, what a user could see change with it, and several of one text
put together.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Literal

import msgspec

Allowance = (
    Literal[
        "drops-output",
        "moves-output",
        "exception-type",
        "fewer-errors",
        "other-random-numbers",
        "rebuilt-attributes",
        "compiles-less",
        "prepares-eagerly",
    ]
    | str
)
"""A difference that a patch states, so that the verifier does not hold it against it.

`drops-output`: lines on stdout, stderr or in logs are missing. `moves-output`: they come in another
order. `exception-type`: where the original raises, the patched one raises too, but maybe another
class. `fewer-errors`: it may return where the original raises. `other-random-numbers`: values drawn
at random differ, their distribution does not. `rebuilt-attributes`: an attribute gets a tensor of
its own where it shared another's, and a call may make attributes that the original makes in another
call. `compiles-less`: a part of what was captured runs eagerly on purpose.
`prepares-eagerly`: so does a first call, with what no later call does.
`reads:loss`, and the like for each field that the program reads of what a compiled call returns:
other fields may be missing, and what only they need is not computed.
`joins:2`, and the like for each dimension: where the original keeps a list of tensors, there is a
list with one, which is all of them joined in that dimension.
"""
_READS = "reads:"
_JOINS = "joins:"


def reading(fields: Collection[str]) -> frozenset[Allowance]:
    """The program reads these fields of a result alone."""
    return frozenset(_READS + field for field in fields)


def fields_read(allows: Collection[Allowance]) -> frozenset[str] | None:
    """The fields of results that are read; None where all of them count."""
    found = {each.removeprefix(_READS) for each in allows if each.startswith(_READS)}
    return frozenset(found) if found else None


def joining(dims: Collection[int]) -> frozenset[Allowance]:
    """Lists of tensors are kept joined, in one of these dimensions."""
    return frozenset(f"{_JOINS}{dim}" for dim in dims)


def dims_joined(allows: Collection[Allowance]) -> frozenset[int]:
    """The dimensions in which lists of tensors may be joined."""
    found = (each.removeprefix(_JOINS) for each in allows if each.startswith(_JOINS))
    return frozenset(map(int, found))


class Patch(msgspec.Struct, frozen=True):
    """New texts for files of the program."""

    files: Mapping[str, str]
    """By absolute path: the whole new text."""
    states: str = ""
    """What a user could see change, in one sentence; empty where nothing does."""
    allows: frozenset[Allowance] = frozenset()
    environment: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Variables that the program is to be started with."""
    needs_human: str = ""
    """What a person has to fill in or decide; such a patch is never called verified."""
    run_answers: bool = False
    """But for this one: what a person would have to guess, a run of it shows."""
    keeps_break: bool = False
    """Another break in its way stays, in another form: what removes that one is tried first."""

    @property
    def safe(self) -> bool:
        """The same observable behaviour."""
        return not self.states and not self.needs_human

    @property
    def leaves_graph(self) -> bool:
        """A part of what was captured runs eagerly afterwards."""
        return "compiles-less" in self.allows


class Hunk(msgspec.Struct, frozen=True):
    """Lines `start` to `end` (from 0, the end not among them) become `lines`."""

    start: int
    end: int
    lines: tuple[str, ...]

    @property
    def inserts(self) -> bool:
        return self.start == self.end

    def touches(self, other: Hunk) -> bool:
        if self.inserts and other.inserts:
            return False  # Both go there, one after the other.
        if self.inserts or other.inserts:
            put, cut = (self, other) if self.inserts else (other, self)
            return cut.start < put.start < cut.end
        return self.start < other.end and other.start < self.end


def hunks(base: str, text: str) -> list[Hunk]:
    """What makes `text` of `base`."""
    old, new = base.splitlines(keepends=True), text.splitlines(keepends=True)
    codes = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    return [Hunk(i1, i2, tuple(new[j1:j2])) for kind, i1, i2, j1, j2 in codes if kind != "equal"]


def applied(base: str, changes: Sequence[Hunk]) -> str:
    """`base` with changes that do not touch each other."""
    lines = base.splitlines(keepends=True)
    for change in sorted(changes, key=lambda each: (each.start, each.end), reverse=True):
        lines[change.start : change.end] = change.lines
    return "".join(lines)


Texts = Mapping[str, str]


def merge(bases: Texts, patches: Sequence[Texts]) -> tuple[dict[str, str], list[int]]:
    """The texts with as many patches as go together, and which of them those are."""
    taken: dict[str, list[Hunk]] = {}
    kept: list[int] = []
    for number, patch in enumerate(patches):
        wanted = {
            file: [h for h in hunks(bases[file], text) if h not in taken.get(file, [])]
            for file, text in patch.items()
        }
        clash = any(
            new.touches(old)
            for file, changes in wanted.items()
            for new in changes
            for old in taken.get(file, [])
        )
        if clash:
            continue
        kept.append(number)
        for file, changes in wanted.items():
            taken.setdefault(file, []).extend(changes)
    return {file: applied(bases[file], changes) for file, changes in taken.items()}, kept
