"""A folder by URL: local, in memory, or an object store; whatever fsspec has a driver for."""

from __future__ import annotations

import contextlib
import os
import re
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import fsspec
from fsspec.implementations.local import LocalFileSystem

from compilescope.errors import ToolError

_PACKAGES = {"s3": "s3fs", "s3a": "s3fs", "gs": "gcsfs", "gcs": "gcsfs", "abfs": "adlfs"}
_WAITS_S = (0.5, 1.0, 2.0, 4.0)
"""Between tries of a store that does not answer. Chosen: doubled each time, 7.5 s together: longer
than a hiccup, shorter than a person's patience."""
_THREADS = 32
"""That read from a store over the network. Chosen: each waits for an answer most of the time."""
_CHUNK = 512
"""Files that are read ahead. Chosen: it bounds memory, however many jobs a sweep has."""
_MOST_WORDS = 300
"""Letters of a store's error. Chosen: some send a page of XML."""

_LATER = "What is in the store stays valid: run again with --resume once the store can be reached."

T = TypeVar("T")


class StorePlace:
    """Small files, each written at once or not at all."""

    def __init__(self, url: str, *, waits_s: tuple[float, ...] = _WAITS_S) -> None:
        self.url = re.sub(r"//[^/@]*@", "//", url)
        """As it may be shown: without a password."""
        self._waits_s = waits_s
        try:
            self._system, self._root = fsspec.core.url_to_fs(url)
        except ImportError as error:
            raise _no_driver(self.url, error) from None
        except Exception as error:  # Drivers raise what they like.
            raise ToolError(f"Cannot open the store {self.url}: {_words(error)}") from None

    @property
    def is_local(self) -> bool:
        return isinstance(self._system, LocalFileSystem)

    @property
    def is_shared(self) -> bool:
        """Can others write to it while we read? Not to a dictionary of this process."""
        return "memory" not in _protocols(self._system)

    @property
    def _is_far(self) -> bool:
        return self.is_shared and not self.is_local

    def write(self, name: str, data: bytes, *, tries: int | None = None) -> None:
        """Replaces what is there; a reader finds the old or the new, never half of it."""
        self._trying("write to", lambda: self._write(self._path(name), data), tries)

    def create(self, name: str, data: bytes) -> bool | None:
        """Write a file that nobody else has; False: somebody has. None: can't be done here."""
        if not self.is_local:
            return None
        path = self._path(name)
        aside = Path(f"{path}.{uuid.uuid4().hex}.part")
        try:
            aside.parent.mkdir(parents=True, exist_ok=True)
            aside.write_bytes(data)
            os.link(aside, path)
        except FileExistsError:
            return False
        except OSError:  # No hard links there, or no way to write: `write` says which.
            return None
        finally:
            with contextlib.suppress(OSError):
                aside.unlink(missing_ok=True)
        return True

    def read(self, name: str, *, tries: int | None = None) -> bytes | None:
        """None: there is no such file."""
        return self._trying("read", lambda: self._read(self._path(name)), tries)

    def remove(self, name: str) -> None:
        def remove() -> None:
            if self._read(self._path(name)) is not None:
                self._system.rm_file(self._path(name))

        self._trying("write to", remove)

    def names(self, folder: str, suffix: str) -> list[str]:
        """The files of a folder, by one listing."""
        found = self._trying("read", lambda: self._listing(self._path(folder)))
        names = sorted(str(path).rstrip("/").rpartition("/")[2] for path in found)
        return [f"{folder}/{name}" for name in names if name.endswith(suffix)]

    def read_many(self, names: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        """Each with its contents, in order; those that are gone meanwhile are left out."""
        waiting = list(names)
        with ThreadPoolExecutor(_THREADS if self._is_far else 1) as pool:
            for start in range(0, len(waiting), _CHUNK):
                chunk = waiting[start : start + _CHUNK]
                for name, data in zip(chunk, pool.map(self.read, chunk), strict=True):
                    if data is not None:
                        yield name, data

    def _path(self, name: str) -> str:
        return f"{self._root.rstrip('/')}/{name}"

    def _write(self, path: str, data: bytes) -> None:
        if not self.is_local:
            self._system.pipe_file(path, data)
            return
        os.makedirs(os.path.dirname(path), exist_ok=True)
        aside = Path(f"{path}.part")
        aside.write_bytes(data)
        os.replace(aside, path)

    def _read(self, path: str) -> bytes | None:
        try:
            return Path(path).read_bytes() if self.is_local else self._system.cat_file(path)
        except FileNotFoundError:
            return None

    def _listing(self, path: str) -> list[str]:
        self._system.invalidate_cache()
        try:
            found: list[str] = self._system.ls(path, detail=False)
        except FileNotFoundError:
            return []
        return found

    def _trying(self, verb: str, act: Callable[[], T], tries: int | None = None) -> T:
        """A store may be away for a moment; after some tries it is away."""
        waits = self._waits_s if tries is None else self._waits_s[: tries - 1]
        for wait_s in (*waits, None):
            try:
                return act()
            except ImportError as error:
                raise _no_driver(self.url, error) from None
            except Exception as error:  # Drivers raise what they like.
                if wait_s is None:
                    said = f"Cannot {verb} the store {self.url}: {_words(error)}"
                    raise ToolError(said, _LATER if tries is None else "") from None
            time.sleep(wait_s)
        raise AssertionError("the last try returns or raises")


def _no_driver(url: str, error: ImportError) -> ToolError:
    protocol = url.partition("://")[0]
    package = _PACKAGES.get(protocol, "")
    if not package:
        said = f"{protocol}:// stores need a package that is not installed here."
        return ToolError(said, _words(error))
    said = f"{protocol}:// stores need {package}, which is not installed here."
    return ToolError(said, f"Run: pip install {package}")


def _protocols(system: Any) -> tuple[str, ...]:
    named = system.protocol
    return (named,) if isinstance(named, str) else tuple(named)


def _words(error: BaseException) -> str:
    said = error.strerror if isinstance(error, OSError) else ""
    said = said or next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    said = (said or type(error).__name__)[:_MOST_WORDS]
    return said if said.endswith(".") else f"{said}."
