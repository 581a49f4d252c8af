"""The files of a run, redacted: their paths, their text, and the places in them.

Paths are redacted part by part, so that what lay in one folder still does. The part inside a
well-known package, or inside Python's own library, stays: that code is public, and to know it is to
know what broke. Places are frames, code objects, single lines.
"""

from __future__ import annotations

import functools
import os
import re
import sys
import sysconfig
from collections.abc import Collection

import msgspec

from compilescope.record.python_text import LARGEST
from compilescope.record.stack import CodeRef, Frame
from compilescope.report.sharing.redaction import vocabulary
from compilescope.report.sharing.redaction.code import Words
from compilescope.report.sharing.redaction.names import Names
from compilescope.report.sharing.redaction.source import (
    Ends,
    RedactedLine,
    RedactedSource,
    redacted_line,
)

_PACKAGES = re.compile(r"(.*[/\\](?:site|dist)-packages[/\\])(.+)", re.S)
_STDLIB = re.compile(r"(.*[/\\]lib[/\\]python3\.\d+[/\\])(.+)", re.S)
_SEPARATOR = re.compile(r"([/\\]+)")
_KEPT = re.compile(
    r"bin|lib|lib64|opt|tmp|usr|python3?(?:\.\d+)*|(?:site|dist)-packages|\.?venv|\.\.?|~"
    r"|[A-Za-z]:|__init__|__main__"
)
_SUFFIXES = frozenset((".py", ".pyi", ".pyc", ".ipynb", ".so", ".pyx", ".cpp", ".cu", ".json"))
_MADE = re.compile(
    r"<(?:string|stdin|console|unknown|doctest|frozen [\w.]+|eval_with_key[>.\d]*|module|lambda"
    r"|listcomp|dictcomp|setcomp|genexpr|locals|template|debug_call|torch_package_\d+)>?(?:\.\d+)?"
)
_PROMPT = re.compile(r"<(stdin|console|ipython)")


KEPT_WORDS = frozenset(
    re.findall(r"[^\W\d]\w+", " ".join((_KEPT.pattern, _MADE.pattern, _PROMPT.pattern, *_SUFFIXES)))
)
"""What of a path, or of a name in its place, may stay."""


def _public_part(path: str) -> tuple[str, str]:
    """(what comes before, the part inside a well-known package or Python's library; else empty)"""
    if "-packages" not in path and "python3." not in path:
        return path, ""  # As nearly all of the user's own, of which there may be very many.
    match = _PACKAGES.fullmatch(path)
    if match is not None:
        return (match[1], match[2]) if _belongs_to_public(match[2]) else (path, "")
    match = _STDLIB.fullmatch(path)
    if match is not None and _is_in_stdlib(match[2]):
        return match[1], match[2]
    return path, ""


@functools.cache
def _is_in_stdlib(inner: str) -> bool:
    """Does this Python have such a file too? A folder `lib/python3.11` may hold anything."""
    return _top(inner) in sys.stdlib_module_names and os.path.isfile(
        os.path.join(sysconfig.get_path("stdlib"), *_SEPARATOR.split(inner)[::2])
    )


def is_public_file(path: str) -> bool:
    """Code that anyone can read."""
    return _public_part(path)[1] != ""


def _top(inner: str) -> str:
    return _SEPARATOR.split(inner, maxsplit=1)[0].split(".", 1)[0]


def _belongs_to_public(inner: str) -> bool:
    return vocabulary.is_known_package(_top(inner))


def redact_path(names: Names, path: str) -> str:
    """The path with other names for the user's folders and files."""
    known = names.paths.get(path)
    if known is None:
        made_up = path.startswith("<")
        known = _redact_made_up(names, path) if made_up else _redact_path(names, path)
        names.paths[path] = known
    return known


def _redact_path(names: Names, path: str) -> str:
    before, inside = _public_part(path)
    names.public_paths.add(inside)
    if inside:
        return _redact_folder(names, before) + inside
    end = max(before.rfind("/"), before.rfind("\\")) + 1
    return _redact_folder(names, before[:end]) + _part(names, before[end:], True)


