"""Redacts the user's source: same lines, same syntax, other names; no comment, no docstring.

Of every line it knows where each column went.
"""

from __future__ import annotations

import ast
import bisect
import re
from collections.abc import Collection, Iterable, Iterator
from functools import cached_property
from itertools import accumulate

from compilescope.record.fingerprint import normalised
from compilescope.record.python_text import parse_python, walk
from compilescope.report.sharing.redaction.code import Edit, Words, apply, is_plain, is_too_long
from compilescope.report.sharing.redaction.lexer import Token, tokens

Ends = dict[tuple[int, int], list[tuple[int, int]]]
"""Where an expression begins -> where those end that begin there: lines, and bytes in them."""
_BLANKS = re.compile(r"(?<![ \t])[ \t]*$")


class RedactedLine:
    """One line before and after."""

    def __init__(self, old: str, edits: list[Edit], mark: str = "") -> None:
        self.old = old
        self._edits = edits
        self.new = apply(old, edits) + mark

    def column(self, old: int) -> int:
        """Where a column went. Beyond the line it stays as far beyond."""
        number = bisect.bisect_left(self._edits, old, key=lambda edit: edit[0])
        if not number:
            return old
        start, end, new = self._edits[number - 1]
        before = self._shifts[number - 1]
        return start + before if old < end else old + before + len(new) - (end - start)

    @cached_property
    def _shifts(self) -> list[int]:
        """How far each edit lies from where it was: a long line is asked for many columns."""
        grown = (len(new) - (end - start) for start, end, new in self._edits)
        return [0, *accumulate(grown)]


def redacted_line(words: Words, old: str) -> RedactedLine:
    """A line of which the file is not known."""
    if is_too_long(old) or words.is_beyond(old):
        return RedactedLine(old, [(0, len(old), words.whole(old))])
    # A string that stands alone is a docstring, which only tokens tell.
    if is_plain(old) and not old.lstrip().startswith(("'", '"')):
        return RedactedLine(old, list(words.plain_edits(old)))
    return RedactedLine(old, list(_edits(words, old, *_parted(old, list(tokens(old))))))


class RedactedSource:
    """A file before and after."""

    def __init__(
        self, words: Words, text: str, lines: Collection[int] = (), ends: Ends | None = None
    ) -> None:
        """`ends`: of the expressions of these lines, for who knows them; they take a parse."""
        self._words = words
        self._text = text
        self._known = lines
        self._known_ends = ends or {}
        self._documents, self._parts = _parted(text, list(tokens(text)))
        self.redact()

    def redact(self) -> None:
        """What becomes of each word: asked again, of the same tokens, when all are known."""
        self._edits = list(_edits(self._words, self._text, self._documents, self._parts))
        self.__dict__.pop("lines", None)

    @cached_property
    def _joining(self) -> list[tuple[int, int]]:
        """Strings that go over lines."""
        spans = [*self._documents.values()]
        spans += [(token.start, token.end) for token in self._parts if token.kind == "fragment"]
        return [(start, end) for start, end in spans if "\n" in self._text[start:end]]

    @cached_property
    def lines(self) -> list[RedactedLine]:
        """Made when they are asked for: who only learns the words of a file needs none."""
        text = self._text
        starts = [0, *(match.end() for match in re.finditer("\n", text))]
        by_line: list[list[Edit]] = [[] for _ in starts]
        joined: set[int] = set()
        for start, end, new in self._edits:
            at = bisect.bisect_right(starts, start) - 1
            by_line[at].append((start - starts[at], end - starts[at], new))
        for start, end in self._joining:
            first = bisect.bisect_right(starts, start) - 1
            joined |= set(range(first, bisect.bisect_right(starts, end)))
        lines: list[RedactedLine] = []
        told: dict[str, str] = {}
        for number, old in enumerate(self._old_lines):
            line = RedactedLine(old, by_line[number])
            free = number not in joined and not line.new.endswith("\\")
            if free and line.new.strip(" \t\"'") and _is_told_apart(told, line):
                line = RedactedLine(old, by_line[number], f"  # {number + 1}")
            lines.append(line)
        return lines

    @cached_property
    def _old_lines(self) -> list[str]:
        return self._text.split("\n")

    def has(self, number: int, line: str) -> bool:
        """Is this the line of that number, from 1 on?"""
        inside = 0 < number <= len(self._old_lines)
        return inside and self._old_lines[number - 1].strip() == line.strip()

    @property
    def text(self) -> str:
        return "\n".join(line.new for line in self.lines)

    def line(self, number: int) -> RedactedLine | None:
        """By its number, from 1 on."""
        return self.lines[number - 1] if 0 < number <= len(self.lines) else None

    def end_column(self, number: int, column: int | None, end: int) -> int:
        """Where the end of an expression went that may lie on a later line."""
        line = self.lines[number - 1]
        if column is not None:
            start, stop = _byte(line.old, column), _byte(line.old, end)
            known = self._known_ends if number in self._known else self._ends
            ends = known.get((number, start), [])
            if (number, stop) not in ends:
                for last, last_stop in ends:
                    if last > number and last_stop == stop and last <= len(self.lines):
                        later = self.lines[last - 1]
                        old = len(later.old.encode()[:stop].decode(errors="ignore"))
                        return later.column(old)
        return line.column(end)

    @cached_property
    def _ends(self) -> Ends:
        try:
            return expression_ends(walk(parse_python(self._text)))
        except SyntaxError:
            return {}


