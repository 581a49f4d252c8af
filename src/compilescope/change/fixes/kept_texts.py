"""The source files of a program as a run kept them: the text that was run, not what is there now.

Where a file is still the same, its own line ends are kept, so that a patch applies to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from compilescope.record.bodies import SourceSeen
from compilescope.record.plain_files import read_source
from compilescope.record.run import Run


class KeptTexts(Mapping[str, str]):
    """The files of a program as they were when it ran, read when asked for."""

    def __init__(self, run: Run, is_here: bool) -> None:
        self._run = run
        self._is_here = is_here
        self._artifacts = {body.file: body.artifact for _, body in run.of(SourceSeen)}

    def __getitem__(self, file: str) -> str:
        text = self._run.artifacts.get(self._artifacts[file])
        if text is None:
            raise KeyError(file)
        return _with_its_line_ends(file, text) if self._is_here else text

    def __iter__(self) -> Iterator[str]:
        return iter(self._artifacts)

    def __len__(self) -> int:
        return len(self._artifacts)


def _with_its_line_ends(file: str, kept: str) -> str:
    """A program's text is kept as Python reads it, its lines all ended alike; a patch needs them
    as they are in the file, if that is still the same."""
    try:
        text = read_source(file).decode("utf-8-sig")
    except (OSError, ValueError):
        return kept
    return text if _read_lines(text) == _read_lines(kept) else kept


def _read_lines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n").removesuffix("\n")
