"""`TORCH_LOGS`, with the two artifacts that its documentation names for breaks and recompiles."""

from pathlib import Path

from peers.tool import Answer, Tool, asked, copied, python
from peers.truths import Program


def watch(program: Program, folder: Path) -> Answer:
    variables = {"TORCH_LOGS": "graph_breaks,recompiles_verbose"}
    answer = asked(python(copied(program, folder).name), folder, variables)
    answer.count = answer.text.count("Graph break in user code at")
    return answer


TOOL = Tool("TORCH_LOGS", watch=watch)
