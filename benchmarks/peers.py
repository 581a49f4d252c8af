"""compilescope beside the tools that PyTorch's users have, on the same programs.

    python benchmarks/peers.py                          # all questions to all tools; an hour
    python benchmarks/peers.py --keep answers/          # keeps the answers, asks what is new
    python benchmarks/peers.py --program four_breaks --tool explain --tool compilescope
    python benchmarks/peers.py --question watch --rounds 3

Each program of `peers/programs` has its truth in `peers/truths.py`, each tool a file in
`peers/tools`, each job a rule in `peers/scoring.py`, the same for all tools. Every question is a
process of its own, in a folder of its own, with a limit; the tools are used as their documentation
says. What they said is kept below `--keep`, a folder a tool and program: `stdout.txt`, `stderr.txt`
and what the tool wrote. A job that a tool does not do is a dash, not a zero.

torch brings explain, TORCH_LOGS, the minifier and CompilerBisector. For the others:
pip install tlparse depyf polygraphy onnx onnxruntime onnxscript. What is missing is left out, and
said.
"""

from __future__ import annotations

import argparse
import importlib
import json
import pkgutil
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

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
from peers.truths import TRUTHS, Program

ORDER = (
    "python", "explain", "TORCH_LOGS", "tlparse", "depyf", "torch minifier", "CompilerBisector",
    "Polygraphy", "GraphMend", "compilescope",
)  # fmt: skip
JOBS = (
    "lines", "causes", "count", "guards", "eager", "advice", "clean", "unchanged",
    "differs", "operation", "wrong line", "part", "repro", "fixed",
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


def main() -> None:
    options = parsed()
    tools = every_tool()
    chosen = [tools[name] for name in options.tool or tools]
    there = [tool for tool in chosen if not tool.not_run and not tool.missing()]
    programs = [p for p in TRUTHS if not options.program or p.name in options.program]
    folder = options.keep or Path(tempfile.mkdtemp(prefix="peers-"))
    answers = Answers(folder.resolve(), options.rounds)
    questions = options.question or list(QUESTIONS)
    rows = rows_of(there, programs, questions, answers, ask=not options.kept)
    if options.json:
        print(json.dumps([asdict(row) for row in rows], indent=1))
    else:
        print("\n\n".join(tables(rows, chosen)))
    print(f"\nWhat every tool said: {folder}", file=sys.stderr)


def tables(rows: list[Row], tools: list[Tool]) -> list[str]:
    """Markdown; empty tables are left out."""
    return [
        table
        for table in (
            score_table(rows, tools, "watch"),
            program_table(rows, tools, "lines"),
            score_table(rows, tools, "localise"),
            repro_table(rows),
            fix_table(rows),
            cost_table(rows),
            absent_table(tools),
        )
        if table
    ]


def score_table(rows: list[Row], tools: list[Tool], question: str) -> str:
    """A job a row, a tool a column: how many of how many."""
    rows = [row for row in rows if row.question == question]
    names = [tool.name for tool in tools if any(row.tool == tool.name for row in rows)]
    jobs = [job for job in JOBS if any(job in row.scores for row in rows)]
    if not rows:
        return ""
    lines = [header("job", *names)]
    for job in jobs:
        lines.append(line(job, *(total(rows, name, job) for name in names)))
    if question == "watch":
        lines.append(
            line("files with Dynamo's Python that parse", *(sources(rows, n) for n in names))
        )
    else:
        lines.append(line("stopped at the limit", *(stopped(rows, name) for name in names)))
        lines.append(line("CPU time", *(seconds(rows, name) for name in names)))
    return "\n".join(lines)


def stopped(rows: list[Row], tool: str) -> str:
    return ", ".join(row.program for row in rows if row.tool == tool and row.stopped) or "–"


def seconds(rows: list[Row], tool: str) -> str:
    return " + ".join(f"{row.cpu_s:.0f} s" for row in rows if row.tool == tool)


def total(rows: list[Row], tool: str, job: str) -> str:
    # Stopped by us, on however busy a machine: no answer, and so no score.
    scores = [
        row.scores[job]
        for row in rows
        if row.tool == tool and job in row.scores and not row.stopped
    ]
    return f"{sum(s[0] for s in scores)}/{sum(s[1] for s in scores)}" if scores else "–"


def sources(rows: list[Row], tool: str) -> str:
    files = sum(row.sources for row in rows if row.tool == tool)
    return f"{sum(r.valid_sources for r in rows if r.tool == tool)}/{files}" if files else "–"


def program_table(rows: list[Row], tools: list[Tool], job: str) -> str:
    """Where the losses of each program were found."""
    rows = [row for row in rows if job in row.scores]
    names = [tool.name for tool in tools if any(row.tool == tool.name for row in rows)]
    if not rows:
        return ""
    lines = [header(f"program: {job}", *names)]
    for program in dict.fromkeys(row.program for row in rows):
        of = [row for row in rows if row.program == program]
        lines.append(line(program, *(total(of, name, job) for name in names)))
    return "\n".join(lines)


def repro_table(rows: list[Row]) -> str:
    rows = [row for row in rows if row.question == "shrink"]
    if not rows:
        return ""
    smallest = {program.name: program.smallest for program in TRUTHS}
    lines = [header("program", "smallest possible", "tool", "fails alone", "operations", "CPU, s")]
    for row in sorted(rows, key=lambda row: row.program):
        failed = "yes" if row.scores["repro"][0] else "no"
        size = "–" if row.operations is None else str(row.operations)
        cells = (str(smallest[row.program]), row.tool, failed, size, f"{row.cpu_s:.0f}")
        lines.append(line(row.program, *cells))
    return "\n".join(lines)


def fix_table(rows: list[Row]) -> str:
    rows = [row for row in rows if row.question == "fix"]
    if not rows:
        return ""
    lines = [header("program", "tool", "nothing is lost any more, same result", "CPU, s")]
    for row in rows:
        yes = "yes" if row.scores["fixed"][0] else "no"
        lines.append(line(row.program, row.tool, yes, f"{row.cpu_s:.0f}"))
    return "\n".join(lines)


def cost_table(rows: list[Row]) -> str:
    """CPU time against the plain runs, and how much there is to read, over the same programs."""
    rows = [row for row in rows if row.question == "watch"]
    plain = {row.program: row.cpu_s for row in rows if row.tool == "python"}
    if not plain:
        return ""
    lines = [header("tool", "CPU time, of the plain runs", "lines to read, median program", "most")]
    for name in dict.fromkeys(row.tool for row in rows):
        of = [row for row in rows if row.tool == name]
        ratio = sum(row.cpu_s for row in of) / sum(plain[row.program] for row in of)
        read = [row.lines for row in of]
        cells = (f"{ratio:.2f}x", f"{statistics.median(read):.0f}", str(max(read)))
        lines.append(line(name, *cells))
    return "\n".join(lines)


def absent_table(tools: list[Tool]) -> str:
    lines = [header("not run here", "why")]
    for tool in tools:
        if tool.not_run:
            lines.append(line(tool.name, tool.not_run))
        elif missing := tool.missing():
            lines.append(line(tool.name, f"not installed: pip install {missing}"))
    return "\n".join(lines) if len(lines) > 1 else ""


def header(*cells: str) -> str:
    return line(*cells) + "\n" + line(*("---" for _ in cells))


def line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tool", action="append", choices=ORDER)
    parser.add_argument("--program", action="append", choices=[p.name for p in TRUTHS])
    parser.add_argument("--question", action="append", choices=list(QUESTIONS))
    parser.add_argument(
        "--rounds", type=int, default=1, help="runs of each, in turn, for CPU times"
    )
    parser.add_argument("--keep", type=Path, help="a folder for all answers; those there are taken")
    parser.add_argument("--kept", action="store_true", help="ask nothing: what `--keep` has")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    main()
