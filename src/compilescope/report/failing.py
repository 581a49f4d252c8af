"""Why a compilation failed: the innermost error, what it means, and torch's own page."""

from __future__ import annotations

from compilescope.report.blocks import Block, Paragraph, Span, prose, words
from compilescope.report.links import pytorch_link
from compilescope.report.places import first_line
from compilescope.rules.failures import Failure


def why_it_failed(failure: Failure, hanging: str = "") -> list[Block]:
    why = failure.why or first_line(failure.message)
    if not failure.cause:
        return [Paragraph(prose(why), hanging)]
    blocks: list[Block] = [Paragraph(words(Span(failure.cause, "strong")))]
    rest = why.removesuffix(failure.cause).rstrip(": ")
    if rest:
        blocks.append(Paragraph(prose(rest.rstrip(".") + "."), hanging))
    return blocks


def torchs_page(failure: Failure) -> list[Block]:
    """Where torch's own message leads."""
    return pytorch_link(failure.link)
