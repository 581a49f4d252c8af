"""Records of a custom TORCH_LOGS_FORMAT: without torch's own prefix.

What a record says is known by how it begins; what stands before that is what the format writes,
and is learnt: where another line begins so, another record begins. Lines that continue a record
have no prefix at all.
"""

from __future__ import annotations

import re

from compilescope.logs.text.dynamo.process import STARTS
from compilescope.logs.text.dynamo.record import LogRecord

BREAK = (b"Graph break in user code at ", b"Graph break (user stack suppressed")
SKIPPED = b"Graph break: torch.compile cannot properly resume"
RECOMPILE = b"Recompiling function "
GRAPH = b"TRACED GRAPH"
GUARDS = b"TREE_GUARD_MANAGER:"
MARKERS = (*BREAK, SKIPPED, RECOMPILE, GUARDS, GRAPH, *STARTS)
TRACE = re.compile(rb"TRACE (?:starts_line|inlined call|FX call|[A-Z_]{3,}) ")

_ARTIFACTS = {
    BREAK[0]: "graph_breaks",
    BREAK[1]: "graph_breaks",
    SKIPPED: "graph_breaks",
    RECOMPILE: "recompiles",
    GRAPH: "graph_code",
    GUARDS: "guards",
}
_LEVELS = rb"(?:DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL)"
_WORD = re.compile(rb"[\w./<>+:-]+")
_CONSTANT_END = re.compile(rb"(?:DEBUG)?[^\w]{1,12}$")
# Chosen: a bound for time; a program has one format, a log of several a few.
_LONGEST_PREFIX = 300
_MOST_PREFIXES = 8
_INDENTED = (b" ", b"\t")


class Prefixes:
    """What stands before the messages, as far as it is known."""

    def __init__(self) -> None:
        self._seen: dict[bytes, bytes] = {}
        self._begins: re.Pattern[bytes] | None = None
        self.bare = False
        """Messages stand alone."""

    def learn(self, text: bytes) -> bool:
        """Take note of a prefix; True where it is of a new make."""
        if not text:
            self.bare = True
            return False
        if len(text) > _LONGEST_PREFIX or len(self._seen) >= _MOST_PREFIXES or self.begins(text):
            return False
        self._seen[_shape(text)] = text
        self._begins = re.compile(rb"(?:" + rb"|".join(self._seen) + rb")")
        return True

    def noise(self) -> list[bytes]:
        """What lines of the tracer hold: the end of a prefix, then its word."""
        ends = [_CONSTANT_END.search(text) for text in self._seen.values()]
        return sorted({end[0] + b"TRACE " for end in ends if end is not None and end[0].strip()})

    def begins(self, line: bytes) -> bool:
        """Does a line begin as a record does?"""
        return self._begins is not None and self._begins.match(line) is not None

    def start(self, line: bytes) -> tuple[int, str] | None:
        """Where a message begins that is known, and of which artifact it is."""
        if line.startswith(GUARDS):
            return 0, "guards"  # torch begins this message with an empty line.
        at = 0
        if self._begins is not None:
            found = self._begins.match(line)
            if found is not None:
                at = found.end()
            elif not self.bare:
                return None
        if not line.startswith(MARKERS, at):
            return None
        marker = next(marker for marker in MARKERS if line.startswith(marker, at))
        return at, _ARTIFACTS.get(marker, "")


def _shape(prefix: bytes) -> bytes:
    """A pattern for prefixes of the same make: words and numbers change, signs do not."""
    parts: list[bytes] = []
    end = 0
    for found in _WORD.finditer(prefix):
        parts.append(_signs(prefix[end : found.start()], between=bool(end)))
        word = found[0]
        level = re.match(_LEVELS + rb"$", word.rstrip(b":"))
        if level:
            parts.append(_LEVELS + re.escape(word[len(word.rstrip(b":")) :]))
        elif re.fullmatch(rb"[\d.,:/-]+", word):
            parts.append(re.sub(rb"\d+", rb"\\d+", re.escape(word)))
        else:
            parts.append(rb"[\w./<>+:-]+")
        end = found.end()
    parts.append(_signs(prefix[end:]))
    return b"".join(parts)


def _signs(text: bytes, *, between: bool = False) -> bytes:
    """Signs as they are, and any amount of blanks: columns are filled up with them. Between two
    words there is at least one, or a long word could be split up in any number of ways."""
    if between and not text.strip(b" \t"):
        return rb"[ \t]+"
    return rb"[ \t]*".join(re.escape(part) for part in re.split(rb"[ \t]+", text))


def find_start(line: bytes, markers: tuple[bytes, ...] = MARKERS) -> tuple[int, str] | None:
    """Where the message begins and of which artifact it is."""
    best: tuple[int, str] | None = None
    for marker in markers:
        at = line.find(marker)
        if at >= 0 and (best is None or at < best[0]):
            best = (at, _ARTIFACTS.get(marker, ""))
    return best if best is not None and best[0] <= _LONGEST_PREFIX else None


def ends(record: LogRecord, line: bytes) -> bool:
    """Is a line without any prefix no longer of the record, by what records of its kind hold?"""
    if record.first.startswith(RECOMPILE):
        return not line.startswith(b"    ")
    if record.first.startswith(STARTS[0]):  # A stack.
        return not line.startswith(_INDENTED)
    if record.first.startswith(b"skipping: "):
        return b", file: " in (record.rest[-1] if record.rest else record.first)
    if record.artifact == "graph_breaks":
        return _in_traceback(record) and not line.startswith(b"  ")
    if record.artifact == "guards":
        return bool(line) and not line.startswith((b"|", b"+-", GUARDS))
    if record.artifact == "graph_code":
        return bool(line) and not line.startswith((*_INDENTED, b"class "))
    return not record.first.startswith((b"WON'T CONVERT ", b"torch._dynamo hit config."))


def _in_traceback(record: LogRecord) -> bool:
    """Its last part has begun."""
    return any(line.startswith(b"User code traceback:") for line in record.rest)
