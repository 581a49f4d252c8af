"""Causes in the user's own terms: category, why, remedies, and which break is another's echo."""

from __future__ import annotations

import functools
from bisect import bisect_left
from typing import TypeVar

import msgspec

from compilescope.findings.breaks import Site
from compilescope.findings.failures import Failure
from compilescope.findings.recompiles import RecompileCause, RecompiledFrame
from compilescope.plugins import discover
from compilescope.registry.taxonomy import Taxonomy, load_taxonomy
from compilescope.rules import breaks
from compilescope.rules import recompiles as guards
from compilescope.rules.causes.general import (
    failure_words,
    general_remedies,
    general_why,
)
from compilescope.rules.causes.library import in_library, library_break, library_miss
from compilescope.rules.causes.rule import BreakRule, Cause, GuardFailure, GuardRule
from compilescope.source.spots import Place, Sources, Stretch

UNCLASSIFIED = "unclassified"


@functools.cache
def break_rules() -> list[BreakRule]:
    return sorted(discover(breaks, "RULE", BreakRule), key=lambda rule: rule.order)


@functools.cache
def guard_rules() -> list[GuardRule]:
    return sorted(discover(guards, "RULE", GuardRule), key=lambda rule: rule.order)


def explained_sites(sites: list[Site], sources: Sources) -> list[Site]:
    """The sites, each with its category, its reason and its remedies."""
    if not sites:
        return []
    taxonomy = load_taxonomy()
    explained = list(sites)
    echoes: set[int] = set()
    # File by file: not every file's tree is kept.
    for number in sorted(range(len(sites)), key=lambda number: sites[number].file):
        cause = _cause(sites[number], sources)
        rule = _rule_of(cause)
        explained[number] = _explained(cause, rule, sources, taxonomy)
        if _makes_echo(rule, explained[number].category):
            echoes.add(number)
    return _with_roots(explained, echoes)


def explained_site(site: Site, sources: Sources) -> Site:
    """One of those that `sites_with_roots` gave."""
    cause = _cause(site, sources)
    return _explained(cause, _rule_of(cause), sources, load_taxonomy())


def placed_site(site: Site, sources: Sources) -> Site:
    """One of those, with no more than the stretch of source that is meant."""
    return _placed(site, sources.stretch(_cause(site, sources).spot))


def sites_with_roots(sites: list[Site], sources: Sources) -> list[Site]:
    """The sites, each with the break that it is an echo of, which their order depends on, and no
    further explained: for that few of them need a look at their source."""
    if not sites:
        return []
    taxonomy = load_taxonomy()
    echoing = [rule for rule in break_rules() if _makes_echo(rule, rule.category)]
    echoes: set[int] = set()
    for number, site in enumerate(sites):
        cause = _cause(site, sources)
        listed = taxonomy.category_of(site.gb_id, site.gb_type)
        category = listed.id if listed is not None else UNCLASSIFIED
        if not (_makes_echo(None, category) or any(rule.applies(cause) for rule in echoing)):
            continue
        rule = _rule_of(cause)
        if _makes_echo(rule, rule.category if rule is not None else category):
            echoes.add(number)
    return _with_roots(sites, echoes)


def _cause(site: Site, sources: Sources) -> Cause:
    place = Place(site.file, site.line, site.column, site.end_column, site.source)
    return Cause(site, functools.partial(sources.spot, place))


def _rule_of(cause: Cause) -> BreakRule | None:
    return next((rule for rule in break_rules() if rule.applies(cause)), None)


def _makes_echo(rule: BreakRule | None, category: str) -> bool:
    return (rule is not None and rule.echo) or category == "reconstruction"


def _explained(cause: Cause, rule: BreakRule | None, sources: Sources, taxonomy: Taxonomy) -> Site:
    return _placed(_explain(cause, rule, taxonomy), sources.stretch(cause.spot))


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


def _with_roots(sites: list[Site], echoes: set[int]) -> list[Site]:
    """Each echo with the break that it is an echo of."""
    if not echoes:
        return sites
    roots = _Roots(sites, echoes)
    return [
        msgspec.structs.replace(site, consequence_of=roots.root_of(number))
        if number in echoes
        else site
        for number, site in enumerate(sites)
    ]


class _Roots:
    """The breaks that others may be echoes of, found without a look at each of them."""

    def __init__(self, sites: list[Site], echoes: set[int]) -> None:
        self._sites = sites
        self._numbers = [number for number in range(len(sites)) if number not in echoes]
        self._of_type: dict[str, int] = {}
        self._giving_up: dict[str, list[int]] = {}
        """By the file of a function that was given up, in their order."""
        for number in self._numbers:
            self._of_type.setdefault(sites[number].gb_type, number)
            for file in {code.file for code in sites[number].gave_up}:
                self._giving_up.setdefault(file, []).append(number)

    def root_of(self, number: int) -> str | None:
        """One of its own type, else the last that gave up a function of its file, else the last
        before."""
        site = self._sites[number]
        root = self._of_type.get(site.gb_type)
        if root is None:
            root = _last_before(number, self._giving_up.get(site.file, []))
        if root is None:
            root = _last_before(number, self._numbers)
        return self._sites[root].fingerprint if root is not None else None


def _last_before(number: int, numbers: list[int]) -> int | None:
    at = bisect_left(numbers, number)
    return numbers[at - 1] if at else None


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
    found = list(failed)
    for number in sorted(range(len(failed)), key=lambda number: failed[number].file):
        found[number] = explained_failure(failed[number], sources)
    return found


def explained_failure(failure: Failure, sources: Sources) -> Failure:
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
    cause = Cause(site, lambda: spot)
    explained = _explain(cause, _rule_of(cause), load_taxonomy())
    return msgspec.structs.replace(
        failure,
        category=explained.category,
        rule=explained.rule,
        why=explained.why,
        remedy=explained.remedy,
    )


def explained_recompiles(frames: list[RecompiledFrame], sources: Sources) -> list[RecompiledFrame]:
    """The recompiled functions, each failed guard with its reason and its remedies."""
    found = list(frames)
    for number in sorted(range(len(frames)), key=lambda number: frames[number].file):
        frame = frames[number]
        causes = tuple(explained_miss(cause, frame, sources) for cause in frame.causes)
        found[number] = msgspec.structs.replace(frame, causes=causes)
    return found


def explained_miss(
    cause: RecompileCause, frame: RecompiledFrame, sources: Sources
) -> RecompileCause:
    place = Place(cause.file or "", cause.line or 0, source=cause.source)
    miss = GuardFailure(cause, frame, sources.spot(place))
    rule = next((rule for rule in guard_rules() if rule.applies(miss)), None)
    if rule is None:
        return cause
    remedies = rule.remedies(miss)
    if in_library(cause.file or frame.file):
        remedies = library_miss(miss, rule.id, remedies)
    return msgspec.structs.replace(cause, rule=rule.id, why=rule.why(miss), remedy=tuple(remedies))
