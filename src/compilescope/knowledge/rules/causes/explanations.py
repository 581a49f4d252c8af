"""Causes in the user's own terms: category, why, remedies, and which break is another's echo.

The first rule that applies gives the words; where none does, the category of PyTorch's own type and
the user's line do.
"""

from __future__ import annotations

import functools
import threading
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from types import ModuleType
from typing import Generic, TypeVar

import msgspec

from compilescope.base.plugins import carried, public_modules
from compilescope.knowledge.findings.breaks import BreakFinding
from compilescope.knowledge.findings.eager import EagerFinding
from compilescope.knowledge.findings.failures import FailureFinding
from compilescope.knowledge.findings.recompiles import RecompiledFrame, RecompileFinding
from compilescope.knowledge.findings.remedy import Remedy, judgement, program, source, upgrade
from compilescope.knowledge.registry.taxonomy import Category, Taxonomy, load_taxonomy
from compilescope.knowledge.rules import breaks, programs
from compilescope.knowledge.rules import recompiles as guards
from compilescope.knowledge.rules.causes.library import in_library, library_break, library_miss
from compilescope.knowledge.rules.causes.plugged import plugged_rules
from compilescope.knowledge.rules.causes.rule import (
    BreakCase,
    BreakRule,
    GuardRule,
    ProgramCase,
    ProgramRule,
    RecompileCase,
)
from compilescope.knowledge.source.spots import Place, Sources, SourceSpot, Stretch

UNCLASSIFIED = "unclassified"
_RAISED_IN_EAGER = "user-error"


_Rule = TypeVar("_Rule", BreakRule, GuardRule, ProgramRule)


INDEX = Path(__file__).with_name("index.json")
"""By package: its modules in the order of their rules, each with the words that its rule needs. A
test makes it of the rules and compares it with them."""


class _InOrder(Generic[_Rule]):
    """The rules of a package by their order, each imported when it is asked for: the first that
    applies explains a cause. Before them come those of installed packages, which know their own
    libraries best. While the index lacks a module, all are imported."""

    def __init__(
        self, package: ModuleType, kind: type[_Rule], needed: Mapping[str, tuple[str, ...]]
    ) -> None:
        self._package = package
        self._kind: type[_Rule] = kind
        self._needed = needed
        self._order = tuple(needed)
        self._rules: dict[str, _Rule] = {}
        self._lock = threading.Lock()

    def __iter__(self) -> Iterator[_Rule]:
        return chain(plugged_rules(self._kind), map(self._rule, self._names()))

    def about(self, told: str) -> Iterator[_Rule]:
        """Those that may apply to what is told: no others are imported."""
        yield from plugged_rules(self._kind)
        for name in self._names():
            words = self._needed.get(name)
            if not words or any(word in told for word in words):
                yield self._rule(name)

    def _names(self) -> tuple[str, ...]:
        with self._lock:
            if not self._rules and {*self._order} != {*public_modules(self._package)}:
                self._rules = {name: self._import(name) for name in public_modules(self._package)}
                self._order = tuple(sorted(self._rules, key=lambda name: self._rules[name].order))
            return self._order

    def _rule(self, name: str) -> _Rule:
        found = self._rules.get(name)
        if found is None:
            with self._lock:
                found = self._rules[name] = self._import(name)
        return found

    def _import(self, name: str) -> _Rule:
        return carried(f"{self._package.__name__}.{name}", "RULE", self._kind)[0]


_INDEX = msgspec.json.decode(INDEX.read_bytes(), type=dict[str, dict[str, tuple[str, ...]]])
_BREAK_RULES = _InOrder(breaks, BreakRule, _INDEX["breaks"])
_GUARD_RULES = _InOrder(guards, GuardRule, _INDEX["recompiles"])
_PROGRAM_RULES = _InOrder(programs, ProgramRule, _INDEX["programs"])


def break_rules() -> list[BreakRule]:
    return list(_BREAK_RULES)


def guard_rules() -> list[GuardRule]:
    return list(_GUARD_RULES)


def program_rules() -> list[ProgramRule]:
    return list(_PROGRAM_RULES)


_Cause = TypeVar("_Cause", BreakFinding, RecompileFinding, FailureFinding)


