"""The files of a run, redacted, and the places in them: frames, code objects, single lines."""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from compilescope.model.python_text import LARGEST
from compilescope.model.stack import CodeRef, Frame
from compilescope.sharing.redaction.code import Words
from compilescope.sharing.redaction.paths import is_public_file, redact_path
from compilescope.sharing.redaction.source import Ends, RedactedLine, RedactedSource, redacted_line

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
