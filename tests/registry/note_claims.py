"""The programs in notes, and what their last line claims: `# 2 graphs, GB0124`.

A claim is how many graphs a capture sees, then the ids of the breaks it sees, in order; `raises
NAME` where the program ends with that error. `python tests/registry/note_claims.py gb0124.md ...`
runs the programs of files and prints what is so.
"""

from __future__ import annotations

import contextlib
import io
import logging
import re
import runpy
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

_BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def programs(note: str) -> list[tuple[str, str]]:
    """Each program of a note, with its claim."""
    return [(text, text.rstrip().rpartition("\n")[2]) for text in _BLOCK.findall(note)]


def what_is_so(program: str) -> str:
    """Run a program and put down what a claim about it has to say."""
    import torch

    import compilescope

    torch._dynamo.reset()
    error = ""
    with tempfile.TemporaryDirectory() as folder, _undone(), compilescope.capture() as seen:
        path = Path(folder) / "program.py"
        path.write_text(program, encoding="utf-8")
        try:
            runpy.run_path(str(path), init_globals={"torch": torch})
        except Exception as raised:
            error = type(raised).__name__
    digest = seen.digest
    ids = [place.gb_id for place in (*digest.sites, *digest.failures) if place.gb_id]
    ids += ["GB0039" for frame in digest.eager_frames if frame.cause == "recompile-limit"]
    graphs = len(seen.graphs)
    words = [f"# {graphs} graph{'' if graphs == 1 else 's'}", *sorted(set(ids))]
    return ", ".join([*words, *([f"raises {error}"] if error else [])])


@contextlib.contextmanager
def _undone() -> Iterator[None]:
    """Nothing that a program sets or prints is left behind."""
    import torch

    config = torch._dynamo.config.save_config()
    logger = logging.getLogger("torch")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    quiet = io.StringIO()
    try:
        with (
            contextlib.redirect_stdout(quiet),
            contextlib.redirect_stderr(quiet),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # It sets deprecated names too.
            torch._dynamo.config.load_config(config)
        torch.set_grad_enabled(True)
        torch._dynamo.reset()


def main() -> None:
    for name in sys.argv[1:]:
        for program, claim in programs(Path(name).read_text(encoding="utf-8")):
            found = what_is_so(program)
            print("ok " if found == claim else "NOT", Path(name).stem, "|", claim, "|", found)


if __name__ == "__main__":
    main()
