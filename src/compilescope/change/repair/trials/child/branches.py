"""Records which lines, and which sides of branches, an eager call runs through.

In the user's own files, and in others that the caller names. By opcode, because `a if c else b` and
`a and b` are on one line. Branches that a tensor decides are marked.
"""

from __future__ import annotations

import dis
import itertools
import os
import sys
from collections.abc import Collection
from dataclasses import dataclass, field
from types import CodeType, FrameType
from typing import Any, NamedTuple

import torch
from torch.overrides import TorchFunctionMode

from compilescope.base.package import PACKAGE
from compilescope.instrument.torchapi.stacks import origin

_OUR_ROOT = PACKAGE + os.sep
_CONDITIONAL = ("POP_JUMP", "JUMP_IF_TRUE_OR_POP", "JUMP_IF_FALSE_OR_POP")
_NO_CODE = ("CACHE", "EXTENDED_ARG", "NOT_TAKEN")
_COMPARING = frozenset(
    f"{before}{name}{before}"
    for name in ("gt", "ge", "lt", "le", "eq", "ne", "greater", "less")
    for before in ("", "__")
)


Asked = tuple[Any, ...]
"""The inputs that a region was given: the region, the call, the recipe."""


@dataclass(eq=False)
class SourceBranch:
    """One condition in the source."""

    line: int
    function: str
    column: int | None = None
    taken: set[tuple[bool, Asked]] = field(default_factory=set)
    """What the condition was, and on which inputs."""
    by_tensor: bool = False
    by_none: bool = False
    """Asked was whether something is None, also where the source has `is not None`."""

    @property
    def sides(self) -> set[bool]:
        return {side for side, _ in self.taken}


class _Jump(NamedTuple):
    """An instruction that decides by it."""

    branch: SourceBranch
    goes_on: frozenset[int]
    """Where the instruction after it may be seen."""
    jumps_if: bool


class _Store(NamedTuple):
    """An instruction that gives what was compared a name: `any_picked = count > 0`."""

    name: str
    offset: int
    line: int


class Coverage:
    """What was gone through so far."""

    def __init__(self, files: Collection[str]) -> None:
        """`files`: beside the user's own."""
        self.lines: dict[str, set[int]] = {}
        self.asked: Asked = ()
        """What the calls that follow are given."""
        self.margins: dict[Any, float] | None = None
        """By place, where that is asked for: what is left to the border in its first comparison of
        tensors, in one of their numbers."""
        self._measured: dict[Any, int] = {}
        self._files = set(files)
        self._wanted: dict[str, bool] = {}
        self._codes: dict[CodeType, dict[int, _Jump]] = {}
        self._kept: dict[CodeType, dict[int, _Store]] = {}
        self._values: dict[tuple[CodeType, int], SourceBranch] = {}

    def branches(self) -> list[tuple[str, SourceBranch]]:
        found: dict[int, tuple[str, SourceBranch]] = {}
        for code, jumps in self._codes.items():
            for jump in jumps.values():
                found[id(jump.branch)] = (code.co_filename, jump.branch)
        return list(found.values())

    def values(self) -> list[tuple[str, SourceBranch]]:
        """Truths that are read out of tensors, or compared, and kept: what hangs on them may be
        elsewhere."""
        return [(code.co_filename, branch) for (code, _), branch in self._values.items()]

    @property
    def sides(self) -> int:
        """How many sides of branches were seen: grows with each new one."""
        return sum(len(branch.sides) for _, branch in (*self.branches(), *self.values()))

    def _jumps(self, code: CodeType) -> dict[int, _Jump]:
        if code not in self._codes:
            self._codes[code] = _jumps(code)
        return self._codes[code]

    def _stores(self, code: CodeType) -> dict[int, _Store]:
        if code not in self._kept:
            self._kept[code] = _stores(code)
        return self._kept[code]

    def __enter__(self) -> Coverage:
        self._before = sys.gettrace()
        self._watch = _Tests(self)
        self._watch.__enter__()
        # Python 3.12 sends opcode events only if some frame asked for them before settrace.
        sys._getframe().f_trace_opcodes = True
        sys.settrace(self._call)
        return self

    def __exit__(self, *error: Any) -> None:
        sys.settrace(self._before)
        self._watch.__exit__(*error)

    def _call(self, frame: FrameType, event: str, arg: Any) -> Any:
        file = frame.f_code.co_filename
        if not self._wants(file):
            return None
        lines = self.lines.setdefault(file, set())
        jumps = self._jumps(frame.f_code)
        stores = self._stores(frame.f_code)
        frame.f_trace_opcodes = bool(jumps or stores)
        last: _Jump | None = None
        stored: _Store | None = None
        asked = self.asked

        def trace(frame: FrameType, event: str, arg: Any) -> Any:
            nonlocal last, stored
            if event == "line":
                lines.add(frame.f_lineno)
            elif event == "opcode":
                here, kept = jumps.get(frame.f_lasti), stores.get(frame.f_lasti)
                if last is not None and here is not last:
                    jumped = frame.f_lasti not in last.goes_on
                    last.branch.taken.add((jumped == last.jumps_if, asked))
                if stored is not None and kept is not stored:
                    held = frame.f_locals.get(stored.name)
                    if type(held) is bool:
                        self._keep(frame.f_code, stored.offset, stored.line, held)
                last, stored = here, kept
            return trace

        return trace

    def _wants(self, file: str) -> bool:
        found = self._wanted.get(file)
        if found is None:
            own = origin(file) == "user" and not file.startswith(_OUR_ROOT)
            found = self._wanted[file] = own or file in self._files
        return found

    def tested(self, code: CodeType, offset: int) -> None:
        """A tensor was asked for its truth here."""
        jumps = self._codes.get(code)
        if not jumps:
            return
        # From Python 3.12 on a jump follows an instruction of its own that asks.
        later = [at for at in jumps if offset <= at <= offset + 16]
        if later:
            jumps[min(later)].branch.by_tensor = True

    def read(self, frame: FrameType, truth: bool) -> None:
        """A tensor's truth became a bool of Python's here: `.item()`, `bool(t)`."""
        code, offset = frame.f_code, frame.f_lasti
        if self._wants(code.co_filename):
            self._keep(code, offset, frame.f_lineno, truth)

    def compared(self, frame: FrameType, args: tuple[Any, ...]) -> None:
        """Tensors were compared here."""
        place = frame.f_code, frame.f_lasti
        if self.margins is None or place in self.margins or len(args) != 2:
            return
        if not self._wants(frame.f_code.co_filename):
            return
        try:
            left = (torch.as_tensor(args[0]) - torch.as_tensor(args[1])).detach().reshape(-1)
            at = self._measured.setdefault(place, int(left.abs().argmin()))
            self.margins[place] = float(left[at])
        except (RuntimeError, TypeError, ValueError, IndexError):
            return  # Of truths, of nothing, or of what is no number.

    def _keep(self, code: CodeType, offset: int, line: int, truth: bool) -> None:
        branch = self._values.get((code, offset))
        if branch is None:
            branch = SourceBranch(line, code.co_name)
            self._values[code, offset] = branch
        branch.taken.add((truth, self.asked))


