"""Causes as lists: all of them, one line each; and where to start.

A line has where, what, what it costs, whether there is a fix. Where to start are the most expensive
causes, each with the change that removes it.
"""

from __future__ import annotations

from msgspec.structs import replace

from compilescope.base.patterns import late
from compilescope.knowledge.findings.finding import Finding
from compilescope.knowledge.findings.remedy import is_not_tried
from compilescope.record.stack import Frame
from compilescope.report.blocks import (
    Block,
    Excerpt,
    Heading,
    Item,
    Paragraph,
    Span,
    Table,
    Words,
    note,
    prose,
    words,
)
from compilescope.report.finding import (
    advice_blocks,
    called_at,
    excerpt,
    leading,
    leads_to,
    repro_words,
)
from compilescope.report.places import anchor_of, brief_place, count, place, told_apart
from compilescope.report.render.spans import duration
from compilescope.report.section import Reading

_ROOM = 54
"""Letters for where and what together, in a line of 80."""
_GLOBAL = late(r"\bG\['(\w+)'\]")
"""Dynamo's name of a global variable, which its author calls by its own."""
_UNDRAWN = (words(""),) * 5
"""A row that nobody draws, but that is counted."""
_LEAST_VALUE = 12
"""Letters of a value that a recompile names. Chosen: less can't be recognized."""


def causes_table(reading: Reading, first: int) -> Table:
    """From cause number `first`, one line each."""
    found = reading.causes[first - 1 :]
    drawn = found if reading.drawn is None else found[: max(reading.drawn - first + 1, 0)]
    places = [
        brief_place(at.file, at.line, reading.root) if at.file else "unknown"
        for at in map(leading, drawn)
    ]
    room = max(_ROOM - max(map(len, places), default=0), _LEAST_VALUE)
    whats = _whats(drawn, places, room)
    rows = tuple(
        _row(number, finding, at, what)
        for number, (finding, at, what) in enumerate(zip(drawn, places, whats, strict=True), first)
    )
    rows += (_UNDRAWN,) * (len(found) - len(rows))
    return Table(("", "where", "what", "cost", "fix"), rows, (0, 3), one_line=2)


def _whats(drawn: list[Finding], places: list[str], room: int) -> list[str]:
    """What each is, so that no two rows read alike: what a renderer has no room for it cuts from
    the end."""
    found = [_what(each, room) for each in drawn]
    rows: dict[tuple[str, str], list[int]] = {}
    for number, (at, what) in enumerate(zip(places, found, strict=True)):
        rows.setdefault((at, what[: room - 1]), []).append(number)
    for numbers in rows.values():
        if len(numbers) > 1:
            whole = [drawn[number].title for number in numbers]
            for number, what in zip(numbers, told_apart(whole, room), strict=True):
                found[number] = what
    return found


def _row(number: int, finding: Finding, at: str, what: str) -> tuple[Words, ...]:
    return (
        words(str(number)),
        words(Span(at, "strong", anchor_of(finding))),
        words(what),
        words(_cost(finding)),
        _fix(finding),
    )


def _cost(finding: Finding) -> str:
    """Time where it is known, else how often."""
    if finding.lost_ms is not None or finding.seconds is not None:
        return duration(finding.cost_seconds * 1e9)
    return count(finding.count, "time")


def _what(finding: Finding, room: int) -> str:
    """Its title for a line that has little room: of a long value the end, which names it best."""
    if finding.kind == "failure":
        return finding.title.replace(" compilation failed: ", " failed: ")
    title = _GLOBAL.sub(r"\1", finding.title) if finding.kind == "recompile" else finding.title
    _, recompiles, value = title.partition(" recompiles: ")
    if not recompiles or len(title) <= room:
        return title
    most = max(room - len("recompiles: …"), _LEAST_VALUE)
    return f"recompiles: {value if len(value) <= most else '…' + value[-most:]}"


def _fix(finding: Finding) -> Words:
    """What `explain` offers for it, in a word."""
    first = finding.advice[0] if finding.advice else None
    if first is not None and first.diff:
        return words(Span("verified" if first.status == "proven" else "yes", "good"))
    if first is not None and first.status == "not tried":
        return words(Span("not tried", "dim"))
    if first is not None and first.status == "proposed":
        return words(Span("try fix", "dim"))  # A run of it tells.
    if first is not None or finding.first_step:
        return words(Span("by hand", "dim"))
    return words(Span("none", "dim"))


