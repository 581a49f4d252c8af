"""Why a compilation failed: the innermost error, what it means, and the script that shows it."""

from __future__ import annotations

from compilescope.findings.failures import FailureFinding
from compilescope.report.blocks import Block, Paragraph, Span, prose, words
from compilescope.report.places import first_line, repro_place


def why_it_failed(failure: FailureFinding, hanging: str = "") -> list[Block]:
    why = failure.why or first_line(failure.text)
    if not failure.cause:
        return [Paragraph(prose(why), hanging)]
    blocks: list[Block] = [Paragraph(words(Span(failure.cause, "strong")))]
    rest = why.removesuffix(failure.cause).rstrip(": ")
    if rest:
        blocks.append(Paragraph(prose(rest.rstrip(".") + "."), hanging))
    return blocks


def repro_words(failure: FailureFinding, cwd: str = "") -> list[Block]:
    """The script that shows it, or why there is none, where one was asked for."""
    if failure.repro:
        path, inside = repro_place(failure.repro, cwd)
        said = words(Span(path, "code"), f"{inside}, verified in a fresh process")
        return [Paragraph(said, "Repro:")]
    return [Paragraph(prose(failure.no_repro), "No repro:")] if failure.no_repro else []
