"""What a job does on request beside its capture: numbers, speed, fixes.

Each by the tool's own command, as a user would run it.
"""

from __future__ import annotations

import sys
from typing import Any

import msgspec

from compilescope.processes.outcome import ProcessEnd
from compilescope.scale.job import Desk
from compilescope.settings import fresh_environment
from compilescope.sweep.program import ProgramRequest

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
