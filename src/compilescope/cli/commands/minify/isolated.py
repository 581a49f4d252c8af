"""`minify --isolated`: all of it in a copy of the working folder; the repro in its real place."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from compilescope.cli.commands.minify.program import minify_program
from compilescope.cli.commands.minify.shared import Output
from compilescope.cli.isolation import Copy, announce, isolated
from compilescope.outputs import write_output


def minify_in_a_copy(
    kind: str, words: tuple[str, ...], output: Output, given: dict[str, Any]
) -> int:
    home = given["home"]
    with isolated(home, words[0] if kind == "script" else "") as copy:
        announce("minify", copy)
        inside = copy.into(os.path.join(copy.real, output.path))
        output = replace(output, rename_in=copy.rename_in)
        inner = replace(output, path=Path(os.path.relpath(inside)))
        if not inside.startswith(copy.folder + os.sep):
            inner = replace(output, path=Path(inside))
        with _printed(copy), _taken_out(inner, copy):
            return minify_program(kind, tuple(map(copy.into, words)), inner, given)


@contextlib.contextmanager
def _printed(copy: Copy) -> Iterator[None]:
    """The answer names the real paths."""
    answer = io.StringIO()
    try:
        with contextlib.redirect_stdout(answer):
            yield
    finally:
        sys.stdout.write(copy.back(answer.getvalue()))
        sys.stdout.flush()


@contextlib.contextmanager
def _taken_out(output: Output, copy: Copy) -> Iterator[None]:
    """What was made, and what `--resume` needs, in the real folder."""
    before = _made(output)
    try:
        yield
    finally:
        after = _made(output)
        for path, data in after.items():
            if before.get(path) != data:
                write_output(_real(path, copy), copy.bytes_back(data))
        for path in before.keys() - after.keys():
            _real(path, copy).unlink(missing_ok=True)


def _made(output: Output) -> dict[str, bytes]:
    folder, stem = output.path.absolute().parent, output.path.stem
    paths = [output.path.absolute(), output.state.absolute(), *folder.glob(f"{stem}*.safetensors")]
    return {str(path): path.read_bytes() for path in paths if path.is_file()}


def _real(path: str, copy: Copy) -> Path:
    return Path(copy.back(path))
