"""Counts the warnings, errors and executions that tt-xla logs between its modules."""

from __future__ import annotations

import re

from compilescope.logs.text.console import Console, ConsoleProcess
from compilescope.logs.text.lines import Tag, plain
from compilescope.model.bodies import GraphExecuted, LogLine

_RUNTIME = re.compile(
    rb"^\[?\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[.\d]*\]? .*\|\s*(?P<level>\w+)\s*\| (?P<text>.*)"
)
_PYTHON = re.compile(
    rb"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} \| (?P<level>[A-Z]+)\s*\| \S+ - (?P<text>.*)"
)
_EXECUTION = b"Starting execution of program"
_LEVELS = {b"WARNING": "warning", b"ERROR": "error", b"CRITICAL": "error", b"FATAL": "error"}
_NUMBER = re.compile(r"0x[0-9a-fA-F]+|\d+")
# Chosen: bounds for memory: different notes, and letters of each.
_MOST = 200
_LONGEST = 2000


class Notes:
    """Warnings, errors and executions of one log, counted."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._lines: dict[tuple[int, str, str], tuple[ConsoleProcess, str, int]] = {}
        self._runs: dict[tuple[int, str], tuple[ConsoleProcess, int]] = {}

    def line(self, line: bytes, tag: Tag) -> bool:
        if b"|" not in line[:200]:
            return False
        line = line[:_LONGEST]
        found = _PYTHON.match(line) or _RUNTIME.match(line)
        if found is None:
            return False
        process = self._console.process_behind(tag)
        text = plain(found["text"])
        if found["text"].startswith(_EXECUTION):
            _, count = self._runs.get((process.pid, text), (process, 0))
            if count or len(self._runs) < _MOST:
                self._runs[process.pid, text] = (process, count + 1)
        elif found["level"] in _LEVELS:
            self.add(process, _LEVELS[found["level"]], text)
        return True

    def add(self, process: ConsoleProcess, level: str, text: str) -> None:
        key = (process.pid, level, _NUMBER.sub("N", text)[:300])
        known = self._lines.get(key)
        if known is not None:
            self._lines[key] = (process, known[1], known[2] + 1)
        elif len(self._lines) < _MOST:
            self._lines[key] = (process, text[:500], 1)

    def finish(self) -> None:
        for (_, cause), (process, count) in self._runs.items():
            self._console.event(process, GraphExecuted("", cause, count))
        for (_, level, _), (process, text, count) in self._lines.items():
            self._console.event(process, LogLine("tt-xla", level, text, count))  # type: ignore[arg-type]
