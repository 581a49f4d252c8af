"""The task of a sweep's job: one program under capture, read and counted where it ran.

On request the job also compares numbers, measures speed and looks for fixes, each by the tool's own
command, as a user would run it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from compilescope.base.processes.outcome import ProcessEnd
from compilescope.base.settings import Settings, fresh_environment
from compilescope.instrument.recorder.launcher import begin, ended_header
from compilescope.knowledge.analysis.digest import Digest, digest
from compilescope.knowledge.analysis.findings import findings
from compilescope.knowledge.findings.finding import Finding
from compilescope.record.bodies import ProcessStarted
from compilescope.record.header import RunHeader, write_header
from compilescope.record.jobs import JobCause, JobState
from compilescope.record.run import Run, read_run
from compilescope.scale.jobs.job import Desk, Verdict
from compilescope.scale.jobs.work import state_of
from compilescope.scale.sweep.program import UNBUILT_STATUS, ProgramRequest

_DEFAULT_BACKEND = "inductor"
_KERNELDIFF = {0: "pass", 1: "fail"}


def extras(asked: ProgramRequest, desk: Desk, has_causes: bool) -> tuple[dict[str, Any], list[str]]:
    """Values for JobEnded, and a sentence for each thing that could not be done."""
    value: dict[str, Any] = {}
    remarks: list[str] = []
    build = asked.build_function() if asked.diff or asked.bench else ""
    if (asked.diff or asked.bench) and not build:
        wanted = " and ".join(
            name for name, given in (("--diff", asked.diff), ("--bench", asked.bench)) if given
        )
        remarks.append(f"{wanted} skipped: the program has no function build().")
    if asked.diff and build:
        value["kerneldiff"] = _diff(asked, desk, build)
    if asked.bench and build:
        value["speedup"], remark = _bench(asked, desk, build)
        remarks += [remark] if remark else []
    if asked.fix and has_causes:
        value["fixed"] = _fix(asked, desk)
    return value, remarks


def _diff(asked: ProgramRequest, desk: Desk, build: str) -> str:
    backend = asked.backend or _DEFAULT_BACKEND
    ended = _compilescope(asked, desk, "diff", build, "--test-backend", backend, "--json")
    limited = ended.timed_out or ended.out_of_memory
    return "unknown" if limited else _KERNELDIFF.get(ended.status, "unknown")


def _bench(asked: ProgramRequest, desk: Desk, build: str) -> tuple[float | None, str]:
    backend = asked.backend or _DEFAULT_BACKEND
    words = ["bench", "--model", build, "--backend", backend, "--no-examine", "--json"]
    words += ["--device", asked.device] if asked.device else []
    ended = _compilescope(asked, desk, *words)
    results = _json(ended).get("results", [])
    for result in results if isinstance(results, list) else []:
        if isinstance(result, dict) and result.get("backend") == backend:
            speedup = result.get("speedup")
            if isinstance(speedup, float | int):
                return float(speedup), ""
            if result.get("too_noisy"):
                return None, "--bench gave no figure: the runs were too noisy to tell."
    return None, f"--bench gave no figure: {ended.reason or 'no result for ' + backend + '.'}"


def _fix(asked: ProgramRequest, desk: Desk) -> str:
    target = asked.target()
    words = ["fix", "--no-time", "--json", *(["--compile-all"] if asked.compile_all else [])]
    if asked.compile_all and asked.backend:
        words += ["--backend", asked.backend]
    found = _json(_compilescope(asked, desk, *words, *target.shown))
    before = _number(found, "breaks_before") + _number(found, "recompiles_before")
    after = _number(found, "breaks_after") + _number(found, "recompiles_after")
    if not before or after >= before:
        return "none"
    return "verified" if after == 0 else "partly"


def _number(found: dict[str, Any], key: str) -> int:
    value = found.get(key)
    return value if isinstance(value, int) else 0


def _compilescope(asked: ProgramRequest, desk: Desk, *words: str) -> ProcessEnd:
    environment = fresh_environment() | asked.environment()
    environment["COMPILESCOPE_DIR"] = str(desk.folder / words[0])
    command = [sys.executable, "-m", "compilescope", *words]
    return desk.run(command, environment, cwd=asked.target().folder)


def _json(ended: ProcessEnd) -> dict[str, Any]:
    """Whatever a program printed before it."""
    try:
        found = msgspec.json.decode(ended.stdout)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {}
    return found if isinstance(found, dict) else {}


# Chosen: one job's line in a store of thousands stays small; its run has everything.
_MOST_CAUSES = 500
_LONGEST_TEXT = 600
_NOT_COMPILED = "Nothing was compiled."


def capture(payload: dict[str, Any], desk: Desk) -> Verdict:
    """Run the program, and say how it ended and what was found until then."""
    asked = msgspec.convert(payload, ProgramRequest)
    settings = Settings(
        home=desk.folder / "runs",
        compile_names=("*",) if asked.compile_all else (),
        compile_backend=(asked.backend or None) if asked.compile_all else None,
    )
    target = asked.target()
    begun = begin(target, settings)
    environment = begun.environment | asked.environment()
    ended = desk.run(begun.command, environment, cwd=target.folder)
    run = _read(begun.folder, ended_header(begun.header, ended.status))
    desk.keep(begun.folder)
    seen = digest(run)
    state = _state(ended, asked)
    causes = findings(seen)
    value: dict[str, Any] = {"seconds": ended.seconds, **_counted(seen, causes, state)}
    value["causes"] = [_cause(each, asked) for each in causes[:_MOST_CAUSES]]
    reasons = [_reason(state, ended, seen)]
    if len(causes) > _MOST_CAUSES:
        reasons.append(f"Only {_MOST_CAUSES} of its {len(causes)} causes are kept.")
    if state == "ok":
        more, remarks = extras(asked, desk, bool(causes))
        value |= more
        reasons += remarks
    return Verdict(state=state, reason=" ".join(filter(None, reasons)), value=value)


def _read(folder: Path, header: RunHeader) -> Run:
    """With the program's own process named, which nobody but its parent can tell."""
    run = read_run(folder, header=header)
    own = (event.pid for event, body in run.of(ProcessStarted) if body.parent_pid == os.getpid())
    run.header = msgspec.structs.replace(header, main_pid=next(own, None))
    write_header(folder, run.header)
    return run


