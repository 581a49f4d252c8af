"""Does the first screen say what an expert would? Runs each of `real_programs/`, prints a table.

    python benchmarks/real_programs.py [--out FOLDER] [--limit SECONDS] [--plain] [--table FILE]
        [--recorded] [name ...]

Beside each program stands an expectation, written before anybody saw our answer: the verdict, the
line to point at first, what must be advised, what must never be said. Programs whose packages are
not installed are left out, and said to be. The runs and what each one's screen said are kept in the
folder. With --plain each program also runs without us, and torch's own log counts its recompiles
and the lines that break a graph. --table writes what came out as Markdown.
With --recorded nothing is run: the runs in the folder are read again. Exit status: 1 if a program
has a miss or none was run, 2 for arguments that cannot be.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import msgspec

from compilescope.base.errors import ToolError
from compilescope.knowledge.findings.finding import Finding
from compilescope.record.home import find_run
from compilescope.record.run import read_run
from compilescope.report.section import Reading
from compilescope.report.sections.spared import spared

PROGRAMS = Path(__file__).parent / "real_programs"
_LIMIT_S = 600.0
"""Chosen: ten times what the slowest takes on a quiet machine."""
_MODULES = {"torch_geometric": "torch_geometric", "openai-whisper": "whisper"}
_NEVER = ("Internal error", "Not tried:")
"""What no first screen may say."""


class Expectation(msgspec.Struct, frozen=True):
    """What an expert says of a program."""

    about: str
    source: str
    packages: tuple[str, ...]
    command: tuple[str, ...]
    launcher: str
    verdict: str
    """`loss`; `fine`; or `hint`: nothing is lost, and a change would spare a compilation."""
    first: str
    first_any: tuple[str, ...]
    advise: tuple[str, ...]
    never: tuple[str, ...]
    why: str
    options: tuple[str, ...] = ()
    """Of `compilescope run`: for programs that compile nothing themselves."""


class Answer(NamedTuple):
    """What was found to be otherwise, and the counts."""

    misses: tuple[str, ...]
    breaks: int
    break_lines: int
    recompiles: int
    causes: int


def expectations(names: list[str]) -> dict[Path, Expectation]:
    found = {}
    for file in sorted(PROGRAMS.glob("*/*.toml")):
        if not names or file.stem in names:
            text = file.read_bytes()
            found[file.with_suffix(".py")] = msgspec.toml.decode(text, type=Expectation)
    return found


def missing_packages(expected: Expectation) -> list[str]:
    modules = {name: _MODULES.get(name, name.replace("-", "_")) for name in expected.packages}
    return [name for name, module in modules.items() if importlib.util.find_spec(module) is None]


def run_program(file: Path, expected: Expectation, home: Path, limit: float) -> str:
    """The first screen."""
    torchrun = ["--torchrun"] if expected.launcher == "torchrun" else []
    command = [sys.executable, "-m", "compilescope", "run", "--dir", str(home), *torchrun]
    done = subprocess.run(
        [*command, *expected.options, *expected.command],
        cwd=file.parent,
        capture_output=True,
        text=True,
        timeout=limit,
        env={**os.environ, "NO_COLOR": "1"},
    )
    return done.stdout + done.stderr


def show_recorded(home: Path, limit: float) -> str:
    """The first screen of a run that is there."""
    command = [sys.executable, "-m", "compilescope", "show", "--dir", str(home)]
    environment = {**os.environ, "NO_COLOR": "1"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=limit, env=environment)
    return done.stdout + done.stderr


def judge(expected: Expectation, reading: Reading, screen: str) -> Answer:
    causes = reading.causes
    misses = [f"says: {word}" for word in _NEVER if word in screen]
    misses += [f"says: {found[0]}" for word in expected.never if (found := _search(word, screen))]
    keys = [(each.kind, each.fingerprint) for each in causes]
    misses += ["a cause twice"] if len(set(keys)) < len(keys) else []
    if expected.verdict in ("fine", "hint"):
        misses += [f"false alarm: {each.title}" for each in causes[:1]]
        if expected.verdict == "hint" and not causes:
            hints = spared(reading)
            misses += _first_misses(expected, hints[0], screen) if hints else ["no hint"]
    elif not causes:
        misses.append("nothing found")
    else:
        misses += _first_misses(expected, causes[0], screen)
    return Answer(
        tuple(misses),
        len(reading.digest.sites),
        len({(site.file, site.line) for site in reading.digest.sites}),
        sum(frame.count for frame in reading.digest.recompiles),
        len(causes),
    )


def _first_misses(expected: Expectation, first: Finding, screen: str) -> list[str]:
    wanted = {" ".join(each.split()) for each in (expected.first, *expected.first_any)}
    # Of a cause in a library the screen names the user's call, and its own line beside it.
    shown = [first.source, first.called_at.source if first.called_at is not None else ""]
    lines = [" ".join(each.split()) for each in shown if each.strip()]
    misses = []
    if not any(each in line or line in each for each in wanted for line in lines):
        misses.append(f"first is {first.title} at `{first.source.strip()}`")
    _, _, told = screen.partition("Could be spared" if expected.verdict == "hint" else "Start here")
    told = told.partition("\nCauses")[0] or screen
    text = " ".join(told.split())
    misses += [f"no advice like {word}" for word in expected.advise if not _search(word, text)]
    return misses


def _search(pattern: str, text: str) -> re.Match[str] | None:
    return re.search(pattern, text, re.IGNORECASE)


class LogCounts(NamedTuple):
    """By torch's own log, of the rank that says most."""

    break_lines: int
    recompiles: int


