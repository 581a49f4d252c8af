"""On which line each key of a TOML text stands. Python's own reader does not tell.

The text must be valid TOML: it was read before.
"""

from __future__ import annotations

import re

Path = tuple[str | int, ...]
"""Keys, and positions in arrays."""

_BLANK = re.compile(r"(?:[\s]|#[^\n]*)*")
_STRING = re.compile(
    r'"""(?:\\.|[^\\])*?"{3,5}' r"|'''.*?'{3,5}" r'|"(?:\\.|[^"\\\n])*"' r"|'[^'\n]*'", re.S
)
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_SCALAR = re.compile(r"[^,\]}\n#]+")


def key_lines(text: str) -> dict[Path, int]:
    """Lines count from 1. A table has the line of its header."""
    return _Scan(text.replace("\r\n", "\n")).lines


class _Scan:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.lines: dict[Path, int] = {}
        self._arrays: dict[Path, int] = {}
        self._counted = (0, 1)
        table: Path = ()
        self._skip()
        while self.at < len(text):
            if text[self.at] == "[":
                table = self._header()
            else:
                self._pair(table)
            self._skip()

    def _skip(self) -> None:
        match = _BLANK.match(self.text, self.at)
        self.at = match.end() if match else self.at

    def _take(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self.text, self.at)
        if match is None:
            raise ValueError(f"no TOML at position {self.at}")
        self.at = match.end()
        return match[0]

    def _note(self, path: Path) -> None:
        # Counting on from the last place keeps it linear in the text.
        before, line = self._counted
        line += self.text.count("\n", before, self.at)
        self._counted = (self.at, line)
        self.lines.setdefault(path, line)

    def _header(self) -> Path:
        many = self.text.startswith("[[", self.at)
        self.at += 2 if many else 1
        self._skip()
        *outer, last = self._key()
        self.at += 2 if many else 1
        path: Path = ()
        for part in outer:
            path = self._inside((*path, part))
        path = (*path, last)
        self._note(path)
        if not many:
            return self._inside(path)
        self._arrays[path] = self._arrays.get(path, -1) + 1
        path = self._inside(path)
        self._note(path)
        return path

    def _inside(self, path: Path) -> Path:
        """A header that names an array of tables means the last of them."""
        return (*path, self._arrays[path]) if path in self._arrays else path

    def _key(self) -> list[str]:
        parts = []
        while True:
            quoted = self.text[self.at] in "\"'"
            part = self._take(_STRING if quoted else _BARE_KEY)
            parts.append(part[1:-1] if quoted else part)
            self._skip()
            if self.text[self.at] != ".":
                return parts
            self.at += 1
            self._skip()

    def _pair(self, table: Path) -> None:
        start = self.at
        parts = self._key()
        after, self.at = self.at, start
        for count in range(1, len(parts) + 1):
            self._note((*table, *parts[:count]))
        self.at = after + 1
        self._skip()
        self._value((*table, *parts))

    def _value(self, path: Path) -> None:
        first = self.text[self.at]
        if first in "\"'":
            self._take(_STRING)
        elif first == "[":
            self._array(path)
        elif first == "{":
            self._inline_table(path)
        else:
            self._take(_SCALAR)

    def _array(self, path: Path) -> None:
        number = 0
        self.at += 1
        self._skip()
        while self.text[self.at] != "]":
            self._note((*path, number))
            self._value((*path, number))
            number += 1
            self._skip()
            if self.text[self.at] == ",":
                self.at += 1
                self._skip()
        self.at += 1

    def _inline_table(self, path: Path) -> None:
        self.at += 1
        self._skip()
        while self.text[self.at] != "}":
            self._pair(path)
            self._skip()
            if self.text[self.at] == ",":
                self.at += 1
                self._skip()
        self.at += 1
