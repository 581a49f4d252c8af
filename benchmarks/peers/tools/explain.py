"""`torch._dynamo.explain(function)(*args)`, printed: as its documentation shows it."""

import re
from pathlib import Path

from peers.tool import Answer, Tool, asked, copied, python
from peers.truths import Program

_CALL = """
import torch, {name}
function, args = {name}.build()
print(torch._dynamo.explain(function)(*args))
"""


def watch(program: Program, folder: Path) -> Answer:
    copied(program, folder)
    answer = asked(python("-c", _CALL.format(name=program.name)), folder)
    if stated := re.search(r"Graph Break Count: (\d+)", answer.text):
        answer.count = int(stated[1])
    return answer


# One call of one function: what happens at later calls is not for it to say.
TOOL = Tool("explain", watch=watch, unmodified=False, not_its_job=frozenset({"guards", "eager"}))