_BREAK = re.compile(r"Graph break.* in user code at (.+:\d+)")
_RANK = re.compile(r"^\[rank(\d+)\]:")
_LOGS = "graph_breaks,recompiles"


def plain_counts(file: Path, expected: Expectation, limit: float, log: Path) -> LogCounts:
    """Of the log of an earlier run, where that is there."""
    if not log.exists():
        log.write_text(plain_log(file, expected, limit))
    return counted(log.read_text())


def plain_log(file: Path, expected: Expectation, limit: float) -> str:
    start = ["-m", "torch.distributed.run"] if expected.launcher == "torchrun" else []
    done = subprocess.run(
        [sys.executable, *start, *expected.command],
        cwd=file.parent,
        capture_output=True,
        text=True,
        timeout=limit,
        env={**os.environ, "TORCH_LOGS": _LOGS},
    )
    return done.stderr


def counted(log: str) -> LogCounts:
    lines: dict[str, set[str]] = {}
    again: Counter[str] = Counter()
    for line in log.splitlines():
        rank = match[1] if (match := _RANK.match(line)) else "0"
        if place := _BREAK.search(line):
            lines.setdefault(rank, set()).add(place[1])
        # A recompile that the limit refuses is announced like any other.
        again[rank] += "Recompiling function" in line
        again[rank] -= "hit config.recompile_limit" in line
    breaks = max(map(len, lines.values()), default=0)
    return LogCounts(breaks, max(again.values(), default=0))


def count_misses(true: LogCounts, answer: Answer) -> list[str]:
    misses = []
    if true.recompiles != answer.recompiles:
        misses.append(f"{true.recompiles} recompiles by torch's log")
    # Two breaks may lie on one line; those in torch's own code are told at the user's line.
    if not answer.break_lines <= true.break_lines <= answer.breaks:
        misses.append(f"{true.break_lines} lines with breaks by torch's log")
    return misses


def write_table(file: Path, rows: list[tuple[Path, Expectation, Answer | str]]) -> None:
    """The table of the documentation."""
    text = "| program | what it is | expected | breaks | recompiles | otherwise |\n"
    text += "|---|---|---|---|---|---|\n"
    for program, expected, answer in rows:
        name = f"{program.parent.name}/{program.stem}"
        about = f"[{expected.about}]({expected.source})" if expected.source else expected.about
        if isinstance(answer, str):
            counts, told = ("", ""), answer
        else:
            counts = str(answer.breaks), str(answer.recompiles)
            told = "; ".join(answer.misses)
        cells = (name, about, expected.verdict, *counts, told.replace("|", "\\|"))
        text += f"| {' | '.join(cells)} |\n"
    file.write_text(text)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--limit", type=float, default=_LIMIT_S)
    parser.add_argument("--plain", action="store_true")
    parser.add_argument("--table", type=Path)
    parser.add_argument("--recorded", action="store_true")
    parser.add_argument("names", nargs="*")
    asked = parser.parse_args()
    wanted = expectations(asked.names)
    if unknown := {*asked.names} - {file.stem for file in wanted}:
        parser.error(f"no such program in {PROGRAMS}: {shlex.join(sorted(unknown))}")
    out: Path = asked.out or Path(tempfile.mkdtemp(prefix="real-programs-"))
    try:
        out.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=out).close()
        if asked.table:
            asked.table.touch()
    except OSError as error:
        parser.error(f"cannot write {error.filename or out}: {error.strerror}")
    rows: list[tuple[Path, Expectation, Answer | str]] = []
    for file, expected in wanted.items():
        if lacking := missing_packages(expected):
            print(f"{file.stem:32} left out: needs {shlex.join(lacking)}", flush=True)
            continue
        home = out / file.stem
        try:
            if asked.recorded:
                screen = show_recorded(home, asked.limit)
            else:
                screen = run_program(file, expected, home, asked.limit)
            (out / f"{file.stem}.txt").write_text(screen)
            answer = judge(expected, Reading(read_run(find_run(home, None))), screen)
        except (subprocess.TimeoutExpired, ToolError, OSError) as error:
            print(f"{file.stem:32} no answer: {type(error).__name__}", flush=True)
            rows.append((file, expected, f"no answer: {type(error).__name__}"))
            continue
        # What `run` compiles is not compiled without it.
        if asked.plain and not expected.options:
            true = plain_counts(file, expected, asked.limit, out / f"{file.stem}.log")
            answer = answer._replace(misses=(*answer.misses, *count_misses(true, answer)))
        rows.append((file, expected, answer))
        counts = (
            f"{answer.breaks:3} breaks {answer.recompiles:3} recompiles {answer.causes:3} causes"
        )
        print(f"{file.stem:32} {counts}  {'; '.join(answer.misses) or 'ok'}", flush=True)
    good = sum(isinstance(answer, Answer) and not answer.misses for _, _, answer in rows)
    print(f"{good} of {len(rows)} as an expert would. The screens are in {out}.")
    if asked.table:
        write_table(asked.table, rows)
    return 0 if good == len(rows) > 0 else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("Stopped. What ran is in the folder; --recorded reads it again.")
