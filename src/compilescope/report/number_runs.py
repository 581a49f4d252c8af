"""Runs that compared numbers, newest first: verdict, worst error, tolerances, where errors are."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from compilescope.record.bodies import TensorDiff
from compilescope.record.run import Run
from compilescope.report.blocks import Block, Facts, Fold, Item, Span, Style, Words, words
from compilescope.report.places import count
from compilescope.report.render.spans import moment
from compilescope.report.section import Reading
from compilescope.report.sections.diffs import SECTION

_VERDICTS: dict[str, tuple[str, Style]] = {
    "fail": ("differ", "bad"),
    "unknown": ("inconclusive", "warn"),
    "pass": ("agree", "good"),
}


def number_items(runs: Sequence[Run], run_url: Callable[[str], str]) -> list[Block]:
    return [_item(number, run, run_url) for number, run in enumerate(runs, 1)]


def _item(number: int, run: Run, run_url: Callable[[str], str]) -> Item:
    diffs = [body for _, body in run.of(TensorDiff)]
    name, started = run.header.run, run.header.started_ns / 1e9
    models = list(dict.fromkeys(body.model for body in diffs if body.model))
    title = ", ".join(models[:3]) or " ".join(run.header.command) or name
    left = words(Span(title, "strong"), " ", Span(name, url=run_url(name)))
    when = moment(started)
    right = words(Span(f"{when} " if when else "", "dim"), _verdict(diffs))
    blocks: list[Block] = [Facts(tuple(_facts(run, diffs)))]
    details = SECTION.build(Reading(run, full=True, page=True))
    if details:
        wrong = sum(body.verdict != "pass" for body in diffs)
        told = f"{count(wrong, 'value')} to look at" if wrong else count(len(diffs), "value")
        blocks.append(Fold(words(told), tuple(details)))
    return Item(str(number), left, right, tuple(blocks))


def _verdict(diffs: Sequence[TensorDiff]) -> Span:
    """The worst of them all."""
    for verdict, (word, style) in _VERDICTS.items():
        many = sum(body.verdict == verdict for body in diffs)
        if many and verdict != "pass":
            said = "differs" if word == "differ" and len(diffs) == 1 else word
            return Span(f"{many} of {count(len(diffs), 'value')} {said}", style)
    return Span("all agree", "good") if diffs else Span("nothing was compared", "warn")


def _facts(run: Run, diffs: Sequence[TensorDiff]) -> list[tuple[str, Words]]:
    sides = list(dict.fromkeys((body.test or "the test", body.reference) for body in diffs))
    told = ", ".join(f"{test} vs. {reference}" for test, reference in sides[:4])
    facts: list[tuple[str, Words]] = [("compared", words(told))] if told else []
    worst = max(
        (body for body in diffs if "max_abs" in body.metrics),
        key=lambda body: body.metrics["max_abs"],
        default=None,
    )
    if worst is not None:
        error = f"{worst.metrics['max_abs']:.3g} in "
        facts.append(("worst error", words(error, Span(worst.path, "code"))))
    facts.append(("tolerance", words(_tolerance(run.header.command))))
    guilty = next((body.guilty for body in diffs if body.guilty), "")
    return [*facts, *([("wrong operation", words(Span(guilty, "code")))] if guilty else [])]


def _tolerance(command: Sequence[str]) -> str:
    """As the command asked for it; the figures themselves are in the reason of each value."""
    given = [text for name in ("--atol", "--rtol") if (text := _option(command, name))]
    exact = "without a float64 run" if "--no-fp64" in command else "compared with a float64 run"
    return f"{', '.join(given)}; {exact}" if given else f"by dtype; {exact}"


def _option(command: Sequence[str], name: str) -> str:
    for at, word in enumerate(command):
        if word == name and at + 1 < len(command):
            return f"{name[2:]} {command[at + 1]}"
        if word.startswith(f"{name}="):
            return f"{name[2:]} {word.partition('=')[2]}"
    return ""
