"""How an answer is scored against a program's truth. One rule a job, the same for every tool.

| job | rule |
|---|---|
| lines | the file's name and the line's number stand together in what the tool says |
| causes | so they do, and one of the truth's words for the cause stands there too |
| count | the tool's own number of graph breaks is the number of places |
| guards | it names the guard where it speaks of a recompile, and the line that reads the value |
| eager | the tool says that a function runs uncompiled |
| advice | there is a hint, of whatever quality, at a program with something to mend |
| clean | at the program that loses nothing, the tool counts no graph break |
| unchanged | the program's own last line of output is there, and its exit status |
| repro | the script, run by itself, ends with the backend's error or says that it is present |
| differs | the tool says that the numbers are other ones |
| operation | its verdict names the wrong operation |
| wrong line | its verdict names the operation's line |
| part | its verdict names the part of PyTorch's compiler |
| fixed | after its change, PyTorch logs no break or recompile, and the last line is the same |
"""

from __future__ import annotations

import ast
import re

from peers.tool import Answer
from peers.truths import Program, place

Scores = dict[str, tuple[int, int]]

_ADVICE = ("Hint:", "HINT: torch.compile", "Try:", "By hand:", "consider setting")


def named(text: str, file: str, line: int) -> bool:
    """`model.py:12`, or as in a traceback: `model.py", line 12`."""
    return re.search(rf"{re.escape(file)}(:|\"?, line ){line}(?!\d)", text) is not None


def says(text: str, words: tuple[str, ...]) -> bool:
    # A terminal's lines end where it is full; words do not care.
    flat = re.sub(r"\s+", " ", text).lower()
    return any(word.lower() in flat for word in words)


def blamed(text: str, guard: str) -> bool:
    """Named as the reason of a recompile, not in a list of all guards."""
    lines = text.splitlines()
    near = 12  # Chosen: PyTorch's message on one recompile is shorter.
    return any(
        re.search("recompil|guard failure", "\n".join(lines[max(0, n - near) : n + 1]), re.I)
        for n, line in enumerate(lines)
        if re.search(guard, line)
    )


def watch_scores(program: Program, answer: Answer, plain: Answer) -> Scores:
    text = answer.text
    lines = [named(text, *place(program, loss.line, loss.file)) for loss in program.losses]
    causes = [
        seen and says(text, loss.words) for seen, loss in zip(lines, program.losses, strict=True)
    ]
    guards = [
        blamed(text, guard.pattern) and named(text, *place(program, guard.line))
        for guard in program.guards
    ]
    scores = {"lines": counted(lines), "causes": counted(causes), "guards": counted(guards)}
    if program.eager:
        scores["eager"] = counted([says(text, program.eager)])
    if program.losses:
        scores["count"] = counted([answer.count == len(program.losses)])
    if program.losses or program.guards:
        scores["advice"] = counted([any(word in text for word in _ADVICE)])
    if program.clean:
        scores["clean"] = counted([answer.count == 0])
    same = last_line(plain) in text and answer.status == plain.status
    scores["unchanged"] = counted([same])
    return {job: score for job, score in scores.items() if score[1]}


def localise_scores(program: Program, answer: Answer) -> Scores:
    operation = re.search(r"\b(gelu|relu)\b", program.wrong)
    scores = {
        "differs": counted([bool(answer.verdict)]),
        "operation": counted([operation is not None and operation[1] in answer.verdict]),
        "wrong line": counted([named(answer.verdict, *place(program, program.wrong))]),
    }
    if program.part:
        scores["part"] = counted([program.part in answer.verdict])
    return scores


def shrink_scores(program: Program, ran: Answer) -> Scores:
    """`ran` is the script that the tool left, run by itself."""
    failed = program.error in ran.text or "is present" in ran.text
    return {"repro": counted([failed and ran.status != 0])}


def fix_scores(logged: Answer, plain: Answer) -> Scores:
    """`logged` is the changed program, run by itself with PyTorch's own logs of what is lost."""
    lost = "Graph break in user code at" in logged.text or "Recompiling function" in logged.text
    same = logged.status == plain.status and last_line(plain) in logged.text
    return {"fixed": counted([same and not lost])}


def operations(script: str) -> int | None:
    """Calls and arithmetic in the script's `forward`; None where it has none to read."""
    try:
        tree = ast.parse(script)
    except SyntaxError:
        return None
    forwards = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.name == "forward"
    ]
    if not forwards:
        return None
    steps = (ast.Call, ast.BinOp, ast.UnaryOp)
    return sum(isinstance(node, steps) for node in ast.walk(forwards[-1]))


def parses(source: str) -> bool:
    try:
        ast.parse(source)
    except SyntaxError:
        return False
    return True


def last_line(answer: Answer) -> str:
    """Of what the program itself printed: every program ends with a line of its results."""
    printed = re.findall(r"^(?:sum|out) -?[\d.]+$|^other numbers$", answer.text, re.MULTILINE)
    return str(printed[-1]) if printed else ""


def counted(found: list[bool]) -> tuple[int, int]:
    return sum(found), len(found)
