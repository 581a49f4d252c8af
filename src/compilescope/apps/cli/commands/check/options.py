"""The request to `check`: the command line over the project's settings, and the baseline file."""

from __future__ import annotations

import math
import os
import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from compilescope.apps.cli.options import home_folder, in_home
from compilescope.apps.cli.program import Words
from compilescope.base.errors import ToolError
from compilescope.base.project import Project, read_project
from compilescope.knowledge.analysis.benchmark_changes import machines_differ
from compilescope.knowledge.analysis.benchmarks import is_benchmark
from compilescope.knowledge.analysis.digest import Digest, digest
from compilescope.knowledge.analysis.gate.baseline import FILE_NAME, Baseline, read_baseline
from compilescope.knowledge.analysis.gate.verdict import (
    NOTHING_LOST,
    AcceptedFinding,
    GateLimits,
    Judgement,
    complete,
    complete_for_benchmarks,
    complete_for_numbers,
    project_limits,
)
from compilescope.record.bodies import CheckOutcome
from compilescope.record.home import find_run
from compilescope.record.outcomes import JudgedLimit
from compilescope.record.run import read_run
from compilescope.report.gate import GateTerms
from compilescope.report.section import Reading


@dataclass(frozen=True)
class CheckOptions:
    """What a run is held against."""

    limits: GateLimits
    own: bool
    baseline: Baseline | None
    """None where nothing is held against a baseline."""
    baseline_file: Path | None
    project: Project
    given: dict[str, Any]
    """The options of the command line."""
    explained: bool = True
    """It has causes that `explain` can say more of."""
    earlier: Digest | None = None
    """The benchmark run of --against."""
    differences: tuple[str, ...] = ()
    """Between the machines of the two."""

    def for_run(self, reading: Reading) -> CheckOptions:
        """With what only a benchmark run is asked: how slow it may be, compared with what; and with
        what is asked of a run that only compares numbers."""
        seen = reading.digest
        if not seen.benchmarks:
            for option, name in (("--max-slowdown", "slowdown"), ("--against", "against")):
                if self.given[name] is not None:
                    raise ToolError(
                        f"{option} needs a benchmark run; {seen.run} has no benchmarks.",
                        hint="Record one with `compilescope bench`.",
                    )
            return self._for_numbers() if seen.only_compares else self
        limits = complete_for_benchmarks(
            _given_limits(self.given), self.project, with_baseline=self.baseline is not None
        )
        if self.given["against"] is None:
            return replace(self, limits=limits, explained=False)
        if limits.slowdown is None:
            raise ToolError("--against needs --max-slowdown.")
        earlier = read_run(find_run(home_folder(self.given["home"]), self.given["against"]))
        if not is_benchmark(earlier):
            name = earlier.header.run
            raise ToolError(f"--against needs a benchmark run; {name} has no benchmarks.")
        return replace(
            self,
            limits=limits,
            explained=False,
            earlier=digest(earlier),
            differences=tuple(machines_differ(earlier, reading.run)),
        )

    def _for_numbers(self) -> CheckOptions:
        """A comparison of numbers has no causes that a baseline could accept."""
        named = self.given["baseline"] is not None or self.given["update_baseline"]
        return replace(
            self,
            explained=False,
            limits=complete_for_numbers(_given_limits(self.given), self.project),
            baseline=self.baseline if named else None,
        )

    @property
    def accepted(self) -> tuple[AcceptedFinding, ...] | None:
        return self.baseline.findings if self.baseline is not None else None

    @property
    def _shows(self) -> str:
        """The command that says more of the run: only causes can be explained."""
        return "explain" if self.explained else "show"

    def rest(self, run: str) -> str:
        """The command that shows every cause."""
        name = self.given["run"] or run
        words = ["compilescope", self._shows, "--all", *in_home(self.given["home"]), name]
        return shlex.join(words)

    def terms(self, run: str) -> GateTerms:
        """For people: what counted, and the commands that come next."""
        given, baseline = self.given, self.baseline
        name = given["run"] or run
        home = in_home(given["home"])
        accept = ["compilescope", "check", "--run", name, *home]
        if given["own"] is not None:
            accept.append("--own" if self.own else "--no-own")
        if given["baseline"] is not None:
            accept += ["--baseline", str(given["baseline"])]
        return GateTerms(
            own=self.own,
            baseline=_from_here(self.baseline_file) if baseline is not None else "",
            baseline_torch=baseline.torch if baseline is not None else None,
            project=_from_here(self.project.file) if project_limits(self.project).given else "",
            by_default=baseline is None and self.limits is NOTHING_LOST,
            against=self.earlier.run if self.earlier is not None else "",
            differences=self.differences,
            accept="" if given["no_baseline"] else shlex.join([*accept, "--update-baseline"]),
            more=shlex.join(["compilescope", self._shows, name, *home]),
        )

    def outcome(self, judgement: Judgement) -> CheckOutcome:
        """For the record."""
        names = JudgedLimit.__struct_fields__
        return CheckOutcome(
            judgement.outcome,
            tuple(
                JudgedLimit(**{name: getattr(check, name) for name in names})
                for check in judgement.checks
            ),
            own=self.own,
            baseline=_from_here(self.baseline_file) if self.baseline is not None else "",
            new=len(judgement.new),
        )

    def value(
        self, judgement: Judgement, reading: Reading, code: int, files: dict[str, str]
    ) -> dict[str, Any]:
        """For machines."""
        from compilescope.knowledge.analysis.json_form import findings_json

        checks = [
            {**msgspec.structs.asdict(each), "findings": findings_json(each.findings)}
            for each in judgement.checks
        ]
        seen, project = reading.digest, self.project.file
        return {
            "run": seen.run,
            "command": seen.command,
            "torch": seen.torch,
            "exit_status": seen.exit_status,
            "signal": seen.signal,
            "ended": seen.ended,
            "outcome": judgement.outcome,
            "exit_code": code,
            "checks": checks,
            "new": findings_json(judgement.new),
            "known": findings_json(judgement.known),
            "gone": judgement.gone,
            "limits": self.limits,
            "own": self.own,
            "baseline": str(self.baseline_file) if self.baseline is not None else None,
            "against": self.earlier.run if self.earlier is not None else None,
            "project": str(project) if project is not None else None,
            "files": files,
        }


