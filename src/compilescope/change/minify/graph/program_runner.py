"""Runs the user's program in this process, with each graph caught on its way to the backend.

python -m compilescope.change.minify.graph.program_runner JSON SCRIPT [ARGS]...
"""

from __future__ import annotations

import os
import runpy
import sys
from pathlib import Path

import msgspec

from compilescope.change.minify.graph.record import BackendSource


class CatchOptions(msgspec.Struct):
    """What to catch, and with which backend the records name."""

    folder: str
    predicate: str
    device: str = ""
    test_backend: str = ""
    """A name, or file.py:function."""
    file: str = ""
    line: int | None = None
    """Only violations at this place."""


def main(words: list[str]) -> None:
    options = msgspec.json.decode(words[0], type=CatchOptions)
    script = os.path.abspath(words[1])
    sys.argv = [words[1], *words[2:]]
    sys.path[0] = os.path.dirname(script)
    with _catcher(options).catching():
        runpy.run_path(script, run_name="__main__")


def _catcher(options: CatchOptions):  # type: ignore[no-untyped-def]
    from compilescope.change.minify.graph.catcher import Catcher, source_of
    from compilescope.change.minify.violations.repros import ViolationCatcher
    from compilescope.instrument.torchapi.repros.definitions import used_backend

    folder = Path(options.folder)
    if options.predicate == "violation":
        place = (options.file, options.line) if options.line is not None else None
        return ViolationCatcher(folder, device=options.device or None, place=place)
    if not options.test_backend:
        return Catcher(folder)
    named = backend_named(options.test_backend)
    if isinstance(named, BackendSource):
        return Catcher(folder, backend=named, eager=True)
    used = used_backend(named)
    return Catcher(folder, backend=source_of(used), options=used.options, eager=True)


def backend_named(words: str) -> str | BackendSource:
    """A name that torch knows, or a file and what it defines."""
    file, colon, name = words.rpartition(":")
    if not colon or not file.endswith(".py"):
        return words
    path = os.path.abspath(file)
    module = os.path.splitext(os.path.basename(path))[0]
    return BackendSource(
        expression=name,
        name=name,
        imports=(f"from {module} import {name}",),
        folders=(os.path.dirname(path),),
    )


if __name__ == "__main__":
    main(sys.argv[1:])
