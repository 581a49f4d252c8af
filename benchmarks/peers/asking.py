"""Puts each question to each tool once, keeps what it said, and scores it."""

from __future__ import annotations

import importlib
import json
import pkgutil
import statistics
import sys
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

import peers.tools
from peers.scoring import (
    Scores,
    fix_scores,
    localise_scores,
    operations,
    parses,
    shrink_scores,
    watch_scores,
)
from peers.tool import Answer, Ask, Tool, asked, python
from peers.truths import Program

ORDER = (
    "python", "explain", "TORCH_LOGS", "tlparse", "depyf", "torch minifier", "CompilerBisector",
    "Polygraphy", "GraphMend", "compilescope",
)  # fmt: skip
QUESTIONS: dict[str, Callable[[Program], bool]] = {
    "watch": lambda program: program.watched,
    "shrink": lambda program: bool(program.error),
    "localise": lambda program: bool(program.wrong),
    "fix": lambda program: bool(program.losses or program.guards),
}


@dataclass
class Row:
    """One tool's answer about one program, scored."""

    tool: str
    program: str
    question: str
    scores: Scores
    cpu_s: float
    lines: int
    stopped: bool = False
    operations: int | None = None
    sources: int = 0
    valid_sources: int = 0


def every_tool() -> dict[str, Tool]:
    names = [found.name for found in pkgutil.iter_modules(peers.tools.__path__)]
    tools = [importlib.import_module(f"peers.tools.{name}").TOOL for name in names]
    return {tool.name: tool for tool in sorted(tools, key=lambda tool: ORDER.index(tool.name))}


class Answers:
    """Asks each question once, and keeps what was said."""

    def __init__(self, folder: Path, rounds: int) -> None:
        self.folder, self.rounds = folder, rounds

    def get(self, tool: Tool, question: str, program: Program, turn: int = 0) -> Answer:
        return self.kept(self.home(tool, question, program, turn), program, getattr(tool, question))

    def home(self, tool: Tool, question: str, program: Program, turn: int = 0) -> Path:
        round_ = f"-{turn}" if turn else ""
        return self.folder / tool.name.replace(" ", "_") / f"{program.name}-{question}{round_}"

    def has(self, tool: Tool, question: str, program: Program) -> bool:
        return self.home(tool, question, program).with_suffix(".json").is_file()

    def kept(self, home: Path, program: Program, ask: Ask) -> Answer:
        said = home.with_suffix(".json")
        if said.is_file():
            return Answer(**json.loads(said.read_text()))
        home.mkdir(parents=True, exist_ok=True)
        answer = ask(program, home)
        said.write_text(json.dumps(asdict(answer)))
        return answer

    def watched(self, tools: Iterable[Tool], program: Program) -> dict[str, Answer]:
        """By tool, the answer of the first round with the median of all rounds' CPU times."""
        turns = [
            {tool.name: self.get(tool, "watch", program, turn) for tool in tools}
            for turn in range(self.rounds)
        ]
        for name, answer in turns[0].items():
            answer.cpu_s = statistics.median(turn[name].cpu_s for turn in turns)
        return turns[0]

    def rerun(self, tool: Tool, program: Program, script: str) -> Answer:
        """A tool's script by itself: beside the program, whose backend it may import."""
        home = self.home(tool, "shrink", program)

        def run(program: Program, folder: Path) -> Answer:
            (home / "left_by_tool.py").write_text(script)
            (folder / "left_by_tool.py").write_text(script)
            return asked(python(home / "left_by_tool.py"), folder, {"PYTHONPATH": str(home)})

        return self.kept(home.with_name(f"{program.name}-repro"), program, run)

    def judged(self, tool: Tool, program: Program) -> Answer:
        """The program as the tool left it, with PyTorch's logs."""
        home = self.home(tool, "fix", program)
        logs = {"TORCH_LOGS": "graph_breaks,recompiles"}

        def run(program: Program, folder: Path) -> Answer:
            return asked(python(home / program.file.name), folder, logs)

        return self.kept(home.with_name(f"{program.name}-judged"), program, run)


def rows_of(
    tools: list[Tool],
    programs: list[Program],
    questions: list[str],
    answers: Answers,
    ask: bool = True,
) -> list[Row]:
    rows = []
    plain = every_tool()["python"]
    for question in questions:
        for program in filter(QUESTIONS[question], programs):
            asked_tools = [
                tool
                for tool in tools
                if takes(tool, question, program) and (ask or answers.has(tool, question, program))
            ]
            if question == "watch":
                said = answers.watched(
                    [plain, *(t for t in asked_tools if t is not plain)], program
                )
            else:
                said = {tool.name: answers.get(tool, question, program) for tool in asked_tools}
            for tool in asked_tools:
                row = scored(tool, program, question, said[tool.name], answers)
                print(f"{question} {program.name} {tool.name} {row.scores}", file=sys.stderr)
                rows.append(row)
    return rows


def takes(tool: Tool, question: str, program: Program) -> bool:
    foreign = question == "localise" and not program.part
    return getattr(tool, question) is not None and (tool.own_backends or not foreign)


def scored(tool: Tool, program: Program, question: str, answer: Answer, answers: Answers) -> Row:
    plain = every_tool()["python"]
    row = Row(tool.name, program.name, question, {}, answer.cpu_s, written_lines(answer.text))
    row.stopped = answer.status is None
    if question == "watch":
        row.scores = watch_scores(program, answer, answers.get(plain, "watch", program))
        row.sources = len(answer.python)
        row.valid_sources = sum(map(parses, answer.python))
    elif question == "localise":
        row.scores = localise_scores(program, answer)
    elif question == "shrink":
        ran = answers.rerun(tool, program, answer.repro) if answer.repro else Answer()
        row.scores = shrink_scores(program, ran)
        row.operations = operations(answer.repro) if answer.repro else None
    else:
        row.scores = fix_scores(answers.judged(tool, program), answers.get(plain, "watch", program))
    left_out = tool.not_its_job | (set() if tool.unmodified else {"unchanged"})
    row.scores = {job: score for job, score in row.scores.items() if job not in left_out}
    return row


def written_lines(text: str) -> int:
    return sum(bool(each.strip()) for each in text.splitlines())
