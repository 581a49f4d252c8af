"""Why the later of two runs compiled what the earlier one had compiled already.

Torch finds compiled code under a key made of many parts. Both runs' looks into its caches for the
same graph are held against each other, part by part.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

import msgspec

from compilescope.knowledge.analysis.cache_lookups import Lookup, bypass, cache_lookups
from compilescope.record.bodies import SourceSeen
from compilescope.record.cache_key import KeyPart
from compilescope.record.fingerprint import relative_file
from compilescope.record.run import Run

Kind = Literal["source", "graph", "inputs", "configuration", "torch", "device", "environment"]
_KINDS: dict[str, Kind] = {
    "gm": "graph",
    "user_defined_triton_source": "source",
    "triton_kernel_source_codes": "source",
    "example_inputs": "inputs",
    "inputs_to_check": "inputs",
    "torch_version": "torch",
    "system_info": "device",
    "default_cuda_device_index": "device",
    "cpp_runtime_thread_count": "environment",
    "triton_version": "torch",
    "triton_source": "source",
    "triton_signature": "inputs",
    "triton_constants": "inputs",
    "triton_attributes": "inputs",
    "triton_target": "device",
    "triton_backend": "environment",
    "triton_environment": "environment",
}
"""Torch's names for parts of a key. All others are settings of some sort."""
_ORDER: tuple[Kind, ...] = (
    "torch", "device", "environment", "configuration", "source", "inputs", "graph",
)  # fmt: skip
"""What other parts may follow from comes first."""
_OF_INPUTS = ("static_input_idxs",)
_KEY = re.compile(r"[a-z2-7]{40,}|[0-9a-f]{64}")
"""As torch or Triton writes one. A redacted run's are numbered: they say nothing to another's."""
_COMMENT = re.compile(r"^[ \t]*#.*$", re.M)

Why = Literal["key", "absent", "guards", "bypass", "new", "unknown"]


class ChangedPart(msgspec.Struct, frozen=True, kw_only=True):
    """One part of the key that differs."""

    kind: Kind
    name: str
    """Torch's: `inductor_config[max_autotune]`; of a source its file."""
    before: str = ""
    after: str = ""
    """Empty where the value is too long to be kept."""


class CacheMiss(msgspec.Struct, frozen=True, kw_only=True):
    """A look into a cache that found nothing in the later run."""

    cache: str
    direction: str
    file: str
    line: int
    function: str
    graph: int
    """Which graph of the function, counted from 1."""
    before: str
    """What the cache said in the earlier run: `hit`, `miss` or `bypass`; empty if never asked."""
    after: str
    why: Why
    parts: tuple[ChangedPart, ...] = ()
    reason: str = ""
    """Of a bypass, in torch's words."""


class CacheComparison(msgspec.Struct, frozen=True, kw_only=True):
    """What torch's caches on disk held for two runs."""

    lookups: tuple[int, int]
    hits: tuple[int, int]
    missed: tuple[CacheMiss, ...] = ()


def compare_caches(before: Run, after: Run) -> CacheComparison | None:
    """None where neither run asked a cache."""
    old, new = cache_lookups(before), cache_lookups(after)
    if not old and not new:
        return None
    earlier = _paired(old)
    sources = _changed_sources(before, after)
    pairs = [(earlier.get(key), lookup) for key, lookup in _paired(new).items()]
    told = _told_parts(pairs, sources)
    return CacheComparison(
        lookups=(len(old), len(new)),
        hits=(_hits(old), _hits(new)),
        missed=tuple(
            _miss(was, now, told.get(now.graph, ())) for was, now in pairs if _found_nothing(now)
        ),
    )


_Pair = tuple[Lookup | None, Lookup]


def _hits(lookups: list[Lookup]) -> int:
    return sum(lookup.body.outcome == "hit" for lookup in lookups)


def _found_nothing(lookup: Lookup) -> bool:
    return lookup.body.outcome != "hit"


def _paired(lookups: list[Lookup]) -> dict[tuple[object, ...], Lookup]:
    """By what is the same in both runs; a graph that asks the same twice is counted on."""
    found: dict[tuple[object, ...], Lookup] = {}
    times: dict[tuple[object, ...], int] = {}
    for lookup in lookups:
        asked = (lookup.body.cache, lookup.direction, *lookup.graph)
        times[asked] = times.get(asked, 0) + 1
        key = (*asked, times[asked])
        found[key] = lookup
    return found