def _with_program(cause: _Cause, look: Callable[[], SourceSpot], sources: Sources) -> _Cause:
    """With what to do about the program, before what to do about the line."""
    case = ProgramCase(cause, look, sources)
    if not case.own_files:
        return cause
    is_plain = isinstance(cause, FailureFinding) and cause.gb_type is None
    for rule in _PROGRAM_RULES:
        if is_plain and not rule.of_failures:
            continue
        words = rule.words(case) if rule.applies(case) else ""
        if words:
            remedy = (program(words), *cause.remedy)
            return msgspec.structs.replace(cause, remedy=remedy)
    return cause


def explained_sites(sites: list[BreakFinding], sources: Sources) -> list[BreakFinding]:
    """The sites, each with its category, its reason and its remedies."""
    if not sites:
        return []
    taxonomy = load_taxonomy()
    explained = list(sites)
    echoes: set[int] = set()
    rules = _RulesBySight(sources)
    # File by file: not every file's tree is kept.
    for number in sorted(range(len(sites)), key=lambda number: sites[number].file):
        case = _case(sites[number], sources)
        rule = rules.of(case)
        explained[number] = _explained(case, rule, sources, taxonomy)
        if _makes_echo(rule, explained[number].category):
            echoes.add(number)
    return _with_roots(explained, echoes)


def explained_site(site: BreakFinding, sources: Sources) -> BreakFinding:
    """One of those that `sites_with_roots` gave."""
    case = _case(site, sources)
    return _explained(case, _rule_of(case), sources, load_taxonomy())


def sites_with_roots(sites: list[BreakFinding], sources: Sources) -> list[BreakFinding]:
    """The sites, each with the break that it is an echo of, which their order depends on, and no
    further explained: for that few of them need a look at their source."""
    if not sites:
        return []
    taxonomy = load_taxonomy()
    echoing = [rule for rule in break_rules() if _makes_echo(rule, rule.category)]
    rules = _RulesBySight(sources)
    echoes: set[int] = set()
    for number, site in enumerate(sites):
        case = _case(site, sources)
        listed = taxonomy.category_of(site.gb_id, site.gb_type)
        category = listed.id if listed is not None else UNCLASSIFIED
        if not (_makes_echo(None, category) or any(rule.applies(case) for rule in echoing)):
            continue
        rule = rules.of(case)
        if _makes_echo(rule, rule.category if rule is not None else category):
            echoes.add(number)
    return _with_roots(sites, echoes)


def _case(site: BreakFinding, sources: Sources) -> BreakCase:
    place = Place(site.file, site.line, site.column, site.end_column, site.source)
    return BreakCase(site, functools.partial(sources.spot, place))


def _rule_of(case: BreakCase) -> BreakRule | None:
    return next((rule for rule in _BREAK_RULES if rule.applies(case)), None)


class _RulesBySight:
    """The rule of each break. A log may tell of 100,000 in the same words, and without the text of
    a file a rule sees nothing of one but these words and its line."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._known: dict[tuple[object, ...], BreakRule | None] = {}

    def of(self, case: BreakCase) -> BreakRule | None:
        site = case.finding
        if self._sources.has(site.file):
            return _rule_of(case)
        seen = (
            (site.gb_type, site.context, site.explanation, site.in_torch),
            (site.source, site.column, site.end_column),
        )
        if seen not in self._known:
            self._known[seen] = _rule_of(case)
        return self._known[seen]


def _makes_echo(rule: BreakRule | None, category: str) -> bool:
    return (rule is not None and rule.echo) or category == "reconstruction"


def _explained(
    case: BreakCase, rule: BreakRule | None, sources: Sources, taxonomy: Taxonomy
) -> BreakFinding:
    site = _placed(_explain(case, rule, taxonomy), sources.stretch(case.spot))
    return _with_program(_of_hook(site, case, sources), lambda: case.spot, sources)


def _of_hook(site: BreakFinding, case: BreakCase, sources: Sources) -> BreakFinding:
    """Nothing is returned from a hook but what takes the place of the module's own output."""
    if not any(each.text.startswith("Return ") for each in site.remedy):
        return site
    from compilescope.knowledge.source.hooks import is_hook

    about = ProgramCase(site, lambda: case.spot, sources)
    function = about.function_around(site.file, site.line, site.function)
    if function is None or not is_hook(function, about.outlines):
        return site
    kept = (
        source(
            f"Keep the tensor behind `{case.text}`, detached, and look at its value after the "
            f"call: what `{site.function}` returns would replace the module's output, since it is "
            "a hook."
        ),
    )
    others = tuple([each for each in site.remedy if not each.text.startswith("Return ")])
    return msgspec.structs.replace(site, remedy=(*kept, *others))


