"""Damaged and hostile run folders, and every command that reads runs: none may raise, be slow or
need much memory.

    python benchmarks/mutated_runs.py [--count 2000] [--seed 1] [--commands 10] [--base FOLDER...]

Takes runs of every shape (those of the tests, random ones with every kind of event, and folders
given with --base), mutates one thing or several in each, and runs some of the commands on it,
within limits: 10 s of CPU time, 300 MB. A forked child reads some runs; each 20th run's commands,
and all that go wrong, have a child each, and one of them a fresh process, which has to say the
same. Baselines, device files, pyproject.toml, archives and a second run are mutated too. Prints
every traceback, exit status that is not documented, signal and command above the limits, and how to
see it again; exit status 1 if there is one. `--only NUMBER` makes one run again.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shlex
import shutil
import sys
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from mutating import dump, mutate_bytes, mutate_json, mutate_lines
from subjects.campaign import Campaign
from subjects.damaged_runs import damaged_zip, make_run, samples
from subjects.limited import (
    Outcome,
    Task,
    rehearse,
    run_command,
    run_process,
    run_tasks,
    warm_up,
)

from compilescope.base.errors import ToolError

ROOT = Path(__file__).resolve().parent.parent

RUN, OTHER, GOOD = "bad123-mutated", "bad456-other", "900d00-good"
DEVICES = sorted((ROOT / "src" / "compilescope" / "backends" / "devices").glob("*.toml"))
PROJECT = """[tool.compilescope]
max-breaks = 3
max-recompiles = 0
max-graphs = 10
max-eager = 2
max-failures = 0
min-coverage = 50.5
max-slowdown = 1.05
own = true
baseline = "baseline.json"
registry-site = "https://example.org/registry"
"""
_CHECK = ("check", "--run", RUN)
COMMANDS = (
    ("list",),
    ("list", "--json", "--artifacts"),
    ("list", "--artifacts", "--all"),
    ("list", "--tag", "a"),
    ("show", RUN),
    ("show", "--all", RUN),
    ("show", "--json", RUN),
    ("show", "--format", "md", RUN),
    *(("show", "--section", name, RUN) for name in ("guards", "graphs", "tree", "timeline")),
    *(("show", "--section", name, RUN) for name in ("breaks", "constraints")),
    ("show", f"{RUN}@1"),
    ("show", f"runs/{RUN}"),
    ("explain", RUN),
    ("-vv", "explain", "--all", RUN),
    ("explain", "--json", RUN),
    ("explain", "--format", "html", RUN),
    ("explain", "--cause", "1", RUN),
    ("explain", "--llm", "--llm-dry-run", "--llm-redact", RUN),
    *(("report", "--format", form, "-o", f"x.{form}", RUN) for form in ("html", "html", "md")),
    *(("report", "--format", form, RUN) for form in ("json", "sarif", "trace", "terminal")),
    ("report", "--all", "-o", "all.html"),
    ("export", RUN, "-o", "run.zip", "--force"),
    ("import", "damaged.zip", "--dir", "home"),
    ("import", "damaged.zip", "--json", "--dir", "home"),
    ("export", RUN, "--redact", "-o", "redacted.zip", "--force"),
    ("import", "redacted.zip", "--dir", "home", "--force"),
    ("compare", GOOD, RUN),
    ("compare", RUN, GOOD, "--json"),
    ("compare", RUN, OTHER, "--all"),
    ("compare", OTHER, RUN, "--format", "html"),
    ("compare", f"{RUN}@0", f"{RUN}@1", "--format", "md"),
    (*_CHECK, "--no-baseline", "--json", "--sarif", "x.sarif"),
    (*_CHECK, "--no-baseline", "--junit", "x.xml", "--annotations"),
    (*_CHECK, "--baseline", "baseline.json"),
    (*_CHECK, "--baseline", "baseline.json", "--update-baseline"),
    (*_CHECK, "--max-breaks", "0", "--max-graphs", "1", "--min-coverage", "50"),
    (*_CHECK, "--no-baseline", "--max-slowdown", "1.05", "--against", OTHER),
    ("preflight", "--device", "npu-a", "--run", RUN),
    ("preflight", "--device", "device.toml", "--device", "edge-dsp", "--json", "--run", RUN),
    ("preflight", "--device", "device.toml", "--run", GOOD),
    ("devices", "check", "device.toml"),
    ("devices", "show", "device.toml"),
    ("fix", "--run", RUN),
    ("fix", "--apply", RUN),
    ("tag", RUN),
    ("tag", RUN, "new", "--note", "said"),
    ("clean", "--keep", "1", "--json"),
)
"""`clean` comes last where it comes: it asks, and nobody answers."""
_VERDICTS = ("check", "preflight", "fix", "devices")
_BATCH = 20
_CHANGING = ("import", "tag", "clean", "export", "fix", "report", "list", "preflight", "devices")
"""What they print depends on what ran before, or on torch, which forks must do without."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--commands", type=int, default=10, help="for each run, of all")
    parser.add_argument("--base", type=Path, action="append", default=[], help="a run's folder")
    parser.add_argument("--only", type=int, help="one number")
    parser.add_argument("--keep", type=Path, help="where runs are saved that went wrong")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    os.environ["COMPILESCOPE_AUTO_RUN"] = "0"
    scratch = Path(tempfile.mkdtemp(prefix="mutated-"))
    os.environ["XDG_STATE_HOME"] = os.environ["XDG_CACHE_HOME"] = f"{scratch}/user"
    os.environ["XDG_CONFIG_HOME"] = f"{scratch}/user"
    try:
        return _all(asked, scratch)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _all(asked: argparse.Namespace, scratch: Path) -> int:
    numbers = [asked.only] if asked.only is not None else list(range(asked.count))
    baseline = _prepare(scratch / "warm")
    campaign = Campaign("run", len(numbers), asked.keep)
    print(f"seed {asked.seed}, {len(COMMANDS) + 1} commands, {len(asked.base)} bases", flush=True)
    batches = [numbers[at : at + _BATCH] for at in range(0, len(numbers), _BATCH)]
    return campaign.go(batches, Trials(asked, scratch, baseline, campaign).go)


