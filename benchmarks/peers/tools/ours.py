"""compilescope: `run`, `minify`, `diff --localize` and `fix --write`."""

import re
from pathlib import Path

from peers.tool import LIMIT_S, Answer, Tool, asked, copied, python
from peers.truths import Program


def watch(program: Program, folder: Path) -> Answer:
    answer = asked(_command("run", copied(program, folder).name), folder)
    if stated := re.search(r"Graph breaks +(?:at least )?(\d+)", answer.text):
        answer.count = int(stated[1])
    return answer


def shrink(program: Program, folder: Path) -> Answer:
    options = ["--predicate", "crash", "--budget", f"{LIMIT_S - 60}s", "-o", "repro.py"]
    answer = asked(_command("minify", *options, copied(program, folder).name), folder)
    if (repro := folder / "repro.py").is_file():
        answer.repro = repro.read_text()
    return answer


def localise(program: Program, folder: Path) -> Answer:
    file = copied(program, folder).name
    backend = f"{file}:quick_gelu" if not program.part else "inductor"
    command = _command("diff", f"{file}:build", "--test-backend", backend, "--localize")
    answer = asked(command, folder)
    if found := re.search(r"FAIL .*", answer.text, re.DOTALL):
        answer.verdict = found[0]
    return answer


def fix(program: Program, folder: Path) -> Answer:
    file = copied(program, folder).name
    return asked(
        _command("fix", "--no-time", "--budget", f"{LIMIT_S - 60}s", "--write", file), folder
    )


def _command(name: str, *arguments: str) -> list[str | Path]:
    return python("-m", "compilescope", name, "--dir", "runs", *arguments)


TOOL = Tool("compilescope", watch=watch, shrink=shrink, localise=localise, fix=fix)
