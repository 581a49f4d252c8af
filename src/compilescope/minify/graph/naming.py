"""Names that are read easily: Dynamo's say where a value came from, at length."""

from __future__ import annotations

import keyword
import re

from msgspec.structs import replace

from compilescope.minify.graph.surgery import substituted
from compilescope.model.written_graph import Arg, Ref, WrittenGraph

_NOISE = re.compile(r"^l_|_(modules|parameters|buffers|stack0)(?=_)|_+$")
_SELF = re.compile(r"^(self|fn|args|kwargs|held)_+(?=[a-zA-Z])")
_LONGEST = 30


def readable(graph: WrittenGraph) -> WrittenGraph:
    """The same graph with shorter names for inputs, all different."""
    taken = {op.name for op in graph.ops} | {"self", "torch", "tensor", *graph.graphs}
    taken |= set(graph.imports)
    names: dict[str, str] = {}
    for each in graph.inputs:
        short = _short(each.name)
        fresh, number = short, 1
        while fresh in taken or keyword.iskeyword(fresh):
            number += 1
            fresh = f"{short}_{number}"
        taken.add(fresh)
        names[each.name] = fresh
    refs: dict[str, Arg] = {old: Ref(new) for old, new in names.items()}
    renamed = tuple(replace(each, name=names[each.name]) for each in graph.inputs)
    return replace(substituted(graph, refs), inputs=renamed)


def _short(name: str) -> str:
    short = name.strip("_")
    while True:
        less = _SELF.sub("", _NOISE.sub("", short)).strip("_")
        if less == short or not less or not less.isidentifier():
            break
        short = less
    short = short[-_LONGEST:].strip("_") if len(short) > _LONGEST else short
    return short if short.isidentifier() else f"input_{short}"