def _told_parts(
    pairs: list[_Pair], sources: dict[str, ChangedPart]
) -> dict[tuple[object, ...], tuple[ChangedPart, ...]]:
    """What differs of each graph: AOTAutograd's key is of the same things as Inductor's, and torch
    lists the parts of Inductor's alone."""
    told: dict[tuple[object, ...], dict[tuple[str, str], ChangedPart]] = {}
    known = [(was, now) for was, now in pairs if was is not None]
    for was, now in known:
        parts = told.setdefault(now.graph, {})
        for part in _changed_parts(was, now):
            parts.setdefault((part.kind, part.name), part)
    for was, now in known:
        parts = told[now.graph]
        if not parts and _other_graph(was, now):
            parts["graph", "gm"] = ChangedPart(kind="graph", name="gm")
        source = sources.get(str(now.graph[1]))
        if source is not None and ("graph", "gm") in parts:
            parts["source", source.name] = source
    return {
        graph: tuple(sorted(parts.values(), key=lambda part: _ORDER.index(part.kind)))
        for graph, parts in told.items()
    }


def _miss(was: Lookup | None, now: Lookup, parts: tuple[ChangedPart, ...]) -> CacheMiss:
    why = _why(was, now, parts)
    at = bypass(now) if why == "bypass" else None
    file, line, function = (at.file, at.line, at.function) if at is not None else now.place
    return CacheMiss(
        cache=now.body.cache,
        direction=now.direction,
        file=file,
        line=line,
        function=function,
        graph=now.number,
        before=was.body.outcome if was is not None else "",
        after=now.body.outcome,
        why=why,
        parts=parts if why == "key" else (),
        reason=at.reason if at is not None else "",
    )


def _why(was: Lookup | None, now: Lookup, parts: tuple[ChangedPart, ...]) -> Why:
    if now.body.outcome == "bypass":
        return "bypass"
    if was is None:
        return "new"
    keys = was.body.key, now.body.key
    if all(map(_KEY.fullmatch, keys)) and keys[0] == keys[1]:
        return "guards" if now.body.status == "guard_miss" else "absent"
    return "key" if parts else "unknown"


def _changed_parts(was: Lookup, now: Lookup) -> Iterator[ChangedPart]:
    old = {part.name: part for part in was.parts}
    new = {part.name: part for part in now.parts}
    if not old or not new:
        return
    for name in dict.fromkeys((*old, *new)):
        one, other = old.get(name), new.get(name)
        # The hash of the other parts by that name, where there are such.
        told = name == "system_info[hash]" and "system_info[device]" in {**old, **new}
        if _differ(one, other) and not told:
            yield ChangedPart(
                kind=_kind(one or other or KeyPart(name)),
                name=name,
                before=one.value if one is not None else "absent",
                after=other.value if other is not None else "absent",
            )


def _differ(one: KeyPart | None, other: KeyPart | None) -> bool:
    if one is None or other is None:
        return True
    if one.digest or other.digest:
        # A redacted run has no digests, and its words are not those of one that was not redacted.
        return bool(one.digest and other.digest) and one.digest != other.digest
    return one.value != other.value


def _kind(part: KeyPart) -> Kind:
    if part.group == "fx_kwargs" and part.item in _OF_INPUTS:
        return "inputs"
    return _KINDS.get(part.group, "configuration")


def _other_graph(was: Lookup, now: Lookup) -> bool:
    """Whether Dynamo traced another graph, of which AOTAutograd's key is made."""
    graphs = [
        _COMMENT.sub("", each.text(each.captured.text)) if each.captured is not None else ""
        for each in (was, now)
    ]
    return all(graphs) and graphs[0] != graphs[1]


def _changed_sources(before: Run, after: Run) -> dict[str, ChangedPart]:
    """Files that were edited between the runs, by their relative names."""
    texts = [
        {relative_file(body.file, run.header.root): body.artifact for _, body in run.of(SourceSeen)}
        for run in (before, after)
    ]
    return {
        file: ChangedPart(kind="source", name=file)
        for file, artifact in texts[1].items()
        if texts[0].get(file, artifact) != artifact
    }
