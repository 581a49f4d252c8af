"""The long explanation: each cause with the source around it, why it is so, and what to change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from compilescope.knowledge.analysis.digest import Digest
from compilescope.knowledge.findings.breaks import BreakFinding
from compilescope.knowledge.findings.eager import EagerFinding
from compilescope.knowledge.findings.failures import FailureFinding
from compilescope.knowledge.findings.finding import Finding
from compilescope.knowledge.findings.recompiles import (
    RecompiledFrame,
    RecompileFinding,
    recompile_findings,
)
from compilescope.knowledge.rules.causes.device_words import DEVICE_RULES
from compilescope.record.stack import Frame, origin_of
from compilescope.record.storms import MOST_KEPT
from compilescope.report.blocks import (
    Block,
    Document,
    Fold,
    Item,
    Paragraph,
    Part,
    Span,
    Words,
    note,
    prose,
    words,
)
from compilescope.report.cause_list import causes_table
from compilescope.report.finding import (
    advice_blocks,
    called_at,
    finding_item,
    leading,
    leads_to,
    lines_at,
    listing,
    page_link,
    repro_words,
    why_it_failed,
)
from compilescope.report.places import anchor_of, count, first_few, first_line, item_anchor, place
from compilescope.report.render.spans import duration
from compilescope.report.repeats import without_repeats
from compilescope.report.section import Reading
from compilescope.report.sections.logged import nothing_to_explain

if TYPE_CHECKING:
    from compilescope.report.size_limits import Measure

# Chosen: functions and parts of one that are named; the rest is counted.
_MOST_GIVEN_UP = 8
_MOST_PARTS = 16
# Chosen: stacks of one cause, and calls of each, the innermost; the rest is counted.
_MOST_STACKS = 20
_MOST_FRAMES = 60
_BENCHMARKS = (
    "No benchmark failed. `compilescope show` has the figures; `compilescope run` records a "
    "program to explain its graph breaks and recompiles."
)


def explanation(reading: Reading, numbers: Sequence[int]) -> Document:
    """These causes in full, by their numbers."""
    names = cause_names(reading)
    items = tuple(cause_item(number, reading, names) for number in numbers)
    if items:
        return _document(reading, [Part("causes", "", items)])
    if reading.digest.benchmarks:
        return _document(reading, [Part("nothing", "", (Paragraph(prose(_BENCHMARKS)),))])
    logged = nothing_to_explain(reading)
    if logged:
        return _document(reading, [Part("nothing", "", tuple(logged))])
    nothing = words(Span("No graph breaks, recompiles or failures to explain.", "good"))
    return _document(reading, [Part("nothing", "", (Paragraph(nothing),))])


def fitted_explanation(
    reading: Reading, most: int, measure: Measure, one: str, rest: str
) -> Document:
    """The most expensive causes in full, as many as fit so many lines; the others in one line each.
    `one` is the command that explains a cause by its number, `rest` the one that explains all.

    What a cause says depends on those before it alone, so the first ones read the same however many
    follow.
    """
    # Each takes a line at the least: of more than that none would be drawn.
    whole = explanation(reading, range(1, min(len(reading.causes), most) + 1))
    if len(reading.causes) <= most and measure(whole) <= most:
        return whole
    (part,) = whole.parts
    room = most - measure(msgspec.structs.replace(whole, parts=()))
    shown, left = 0, len(reading.causes)
    for block in part.blocks:
        room -= measure(Document("", "", (Part("", "", (block,)),))) - measure(_EMPTY)
        if shown and room < min(left - 1, most // 3) + _AROUND_LIST:
            break
        shown, left = shown + 1, left - 1
    parts = [msgspec.structs.replace(part, blocks=part.blocks[:shown])]
    if left:
        table = causes_table(reading, shown + 1)
        more = words("One of them: ", Span(f"{one} {shown + 1}", "code"))
        rest_of_all = words("All in full: ", Span(rest, "code"))
        ending = (note(""), *(Paragraph(each, unwrapped=True) for each in (more, rest_of_all)))
        how_many = f"{left} of {len(reading.causes)}, not explained above"
        parts.append(Part("others", "Other causes", (table, *ending), how_many))
    from compilescope.report.size_limits import fit_lines

    return fit_lines(msgspec.structs.replace(whole, parts=tuple(parts)), most, measure)


_EMPTY = Document("", "", ())
_AROUND_LIST = 7
"""Lines of the list of other causes besides its rows: heading, columns, what shows the rest."""


def break_explanation(reading: Reading, sites: Sequence[tuple[int, BreakFinding]]) -> Document:
    """These graph breaks, each with its number among the breaks."""
    items = tuple(site_item(number, site, reading) for number, site in sites)
    return _document(reading, [Part("breaks", "Graph breaks", items)])


def _document(reading: Reading, parts: Iterable[Part]) -> Document:
    seen = reading.digest
    title = f"compilescope explain {seen.run}"
    return without_repeats(Document(title, " ".join(seen.command), tuple(parts)))


def cause_names(reading: Reading) -> dict[str, str]:
    """What each cause is called where others speak of it, by fingerprint."""
    return {each.fingerprint: f"cause {n}" for n, each in enumerate(reading.causes, 1)}


def cause_item(number: int, reading: Reading, names: Mapping[str, str]) -> Item:
    """Cause `number` in full, whatever its kind."""
    finding = reading.causes[number - 1]
    match finding:
        case BreakFinding():
            first, *alike = reading.sites_of[finding.fingerprint]
            return site_item(number, first, reading, names, alike)
        case FailureFinding():
            return failure_item(number, finding, reading, f"cause {number}")
        case EagerFinding():
            return eager_item(number, finding, reading)
        case RecompileFinding():
            return _recompile_cause_item(number, finding, reading)
    item = finding_item(number, finding, reading.root, reading.pages)
    said = quoted(reading, finding.fingerprint)
    return msgspec.structs.replace(item, blocks=(*item.blocks, *said))


def site_item(
    number: int,
    site: BreakFinding,
    reading: Reading,
    names: Mapping[str, str] | None = None,
    alike: Sequence[BreakFinding] = (),
) -> Item:
    """A break; `names` is what it and others are called by fingerprint."""
    seen = reading.digest
    names = reading.break_names if names is None else names
    blocks = [*listing(site, reading.sources), *called_at(site, reading.root)]
    if alike:
        places = first_few([place(other.file, other.line, seen.root) for other in alike])
        blocks.append(note(f"also at {places}"))
    if site.consequence_of is not None and site.consequence_of in names:
        root = Span(names[site.consequence_of], "warn", site.consequence_of)
        blocks.append(
            Paragraph(words(Span("Follows from ", "warn"), root, Span(": fix that first.", "warn")))
        )
    blocks.append(Paragraph(prose(site.why), "Why:"))
    said = first_line(site.explanation)
    if said and said not in site.why:
        blocks.append(Paragraph(words(Span(f"{site.gb_type}. {said}", "dim")), "PyTorch:"))
    where = names.get(site.fingerprint, place(site.file, site.line, seen.root))
    blocks += advice_blocks(site.advice, reading.told, where, brief=False)
    blocks.append(Paragraph(_cost(site, seen), "Cost:"))
    blocks += page_link(site.gb_id, reading.pages)
    blocks += quoted(reading, site.fingerprint)
    if reading.full:
        blocks += _folded_stacks(site.because, reading)
    inside = f" in {site.function}" if site.function else ""
    left = words(Span(place(site.file, site.line, seen.root), "strong"), inside)
    whose = site.gb_id or ("torch_xla" if (site.rule or "").startswith("xla/") else "no id")
    right = words(Span(f"{whose} {site.category}", "warn"))
    tags = ("kind:break", f"category:{site.category}", _whose(site.file))
    return Item(str(number), left, right, tuple(blocks), site.fingerprint, tags)


def quoted(reading: Reading, *fingerprints: str) -> list[Block]:
    """What a language model said of these causes."""
    found = (reading.quotes.get(fingerprint) for fingerprint in dict.fromkeys(fingerprints))
    return [quote for quote in found if quote is not None]


def _whose(file: str) -> str:
    return "whose:yours" if origin_of(file) == "user" else "whose:library"


def _cost(site: BreakFinding, digest: Digest) -> Words:
    """What the break costs, as far as it was recorded."""
    if site.rule in DEVICE_RULES and site.context:
        return words(Span(f"{site.context}.", "dim"))
    parts = []
    if site.lost_ms is not None:
        parts.append(f"{site.lost_ms:.1f} ms outside compiled graphs")
    if site.seconds is not None:
        parts.append(f"{duration(site.seconds * 1e9)} of tracing thrown away")
    parts.append(f"reported {count(site.count, 'time')} in {count(site.frames, 'function')}")
    if len(site.ranks) > 1:
        parts.append(f"on ranks {first_few(map(str, site.ranks))}")
    if site.tests:
        more = f" and {len(site.tests) - 1} more" if len(site.tests) > 1 else ""
        parts.append(f"in {site.tests[0]}{more}")
    for code in site.gave_up[:_MOST_GIVEN_UP]:
        part = "the rest of " if code.resumed else ""
        at = place(code.file, code.line, digest.root)
        parts.append(f"{part}{code.function} ({at}) runs eagerly, which may hide further breaks")
    if len(site.gave_up) > _MOST_GIVEN_UP:
        more = count(len(site.gave_up) - _MOST_GIVEN_UP, "more function")
        parts.append(f"so {'do' if len(site.gave_up) - _MOST_GIVEN_UP > 1 else 'does'} {more}")
    if not site.gave_up and site.outcome == "resumed":
        parts.append("compilation continues after it")
    if site.wrappers:
        parts.append(f"PyTorch's report wraps it in: {'; '.join(site.wrappers)}")
    return words(Span("; ".join(parts) + ".", "dim"))


def eager_item(number: int, frame: EagerFinding, reading: Reading) -> Item:
    """A function that Dynamo fell back to eager for."""
    where = Span(place(frame.file, frame.line, reading.root), "strong")
    share = "runs eagerly after the break" if frame.rest_only else "runs eagerly"
    gb_id = f"{frame.gb_id} " if frame.gb_id else ""
    blocks: list[Block] = [Paragraph(words(f"{gb_id}{frame.reason}"))]
    if frame.first_step:
        blocks.append(Paragraph(prose(frame.first_step), "By hand:"))
    blocks += quoted(reading, frame.fingerprint)
    what = f"what {frame.function} calls" if frame.is_call else frame.function
    left, right = words(where, f" {what}"), words(Span(share, "warn"))
    anchor = f"eager-{frame.because[0]}"
    return Item(str(number), left, right, tuple(blocks), anchor, ("kind:eager",))


def recompile_item(number: int, frame: RecompiledFrame, reading: Reading) -> Item:
    """A function compiled more than once."""
    part = f" (from line {frame.resumed_at})" if frame.resumed_at else ""
    at = place(frame.file, frame.line, reading.root)
    left = words(Span(at, "strong"), f" {frame.function}{part}")
    right = words(Span(recompile_cost(frame), "warn"))
    blocks: list[Block] = []
    for cause in frame.causes:
        blocks += _failed_guard(cause, reading, f"recompile {number}")
    blocks += _limit(frame)
    blocks += _folded(frame)
    found = recompile_findings(frame, reading.root)
    blocks += quoted(reading, *(finding.fingerprint for finding in found))
    if reading.full:
        blocks += _folded_stacks(frame.because, reading)
    tags = ("kind:recompile", _whose(frame.file))
    anchor = item_anchor("recompile", frame.because)
    return Item(str(number), left, right, tuple(blocks), anchor, tags)


def _limit(frame: RecompiledFrame) -> list[Block]:
    if not frame.limit_hit:
        return []
    text = (
        f"{frame.function} hit the recompile limit after {count(frame.count + 1, 'compilation')}: "
        "calls that match none of them run eagerly."
    )
    return [Paragraph(words(Span(text, "bad")))]


def _folded(frame: RecompiledFrame) -> list[Block]:
    """What was counted only, of a function that was compiled again and again."""
    if not frame.folded:
        return []
    times = count(frame.folded, "earlier cache entry", "earlier cache entries")
    text = f"Over all recompiles, {times} were checked for their first failed guard only."
    if frame.count >= MOST_KEPT:
        text += f" Graphs and guards after compilation {MOST_KEPT} were counted, not stored."
    return [note(text)]


def _recompile_cause_item(number: int, finding: RecompileFinding, reading: Reading) -> Item:
    """One value whose guards failed, wherever they are: each line of its is part of one cause."""
    behind = reading.recompiles_of[finding.fingerprint]
    led = leading(finding)
    blocks: list[Block] = []
    causes = [cause for _, cause in behind if cause.is_named]
    if causes:
        alone = len(causes) == 1
        if led is not finding:
            blocks += leads_to(finding, reading.root)
        blocks += _failed_guard(causes[0], reading, f"cause {number}", alone=alone, led=led)
    else:
        blocks.append(Paragraph(prose(finding.message)))
    elsewhere = [
        place(cause.file, cause.line, reading.root)
        for cause in causes[1:]
        if cause.is_placed and (cause.file, cause.line) != (finding.file, finding.line)
    ]
    if elsewhere:
        blocks.append(note(f"also guarded at {first_few(dict.fromkeys(elsewhere))}"))
    for frame, _ in behind[:_MOST_PARTS]:
        blocks += _limit(frame) + _folded(frame)
    hidden = sum(frame.limit_hit for frame, _ in behind[_MOST_PARTS:])
    if hidden:
        blocks.append(note(f"{count(hidden, 'more part')} of it hit the recompile limit."))
    blocks += quoted(reading, finding.fingerprint)
    at = Span(place(led.file, led.line, reading.root), "strong")
    spent = f", {duration(finding.seconds * 1e9)}" if finding.seconds is not None else ""
    right = words(Span(count(finding.count, "recompile") + spent, "warn"))
    tags = ("kind:recompile", _whose(finding.file))
    left = words(at, f" in {led.function}")
    return Item(str(number), left, right, tuple(blocks), anchor_of(finding), tags)


def recompile_cost(frame: RecompiledFrame) -> str:
    """`7 recompiles, 7.30 s`."""
    spent = f", {duration(frame.seconds * 1e9)}" if frame.seconds is not None else ""
    return count(frame.count, "recompile") + spent


def _failed_guard(
    cause: RecompileFinding,
    reading: Reading,
    where: str,
    *,
    alone: bool = False,
    led: Finding | Frame | None = None,
) -> list[Block]:
    """With its part of the cost, unless it is alone: then the item says that. The call is not
    told where the item is headed by it."""
    if cause.expected or cause.actual:
        change = f": expected {cause.expected or '?'}, got {cause.actual or '?'}"
    else:
        change = f": {cause.guard}"
    spent = f", {duration(cause.seconds * 1e9)}" if cause.seconds is not None else ""
    times = f" (in {count(cause.count, 'recompile')}{spent})"
    times = "" if alone else times
    if cause.also:
        change += f", and {len(cause.also)} more like it"
    blocks: list[Block] = [
        Paragraph(words(Span(cause.subject, "code"), change, Span(times, "dim")), "-")
    ]
    if cause.is_placed:
        blocks += lines_at(reading.sources, cause.file, cause.line, cause.source)
    if led is None or led is not cause.called_at:
        blocks += called_at(cause, reading.root)
    if cause.why:
        blocks.append(Paragraph(prose(cause.why), "Why:"))
    return blocks + advice_blocks(cause.advice, reading.told, where, brief=False)


def failure_item(number: int, failure: FailureFinding, reading: Reading, where: str = "") -> Item:
    """A compilation that raised."""
    at = place(failure.file, failure.line, reading.root) if failure.file else "unknown place"
    left = words(Span(at, "strong"), f" in {failure.function}" if failure.function else "")
    right = words(Span(f"{failure.gb_id or failure.error} {failure.category}", "bad"))
    blocks: list[Block] = []
    if failure.file:
        blocks += listing(failure, reading.sources)
    blocks += why_it_failed(failure, "Why:")
    where = where or f"failure {number}"
    blocks += advice_blocks(failure.advice, reading.told, where, brief=False)
    blocks += repro_words(failure, reading.run.header.cwd)
    blocks.append(note(fate(failure)))
    blocks += page_link(failure.gb_id, reading.pages, failure.link)
    blocks += quoted(reading, failure.fingerprint)
    if reading.full:
        blocks += _folded_stacks(failure.because, reading)
    tags = ("kind:failure", f"category:{failure.category}", _whose(failure.file))
    anchor = item_anchor("failure", failure.because)
    return Item(str(number), left, right, tuple(blocks), anchor, tags)


def fate(failure: FailureFinding) -> str:
    """In which compilation it failed, how often, and what became of the program."""
    end = "suppressed: the function runs eagerly" if failure.suppressed else "raised to the program"
    backend = f" with backend {failure.backend}" if failure.backend else ""
    times = f", {failure.count} times" if failure.count > 1 else ""
    return f"{failure.phase} compilation{backend}{times}; {end}"


def _folded_stacks(because: Iterable[str], reading: Reading) -> list[Block]:
    """The distinct stacks of these events, shut until asked for."""
    stacks: dict[tuple[Frame, ...], int] = {}
    for event_id in because:
        event = reading.events_by_id.get(event_id)
        if event is not None and event.stack:
            stacks[event.stack] = stacks.get(event.stack, 0) + 1
    if not stacks:
        return []
    blocks: list[Block] = []
    for stack, times in list(stacks.items())[:_MOST_STACKS]:
        if len(stacks) > 1:
            blocks.append(note(count(times, "time")))
        if len(stack) > _MOST_FRAMES:
            blocks.append(note(f"{len(stack) - _MOST_FRAMES} outer calls not shown"))
        blocks += [Paragraph(_stack_call(frame, reading.root)) for frame in stack[-_MOST_FRAMES:]]
    if len(stacks) > _MOST_STACKS:
        blocks.append(note(f"and {len(stacks) - _MOST_STACKS} more stacks"))
    label = "Stack" if len(stacks) == 1 else f"{len(stacks)} stacks"
    return [Fold(words(label), tuple(blocks))]


def _stack_call(frame: Frame, root: str) -> Words:
    at = Span(place(frame.file, frame.line, root), "strong")
    return words(at, f" in {frame.function}  ", Span(frame.source.strip(), "code"))
