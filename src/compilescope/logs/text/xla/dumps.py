"""Graphs that torch_xla saved or a program printed: HLO, StableHLO, its own IR."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import msgspec

from compilescope.logs.text.console import Console, ConsoleProcess
from compilescope.logs.text.dynamo.frames import is_program, origin
from compilescope.logs.text.lines import UNTAGGED, Tag, plain
from compilescope.logs.text.mlir import MlirPlace, ModuleBody, resumed_code
from compilescope.record.bodies import GraphDumped
from compilescope.record.logged import GraphForm, OpPlace
from compilescope.record.stack import CodeRef

_BEGIN, _END = b"## BEGIN_GRAPH", b"## END_GRAPH"
_HASHES = re.compile(rb"Hashes: \(([0-9a-fA-F, ]*)\)")
_HLO = re.compile(rb"HloModule (?P<name>[\w.$-]{1,300})")
_HLO_OP = re.compile(rb"\s+(?:ROOT )?%?[\w.-]+ = (?:\([^)]*\)|\S+) (?P<op>[a-z][\w-]*)\(")
_SOURCE = re.compile(rb'source_file="(?P<file>[^"]{1,1000})"(?:\s+source_line=(?P<line>\d{1,9}))?')
_IR_OP = re.compile(rb"\s+%\d+ = \S+ (?P<op>[\w:]+)\(")
_MOST = 5000
"""Different operations and places. Chosen: a bound for memory."""


class _Hlo:
    """The text of one HLO module."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.lines = 0
        self._kinds: Counter[bytes] = Counter()
        self._places: Counter[MlirPlace] = Counter()

    def line(self, line: bytes) -> None:
        self.lines += 1
        found = _HLO_OP.match(line)
        if found is None or found["op"] in (b"parameter", b"tuple", b"get-tuple-element"):
            return
        if len(self._kinds) < _MOST:
            self._kinds[found["op"]] += 1
        source = _SOURCE.search(line)
        if source is not None and len(self._places) < _MOST:
            place = MlirPlace(plain(source["file"]), int(source["line"] or 0), "")
            if is_program(place.frame()) or origin(place.file) == "user":
                self._places[place] += 1

    def dumped(self, hashes: tuple[str, ...]) -> GraphDumped:
        places = tuple(OpPlace(p.frame(), n) for p, n in self._places.most_common(40))
        resumes: dict[CodeRef, None] = {}
        for place in self._places:
            code = resumed_code(place)
            if code is not None:
                resumes[code] = None
        kinds = {plain(op): count for op, count in self._kinds.most_common(40)}
        ops = sum(self._kinds.values())
        return GraphDumped("hlo", self.name, hashes, ops, kinds, places, tuple(resumes))


class Dumps:
    """The dumps of one log."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._tag: Tag | None = None
        self._hashes: tuple[str, ...] = ()
        self._saved = False
        """Between BEGIN_GRAPH and END_GRAPH."""
        self._hlo: _Hlo | None = None
        self._module: ModuleBody | None = None
        self._ir: Counter[bytes] = Counter()
        self._held: dict[tuple[str, ...], tuple[ConsoleProcess, GraphDumped]] = {}

    @property
    def busy(self) -> bool:
        return self._tag is not None

    def run(self, lines: Sequence[bytes], start: int) -> int:
        if self._tag is not UNTAGGED or self._hlo is None:
            return start
        take = self._hlo.line
        for at in range(start, len(lines)):
            if lines[at][:1] != b" ":
                return at
            take(lines[at])
        return len(lines)

    def line(self, line: bytes, tag: Tag) -> bool:
        if self._tag is not None and tag == self._tag:
            return self._inside(line)
        if line.startswith(_BEGIN):
            self._tag, self._saved = tag, True
            return True
        hashes = _HASHES.match(line)
        if hashes is not None:
            self._hashes = tuple(plain(hashes[1]).replace(",", " ").split())
            return True
        found = _HLO.match(line)
        if found is not None:
            self._tag, self._saved, self._hlo = tag, False, _Hlo(plain(found["name"]))
            return True
        return line.startswith(b"TensorsGraphInfo:")

    def _inside(self, line: bytes) -> bool:
        if line.startswith(_END):
            self._close()
            return True
        if self._hlo is not None:
            if (
                line
                and line[:1] not in b" }%E"
                and not self._saved
                and not line.startswith(b"HloModule")
            ):
                self._close()
                return False
            self._hlo.line(line)
            return True
        if self._module is not None or line.startswith((b"module", b"#loc")):
            if self._module is None:
                self._module = ModuleBody(located=True)
            self._module.line(line)
            return True
        found = _HLO.match(line)
        if found is not None:
            self._hlo = _Hlo(plain(found["name"]))
            return True
        op = _IR_OP.match(line)
        if op is not None and len(self._ir) < _MOST:
            self._ir[op["op"]] += 1
        return True

    def _close(self) -> None:
        """Count the dump; the same graph is often saved at every step."""
        body: GraphDumped
        if self._hlo is not None:
            body = self._hlo.dumped(self._hashes)
        elif self._module is not None:
            places, resumes, _ = self._module.origins()
            body = GraphDumped(
                "mlir", self._module.name, self._hashes, self._module.ops, {}, places, resumes
            )
        else:
            form: GraphForm = "ir" if self._ir else "unknown"
            kinds = {plain(op): count for op, count in self._ir.most_common(40)}
            body = GraphDumped(form, "", self._hashes, sum(self._ir.values()) or None, kinds)
        process = self._console.process_behind(self._tag or UNTAGGED)
        self._console.tally.records += 1
        self._console.tally.formats.add("hlo-dump")
        before = self._held.get(body.hashes)
        if before is not None:
            again = msgspec.structs.replace(before[1], count=before[1].count + 1)
            self._held[body.hashes] = (process, again)
        elif body.hashes and len(self._held) < _MOST:
            self._held[body.hashes] = (process, body)
        else:
            self._console.event(process, body)
        self._tag, self._hlo, self._module, self._hashes = None, None, None, ()
        self._ir = Counter()

    def finish(self) -> None:
        if self._tag is not None:
            self._console.tally.cut_tail |= self._saved
            self._close()
        for process, body in self._held.values():
            self._console.event(process, body)
