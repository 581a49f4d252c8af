"""The first sentence about a run: how many graphs, of how many, and what runs without one."""

from __future__ import annotations

import msgspec

from compilescope.knowledge.analysis.digest import Digest
from compilescope.knowledge.analysis.program_end import NONE_IMPORTED
from compilescope.knowledge.findings.eager import EagerFinding
from compilescope.knowledge.rules.causes.versions import version_words
from compilescope.record.bodies import GraphCaptured
from compilescope.report.blocks import Span, Style, Words, prose, words
from compilescope.report.places import count, place
from compilescope.report.program_state import nothing_before, nothing_compiled
from compilescope.report.section import Reading

_MOST_VERSIONS = 3
"""Reasons for two versions that are named. Chosen: one line."""
_MOST_LETTERS = 150
"""Two lines of 80 columns."""
_FOR_GOOD = ("graph-break", "generator", "error")
"""Why Dynamo never looks at a function again: each of its later calls runs eagerly, and its earlier
graphs are not used any more (torch 2.13, `FrameAction.SKIP`)."""


def has_losses(digest: Digest) -> bool:
    lost = any(frame.avoidable or frame.limit_hit for frame in digest.recompiles)
    return bool(digest.sites or digest.eager_frames or lost or digest.failures)


def is_blank(digest: Digest) -> bool:
    """Nothing was seen: of a log that says nothing of the program."""
    return not has_losses(digest) and not digest.graphs


def headline(reading: Reading) -> Words:
    digest = reading.digest
    early = nothing_before(digest) if is_blank(digest) else None
    if early is not None:
        return early
    if digest.torch is None:
        return words(Span(digest.no_torch or NONE_IMPORTED, "warn"))
    if is_blank(digest):
        return nothing_compiled(reading)
    graphs = count(digest.graphs, "graph")
    versions = _versions(digest)
    if not has_losses(digest):
        more = f": {versions}" if versions else ", no graph breaks, no recompiles"
        return prose("; ".join([f"{graphs}{more}", *_share(digest)]) + ".", "good")
    failed = sum(not failure.suppressed for failure in digest.failures)
    said = [f"{count(failed, 'compilation')} failed"] if failed else []
    if digest.graphs == 0:
        # A failed compilation that was suppressed shows as an eager function.
        return _sentence(["Nothing was compiled", *said], reading, "bad")
    hoped_for = digest.regions + needed_recompiles(digest)
    if digest.graphs > hoped_for:
        graphs += f" instead of {hoped_for}"
    return _sentence([graphs, *said, *_share(digest)], reading, "bad" if failed else "warn")


def needed_recompiles(digest: Digest) -> int:
    """Recompiles for versions that the program needs."""
    return sum(frame.count - frame.avoidable for frame in digest.recompiles)


def _share(digest: Digest) -> list[str]:
    """How much of the work runs compiled, where it was timed."""
    return [] if digest.coverage is None else [f"{digest.coverage:.1f} % of the time runs compiled"]


def _versions(digest: Digest) -> str:
    """`training and evaluation`: why there is more than one version of a function."""
    causes = [cause for frame in digest.recompiles for cause in frame.causes if cause.needed]
    told = list(dict.fromkeys(map(version_words, causes)))
    more = [f"{len(told) - _MOST_VERSIONS} more"] if len(told) > _MOST_VERSIONS else []
    return "; ".join([*told[:_MOST_VERSIONS], *more])


# Which functions run eagerly: as many by name as two lines have room for.


class _EagerWords(msgspec.Struct):
    """Functions of which the same is to be said."""

    one: str
    many: str
    named: str = "{}"
    """How a function is called here: `the rest of {}`."""
    noun: str = "function"
    functions: dict[tuple[str, int, str], EagerFinding] = msgspec.field(default_factory=dict)


def _sentence(parts: list[str], reading: Reading, style: Style) -> Words:
    groups = _eager_functions(reading)
    for most in (3, 2, 1, 0):
        text = "; ".join([*parts, *(_told(group, most, reading) for group in groups)]) + "."
        if len(text) <= _MOST_LETTERS:
            break
    return prose(text, style)


def _eager_functions(reading: Reading) -> list[_EagerWords]:
    """The worst first; a function is told of once, by the worst that is true of it."""
    every = _EagerWords("runs eagerly in every call", "run eagerly in every call")
    outermost = _EagerWords(
        "itself is compiled, only functions that it calls",
        "themselves is compiled, only functions that they call",
        "nothing of {}",
    )
    later = _EagerWords("runs eagerly in every later call", "run eagerly in every later call")
    some = _EagerWords("runs eagerly", "run eagerly")
    call = _EagerWords("runs eagerly", "run eagerly", "what is called at {}", noun="call")
    limit = _EagerWords(
        "runs eagerly beyond the recompile limit", "run eagerly beyond the recompile limit"
    )
    rest = _EagerWords("runs eagerly", "run eagerly", "the rest of {}")
    rest_limit = _EagerWords(limit.one, limit.many, "the rest of {}")
    compiled, entered = _graphs_of(reading)
    for frame in reading.digest.eager_frames:
        key = (frame.file, frame.line, frame.function)
        if frame.cause == "recompile-limit":
            group = rest_limit if frame.rest_only else limit
        elif frame.is_call:
            group = call
        elif frame.rest_only:
            group = rest
        elif frame.cause not in _FOR_GOOD:
            group = some
        elif key in compiled:
            group = later
        else:
            group = outermost if key in entered else every
        group.functions.setdefault(key, frame)
    told: set[tuple[str, int, str]] = set()
    for group in (groups := [outermost, every, later, call, some, rest, limit, rest_limit]):
        group.functions = {key: f for key, f in group.functions.items() if key not in told}
        told |= group.functions.keys()
    return [group for group in groups if group.functions]


_Keys = set[tuple[str, int, str]]


def _graphs_of(reading: Reading) -> tuple[_Keys, _Keys]:
    """Functions that have a graph from their beginning, and those in whose calls there are any."""
    if not reading.digest.eager_frames:
        return set(), set()
    compiled: _Keys = set()
    entered: _Keys = set()
    for _, body in reading.run.of(GraphCaptured):
        if body.stage != "dynamo":
            continue
        if body.frame is not None and not body.frame.resumed:
            compiled.add((body.frame.file, body.frame.line, body.frame.function))
        if body.region is not None:
            entered.add((body.region.file, body.region.line, body.region.function))
    return compiled, entered


def _told(group: _EagerWords, most: int, reading: Reading) -> str:
    """`a`, `b` and `c` run eagerly; of more than three two, and how many more there are."""
    found = list(group.functions.values())
    number = len(found)
    verb = group.one if number == 1 else group.many
    if not most and number > 1:
        named = group.named if group.noun == "function" else "{}"
        return f"{named.format(count(number, group.noun))} {verb}"
    shown = number if number <= max(most, 1) else min(most, 2)
    names = list(dict.fromkeys(f"`{_name(each, reading)}`" for each in found[:shown]))
    if len(names) < number:
        names.append(count(number - len(names), f"more {group.noun}"))
    listed = " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
    return f"{group.named.format(listed)} {verb}"


def _name(frame: EagerFinding, reading: Reading) -> str:
    """With its class, where the run kept the source; a call of torch's own by its place."""
    if frame.is_call:
        return place(frame.file, frame.line, reading.root)
    owner = reading.sources.class_of(frame.file, frame.line, frame.function)
    return f"{owner}.{frame.function}" if owner else frame.function