def _from_here(path: Path | None) -> str:
    return os.path.relpath(path) if path is not None else ""


def ask(target: Words, given: dict[str, Any]) -> CheckOptions:
    _check_usage(target, given)
    project = read_project()
    # How slow benchmarks may be is no limit for a program.
    limits = msgspec.structs.replace(
        _given_limits(given).over(project_limits(project)), slowdown=None
    )
    file = _baseline_file(given, project)
    baseline = None
    if file is not None and (file.exists() or not given["update_baseline"]):
        baseline = read_baseline(file)
    elif file is not None and not file.absolute().parent.is_dir():
        raise ToolError(
            f"Cannot write the baseline {file}: the folder {file.parent} does not exist."
        )
    return CheckOptions(
        limits=complete(limits, with_baseline=baseline is not None),
        own=bool(project.own) if given["own"] is None else given["own"],
        baseline=baseline,
        baseline_file=file,
        project=project,
        given=given,
    )


def _given_limits(given: dict[str, Any]) -> GateLimits:
    return GateLimits(**{name: given[name] for name in GateLimits.__struct_fields__})


def _check_usage(target: Words, given: dict[str, Any]) -> None:
    named = bool(target[1]) or target[0] not in ("script", "module", "code")
    if given["coverage"] is not None and math.isnan(given["coverage"]):
        raise ToolError("--min-coverage takes a number from 0 to 100, not nan.")
    if given["slowdown"] is not None and not math.isfinite(given["slowdown"]):
        raise ToolError("--max-slowdown takes a number above 0, such as 1.05.")
    for option, name in (("--max-slowdown", "slowdown"), ("--against", "against")):
        if given["run"] is None and given[name] is not None:
            raise ToolError(
                f"{option} needs a benchmark run.",
                hint="Record one with `compilescope bench`, then check it with --run RUN.",
            )
    if given["run"] is None and not named:
        raise ToolError(
            "There is nothing to check.",
            hint="Try `compilescope check script.py`, or --run RUN for a recorded run.",
        )
    if given["run"] is not None and named:
        raise ToolError("Give a program or --run, not both.")
    options = ("compile_all", "compile_names", "backend")
    if given["run"] is not None and any(given[name] for name in options):
        raise ToolError("--compile-all, --compile and --backend need a program to run.")
    if given["no_baseline"] and (given["baseline"] or given["update_baseline"]):
        other = "--update-baseline" if given["update_baseline"] else "--baseline"
        raise ToolError(f"Give --no-baseline or {other}, not both.")


def _baseline_file(given: dict[str, Any], project: Project) -> Path | None:
    """The one that was named, or the usual one if it is there or to be made."""
    if given["no_baseline"]:
        return None
    named: Path | None = given["baseline"] or project.baseline
    if named is not None:
        return named
    usual = Path(FILE_NAME)
    return usual if usual.exists() or given["update_baseline"] else None
