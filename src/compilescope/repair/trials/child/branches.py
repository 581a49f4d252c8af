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
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

import torch
from torch.overrides import TorchFunctionMode

from compilescope.torchapi.stacks import origin

_OUR_ROOT = str(Path(__file__).absolute().parents[3]) + os.sep
_CONDITIONAL = ("POP_JUMP", "JUMP_IF_TRUE_OR_POP", "JUMP_IF_FALSE_OR_POP")
_NO_CODE = ("CACHE", "EXTENDED_ARG", "NOT_TAKEN")


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
    goes_on: int
    """The instruction after it."""
    jumps_if: bool


class Coverage:
    """What was gone through so far."""

    def __init__(self, files: Collection[str]) -> None:
        """`files`: beside the user's own."""
        self.lines: dict[str, set[int]] = {}
        self.asked: Asked = ()
        """What the calls that follow are given."""
        self._files = set(files)
        self._wanted: dict[str, bool] = {}
        self._codes: dict[CodeType, dict[int, _Jump]] = {}

    def branches(self) -> list[tuple[str, SourceBranch]]:
        found: dict[int, tuple[str, SourceBranch]] = {}
        for code, jumps in self._codes.items():
            for jump in jumps.values():
                found[id(jump.branch)] = (code.co_filename, jump.branch)
        return list(found.values())

    @property
    def sides(self) -> int:
        """How many sides of branches were seen: grows with each new one."""
        return sum(len(branch.sides) for _, branch in self.branches())

    def _jumps(self, code: CodeType) -> dict[int, _Jump]:
        if code not in self._codes:
            self._codes[code] = _jumps(code)
        return self._codes[code]

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
        frame.f_trace_opcodes = bool(jumps)
        last: _Jump | None = None
        asked = self.asked

        def trace(frame: FrameType, event: str, arg: Any) -> Any:
            nonlocal last
            if event == "line":
                lines.add(frame.f_lineno)
            elif event == "opcode":
                if last is not None:
                    jumped = frame.f_lasti != last.goes_on
                    last.branch.taken.add((jumped == last.jumps_if, asked))
                last = jumps.get(frame.f_lasti)
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


class _Tests(TorchFunctionMode):  # type: ignore[misc]
    def __init__(self, coverage: Coverage) -> None:
        super().__init__()
        self._coverage = coverage

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if getattr(func, "__name__", "") == "__bool__" and func is torch.Tensor.__bool__:
            frame = sys._getframe(1)
            self._coverage.tested(frame.f_code, frame.f_lasti)
        return func(*args, **(kwargs or {}))


def _jumps(code: CodeType) -> dict[int, _Jump]:
    found: dict[int, _Jump] = {}
    instructions = [i for i in dis.get_instructions(code) if i.opname not in _NO_CODE]
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
            found[here.offset] = _Jump(branch, following.offset, jumps_if)
        if here.opname not in ("COPY", "TO_BOOL"):
            asked = place
    return found
