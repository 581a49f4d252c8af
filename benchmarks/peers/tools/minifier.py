"""torch's minifier: the program with TORCHDYNAMO_REPRO_AFTER, then the launcher that it writes.

The launcher and its repro name a backend of the program's own, and do not import it: without a line
added by hand both end with "Invalid backend". The line is added here.
"""

import re
from pathlib import Path

from peers.tool import Answer, Tool, asked, copied, python
from peers.truths import Program


def shrink(program: Program, folder: Path) -> Answer:
    return _minified(program, folder, level="2")


def localise(program: Program, folder: Path) -> Answer:
    """Its accuracy level; the script it ends with is the answer."""
    return _minified(program, folder, level="4")


def _minified(program: Program, folder: Path, level: str) -> Answer:
    file = copied(program, folder)
    # "aot" is for Inductor, "dynamo" for any other backend: its documentation.
    after = "aot" if "inductor" in program.name else "dynamo"
    variables = {"TORCHDYNAMO_REPRO_AFTER": after, "TORCHDYNAMO_REPRO_LEVEL": level}
    ran = asked(python(file.name), folder, variables)
    launchers = sorted(folder.rglob("minifier_launcher.py"))
    if not launchers:
        return ran
    launcher = launchers[-1]
    launcher.write_text(_with_backend(program, launcher.read_text()))
    answer = asked(python(launcher), folder, {"PYTHONPATH": str(folder)})
    answer.cpu_s += ran.cpu_s
    repros = sorted(folder.rglob("repro.py"), key=lambda path: path.stat().st_mtime)
    if repros:
        answer.repro = _with_backend(program, repros[-1].read_text())
        answer.text += answer.repro
        answer.verdict = answer.repro.partition("def forward(")[2]
    return answer


def _with_backend(program: Program, script: str) -> str:
    backend = re.search(r"backend='(\w+)'", script)
    if backend is None or f"def {backend[1]}(" not in program.file.read_text():
        return script
    added = f"import torch._dynamo, {program.name}\n"
    return f"{added}torch._dynamo.register_backend({program.name}.{backend[1]})\n{script}"


TOOL = Tool(
    "torch minifier",
    shrink=shrink,
    localise=localise,
    not_its_job=frozenset({"wrong line", "part"}),
)