def _redact_folder(names: Names, folder: str) -> str:
    """Once for all files that lie in it."""
    known = names.folders.get(folder)
    if known is None:
        parts = _SEPARATOR.split(folder)
        known = "".join(_part(names, part, False) for part in parts)
        names.folders[folder] = known
    return known


def _part(names: Names, part: str, is_file: bool) -> str:
    if not part or _SEPARATOR.fullmatch(part) or _KEPT.fullmatch(part):
        return part
    stem, dot, suffix = part.rpartition(".")
    if is_file and stem and f".{suffix}" in _SUFFIXES:
        return f"{_stem(names, stem)}.{suffix}"
    return _stem(names, part, "m" if is_file and dot else "d")


def _stem(names: Names, stem: str, kind: str = "m") -> str:
    if _KEPT.fullmatch(stem):
        return stem
    # A folder may have the name of a function of torch's; the folder's is replaced nonetheless.
    space = "path" if vocabulary.is_public(stem) else ""
    names.kinds.setdefault(stem, "m" if kind == "m" else "d")
    names.parts.add(stem)
    return names.replace(stem, space=space)


def _redact_made_up(names: Names, path: str) -> str:
    if _MADE.fullmatch(path):
        names.public_paths.add(path)
        return path
    prompt = _PROMPT.match(path)
    start = f"<{prompt[1]}-" if prompt else "<"
    return f"{start}{names.replace(path, 'm')}>"


def parts_of(path: str) -> list[str]:
    """The names of the folders and of the file, without its suffix."""
    return [part.partition(".")[0] or part for part in re.split(r"[/\\]+", path) if part]


_OMITTED = "# This file is too large to redact."
_BEYOND = "# This file is left out: there is too much source to redact all of it."
_MOST_SOURCE = 1_500_000
"""Letters of all files together that are redacted. Chosen: some 40,000 lines of a user's own, far
more than the programs seen had; ten seconds' work."""
_OF_A_FILE = 150
"""Letters whose redaction takes about as long as what a file takes beside its text."""


