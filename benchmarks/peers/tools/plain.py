"""Nothing but Python: what PyTorch says unasked, and the CPU time to measure others against."""

from pathlib import Path

from peers.tool import Answer, Tool, asked, copied, python
from peers.truths import Program


def watch(program: Program, folder: Path) -> Answer:
    return asked(python(copied(program, folder).name), folder)


TOOL = Tool("python", watch=watch, not_its_job=frozenset({"count", "clean"}))
