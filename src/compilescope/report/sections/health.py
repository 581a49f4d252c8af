"""What the record lacks: an early end, unread lines, faults of ours, hooks this torch has not."""

from __future__ import annotations

from compilescope.report.blocks import Block, Paragraph, Span, words
from compilescope.report.places import count, first_few
from compilescope.report.section import Reading, Section


def _build(reading: Reading) -> list[Block]:
    digest = reading.digest
    notes: list[Block] = []

    def note(strong: str, rest: str) -> None:
        notes.append(Paragraph(words(Span(strong, "warn"), f" {rest}"), hanging="!"))

    if digest.live:
        note("Still running.", "This is what was recorded so far.")
    if digest.unread_files:
        named = first_few(digest.unread_files)
        note("Not counted:", f"{named} could not be read. The other event files are here.")
    if digest.cut_short and (digest.signal is not None or not digest.unread_files):
        note("Truncated:", f"{digest.cut_short_reason}. Everything recorded before that is here.")
    if digest.unread:
        note(f"Not counted: {count(digest.unread, 'line')}", "that could not be read.")
    if digest.unknown_events:
        note(f"{count(digest.unknown_events, 'event')}", "of a kind this version does not know.")
    for fault in digest.faults[:3]:
        note("Internal error", f"in {fault.where}: {fault.error}. Please report it.")
    for hook in digest.unavailable:
        note(f"Not recorded on torch {digest.torch}:", f"{hook.loses} (no {hook.target}).")
    if "force_eager" in digest.stances:
        note(
            "set_stance('force_eager') was active at times:",
            "calls under it ran eagerly and were not recorded.",
        )
    return notes


SECTION = Section("health", 10, _build, "Gaps", "what this recording lacks")