class _Tests(TorchFunctionMode):  # type: ignore[misc]
    def __init__(self, coverage: Coverage) -> None:
        super().__init__()
        self._coverage = coverage

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "")
        if name == "__bool__" and func is torch.Tensor.__bool__:
            frame = sys._getframe(1)
            self._coverage.tested(frame.f_code, frame.f_lasti)
        if self._coverage.margins is not None and name in _COMPARING:
            self._coverage.compared(sys._getframe(1), args)
        found = func(*args, **(kwargs or {}))
        if name in ("__bool__", "item") and type(found) is bool:
            self._coverage.read(sys._getframe(1), found)
        return found


def _jumps(code: CodeType) -> dict[int, _Jump]:
    found: dict[int, _Jump] = {}
    instructions = [i for i in dis.get_instructions(code) if i.opname not in _NO_CODE]
    seen_at = _seen_at(code)
    twins: dict[Any, SourceBranch] = {}
    before = ""
    line = code.co_firstlineno
    asked: Any = None
    for here, following in itertools.pairwise(instructions):
        place = getattr(here, "positions", None)
        if place is None and here.starts_line:
            line = here.starts_line
        # How a `with` leaves by an exception is no branch of anybody's.
        leaves = before == "WITH_EXCEPT_START"
        before = here.opname if here.opname != "TO_BOOL" else before
        if here.opname.startswith(_CONDITIONAL) and not leaves:
            # `is None` jumps too: IF_NONE, IF_NOT_NONE.
            jumps_if = "IF_FALSE" not in here.opname and "NOT_NONE" not in here.opname
            # The jumps of `a and b` all lie where `a and b` does: what was asked tells them apart.
            where = asked or place
            if where is None or where.lineno is None:
                branch = SourceBranch(line, code.co_name)
            else:
                branch = SourceBranch(where.lineno, code.co_name, where.col_offset)
                # A loop asks twice: before it begins, and after each round.
                branch = twins.setdefault(where, branch)
            branch.by_none = "NONE" in here.opname
            jump = _Jump(branch, seen_at[following.offset], jumps_if)
            found |= dict.fromkeys(seen_at[here.offset], jump)
        if here.opname not in ("COPY", "TO_BOOL"):
            asked = place
    return found


def _seen_at(code: CodeType) -> dict[int, frozenset[int]]:
    """By instruction: where tracing may say that it is about to run. Of one with a large argument,
    such as a jump over much code, CPython 3.11 shows the place of the EXTENDED_ARG before it."""
    found: dict[int, frozenset[int]] = {}
    prefix: list[int] = []
    for each in dis.get_instructions(code):
        if each.opname == "EXTENDED_ARG":
            prefix.append(each.offset)
        elif each.opname != "CACHE":
            found[each.offset] = frozenset({*prefix, each.offset})
            prefix = []
    return found


def _stores(code: CodeType) -> dict[int, _Store]:
    found: dict[int, _Store] = {}
    instructions = [i for i in dis.get_instructions(code) if i.opname not in _NO_CODE]
    seen_at = _seen_at(code)
    line = code.co_firstlineno
    for before, here in itertools.pairwise(instructions):
        place = getattr(before, "positions", None)
        if place is not None and place.lineno is not None:
            line = place.lineno
        elif before.starts_line:
            line = before.starts_line
        if before.opname == "COMPARE_OP" and here.opname == "STORE_FAST":
            store = _Store(here.argval, here.offset, line)
            found |= dict.fromkeys(seen_at[here.offset], store)
    return found
