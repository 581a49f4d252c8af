"""How the program ended, as the first line of what is told of its run."""

from __future__ import annotations

from compilescope.report.blocks import Block, Paragraph, Span, Style, Words, words
from compilescope.rules.digest import Digest
from compilescope.rules.ended import Ended


def ending(digest: Digest) -> list[Block]:
    """One line; none where nobody watched the program to its end."""
    text = digest.ended.text
    return [Paragraph(words(Span(text, _style(digest.ended))))] if text else []


def nothing_before(digest: Digest) -> Words | None:
    """The verdict on a program that ended early, or goes on, and compiled nothing; else None."""
    ended = digest.ended
    if ended.in_order and ended.how != "running":
        return None
    when = "so far" if ended.how == "running" else "before that"
    if digest.torch is None:
        return words(Span(f"No process of it imported torch {when}.", "warn"))
    return words(Span(f"Nothing was compiled {when}.", "warn"))


def _style(ended: Ended) -> Style:
    if ended.how == "running":
        return "warn"
    return "plain" if ended.in_order else "bad"
