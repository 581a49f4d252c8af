"""Answers of language models, kept by server, model and question.

One text file an answer: a line with the checksum, then the words. A file is whole or absent;
one that was damaged since counts as absent. Keeping is a favour: a full disk is no error.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

_FORMAT = "compilescope-answer-2"


def entry_for(folder: Path, url: str, model: str, messages: Sequence[dict[str, str]]) -> Path:
    """Where the answer of `model` at `url` to `messages` is kept: two servers may well give
    different models the same name."""
    content = json.dumps([_FORMAT, url.rstrip("/"), model, list(messages)], sort_keys=True)
    return folder / f"{_hash(content)}.txt"


def read_entry(entry: Path) -> str | None:
    try:
        # Bytes, because text mode would rewrite line ends under the checksum.
        head, _, words = entry.read_bytes().decode().partition("\n")
    except (OSError, UnicodeDecodeError):
        return None
    return words if words and head == f"{_FORMAT} {_hash(words)}" else None


def write_entry(entry: Path, words: str) -> None:
    with contextlib.suppress(OSError):
        entry.parent.mkdir(parents=True, exist_ok=True)
        # Under another name first: a reader never meets half an answer.
        handle, draft = tempfile.mkstemp(dir=entry.parent, suffix=".part")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(f"{_FORMAT} {_hash(words)}\n{words}".encode())
            os.replace(draft, entry)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(draft)
            raise


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