def expression_ends(nodes: Iterable[ast.AST], lines: Collection[int] | None = None) -> Ends:
    """`lines`: only of the expressions that begin on one of them."""
    ends: Ends = {}
    for node in nodes:
        if isinstance(node, ast.expr) and (lines is None or node.lineno in lines):
            place = (node.end_lineno or node.lineno, node.end_col_offset or 0)
            ends.setdefault((node.lineno, node.col_offset), []).append(place)
    return ends


def _is_told_apart(told: dict[str, str], line: RedactedLine) -> bool:
    """Were two lines different that are the same now? A fingerprint must not take them for one."""
    old = normalised(line.old)
    return told.setdefault(normalised(line.new), old) != old


def _byte(line: str, column: int) -> int:
    if column > len(line) or line.isascii():
        return column
    return len(line[:column].encode())


Documents = dict[int, tuple[int, int]]
"""Strings that stand alone as statements: start -> (start, end)."""


def _parted(text: str, every: list[Token]) -> tuple[Documents, list[Token]]:
    """Strings that stand alone, and the other tokens but for blanks."""
    documents = _documents(text, every)
    rest = [token for token in every if token[0] != "space" and token[1] not in documents]
    return documents, rest


def _edits(words: Words, text: str, documents: Documents, rest: list[Token]) -> Iterator[Edit]:
    """In order, each within one line."""
    found = [*words.edits(text, rest), *((*documents[start], "") for start in documents)]
    for start, end, new in sorted(found):
        old = text[start:end]
        if old.startswith("#") and not new:
            # The blanks before a comment go with it.
            line = text.rfind("\n", 0, start) + 1
            blanks = _BLANKS.search(text, line, start)
            yield blanks.start() if blanks else start, end, ""
        elif "\n" in old:
            yield from _line_by_line(start, old, new)
        else:
            yield start, end, new


def _line_by_line(start: int, old: str, new: str) -> Iterator[Edit]:
    for number, line in enumerate(old.split("\n")):
        goes_on = line.endswith("\\")
        yield start, start + len(line), (new if number == 0 else "") + ("\\" if goes_on else "")
        start += len(line) + 1


def _documents(text: str, every: list[Token]) -> Documents:
    found: Documents = {}
    depth, fresh, last = 0, True, ""
    for number, (kind, start, end, _, whole) in enumerate(every):
        if kind == "space":
            if text[start] == "\n":
                fresh = depth == 0 and last != "\\"
            continue
        if kind == "fragment" and whole and fresh and _ends_there(text, every, number):
            found[start] = (start, end)
        last = text[end - 1]
        if end - start == 1:
            depth = max(0, depth + (last in "([{") - (last in ")]}"))
        fresh = fresh and kind in ("quote", "comment")
    return found


def _ends_there(text: str, every: list[Token], number: int) -> bool:
    """Does nothing but the closing quote follow on the line?"""
    for later in range(number + 2, len(every)):
        token = every[later]
        if token.kind == "comment" or text[token.start : token.end] == "\n":
            return True
        if token.kind != "space":
            return False
    return True
