"""Why a test is not within its limits: the words of its failure."""

from __future__ import annotations

from collections.abc import Iterable

from compilescope.analysis.digest import Digest, digest
from compilescope.analysis.dynamo_graphs import captured_graphs
from compilescope.analysis.findings import findings
from compilescope.analysis.gate.counts import each_once
from compilescope.analysis.gate.verdict import GateCheck, judge
from compilescope.findings.finding import Finding
from compilescope.fixes.advice import advised
from compilescope.model.run import Run
from compilescope.pytest_plugin.marker import TestLimits
from compilescope.report.blocks import Block, Document, Paragraph, Part, note, words
from compilescope.report.finding import finding_item
from compilescope.report.places import count, first_line, place
from compilescope.report.render.terminal import to_text
from compilescope.settings import in_github_actions
from compilescope.texts import without_commands

_MOST_CAUSES = 8
"""Chosen: a failure of a test stays about a screen; the rest is counted."""
_WIDTH = 80
"""Columns. Chosen: what a terminal has at least, and a log of CI shows."""


def shortfall(run: Run, wanted: TestLimits) -> str:
    """The failure's text; empty where the test is within its limits."""
    seen = advised(run, digest(run))
    judged = judge(seen, wanted.limits, own=wanted.own)
    failed = [check for check in judged.checks if check.outcome == "fail"]
    if failed:
        # One line, for pytest's short summary shows no more.
        exceeded = "; ".join(check.message for check in failed)
        return f"{exceeded}\n{drawn(_cause_blocks(failed, run, seen))}"
    unsure = {check.name: check.message for check in judged.unsure}
    # Functions that ran eagerly, as where torch.compile is switched off, put no limit to the test.
    if not (seen.graphs or seen.sites or seen.failures):
        unsure["compiled"] = _nothing(seen, wanted)
        if wanted.allow_nothing:
            del unsure["compiled"]
    return drawn([Paragraph(words(f"Inconclusive: {reason}")) for reason in unsure.values()])


def _nothing(seen: Digest, wanted: TestLimits) -> str:
    text = "nothing was compiled in this test, so there is nothing to check against its limits."
    for frame in seen.eager_frames[:1]:
        text += f" {frame.function} ran eagerly: {first_line(frame.reason)}."
    if not wanted.fresh:
        text += " With fresh=False, code that an earlier test compiled is not compiled again."
    return f"{text} If that is expected, use compile_limits(..., allow_nothing=True)."


def _cause_blocks(failed: Iterable[GateCheck], run: Run, seen: Digest) -> list[Block]:
    """What counts against the limits that were exceeded, each cause once."""
    failed = list(failed)
    causes = each_once(f for check in failed for f in check.findings or _behind(check, seen))
    blocks: list[Block] = []
    if any(check.name == "graphs" for check in failed):
        blocks.append(_graphs(run, seen.root))
    shown = enumerate(causes[:_MOST_CAUSES], 1)
    blocks += [finding_item(number, cause, seen.root) for number, cause in shown]
    if len(causes) > _MOST_CAUSES:
        blocks += [note(""), note(f"and {count(len(causes) - _MOST_CAUSES, 'more cause')}")]
    return blocks


def _behind(check: GateCheck, seen: Digest) -> list[Finding]:
    """What made the number so high, for limits that no finding is counted against."""
    kinds = {"graphs": ("break", "recompile"), "coverage": ("break", "eager")}
    return [finding for finding in findings(seen) if finding.kind in kinds.get(check.name, ())]


def _graphs(run: Run, root: str) -> Paragraph:
    """Which functions the graphs are of, most graphs first."""
    numbers: dict[str, int] = {}
    for graph in captured_graphs(run):
        name = f"{graph.function} ({place(graph.file, graph.line, root)})"
        numbers[name] = numbers.get(name, 0) + 1
    ranked = sorted(numbers.items(), key=lambda pair: -pair[1])
    listed = ", ".join(f"{number} from {name}" for name, number in ranked[:_MOST_CAUSES])
    more = len(ranked) - _MOST_CAUSES
    rest = f" and more from {count(more, 'other function')}" if more > 0 else ""
    return Paragraph(words(f"Graphs: {listed}{rest}."))


def drawn(blocks: Iterable[Block], *, width: int = _WIDTH, colour: bool = False) -> str:
    """Blocks alone, without the title of a report."""
    document = Document("", "", (Part("pytest", "", tuple(blocks)),))
    text = to_text(document, width=width, colour=colour).removeprefix("\n\n").rstrip("\n")
    return without_commands(text) if in_github_actions() else text
