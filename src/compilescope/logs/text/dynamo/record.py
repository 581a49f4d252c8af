"""One log record: a first line and those that belong to it."""

from __future__ import annotations

from dataclasses import dataclass, field

from compilescope.logs.text.lines import plain

LARGEST = 16 << 20
"""Bytes of one record that are kept; graphs of the largest models take a few million. Chosen: a few
times that."""


@dataclass
class LogRecord:
    """What one call of a logger wrote."""

    level: str
    """`V` (debug), `I`, `W`, `E`, `C`; empty where a custom format hides it."""
    time_ns: int
    compile_id: str | None
    artifact: str
    """Of TORCH_LOGS, such as `graph_breaks`; empty for a logger's plain lines."""
    first: bytes
    rest: list[bytes] = field(default_factory=list)
    size: int = 0

    def add(self, line: bytes) -> None:
        self.size += len(line)
        if self.size <= LARGEST:
            self.rest.append(line)

    @property
    def title(self) -> str:
        return plain(self.first)

    @property
    def text(self) -> str:
        return plain(b"\n".join([self.first, *self.rest]))

    def lines(self) -> list[str]:
        """Those after the first."""
        return plain(b"\n".join(self.rest)).split("\n") if self.rest else []


def frame_key(compile_id: str | None) -> str:
    """`0/1_2` is an attempt at `0/1`."""
    return (compile_id or "").split("_", 1)[0]
