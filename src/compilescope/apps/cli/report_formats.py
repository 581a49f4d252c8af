"""Renders a report of runs in the format that was asked for: HTML, Markdown, JSON and others.

A report on several runs begins with their overview, which has what `check` would say of each.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from compilescope.apps.cli.options import has_colour, registry_pages, report_width
from compilescope.base.errors import ToolError

if TYPE_CHECKING:
    from compilescope.knowledge.analysis.gate.verdict import Judgement
    from compilescope.knowledge.analysis.overview import Overview
    from compilescope.record.run import Run
    from compilescope.report.blocks import Document, Quote
    from compilescope.report.section import Reading

FORMATS = ("html", "md", "json", "sarif", "terminal", "trace")
MOST_MARKDOWN = 60_000
"""Bytes: GitHub takes a comment of 65,536 characters."""
_BY_SUFFIX = {
    ".html": "html",
    ".htm": "html",
    ".md": "md",
    ".sarif": "sarif",
    ".json": "json",
    ".txt": "terminal",
}


def format_of(file: Path) -> str | None:
    """The format that a file's ending asks for."""
    return _BY_SUFFIX.get(file.suffix.lower())


def draw(
    runs: list[Run],
    form: str,
    *,
    to_file: bool,
    quotes: Sequence[Mapping[str, Quote]] = (),
) -> str:
    """`quotes`: a language model's words about the causes of each run."""
    if form == "trace":
        return _trace(runs)
    from compilescope.report.document import report_document
    from compilescope.report.section import Reading

    pages = registry_pages()
    readings = [
        Reading(
            run,
            full=True,
            page=form == "html",
            text=form in ("terminal", "md"),
            pages=pages,
            quotes=said,
        )
        for run, said in zip(runs, quotes or [{}] * len(runs), strict=True)
    ]
    documents = [report_document(reading) for reading in readings]
    if form == "sarif":
        from compilescope.report.render.sarif import to_sarif

        return to_sarif(documents)
    whole, first = _whole(readings) if len(readings) > 1 else (None, [])
    if form == "html":
        from compilescope.report.render.page import to_page

        return to_page([*first, *documents])
    if form == "json":
        from compilescope.report.render.structured import to_json

        return to_json(documents, [reading.digest for reading in readings], whole, quotes)
    if form == "md":
        lead = "".join(markdown(document, MOST_MARKDOWN // 2) + "\n" for document in first)
        room = (MOST_MARKDOWN - len(lead.encode())) // len(documents)
        return lead + "\n".join(markdown(document, room) for document in documents)
    documents = [*first, *documents]
    from compilescope.report.render.terminal import to_text

    colour = has_colour(sys.stdout) and not to_file
    return "\n".join(to_text(d, width=report_width(), colour=colour) for d in documents)


def _whole(readings: Sequence[Reading]) -> tuple[Overview, list[Document]]:
    """What several runs come to, as values and as what the report begins with."""
    from compilescope.report.overview import overview_document

    whole, gate = _overview_of(readings)
    # The page's documents are numbered, and this one comes first.
    anchors = {each.digest.run: f"r{at}-summary" for at, each in enumerate(readings, 1)}
    return whole, [overview_document(whole, anchors, gate)]


def _overview_of(readings: Sequence[Reading]) -> tuple[Overview, str]:
    """With what the gate asked, in a sentence."""
    from compilescope.knowledge.analysis.overview import JudgedRun, overview

    problem = ""
    judged = []
    for reading in readings:
        judgement = None
        try:
            judgement = _judgement(reading)
        except ToolError as error:  # The project's file or its baseline is damaged.
            problem = error.message
        judged.append(JudgedRun(reading.run, reading.digest, judgement))
    said = f"The gate could not be evaluated: {problem}" if problem else _asked_for()
    return overview(judged), said


def _judgement(reading: Reading) -> Judgement:
    """As `compilescope check --run RUN` says it here and now."""
    from compilescope.apps.cli.commands.check.options import ask
    from compilescope.knowledge.analysis.gate.verdict import judge

    asked = ask(("script", ()), _given(reading.digest.run)).for_run(reading)
    return judge(reading.digest, asked.limits, baseline=asked.accepted, own=asked.own)


def _given(run: str) -> dict[str, object]:
    """The options of `check`, none of them given."""
    from compilescope.knowledge.analysis.gate.terms import GateLimits

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
    from compilescope.apps.cli.commands.check.options import ask

    asked = ask(("script", ()), _given("RUN"))
    told = []
    if asked.limits.given and asked.project.file is not None and not _is_default(asked.limits):
        told.append(f"the limits in {asked.project.file.name}")
    if asked.baseline_file is not None and asked.baseline is not None:
        told.append(f"the baseline {asked.baseline_file.name}")
    by = " and ".join(told) or "no limits or baseline, so any graph break or recompile fails"
    return f"The gate is what `compilescope check --run RUN` says here, with {by}."


def _is_default(limits: object) -> bool:
    from compilescope.knowledge.analysis.gate.verdict import NOTHING_LOST

    return limits is NOTHING_LOST


def markdown(document: Document, most: int = MOST_MARKDOWN) -> str:
    """What fits a GitHub comment."""
    from compilescope.report.render.markdown import to_markdown
    from compilescope.report.size_limits import fit_bytes

    rest = shlex.join(["compilescope", "report", "--open", document.record.run])
    return fit_bytes(document, most - 1, to_markdown, rest)


def _trace(runs: list[Run]) -> str:
    from compilescope.report.trace import to_trace

    if len(runs) > 1:
        raise ToolError("A trace covers one run.", hint="Name one RUN.")
    return to_trace(runs[0]).decode()