def _prepare(place: Path) -> bytes:
    """Everything that commands import is imported here, once. A good baseline comes back."""
    for name in (RUN, OTHER, GOOD):
        samples.store(samples.RUNS["full"], place / "runs", name)
    samples.store(samples.RUNS["ranks"], place / "runs", "accepted")
    shutil.copy(DEVICES[0], place / "device.toml")
    variables = {"COMPILESCOPE_DIR": str(place / "runs")}
    warm_up()
    accept = ["check", "--run", "accepted", "--baseline", "baseline.json", "--update-baseline"]
    rehearse([accept, *map(list, COMMANDS)], place, variables)
    return (place / "baseline.json").read_bytes()


class Trial:
    """One mutated run, and the commands that read it."""

    def __init__(
        self, asked: argparse.Namespace, scratch: Path, number: int, baseline: bytes
    ) -> None:
        self.number = number
        self.place = scratch / str(number)
        self._asked = asked
        self._baseline = baseline
        self._rng = random.Random(f"run {asked.seed} {number}")
        self._make()
        self.is_drawn = self._rng.random() < 0.5
        self.tasks = list(self._tasks())

    @property
    def again(self) -> str:
        bases = "".join(f" --base {base}" for base in self._asked.base)
        return (
            f"python benchmarks/mutated_runs.py --seed {self._asked.seed} --only {self.number}"
            f" --commands {self._asked.commands}{bases}"
        )

    def _tasks(self) -> Iterator[Task]:
        variables = {"COMPILESCOPE_DIR": str(self.place / "runs")}
        if self._rng.random() < 0.1:
            variables["GITHUB_ACTIONS"] = "true"
        if self._rng.random() < 0.2:
            variables["FORCE_COLOR"] = "1"
        for at in sorted(self._rng.sample(range(len(COMMANDS)), self._asked.commands)):
            encoding = self._rng.choice(("utf-8",) * 6 + ("ascii", "latin-1", "cp1252"))
            yield Task(list(COMMANDS[at]), self.place, variables, encoding)

    def _make(self) -> None:
        rng, place = self._rng, self.place
        folder = make_run(place / "runs", RUN, rng, self._asked.base)
        make_run(place / "runs", OTHER, rng, self._asked.base)
        samples.store(samples.RUNS["full"], place / "runs", GOOD)
        damaged_zip(folder, place / "damaged.zip", rng)
        (place / "baseline.json").write_bytes(self._mutated_baseline())
        device = mutate_lines(rng.choice(DEVICES).read_text(), rng)
        (place / "device.toml").write_text(device, "utf-8", "surrogatepass")
        if rng.random() < 0.1:
            project = mutate_lines(PROJECT, rng)
            (place / "pyproject.toml").write_text(project, "utf-8", "surrogatepass")
        (place / ".git").mkdir()  # What lies above is no part of it.

    def _mutated_baseline(self) -> bytes:
        if self._rng.random() < 0.3:
            return mutate_bytes(self._baseline, self._rng)
        return dump(mutate_json(json.loads(self._baseline), self._rng), self._rng)