def _explain(case: BreakCase, rule: BreakRule | None, taxonomy: Taxonomy) -> BreakFinding:
    site = case.finding
    listed = taxonomy.category_of(site.gb_id, site.gb_type)
    if rule is not None:
        category, why, remedies = rule.category, rule.why(case), rule.remedies(case)
    else:
        category = listed.id if listed is not None else UNCLASSIFIED
        why = _general_why(case, listed)
        remedies = _general_remedies(case, listed)
    # Words that ask for no change of the code (an echo, a benign break) hold wherever it stands.
    if in_library(site.file) and (rule is None or any(each.kind == "source" for each in remedies)):
        remedies = library_break(case)
    return msgspec.structs.replace(
        site,
        rule=rule.id if rule is not None else None,
        category=category,
        why=why,
        remedy=tuple(remedies),
    )


_Placed = TypeVar("_Placed", BreakFinding, FailureFinding)


def _placed(found: _Placed, stretch: Stretch) -> _Placed:
    """With the stretch of source that is meant."""
    known = (found.column, found.end_line, found.end_column)
    if known == (stretch.column, stretch.end_line, stretch.end_column):
        return found
    return msgspec.structs.replace(
        found,
        column=stretch.column,
        end_line=stretch.end_line,
        end_column=stretch.end_column,
    )


def _with_roots(sites: list[BreakFinding], echoes: set[int]) -> list[BreakFinding]:
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

    def __init__(self, sites: list[BreakFinding], echoes: set[int]) -> None:
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


def ranked(sites: list[BreakFinding]) -> list[BreakFinding]:
    """Most costly first: by measured time, else by what became of the function; echoes last."""
    return sorted(
        sites,
        key=lambda site: (
            site.consequence_of is not None,
            -(site.lost_ms or 0.0),
            _COSTLIEST_FIRST.index(site.outcome),
            site.in_torch,
            -(site.seconds or 0.0),
            -site.count,
        ),
    )


def explained_failures(failed: list[FailureFinding], sources: Sources) -> list[FailureFinding]:
    """Failures, each with its category, its reason and its remedies.

    Under fullgraph=True a graph break is an error: the same rules explain it.
    """
    found = list(failed)
    for number in sorted(range(len(failed)), key=lambda number: failed[number].file):
        found[number] = explained_failure(failed[number], sources)
    return found


def explained_failure(failure: FailureFinding, sources: Sources) -> FailureFinding:
    place = Place(failure.file, failure.line, failure.column, failure.end_column, failure.source)
    spot = sources.spot(place)
    failure = _placed(failure, sources.stretch(spot))
    if failure.gb_type is None:
        from compilescope.knowledge.rules.causes.failure_words import failure_words

        category, why, remedies = failure_words(failure, sources)
        failure = msgspec.structs.replace(
            failure, category=category, why=why, remedy=tuple(remedies)
        )
        return _with_program(failure, lambda: spot, sources)
    site = BreakFinding(
        gb_id=failure.gb_id,
        gb_type=failure.gb_type,
        file=failure.file,
        line=failure.line,
        column=failure.column,
        end_column=failure.end_column,
        function=failure.function,
        source=failure.source,
        explanation=failure.text,
        hints=failure.hints,
        context="",
        wrappers=(),
        frames=1,
        tests=(),
        outcome="unknown",
        gave_up=(),
        in_torch=False,
        fingerprint=failure.fingerprint,
    )
    case = BreakCase(site, lambda: spot)
    explained = _explain(case, _rule_of(case), load_taxonomy())
    failure = msgspec.structs.replace(
        failure,
        category=explained.category,
        rule=explained.rule,
        why=explained.why,
        remedy=explained.remedy,
    )
    return _with_program(failure, lambda: spot, sources)


