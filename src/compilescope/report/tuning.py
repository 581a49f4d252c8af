"""What `tune` tells: the step before and after, each candidate with its verdict, the changes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from compilescope.record.bodies import TuneAttempt, TuneOutcome
from compilescope.report.blocks import (
    Block,
    Diff,
    Document,
    Item,
    Paragraph,
    Part,
    Span,
    Table,
    Words,
    note,
    prose,
    words,
)
from compilescope.report.placements import PLACEMENTS, VERDICT_STYLES, placement_blocks


class TuningView(msgspec.Struct, frozen=True, kw_only=True):
    """A search for a faster step, as a user is told of it."""

    subtitle: str
    outcome: TuneOutcome
    attempts: tuple[TuneAttempt, ...]
    told: tuple[str, ...] = ()
    """What was written, or why not."""
    next: tuple[tuple[str, str], ...] = ()
    """(what for, the command)."""


def tuning_document(tuned: TuningView) -> Document:
    head = list(outcome_blocks(tuned.outcome))
    head += [Paragraph(words(text)) for text in tuned.told]
    if tuned.attempts:
        head.append(attempts_table(tuned.attempts))
    parts = [Part("verdict", "", tuple(head))]
    placed = tuple(placement_blocks(tuned.outcome.placements))
    if placed:
        parts.append(Part("placements", PLACEMENTS, placed))
    parts.append(Part("reasons", "Why", tuple(reason_blocks(tuned.attempts))))
    if tuned.outcome.diff:
        parts.append(Part("changes", "Changes", (Diff(tuned.outcome.diff),)))
    apart = tuple(apart_blocks(tuned.attempts))
    if apart:
        parts.append(Part("apart", "Offered apart", apart))
    if tuned.next:
        told = [
            block
            for what, command in tuned.next
            for block in (
                note(what),
                Paragraph(words("  ", Span(command, "code")), unwrapped=True),
            )
        ]
        parts.append(Part("next", "Next", tuple(told)))
    return Document("compilescope tune", tuned.subtitle, tuple(parts))


def candidates_document(rows: Sequence[tuple[str, str, str]]) -> Document:
    blocks = tuple(
        Item(str(number), words(Span(name, "strong"), f"  {title}"), (), (note(price),))
        for number, (name, title, price) in enumerate(rows, 1)
    )
    subtitle = f"{len(rows)} candidates, in the order they are tried"
    return Document("What compilescope tune tries", subtitle, (Part("candidates", "", blocks),))


def outcome_blocks(outcome: TuneOutcome) -> Iterator[Block]:
    """In a sentence or two."""
    if outcome.verdict == "verified" and outcome.speedup is not None:
        yield Paragraph(words(Span(in_a_sentence(outcome), "good")))
    else:
        yield Paragraph(words(Span(f"Nothing to offer: {outcome.reason}.", "warn")))
    on = f" on {outcome.device}" if outcome.device else ""
    took = f" It takes {_ms(outcome.before_ms)}." if outcome.before_ms is not None else ""
    yield note(f"The step is at {outcome.step}{on}.{took}")
    for text in outcome.notes:
        yield note(text)
    if outcome.environment:
        setting = " ".join(f"{name}={value}" for name, value in outcome.environment.items())
        yield Paragraph(words("Start the program with ", Span(setting, "code"), "."))


def in_a_sentence(outcome: TuneOutcome) -> str:
    """`1.8x faster a step (1.7 to 1.9): ..., +2.1 GB, +40 s to compile: pays after 900 steps.`"""
    low_high = outcome.speedup_ci
    between = f" ({low_high[0]:.2f} to {low_high[1]:.2f})" if low_high is not None else ""
    times = f"{_ms(outcome.before_ms)} -> {_ms(outcome.after_ms)}"
    price = [_memory(outcome.memory_bytes), _compile(outcome.compile_seconds)]
    price = [each for each in price if each]
    said = f"{outcome.speedup:.2f}x faster a step{between}: {times}"
    if price:
        said += f"; {', '.join(price)}"
    if outcome.pays_after:
        said += f": pays after {outcome.pays_after:,} steps"
    return f"{said}."


def attempts_table(attempts: Iterable[TuneAttempt]) -> Table:
    rows = tuple(_row(each) for each in attempts if each.verdict != "refused")
    return Table(("candidate", "verdict", "speedup", "numbers", "memory", "compile"), rows)


def _row(each: TuneAttempt) -> tuple[Words, ...]:
    kept = " *" if each.kept else ""
    return (
        words(Span(each.candidate, "strong"), kept),
        words(Span(each.verdict, VERDICT_STYLES[each.verdict])),
        words(_speedup(each)),
        words(each.numbers),
        words(_memory(each.memory_bytes)),
        words(_compile(each.compile_seconds).removesuffix(" to compile")),
    )


def reason_blocks(attempts: Iterable[TuneAttempt]) -> Iterator[Block]:
    for each in attempts:
        if each.reason:
            said = prose(f"{each.verdict}: {each.reason}.")
            yield Paragraph(words(Span(each.candidate, "strong"), " ", *said), "-")


def apart_blocks(attempts: Iterable[TuneAttempt]) -> Iterator[Block]:
    """The changes that are no part of the result, each with its price."""
    for each in attempts:
        if each.verdict == "apart" and each.diff and not each.kept:
            said = prose(f"{each.title}. {each.price}")
            yield Paragraph(words(Span(f"{each.candidate}: ", "strong"), *said))
            yield Diff(each.diff)


def _speedup(each: TuneAttempt) -> str:
    if each.speedup is None:
        return ""
    between = each.speedup_ci
    return f"{each.speedup:.2f}x" + (
        f" ({between[0]:.2f} to {between[1]:.2f})" if between is not None else ""
    )


def _ms(value: float | None) -> str:
    if value is None:
        return "?"
    return f"{value:.2f} ms" if value < 100 else f"{value / 1000:.3g} s"


def _memory(value: int | None) -> str:
    if value is None:
        return ""
    return f"{value / 1e9:+.1f} GB" if abs(value) >= 1e8 else f"{value / 1e6:+.0f} MB"


def _compile(value: float | None) -> str:
    return "" if value is None else f"{value:+.0f} s to compile"
