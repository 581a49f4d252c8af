"""What a report says of a program that ended early or still runs, and in which style."""

from __future__ import annotations

from compilescope.analysis.absence import NONE_IMPORTED
from compilescope.analysis.digest import Digest
from compilescope.analysis.ended import Ended
from compilescope.report.blocks import Span, Style, Words, words


def nothing_before(digest: Digest) -> Words | None:
    """The verdict on a program that ended early, or goes on, and compiled nothing; else None."""
    ended = digest.ended
    if ended.in_order and ended.how != "running":
        return None
    when = "so far" if ended.how == "running" else "before that"
    if digest.no_torch not in ("", NONE_IMPORTED):
        return words(Span(digest.no_torch, "warn"))
    if digest.torch is None:
        return words(Span(f"No process imported torch {when}.", "warn"))
    return words(Span(f"Nothing was compiled {when}.", "warn"))


def ended_style(ended: Ended) -> Style:
    if ended.how == "running":
        return "warn"
    return "plain" if ended.in_order else "bad"
