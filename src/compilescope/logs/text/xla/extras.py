"""What PT_XLA_DEBUG=1 adds: operators that have no lowering, and what happens too often."""

from __future__ import annotations

import re
from typing import Literal

from compilescope.logs.text.console import Console, Process
from compilescope.logs.text.lines import Tag, plain
from compilescope.model.bodies import FallbackOps, LogLine

_FALLBACK = re.compile(rb"Dynamo fallback ops are\s*\[(?P<ops>[^\]]*)\]")
_UNLOWERED = b"pt-xla-profiler: Op(s) not lowered:"
_OP = re.compile(rb"aten::[\w.]+|[A-Za-z_][\w:.]*")
_PROFILER = re.compile(rb"(?:WARNING:)?pt-xla-profiler:\s?(?P<text>.*)$")
_NUMBER = re.compile(r"\d+")
_MOST_NOTES = 200
_MOST_SETS = 1000
_Teller = Literal["dynamo", "profiler"]


class Extras:
    """The extras of one log, counted."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._ops: dict[tuple[_Teller, tuple[str, ...]], tuple[Process, int]] = {}
        self._notes: dict[str, tuple[Process, str, int]] = {}
        self.seen = False

    def line(self, line: bytes, tag: Tag) -> bool:
        if b"pt-xla-profiler" not in line and b"Dynamo fallback ops" not in line:
            return False
        process = self._console.process_behind(tag)
        self._console.tally.formats.add("torch-xla")
        self.seen = True
        fallback = _FALLBACK.search(line)
        if fallback is not None:
            self._add_ops("dynamo", fallback["ops"], process)
            return True
        if _UNLOWERED in line:
            ops = line.partition(_UNLOWERED)[2].partition(b"  Please open")[0]
            self._add_ops("profiler", ops, process)
            return True
        note = _PROFILER.search(line)
        # The summary at the end, in Python's own format, says where; the blocks have said so.
        if note is None or not note["text"].strip() or line.startswith(b"WARNING:"):
            return note is not None
        self._add_note(process, plain(note["text"].strip())[:300])
        return True

    def _add_note(self, process: Process, text: str) -> None:
        key = _NUMBER.sub("N", text)
        if key in self._notes or len(self._notes) < _MOST_NOTES:
            count = self._notes[key][2] if key in self._notes else 0
            self._notes[key] = (process, text, count + 1)

    def _add_ops(self, told_by: _Teller, text: bytes, process: Process) -> None:
        ops = tuple(sorted({plain(op) for op in _OP.findall(text[:20_000])}))
        if ops and len(self._ops) < _MOST_SETS:
            _, count = self._ops.get((told_by, ops), (process, 0))
            self._ops[told_by, ops] = (process, count + 1)

    def finish(self) -> None:
        for (told_by, ops), (process, count) in self._ops.items():
            self._console.event(process, FallbackOps(ops, told_by, count))
        for process, text, count in self._notes.values():
            self._console.event(process, LogLine("torch_xla", "warning", text, count))
