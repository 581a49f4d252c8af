"""Causes in the user's own terms: category, why, remedies, and which break is another's echo."""

from __future__ import annotations

import functools
from typing import TypeVar

import msgspec

from compilescope.model.run import Run
from compilescope.plugins import discover
from compilescope.registry.taxonomy import Taxonomy, load_taxonomy
from compilescope.rules import breaks, guards
from compilescope.rules.causes.general import (
    failure_words,
    general_remedies,
    general_why,
)
from compilescope.rules.causes.library import in_library, library_break, library_miss
from compilescope.rules.causes.rule import BreakRule, Cause, GuardRule, Miss
from compilescope.rules.failures import Failure
from compilescope.rules.recompiles import RecompileCause, RecompiledFrame
from compilescope.rules.sites import Site
from compilescope.rules.source import Place, Sources, Stretch

UNCLASSIFIED = "unclassified"


@functools.cache
def break_rules() -> list[BreakRule]:
    return sorted(discover(breaks, "RULE", BreakRule), key=lambda rule: rule.order)


@functools.cache
def guard_rules() -> list[GuardRule]:
    return sorted(discover(guards, "RULE", GuardRule), key=lambda rule: rule.order)


def explained_sites(run: Run, sites: list[Site], sources: Sources) -> list[Site]:
    """The sites, each with its category, its reason and its remedies."""
    taxonomy = load_taxonomy()
    explained: list[Site] = []
    echoes: set[int] = set()
    for number, site in enumerate(sites):
        place = Place(site.file, site.line, site.column, site.end_column, site.source)
        cause = Cause(site, sources.spot(place))
        rule = next((rule for rule in break_rules() if rule.applies(cause)), None)
        done = _placed(_explain(cause, rule, taxonomy), sources.stretch(cause.spot))
        if (rule is not None and rule.echo) or done.category == "reconstruction":
            echoes.add(number)
        explained.append(done)
    return [
        msgspec.structs.replace(site, consequence_of=_root_of(number, explained, echoes))
        if number in echoes
        else site
        for number, site in enumerate(explained)
    ]


def _explain(cause: Cause, rule: BreakRule | None, taxonomy: Taxonomy) -> Site:
    site = cause.site
    listed = taxonomy.category_of(site.gb_id, site.gb_type)
    if rule is not None:
        category, why, remedies = rule.category, rule.why(cause), rule.remedies(cause)
    else:
        category = listed.id if listed is not None else UNCLASSIFIED
        why = general_why(cause, listed)
        remedies = general_remedies(cause, listed)
    # Words that ask for no change of the code (an echo, a benign break) hold wherever it stands.
    if in_library(site.file) and (rule is None or any(each.kind == "source" for each in remedies)):
        remedies = library_break(cause)
    return msgspec.structs.replace(
        site,
        rule=rule.id if rule is not None else None,
        category=category,
        why=why,
        remedy=tuple(remedies),
    )


_Placed = TypeVar("_Placed", Site, Failure)


def _placed(found: _Placed, stretch: Stretch) -> _Placed:
    """With the stretch of source that is meant."""
    return msgspec.structs.replace(
        found,
        column=stretch.column,
        end_line=stretch.end_line,
        end_column=stretch.end_column,
    )


def _root_of(number: int, sites: list[Site], echoes: set[int]) -> str | None:
    """The break that this one is an echo of.

    One of its own type, else the last that gave up a function of its file, else the last before.
    """
    site = sites[number]
    roots = [other for other in range(len(sites)) if other not in echoes]
    for other in roots:
        if sites[other].gb_type == site.gb_type:
            return sites[other].fingerprint
    earlier = [other for other in roots if other < number]
    for other in reversed(earlier):
        if any(code.file == site.file for code in sites[other].gave_up):
            return sites[other].fingerprint
    return sites[earlier[-1]].fingerprint if earlier else None


_COSTLIEST_FIRST = ("frame-eager", "rest-eager", "resumed", "unknown")


def ranked(sites: list[Site]) -> list[Site]:
    """Most costly first: by measured time, else by what became of the function; echoes last."""
    return sorted(
        sites,
        key=lambda site: (
            site.consequence_of is not None,
            -(site.lost_ms or 0.0),
            _COSTLIEST_FIRST.index(site.outcome),
            site.in_torch,
            -(site.retrace_seconds or 0.0),
            -site.events,
        ),
    )


def explained_failures(failed: list[Failure], sources: Sources) -> list[Failure]:
    """Failures, each with its category, its reason and its remedies.

    Under fullgraph=True a graph break is an error: the same rules explain it.
    """
    taxonomy = load_taxonomy()
    return [_explain_failure(failure, sources, taxonomy) for failure in failed]


def _explain_failure(failure: Failure, sources: Sources, taxonomy: Taxonomy) -> Failure:
    place = Place(failure.file, failure.line, failure.column, failure.end_column, failure.source)
    spot = sources.spot(place)
    failure = _placed(failure, sources.stretch(spot))
    if failure.gb_type is None:
        category, why, remedies = failure_words(failure)
        return msgspec.structs.replace(failure, category=category, why=why, remedy=tuple(remedies))
    site = Site(
        gb_id=failure.gb_id,
        gb_type=failure.gb_type,
        file=failure.file,
        line=failure.line,
        column=failure.column,
        end_column=failure.end_column,
        function=failure.function,
        source=failure.source,
        explanation=failure.message,
        hints=failure.hints,
        context="",
        wrappers=(),
        events=failure.count,
        frames=1,
        ranks=failure.ranks,
        tests=(),
        outcome="unknown",
        gave_up=(),
        in_torch=False,
        fingerprint="",
        because=failure.because,
    )
    cause = Cause(site, spot)
    rule = next((rule for rule in break_rules() if rule.applies(cause)), None)
    explained = _explain(cause, rule, taxonomy)
    return msgspec.structs.replace(
        failure,
        category=explained.category,
        rule=explained.rule,
        why=explained.why,
        remedy=explained.remedy,
    )


def explained_recompiles(frames: list[RecompiledFrame], sources: Sources) -> list[RecompiledFrame]:
    """The recompiled functions, each failed guard with its reason and its remedies."""
    return [
        msgspec.structs.replace(
            frame, causes=tuple(_explain_miss(cause, frame, sources) for cause in frame.causes)
        )
        for frame in frames
    ]


def _explain_miss(
    cause: RecompileCause, frame: RecompiledFrame, sources: Sources
) -> RecompileCause:
    place = Place(cause.file or "", cause.line or 0, source=cause.source)
    miss = Miss(cause, frame, sources.spot(place))
    rule = next((rule for rule in guard_rules() if rule.applies(miss)), None)
    if rule is None:
        return cause
    remedies = rule.remedies(miss)
    if in_library(cause.file or frame.file):
        remedies = library_miss(miss, rule.id, remedies)
    return msgspec.structs.replace(cause, rule=rule.id, why=rule.why(miss), remedy=tuple(remedies))
