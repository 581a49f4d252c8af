"""`python -m torch._inductor.compiler_bisector run python program.py`, as its help shows it."""

import re
from pathlib import Path

from peers.tool import Answer, Tool, asked, copied, python
from peers.truths import Program


def localise(program: Program, folder: Path) -> Answer:
    file = copied(program, folder)
    bisector = ["-m", "torch._inductor.compiler_bisector", "run"]
    answer = asked(python(*bisector, *python(file.name)), folder)
    if found := re.search(r"Bisection complete: BisectionResult.*", answer.text):
        answer.verdict = found[0]
    return answer


TOOL = Tool(
    "CompilerBisector", localise=localise, own_backends=False, not_its_job=frozenset({"wrong line"})
)
