"""Content-addressed text: a graph printed twice is kept once.

A text is a file of its own in the folder `artifacts`, in a pack there, or a line of an event file
beside that folder. Only this module knows which. Nothing is ever unpickled: artifacts are text.
"""

from __future__ import annotations

import contextlib
import io
import os
import threading
from hashlib import blake2b
from pathlib import Path
from typing import Protocol

from compilescope.base.patterns import late
from compilescope.record.eventfile import EventFile, event_files
from compilescope.record.own_files import make_folder, write_new
from compilescope.record.packs import SUFFIX, Pack, PackWriter
from compilescope.record.plain_files import open_plain
from compilescope.record.text_lines import LONGEST_TEXT, TextLines, text_line

KINDS = frozenset(("txt", "py", "json", "jsonl", "guards", "guardtree"))
"""What artifacts are, by the ends of their names; any other end is not of our making."""
ARTIFACTS = "artifacts"
"""Where they lie in a run's folder."""
_NAME = late(r"^[0-9a-f]{40}\.[a-z]+$")


def artifact_name(text: str, kind: str) -> str:
    """The name that this text has in every run: its hash and what it is."""
    return _name_of(text.encode("utf-8", "surrogatepass"), kind)


def _name_of(data: bytes, kind: str) -> str:
    return f"{blake2b(data, digest_size=20).hexdigest()}.{kind}"


class Artifacts(Protocol):
    """A place for texts."""

    def put(self, text: str, kind: str) -> str: ...
    def get(self, name: str) -> str | None: ...
    def size(self, name: str) -> int:
        """About how long a text is, without reading it; 0 where there is none."""
        ...


class MemoryArtifacts:
    """For captures that live as long as their process."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def put(self, text: str, kind: str) -> str:
        name = artifact_name(text, kind)
        self._texts[name] = text
        return name

    def get(self, name: str) -> str | None:
        return self._texts.get(name)

    def size(self, name: str) -> int:
        return len(self._texts.get(name, ""))

    def items(self) -> list[tuple[str, str]]:
        return list(self._texts.items())


class DiskArtifacts:
    """One file a text. Two processes that write the same text write the same file.

    Texts that lie in packs or among the events are read too; none is written there.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._packs: list[Pack] | None = None
        self._lines = TextLines()
        self._written: set[str] = set()
        """By us: no need to look whether they are there."""

    def put(self, text: str, kind: str) -> str:
        data = text.encode("utf-8", "surrogatepass")
        name = _name_of(data, kind)
        # Strings: this runs inside the user's program, several times a compilation.
        path = os.path.join(self._folder, name)
        if name not in self._written and not os.path.exists(path):
            if not self._written:
                make_folder(self._folder)
            # Written aside and renamed: a reader never sees half a text.
            part = f"{path}.{os.getpid()}.{threading.get_ident()}.part"
            try:
                write_new(part, data)
                os.replace(part, path)
            except BaseException:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(part)
                raise
        self._written.add(name)
        return name

    def get(self, name: str) -> str | None:
        # A name comes from a file that anyone may have written: it must not lead elsewhere.
        if not _NAME.match(name) or name.endswith(SUFFIX):
            return None
        try:
            # No link either: pages show these texts to whoever may look at runs.
            with open_plain(os.path.join(self._folder, name), links=False) as file:
                return io.TextIOWrapper(file, encoding="utf-8", errors="surrogatepass").read()
        except FileNotFoundError:
            text = self._packed(name)
            return text if text is not None else self._looked_up(name).get(name)
        except (OSError, UnicodeDecodeError):
            return None

    def size(self, name: str) -> int:
        if not _NAME.match(name) or name.endswith(SUFFIX):
            return 0
        try:
            return (self._folder / name).stat().st_size
        except OSError:
            sizes = (pack.size(_digest(name)) for pack in self._all_packs())
            return max(sizes, default=0) or self._looked_up(name).size(name)

    def _all_packs(self) -> list[Pack]:
        if self._packs is None:
            self._packs = _packs_in(self._folder)
        return self._packs

    def _looked_up(self, name: str) -> TextLines:
        """With all that the event files hold now, unless it was among what they held before."""
        if not self._lines.size(name):
            with contextlib.suppress(OSError):
                self._lines.look_into(event_files(self._folder.parent))
        return self._lines

    def _packed(self, name: str) -> str | None:
        for pack in self._all_packs():
            data = pack.get(_digest(name))
            if data is not None:
                try:
                    return data.decode("utf-8", "surrogatepass")
                except UnicodeDecodeError:
                    return None
        return None


class RecordedArtifacts:
    """Those of a process that writes events: short texts become lines of its event file, written
    with the event that follows. Two processes may write the same short text, each for itself."""

    def __init__(self, folder: Path) -> None:
        self._files = DiskArtifacts(folder)
        self._written: set[str] = set()
        self.events: EventFile | None = None
        """Until there is one, texts are files."""

    def put(self, text: str, kind: str) -> str:
        events = self.events
        data = text.encode("utf-8", "surrogatepass")
        if events is None or len(data) > LONGEST_TEXT:
            return self._files.put(text, kind)
        name = _name_of(data, kind)
        if name not in self._written:
            try:
                line = text_line(name, text)
            except UnicodeEncodeError:
                return self._files.put(text, kind)
            if events.write(line, more=True):
                self._written.add(name)
        return name

    def get(self, name: str) -> str | None:
        if self.events is not None:
            self.events.flush()
        return self._files.get(name)

    def size(self, name: str) -> int:
        if self.events is not None:
            self.events.flush()
        return self._files.size(name)


class PackedArtifacts:
    """As `DiskArtifacts` for so many texts, which anyone can look at; more go into one pack, which
    is there once `close` was called. A file for each of very many short texts takes far longer to
    write, to read and to archive than the text."""

    def __init__(self, folder: Path, files: int = 2000) -> None:
        """`files`: chosen, far above what most runs hold."""
        self._folder = folder
        self._room = files
        self._files = DiskArtifacts(folder)
        self._names: set[str] = set()
        self._pack: PackWriter | None = None

    def put(self, text: str, kind: str) -> str:
        data = text.encode("utf-8", "surrogatepass")
        name = _name_of(data, kind)
        if name not in self._names:
            self._names.add(name)
            if len(self._names) <= self._room:
                return self._files.put(text, kind)
            if self._pack is None:
                self._pack = PackWriter(self._folder)
            self._pack.put(data)
        return name

    def get(self, name: str) -> str | None:
        return self._files.get(name)

    def size(self, name: str) -> int:
        return self._files.size(name)

    def close(self) -> Path | None:
        """The pack; None where there is none."""
        return self._pack.close() if self._pack is not None else None


def _digest(name: str) -> bytes:
    return bytes.fromhex(name.partition(".")[0])


def _packs_in(folder: Path) -> list[Pack]:
    packs = []
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        try:
            packs.append(Pack(path))
        except (OSError, ValueError):
            continue  # Damaged: its texts are missing, as those of a file that is gone.
    return packs