def explained_recompiles(frames: list[RecompiledFrame], sources: Sources) -> list[RecompiledFrame]:
    """The recompiled functions, each failed guard with its reason and its remedies."""
    found = list(frames)
    for number in sorted(range(len(frames)), key=lambda number: frames[number].file):
        found[number] = explained_frame(frames[number], sources)
    return found


def explained_frame(frame: RecompiledFrame, sources: Sources) -> RecompiledFrame:
    causes = tuple(_explained_cause(cause, sources) for cause in frame.causes)
    return msgspec.structs.replace(frame, causes=causes)


def _explained_cause(cause: RecompileFinding, sources: Sources) -> RecompileFinding:
    together = tuple(_explained_miss(each, sources) for each in cause.together)
    told = msgspec.structs.replace(_explained_miss(cause, sources), together=together)
    return _with_program(told, lambda: sources.spot(_place_of(told)), sources)


def _place_of(finding: RecompileFinding) -> Place:
    if not finding.is_placed:
        return Place("", 0)
    return Place(finding.file, finding.line, source=finding.source)


def _explained_miss(finding: RecompileFinding, sources: Sources) -> RecompileFinding:
    named = finding
    if "args[" in finding.subject:  # Of torch's wrapper around a function.
        from compilescope.knowledge.rules.causes.wrapped import in_own_names

        named = in_own_names(finding, sources)
    miss = RecompileCase(named, sources.spot(_place_of(finding)))
    about = _GUARD_RULES.about(told_of(finding))
    rule = next((rule for rule in about if rule.applies(miss)), None)
    if rule is None:
        return finding
    remedies = rule.remedies(miss)
    if in_library(finding.file):
        remedies = library_miss(miss, rule.id, remedies)
    why = rule.why(miss)
    return msgspec.structs.replace(finding, rule=rule.id, why=why, remedy=tuple(remedies))


def told_of(finding: RecompileFinding) -> str:
    """All that is told of a failed guard: where the words that a rule needs may stand."""
    told = (finding.guard_kind, finding.subject, finding.guard, finding.expected, finding.actual)
    return "\n".join(told)


def explained_eager(frame: EagerFinding) -> EagerFinding:
    """With what the taxonomy says of the break behind it."""
    category = load_taxonomy().category_of(frame.gb_id, frame.reason)
    if category is None or not category.fix:
        return frame
    return msgspec.structs.replace(frame, remedy=(judgement(category.fix),))


def _general_why(case: BreakCase, category: Category | None) -> str:
    said = case.finding.explanation.strip().split("\n", 1)[0] or case.finding.gb_type
    if category is None:
        return f"At `{case.text}`, PyTorch says: {said}"
    if _is_fine_in_eager(case, category):
        return (
            f"Dynamo ran `{case.text}` on fake tensors to trace it, and that raised an error; in "
            f"eager mode it returned. PyTorch says: {said}"
        )
    return f"{category.why} It happens at `{case.text}`. PyTorch says: {said}"


def _is_fine_in_eager(case: BreakCase, category: Category) -> bool:
    """A call is wrong only if eager mode raises too."""
    return category.id == _RAISED_IN_EAGER and case.finding.returned


def _general_remedies(case: BreakCase, category: Category | None) -> list[Remedy]:
    if category is not None and _is_fine_in_eager(case, category):
        return [
            judgement(
                f"Look at what `{case.text}` is given: while Dynamo traces, sizes that vary are "
                "symbolic, and tensors hold no numbers. Otherwise, keep the call out of "
                f"`{case.function}`."
            ),
            upgrade(f"A newer PyTorch may trace `{case.text}`."),
        ]
    fix = category.fix if category is not None else "Keep it out of compiled code."
    place = f"At `{case.text}` in `{case.function}`"
    remedies = [judgement(f"{place}, {fix[0].lower()}{fix[1:]}")]
    if category is not None and "upgrade" in category.means:
        remedies.append(
            upgrade(
                f"A newer PyTorch may trace `{case.text}`. If it doesn't, report it with this line."
            )
        )
    return remedies
