"""What `programs_unchanged.py` runs twice."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Subject:
    """A program, and how it is started."""

    text: str
    words: tuple[str, ...] = ("program.py",)
    environment: dict[str, str] = field(default_factory=dict)
    files: dict[str, str | bytes] = field(default_factory=dict)
    stdin: bytes = b""
    around: tuple[str, ...] = ()
    """Words before Python's own: a shell that sets limits, `nice`, `env`."""
    flags: tuple[str, ...] = ()
    """Of Python; under capture, of the Python that the command runs in."""
