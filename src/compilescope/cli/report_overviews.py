"""The overview at the head of a report on several runs, with what `check` would say of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from compilescope.errors import ToolError

if TYPE_CHECKING:
    from compilescope.analysis.gate.verdict import Judgement
    from compilescope.analysis.overview import Overview
    from compilescope.report.section import Reading


def overview_of(readings: Sequence[Reading]) -> tuple[Overview, str]:
    """With what the gate asked, in a sentence."""
    from compilescope.analysis.overview import Judged, overview

    problem = ""
    judged = []
    for reading in readings:
        judgement = None
        try:
            judgement = _judgement(reading)
        except ToolError as error:  # The project's file or its baseline is damaged.
            problem = error.message
        judged.append(Judged(reading.run, reading.digest, judgement))
    said = f"The gate could not be evaluated: {problem}" if problem else _asked_for()
    return overview(judged), said


def _judgement(reading: Reading) -> Judgement:
    """As `compilescope check --run RUN` says it here and now."""
    from compilescope.analysis.gate.verdict import judge
    from compilescope.cli.commands.check.options import ask

    asked = ask(("script", ()), _given(reading.digest.run)).for_run(reading)
    return judge(reading.digest, asked.limits, baseline=asked.accepted, own=asked.own)


def _given(run: str) -> dict[str, object]:
    """The options of `check`, none of them given."""
    from compilescope.analysis.gate.terms import GateLimits

    flags = dict.fromkeys(("no_baseline", "update_baseline", "compile_all"), False)
    names = (
        *GateLimits.__struct_fields__,
        "against",
        "own",
        "baseline",
        "compile_names",
        "backend",
        "home",
    )
    return {**dict.fromkeys(names), **flags, "run": run}


def _asked_for() -> str:
    from compilescope.cli.commands.check.options import ask

    asked = ask(("script", ()), _given("RUN"))
    told = []
    if asked.limits.given and asked.project.file is not None and not _is_default(asked.limits):
        told.append(f"the limits in {asked.project.file.name}")
    if asked.baseline_file is not None and asked.baseline is not None:
        told.append(f"the baseline {asked.baseline_file.name}")
    by = " and ".join(told) or "no limits or baseline, so any graph break or recompile fails"
    return f"The gate is what `compilescope check --run RUN` says here, with {by}."


def _is_default(limits: object) -> bool:
    from compilescope.analysis.gate.verdict import NOTHING_LOST

    return limits is NOTHING_LOST
