"""Remembers each candidate that was judged, in memory and in a file, so that a search can resume.

The file also holds the smallest text so far. It is written aside and renamed, so it is never half a
file; one that was changed, or belongs to another search, is refused.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, get_args

from compilescope.base.errors import ToolError
from compilescope.base.outputs import write_output

Outcome = Literal["kept", "lost", "invalid", "timeout", "crashed"]
"""Only "kept" is interesting."""

_SCHEMA = 1
"""Of the file that `--resume` reads; one of another schema is refused."""
_PAUSE_S = 2.0
"""Between two saves. Chosen: an interrupted search loses two seconds of answers, and a quick one
does not spend its time on writing."""


class Judgements:
    """What the judge said. Threads may ask and tell at the same time."""

    def __init__(self, path: Path | None, start: str, purpose: str) -> None:
        self.calls = 0
        self.reused = 0
        self._path = path
        self._start = digest_of(start)
        self._purpose = purpose
        self._known: dict[str, Outcome] = {}
        self._lock = threading.Lock()
        self._saved_at = time.monotonic()

    @classmethod
    def open(cls, path: Path | None, *, start: str, purpose: str) -> Judgements:
        """With the answers that `path` has already, if any."""
        answers = cls(path, start, purpose)
        if path is not None:
            answers._load(path)
        return answers

    def get(self, text: str) -> Outcome | None:
        with self._lock:
            known = self._known.get(digest_of(text))
            self.reused += known is not None
            return known

    def put(self, text: str, outcome: Outcome) -> None:
        with self._lock:
            self.calls += 1
            self._known[digest_of(text)] = outcome

    def save_now_and_then(self, best: Callable[[], str]) -> None:
        """Often enough that a killed reduction loses seconds."""
        if self._path is not None and time.monotonic() - self._saved_at >= _PAUSE_S:
            self.save(best())

    def save(self, best: str) -> None:
        if self._path is None:
            return
        with self._lock:
            content = {
                "schema": _SCHEMA,
                "start": self._start,
                "purpose": self._purpose,
                "outcomes": dict(self._known),
                "best": best,
            }
        _write(self._path, {**content, "check": _check_of(content)})
        self._saved_at = time.monotonic()

    def _load(self, path: Path) -> None:
        content = _read(path)
        if content is None:
            return
        if content["start"] != self._start or content["purpose"] != self._purpose:
            raise ToolError(
                f"{path} belongs to a minify of another program, or with another predicate.",
                hint="Delete it, or name another file with -o.",
            )
        self._known.update(content["outcomes"])


def digest_of(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


def _check_of(content: dict[str, Any]) -> str:
    return digest_of(json.dumps(content, sort_keys=True))


def _read(path: Path) -> dict[str, Any] | None:
    try:
        content = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ToolError(f"{path} cannot be read: {error.strerror}.") from None
    except (ValueError, RecursionError):
        raise _damaged(path) from None
    if not isinstance(content, dict):
        raise _damaged(path)
    check = content.pop("check", None)
    if content.get("schema") != _SCHEMA and isinstance(content.get("schema"), int):
        raise ToolError(
            f"{path} was written by another version of compilescope.",
            hint="Delete it to start over.",
        )
    if check != _check_of(content) or not _well_formed(content):
        raise _damaged(path)
    return content


def _well_formed(content: dict[str, Any]) -> bool:
    outcomes = content.get("outcomes")
    return (
        isinstance(outcomes, dict)
        and all(value in get_args(Outcome) for value in outcomes.values())
        and all(isinstance(content.get(name), str) for name in ("start", "purpose", "best"))
    )


def _damaged(path: Path) -> ToolError:
    return ToolError(
        f"{path} is not the saved state of a minify, or it is damaged.",
        hint="Delete it to start over.",
    )


def _write(path: Path, content: dict[str, Any]) -> None:
    write_output(path, json.dumps(content, sort_keys=True).encode())