def _state(ended: ProcessEnd, asked: ProgramRequest) -> JobState:
    if asked.program.kind == "transformers" and ended.status == UNBUILT_STATUS:
        return "unbuilt"
    return state_of(ended)


def _reason(state: JobState, ended: ProcessEnd, seen: Digest) -> str:
    if state == "ok":
        if seen.torch is None:
            return seen.no_torch
        return "" if seen.graphs or findings(seen) else _NOT_COMPILED
    if state == "unbuilt":
        lines = ended.stderr.decode(errors="replace").strip().splitlines()
        return _short(lines[-1].strip()) if lines else "It could not be built."
    raised = seen.ended
    if state == "failed" and raised.exception:
        at = f" ({os.path.basename(raised.file)}:{raised.line})" if raised.file else ""
        return _short(f"{raised.exception}{at}")
    return _short(ended.reason)


def _counted(seen: Digest, causes: Iterable[Finding], state: JobState) -> dict[str, Any]:
    """Nothing is known of a program that never imported torch, or died before, or had no model to
    compile."""
    if seen.torch is None:
        return {}
    if state == "unbuilt":
        return {"torch": seen.torch}
    return {
        "torch": seen.torch,
        "graphs": seen.graphs,
        "breaks": len(seen.sites),
        # A recompile that the limit refused left no other trace where it was the first.
        "recompiles": sum(max(frame.avoidable, int(frame.limit_hit)) for frame in seen.recompiles),
        "eager": len(seen.eager_frames),
        "failures": sum(each.kind == "failure" for each in causes),
        "compile_seconds": seen.compile_seconds,
    }


def _cause(finding: Finding, asked: ProgramRequest) -> JobCause:
    return JobCause(
        kind=finding.kind,
        rule=finding.rule_id,
        fingerprint=finding.fingerprint,
        title=_short(finding.title),
        message=_short(finding.message),
        level=finding.level,
        file=_at_home(finding.file, asked),
        line=finding.line,
        function=finding.function,
        source=_short(finding.source),
        count=finding.count,
        seconds=finding.seconds,
    )


def _at_home(file: str, asked: ProgramRequest) -> str:
    """A file of the sweep's folder as it is called on the driver's machine."""
    here = str(asked.here.resolve())
    if asked.shipped and file.startswith(here + os.sep):
        return os.path.join(asked.base, os.path.relpath(file, here))
    return file


def _short(text: str) -> str:
    """A sweep keeps thousands of them."""
    return text if len(text) <= _LONGEST_TEXT else text[: _LONGEST_TEXT - 1] + "…"
