"""`with depyf.prepare_debug(folder)` around the program's `main`, as its README shows it."""

from pathlib import Path

from peers.tool import Answer, Tool, asked, copied, python
from peers.truths import Program

_CALL = """
import depyf, {name}
with depyf.prepare_debug("sources"):
    {name}.main()
"""


def watch(program: Program, folder: Path) -> Answer:
    copied(program, folder)
    answer = asked(python("-c", _CALL.format(name=program.name)), folder)
    files = sorted((folder / "sources").glob("*.py"))
    answer.python = [text for file in files if "__compiled_fn_" in (text := file.read_text())]
    answer.text += "\n".join(file.read_text() for file in files)
    return answer


# It shows what Dynamo made of the code; which lines were lost, and why, is for the reader to see.
TOOL = Tool(
    "depyf",
    watch=watch,
    packages=("depyf",),
    unmodified=False,
    not_its_job=frozenset({"lines", "causes", "count", "guards", "eager", "advice", "clean"}),
)