class Trials:
    """Some runs at a time."""

    def __init__(
        self, asked: argparse.Namespace, scratch: Path, baseline: bytes, campaign: Campaign
    ) -> None:
        self._asked = asked
        self._scratch = scratch
        self._baseline = baseline
        self._campaign = campaign

    def go(self, numbers: Sequence[int]) -> None:
        trials = [self._trial(number) for number in numbers]
        pairs = [(trial, task) for trial in trials for task in trial.tasks]
        # The first run's commands have a process each, as those of a shell.
        first = [pair for pair in pairs if pair[0] is trials[0]]
        for trial, task in first:
            self._note(trial, task, task.alone())
        self._compare(*first[-1])
        rest = pairs[len(first) :]
        for (trial, task), outcome in zip(rest, run_tasks([task for _, task in rest]), strict=True):
            assert outcome is not None
            self._note(trial, task, outcome)
        for trial in trials:
            if trial.is_drawn:
                found = run_command(partial(_draw, trial.place), trial.place)
                self._told(trial, "the dashboard's page", found, (0,))
            shutil.rmtree(trial.place, ignore_errors=True)

    def _trial(self, number: int) -> Trial:
        return Trial(self._asked, self._scratch, number, self._baseline)

    def _note(self, trial: Trial, task: Task, outcome: Outcome) -> None:
        statuses = (0, 1, 2) if _command(task) in _VERDICTS else (0, 2)
        self._told(trial, shlex.join(task.words), outcome, statuses)

    def _told(self, trial: Trial, name: str, found: Outcome, statuses: tuple[int, ...]) -> None:
        if self._campaign.note(trial.number, name, found, statuses, trial.again):
            self._keep(trial)

    def _compare(self, trial: Trial, task: Task) -> None:
        """The same command once more as a child, and in a fresh process."""
        forked = task.alone()
        real = run_process(
            task.words, task.folder, variables=task.variables, encoding=task.encoding
        )
        same = _command(task) in _CHANGING or forked.stdout == real.stdout
        self._campaign.commands["(the same in a fresh process)"] += 1
        if real.trouble or real.status != forked.status or not same:
            words = real.trouble or f"{real.status} for {forked.status}, or another output"
            self._campaign.differs(trial.number, shlex.join(task.words), words, trial.again)
            self._keep(trial)

    def _keep(self, trial: Trial) -> None:
        """As it was, not as the commands left it."""
        name = f"run-{self._asked.seed}-{trial.number}"
        made = Trial(self._asked, self._scratch / "again", trial.number, self._baseline)
        self._campaign.kept(name, made.place)
        shutil.rmtree(made.place)


def _command(task: Task) -> str:
    return next(word for word in task.words if not word.startswith("-"))


def _draw(place: Path) -> None:
    """What the dashboard makes of the run."""
    from compilescope.apps.dashboard.drawings import draw_run
    from compilescope.apps.dashboard.runs.entry import look
    from compilescope.apps.dashboard.runs.fix_runs import read_fix_run
    from compilescope.knowledge.analysis.figures import figures
    from compilescope.record.eventfile import event_files
    from compilescope.record.run import read_run

    for folder in (place / "runs").iterdir():
        if folder.is_dir():
            look(folder, 0)
    folder = place / "runs" / RUN
    for act in (
        lambda: draw_run(folder),
        lambda: read_fix_run(folder, event_files(folder)),
        lambda: figures(read_run(folder)),
    ):
        try:
            act()
        except (ToolError, OSError) as error:  # As `FixRuns.read` says; pages catch both.
            print(error)


if __name__ == "__main__":
    sys.exit(main())
