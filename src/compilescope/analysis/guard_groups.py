"""Compilations of one function side by side: which of their guards are equal, and what differs."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from compilescope.analysis.guarded_graphs import GuardedGraph
from compilescope.model.bodies import Guard
from compilescope.patterns import late

# Dynamo numbers the copies of a module's globals: no part of what is checked.
_COUNTER = late(r"(__builtins_dict___)\d+")
_MARKS = late(r", |[\[(\])]")
_Key = tuple[str, str]


class GuardDifference(msgspec.Struct, frozen=True):
    """A guard that every compilation has, each in its own way."""

    source: str
    kind: str
    values: dict[str, tuple[str, ...]]
    """The part that differs -> the compile IDs that check it."""


class ExtraGuards(msgspec.Struct, frozen=True):
    """Guards that only some compilations have."""

    compile_ids: tuple[str, ...]
    sources: tuple[str, ...]


class GuardGroup(msgspec.Struct, frozen=True):
    """The compilations of one function, or of one part of it."""

    graphs: tuple[GuardedGraph, ...]
    """Most guards first."""
    same: int
    """Guards that are equal in all of them."""
    differences: tuple[GuardDifference, ...] = ()
    extras: tuple[ExtraGuards, ...] = ()


def guard_groups(graphs: Iterable[GuardedGraph]) -> list[GuardGroup]:
    """In the order of each group's first graph. A graph whose guards are not at hand is alone."""
    groups: dict[tuple[object, ...], list[GuardedGraph]] = {}
    for number, graph in enumerate(graphs):
        key: tuple[object, ...] = (graph.file, graph.line, graph.function, graph.resumed_at)
        known = len(graph.all) == graph.guards
        groups.setdefault((*key, graph.rank) if known else (number,), []).append(graph)
    return [_group(members) for members in groups.values()]


def _group(graphs: list[GuardedGraph]) -> GuardGroup:
    if len(graphs) == 1:
        return GuardGroup((graphs[0],), graphs[0].guards)
    checked = {graph.compile_id or "?": _checks(graph.all) for graph in graphs}
    keys = dict.fromkeys(key for checks in checked.values() for key in checks)
    same, differences = 0, []
    missing: dict[tuple[str, ...], list[str]] = {}
    for key in keys:
        having = tuple(name for name, checks in checked.items() if key in checks)
        texts = {name: checked[name][key] for name in having}
        if len(having) < len(checked):
            missing.setdefault(having, []).append(key[0])
        elif len(set(texts.values())) == 1:
            same += 1
        else:
            differences.append(GuardDifference(*key, _values(texts)))
    extras = [ExtraGuards(names, tuple(dict.fromkeys(found))) for names, found in missing.items()]
    # Each of these names all tensors, so it differs as soon as any tensor is new.
    differences.sort(key=lambda each: each.kind.startswith("NO_TENSOR_ALIASING"))
    return GuardGroup(tuple(graphs), same, tuple(differences), tuple(extras))


def _checks(guards: Iterable[Guard]) -> dict[_Key, str]:
    """One entry a guard; several of a kind on one value are told apart by their order."""
    found: dict[_Key, str] = {}
    for guard in guards:
        source = _COUNTER.sub(r"\1", guard.source)
        kind, number = guard.kind, 1
        while (source, kind) in found:
            number += 1
            kind = f"{guard.kind} {number}"
        found[source, kind] = _COUNTER.sub(r"\1", ", ".join(guard.checks))
    return found


def _parts(text: str) -> list[str]:
    """Cut at the commas after which no bracket closes before another opens."""
    found: list[str] = []
    end, closes = len(text), False
    for mark in reversed(list(_MARKS.finditer(text))):
        if mark[0] != ", ":
            closes = mark[0] in "])"
        elif not closes:
            found.append(text[mark.end() : end])
            end = mark.start()
    return [*reversed([*found, text[:end]])]


def _values(texts: dict[str, str]) -> dict[str, tuple[str, ...]]:
    """Of each text the parts that are not the same in all."""
    parts = {name: _parts(text) for name, text in texts.items()}
    alike = len({len(each) for each in parts.values()}) == 1
    values: dict[str, tuple[str, ...]] = {}
    for name, mine in parts.items():
        shown = [
            part
            for number, part in enumerate(mine)
            if not alike or any(other[number] != part for other in parts.values())
        ]
        text = ", ".join(shown)
        if text.count(")") > text.count("("):
            text = text.removesuffix(")")  # Of a call whose beginning is the same in all.
        values[text] = (*values.get(text, ()), name)
    return values