_MOST_ON_A_PAGE = 3
"""Causes to begin with. Chosen: more would be a list, not a start; a terminal shows one."""


def start_with(reading: Reading) -> list[Block]:
    """The causes to look at first. Each keeps its number in the list of all, where there is one."""
    found = list(enumerate(reading.causes, 1))
    if not found:
        return []
    most = _MOST_ON_A_PAGE if reading.page else 1
    chosen = _distinct(found)[:most]
    return [
        Heading("Start here", _note(chosen, found)),
        *_untried(reading),
        # A page has no list of all causes whose numbers these could be.
        *(
            cause_item(place if reading.page else number, finding, reading)
            for place, (number, finding) in enumerate(chosen, 1)
        ),
    ]


def _distinct(ranked: list[tuple[int, Finding]]) -> list[tuple[int, Finding]]:
    """One for each change: what it mends besides is told in its own place."""
    diffs: set[str] = set()
    kept = []
    for number, finding in ranked:
        diff = finding.advice[0].diff if finding.advice else ""
        if not diff or diff not in diffs:
            kept.append((number, finding))
        diffs.add(diff)
    return kept


def _note(chosen: list[tuple[int, Finding]], found: list[tuple[int, Finding]]) -> str:
    if len(found) == 1:
        return ""
    return "the causes to look at first" if len(chosen) > 1 else "the cause to look at first"


def _untried(reading: Reading) -> list[Block]:
    """Of how many causes it is not known whether there is a fix; a list of causes says so itself,
    and a page has none."""
    untried = sum(is_not_tried(each.advice) for each in reading.causes)
    if not untried or not reading.full:
        return []
    total = len(reading.causes)
    return [
        note(
            f"This report looked for fixes for {total - untried:,} of {total:,} causes. "
            'For the others, marked "Not tried", `compilescope explain --cause N` looks.'
        )
    ]


def cause_item(number: int, finding: Finding, reading: Reading) -> Item:
    """A cause in short: its line, why, and the first change."""
    where = f"{place(finding.file, finding.line, reading.root)} in {finding.function}"
    target = anchor_of(finding) if reading.full else ""
    blocks, led = _place_blocks(finding, reading)
    if finding.kind != "recompile" or not finding.message:
        # What recompiles, and for which value, is how its message begins.
        blocks.append(Paragraph(words(Span(finding.title, "strong"))))
    if finding.message:
        blocks.append(Paragraph(prose(finding.message)))
    # A page tells every cause at length further down, with its change once more.
    own = replace(reading.told, places={}, texts={}, folding=False)
    told = own if reading.full else reading.told
    blocks += advice_blocks(finding.advice, told, where, brief=True, whole=reading.explain(number))
    for failure in reading.digest.failures:
        if finding.kind == "failure" and failure.because == finding.because:
            blocks += repro_words(failure, reading.run.header.cwd)
    at = Span(place(led.file, led.line, reading.root), "strong", target)
    inside = f" in {led.function}" if led.function else ""
    return Item(str(number), words(at, inside), _cost_words(finding), tuple(blocks))


def _place_blocks(finding: Finding, reading: Reading) -> tuple[list[Block], Finding | Frame]:
    """Its line; and what it is headed by: the user's call, where a guard's line is a library's."""
    led = leading(finding)
    if led is not finding:
        code: list[Block] = [Excerpt(led.source)] if led.source.strip() else []
        return [*code, *leads_to(finding, reading.root)], led
    line: list[Block] = [excerpt(finding)] if finding.source.strip() else []
    return [*line, *called_at(finding, reading.root)], finding


def _cost_words(finding: Finding) -> Words:
    costs = []
    if finding.kind == "recompile":
        costs.append(count(finding.count, "recompile"))
    elif finding.rule_id.startswith("GB"):
        costs.append(finding.rule_id)
    if finding.lost_ms is not None:
        costs.append(f"{finding.lost_ms:.1f} ms outside graphs")
    elif finding.seconds is not None:
        costs.append(duration(finding.seconds * 1e9))
    return words(Span(", ".join(costs), "bad" if finding.level == "error" else "warn"))
