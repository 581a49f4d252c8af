"""The files of a run, redacted, and the places in them: frames, code objects, single lines."""

from __future__ import annotations

import msgspec

from compilescope.model.stack import CodeRef, Frame
from compilescope.rules.redaction.code import Words
from compilescope.rules.redaction.paths import is_public_file, public_part, redact_path
from compilescope.rules.redaction.source import RedactedLine, RedactedSource, redacted_line


class Files:
    """Source by file. Frames of torch and of well-known packages keep their lines."""

    def __init__(self, words: Words, sources: dict[str, str]) -> None:
        self._words = words
        self._sources = sources
        self._redacted: dict[str, RedactedSource] = {}
        self._frames: dict[Frame, Frame] = {}
        self.kept: set[str] = set()
        """Lines and names of public code that stay to the letter."""

    def forget(self) -> None:
        self._redacted.clear()
        self._frames.clear()

    def source(self, text: str) -> RedactedSource:
        if text not in self._redacted:
            self._redacted[text] = RedactedSource(self._words, text)
        return self._redacted[text]

    def frame(self, frame: Frame) -> Frame:
        new = self._frames.get(frame)
        if new is None:
            new = self._frames[frame] = self._frame(frame)
        return new

    def _frame(self, frame: Frame) -> Frame:
        file = redact_path(self._words.names, frame.file)
        if self._is_public(frame):
            self.kept |= {frame.function, frame.source, public_part(frame.file)[1]}
            return msgspec.structs.replace(frame, file=file)
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
        file = redact_path(self._words.names, code.file)
        if is_public_file(code.file):
            self.kept |= {code.function, public_part(code.file)[1]}
            return msgspec.structs.replace(code, file=file)
        return msgspec.structs.replace(
            code, file=file, function=self._words.function(code.function)
        )

    def line_of(self, file: str, number: int, text: str) -> str:
        """A line that a message quotes."""
        if is_public_file(file):
            self.kept.add(text)
            return text
        return self._line(file, number, text)[0].new

    def _line(
        self, file: str, number: int, text: str
    ) -> tuple[RedactedLine, RedactedSource | None]:
        """The line as it is in the redacted file. One that is not in the file stands alone."""
        known = self._sources.get(file)
        source = self.source(known) if known is not None else None
        line = source.line(number) if source is not None else None
        if line is not None and source is not None:
            if line.old.rstrip() == text.rstrip():
                return line, source
            if line.old.strip() == text.strip():
                # Torch strips the lines that it notes in graphs.
                return _stripped(line), source
        return redacted_line(self._words, text), None

    def _is_public(self, frame: Frame) -> bool:
        return is_public_file(frame.file) or (frame.origin == "torch" and "/torch/" in frame.file)


def _stripped(line: RedactedLine) -> RedactedLine:
    return RedactedLine(line.old.strip(), [(0, len(line.old.strip()), line.new.strip())])
