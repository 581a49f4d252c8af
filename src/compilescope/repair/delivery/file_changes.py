"""New texts into the user's files: all of them or none, each in one step.

A file is written beside the old one and renamed onto it, so a reader never meets half of it. The
renames follow each other with signals held back; if one fails, those before it are taken back.
"""

from __future__ import annotations

import io
import os
import re
import signal
import tokenize
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from compilescope.errors import ToolError
from compilescope.processes.guard import FileChange, journal

T = TypeVar("T")
_NEWLINE = re.compile(r"\r\n|\r|\n")


@dataclass
class _Replacement:
    """One file, its new bytes beside it."""

    path: Path
    """The file itself, no link to it."""
    old: bytes
    new: bytes
    mode: int

    @property
    def part(self) -> Path:
        return self.path.with_name(f".{self.path.name}.{os.getpid()}.part")

    def prepare(self) -> None:
        _write_beside(self.part, self.new, self.mode)

    def commit(self) -> None:
        os.replace(self.part, self.path)

    def take_back(self) -> None:
        _write_beside(self.part, self.old, self.mode)
        os.replace(self.part, self.path)


def write_files(files: Mapping[str, str], originals: Mapping[str, str]) -> list[str]:
    """Put the texts in their places. Raises `ToolError`, with nothing changed, where a file is no
    longer the text that its new one was made from, or one of them cannot be written."""
    planned = [_planned(path, files[path], originals.get(path)) for path in sorted(files)]
    with _journalled(planned):
        try:
            for each in planned:
                _do(each.prepare, each.path)
            with _signals_held_back():
                _commit(planned)
        finally:
            for each in planned:
                with suppress(OSError):
                    each.part.unlink(missing_ok=True)
    return [str(each.path) for each in planned]


@contextmanager
def _journalled(planned: list[_Replacement]) -> Iterator[None]:
    """Killed in the middle, they are all taken back."""
    changes = [FileChange(each.path, each.part, each.old, each.new) for each in planned]
    with ExitStack() as stack:
        if changes:
            _do(lambda: stack.enter_context(journal(changes)), planned[0].path)
        yield


def _commit(planned: list[_Replacement]) -> None:
    done: list[_Replacement] = []
    try:
        for each in planned:
            # The last look: an editor may have saved it since.
            if _do(each.path.read_bytes, each.path) != each.old:
                raise ToolError(f"{each.path} changed in the meantime; nothing was written.")
            _do(each.commit, each.path)
            done.append(each)
    except BaseException:
        for each in done:
            each.take_back()
        raise


def _planned(path: str, text: str, original: str | None) -> _Replacement:
    place = Path(os.path.realpath(path))
    old = _do(place.read_bytes, place)
    if not os.access(place, os.W_OK):
        raise ToolError(f"Cannot write {place}: permission denied.")
    encoding = _encoding(old, place)
    try:
        now = old.decode(encoding)
        text = _with_newlines_of(now, original, text, place)
        new = text.encode(encoding)
    except UnicodeError:
        raise ToolError(f"Cannot write {place} in its encoding, {encoding}.") from None
    return _Replacement(place, old, new, place.stat().st_mode & 0o7777)


def _encoding(data: bytes, place: Path) -> str:
    """As Python reads it: by its mark or its `coding` comment; `utf-8-sig` keeps a mark."""
    try:
        return tokenize.detect_encoding(io.BytesIO(data).readline)[0]
    except SyntaxError as error:
        raise ToolError(f"Cannot write {place}: {error}.") from None


def _with_newlines_of(now: str, original: str | None, text: str, place: Path) -> str:
    """The new text with the line ends that the file has, which must still be the original."""
    if original is None or now == original.removeprefix("\ufeff"):
        return text.removeprefix("\ufeff")
    ends = set(_NEWLINE.findall(now))
    if len(ends) == 1 and _NEWLINE.sub("\n", now) == _NEWLINE.sub("\n", original):
        return _NEWLINE.sub(ends.pop(), text)
    raise ToolError(
        f"{place} changed while its fix was being verified; nothing was written.",
        hint="Run `compilescope fix` again.",
    )


def _write_beside(part: Path, data: bytes, mode: int) -> None:
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(descriptor, "wb") as stream:
        os.chmod(part, mode)
        stream.write(data)
        stream.flush()
        os.fsync(descriptor)


def _do(action: Callable[[], T], path: Path) -> T:
    try:
        return action()
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise ToolError(f"Cannot write {path}: {reason}; nothing was changed.") from None


@contextmanager
def _signals_held_back() -> Iterator[None]:
    """Ctrl-C and the like come when all is done."""
    mask = getattr(signal, "pthread_sigmask", None)
    if mask is None:
        yield
        return
    before = mask(signal.SIG_BLOCK, signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP})
    try:
        yield
    finally:
        mask(signal.SIG_SETMASK, before)