class Files:
    """Source by file. Frames of torch and of well-known packages keep their lines."""

    def __init__(self, words: Words, sources: dict[str, str]) -> None:
        self._words = words
        self._sources = sources
        self._redacted: dict[str, RedactedSource] = {}
        self._frames: dict[Frame, Frame] = {}
        self._code_refs: dict[CodeRef, CodeRef] = {}
        self._lone_lines: dict[str, RedactedLine] = {}
        self._left_out: dict[str, str] = {}
        """Texts, and what is said in their place; empty where they are shown."""
        self._ends: dict[str, tuple[Collection[int], Ends]] = {}
        """Text -> lines, and where the expressions of these end."""
        self._room = _MOST_SOURCE
        self._learning = True
        self.kept: set[str] = set()
        """Lines and names of public code that stay to the letter."""

    @property
    def left_out(self) -> int:
        """How many files are not shown."""
        return sum(1 for said in self._left_out.values() if said)

    def is_left_out(self, text: str) -> bool:
        """Is nothing of this file shown? Decided when it is first asked."""
        if text not in self._left_out:
            self._left_out[text] = self._instead(text)
        return bool(self._left_out[text])

    def _instead(self, text: str) -> str:
        if len(text) > LARGEST:
            return _OMITTED  # It says nothing to any rule, since none can parse it.
        size = len(text) + _OF_A_FILE
        if size > self._room:
            return _BEYOND
        self._room -= size
        return ""

    def forget(self) -> None:
        """All has been learned: from here on it is redacted."""
        self._learning = False
        for source in self._redacted.values():
            source.redact()
        for done in (self._frames, self._code_refs, self._lone_lines):
            done.clear()

    def note_ends(self, text: str, lines: Collection[int], ends: Ends) -> None:
        """Where the expressions of these lines end: known before they are asked for, or else the
        file is parsed once more."""
        self._ends[text] = (lines, ends)

    def source(self, text: str) -> RedactedSource:
        if text not in self._redacted:
            known = self._ends.get(text, ((), {}))
            self._redacted[text] = RedactedSource(self._words, text, *known)
        return self._redacted[text]

    def learn(self, text: str) -> None:
        """The words of a file."""
        if not self.is_left_out(text):
            self.source(text)

    def whole(self, text: str) -> str:
        """The redacted file; of one that is left out only the number of lines."""
        if self.is_left_out(text):
            said = self._left_out[text]
            self.kept.add(said)
            return said + "\n" * text.count("\n")
        return self.source(text).text

    def frame(self, frame: Frame) -> Frame:
        new = self._frames.get(frame)
        if new is None:
            new = self._frames[frame] = self._frame(frame)
        return new

    def _frame(self, frame: Frame) -> Frame:
        file = redact_path(self._words.names, frame.file)
        if self._is_public(frame):
            self.kept |= {frame.function, frame.source}
            return msgspec.structs.replace(frame, file=file)
        if self._learning:
            # No column is asked for: that takes the file's lines, and its tree.
            self._words.function(frame.function)
            self._learn_line(frame.file, frame.line, frame.source)
            return frame
        line, source = self._line(frame.file, frame.line, frame.source)
        column, end = frame.column, frame.end_column
        if column is not None:
            column = line.column(column)
        if end is not None:
            whole = source is not None and frame.source == line.old
            if whole and source is not None:
                end = source.end_column(frame.line, frame.column, end)
            else:
                end = line.column(end)
        return msgspec.structs.replace(
            frame,
            file=file,
            function=self._words.function(frame.function),
            column=column,
            end_column=end,
            source=line.new,
        )

    def code_ref(self, code: CodeRef) -> CodeRef:
        new = self._code_refs.get(code)
        if new is None:
            new = self._code_refs[code] = self._code_ref(code)
        return new

    def _code_ref(self, code: CodeRef) -> CodeRef:
        file = redact_path(self._words.names, code.file)
        if is_public_file(code.file):
            self.kept.add(code.function)
            return msgspec.structs.replace(code, file=file)
        return msgspec.structs.replace(
            code, file=file, function=self._words.function(code.function)
        )

    def line_of(self, file: str, number: int, text: str) -> str:
        """A line that a message quotes."""
        if is_public_file(file):
            self.kept.add(text)
            return text
        if self._learning:
            self._learn_line(file, number, text)
            return text
        return self._line(file, number, text)[0].new

    def _learn_line(self, file: str, number: int, text: str) -> None:
        source = self._source_of(file)
        if source is None or not source.has(number, text):
            self._lone_line(text)

    def _line(
        self, file: str, number: int, text: str
    ) -> tuple[RedactedLine, RedactedSource | None]:
        """The line as it is in the redacted file. One that is not in the file stands alone."""
        source = self._source_of(file)
        line = source.line(number) if source is not None else None
        if line is not None and source is not None:
            if line.old.rstrip() == text.rstrip():
                return line, source
            if line.old.strip() == text.strip():
                # Torch strips the lines that it notes in graphs.
                return _stripped(line), source
        return self._lone_line(text), None

    def _source_of(self, file: str) -> RedactedSource | None:
        known = self._sources.get(file)
        return self.source(known) if known is not None and not self.is_left_out(known) else None

    def _lone_line(self, text: str) -> RedactedLine:
        lone = self._lone_lines.get(text)
        if lone is None:
            lone = self._lone_lines[text] = redacted_line(self._words, text)
        return lone

    def _is_public(self, frame: Frame) -> bool:
        return is_public_file(frame.file) or (frame.origin == "torch" and "/torch/" in frame.file)


def _stripped(line: RedactedLine) -> RedactedLine:
    return RedactedLine(line.old.strip(), [(0, len(line.old.strip()), line.new.strip())])
