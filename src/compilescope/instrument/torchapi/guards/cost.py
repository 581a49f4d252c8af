"""What checking a cache entry's guards costs, as a whole and for each part of the tree.

torch hands over every guard tree the moment it is finished, with the locals it was made for: the
one moment at which all of them hold for sure. Whole trees are timed against an empty one; a part is
timed as the difference between two copies of the tree, one with it and one without.
"""

from __future__ import annotations

import heapq
import itertools
import math
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from compilescope.base.errors import ToolError
from compilescope.instrument.torchapi.capabilities import has
from compilescope.instrument.torchapi.compilation.current import current_compile_id
from compilescope.instrument.torchapi.compilation.fresh import to_compile
from compilescope.instrument.torchapi.guards.checks import child_nodes
from compilescope.instrument.torchapi.stacks import code_ref
from compilescope.knowledge.registry.capabilities import load_capabilities
from compilescope.record.guards import GuardCheck, GuardCost, GuardNode, without_comment

_BATCH = 50
"""Checks that are timed together. Chosen, as the numbers below: one check takes less than a clock
can tell; docs/guides/guards.md says how noisy the result is (about 20 ns)."""
_REPEATS = 15
"""Pairs of batches, of which the median counts."""
_PART_REPEATS = 15
"""Pairs of batches, of which the fastest count."""
_COLD_REPEATS = 5
"""Of torch's own measurement, which flushes the caches each time: few."""
_SECONDS = 3.0
"""For the parts of one tree. Chosen: the user waits inside a compilation; parts that are not
reached have no figure."""


_GUARD_TREES = "function/torch._dynamo.guards.guard_manager_testing_hook_fn"


def compiled_apart(function: Any, backend: Any, options: dict[str, Any]) -> Any:
    """`torch.compile` that takes no earlier compilation of the function for its own."""
    if has("argument/isolate_recompiles"):
        return torch.compile(
            to_compile(function), backend=backend, isolate_recompiles=True, **options
        )
    from torch._dynamo.backends.registry import lookup_backend

    inner = lookup_backend(backend)

    # In such a torch (2.11) entries are told apart by their backend; this one nobody else has.
    def own_backend(graph: Any, inputs: Any, **more: Any) -> Any:
        return inner(graph, inputs, **more)

    return torch.compile(function, backend=own_backend, **options)


@contextmanager
def measured_guards(fault: Callable[[str, BaseException], None]) -> Iterator[list[GuardCost]]:
    """Measure the guards of everything that is compiled within the block."""
    from torch._dynamo import guards

    if not has(_GUARD_TREES):
        seen = ", ".join(load_capabilities().seen.get(_GUARD_TREES, ()))
        raise ToolError("This torch does not expose its guard trees.", hint=f"These do: {seen}.")
    measured: list[GuardCost] = []

    def measure(manager: Any, f_locals: dict[str, Any], builder: Any) -> None:
        try:
            measured.append(_measure(manager.root, f_locals, builder))
        except Exception as error:  # The border of a hook.
            fault("guard-cost", error)

    before = guards.guard_manager_testing_hook_fn
    guards.guard_manager_testing_hook_fn = measure
    try:
        yield measured
    finally:
        guards.guard_manager_testing_hook_fn = before


def _measure(root: Any, f_locals: dict[str, Any], builder: Any) -> GuardCost:
    from torch._C._dynamo.guards import RootGuardManager, profile_guard_manager

    warm = _whole(root, RootGuardManager(), f_locals)
    cold = [profile_guard_manager(root, f_locals, 1) for _ in range(_COLD_REPEATS)]
    parts = _measure_parts(root, f_locals)
    parts[(root.get_source(),)] = round(warm, 1)
    tree = _tree(root, parts)
    nodes = tree.walk()
    code = getattr(builder, "f_code", None)
    return GuardCost(
        compile_id=current_compile_id(),
        frame=code_ref(code) if code is not None else None,
        tree=tree,
        warm_ns=round(warm, 1),
        cold_ns=round(statistics.median(cold) * 1000, 1),
        guards=sum(len(node.checks) for node in nodes),
        unmeasured=sum(node.total_ns is None for node in nodes),
    )


def _whole(root: Any, empty: Any, f_locals: dict[str, Any]) -> float:
    """Nanoseconds of one check of the tree: the median, less what an empty tree takes."""
    pairs = _batches(root, empty, f_locals, _REPEATS)
    return max(statistics.median(first - second for first, second in pairs), 0.0)


def _batches(
    one: Any, other: Any, f_locals: dict[str, Any], repeats: int
) -> list[tuple[float, float]]:
    """Nanoseconds a check of each, in turns, so that drift hits both."""
    return [(_batch(one.check, f_locals), _batch(other.check, f_locals)) for _ in range(repeats)]


def _batch(check: Callable[[Any], bool], f_locals: dict[str, Any]) -> float:
    now = time.perf_counter_ns
    start = now()
    for _ in itertools.repeat(None, _BATCH):
        check(f_locals)
    return (now() - start) / _BATCH


_Path = tuple[str, ...]


def _measure_parts(root: Any, f_locals: dict[str, Any]) -> dict[_Path, float]:
    """Path -> nanoseconds. The costliest parts are opened first, until the time is up."""
    if not hasattr(root, "clone_manager"):
        return {}
    found: dict[_Path, float] = {}
    deadline = time.monotonic() + _SECONDS
    order = itertools.count()
    open_parts = [(0.0, next(order), (root.get_source(),), root)]
    while open_parts:
        _, _, path, node = heapq.heappop(open_parts)
        for child in child_nodes(node):
            if time.monotonic() > deadline:
                return found
            below = (*path, child.get_source())
            cost = _part(root, set(path), child, f_locals)
            most = found.get(path, math.inf)
            if cost > most:  # A part of it cannot cost more: something else ran meanwhile.
                cost = min(most, _part(root, set(path), child, f_locals))
            found[below] = cost
            heapq.heappush(open_parts, (-cost, next(order), below, child))
    return found


def _part(root: Any, above: set[str], node: Any, f_locals: dict[str, Any]) -> float:
    """The way to the node and all below it, less the way alone."""
    below: set[str] = set()
    waiting = [node]
    while waiting:
        part = waiting.pop()
        below.add(part.get_source())
        waiting += child_nodes(part)
    with_part = root.clone_manager(lambda m: m.get_source() in above or m.get_source() in below)
    without = root.clone_manager(lambda m: m.get_source() in above)
    pairs = _batches(with_part, without, f_locals, _PART_REPEATS)
    # The fastest of each: a part is small beside the noise of a busy machine, which only adds.
    gap = min(first for first, _ in pairs) - min(second for _, second in pairs)
    return round(max(gap, 0.0), 1)


def _tree(node: Any, parts: dict[_Path, float], above: _Path = ()) -> GuardNode:
    source = node.get_source()
    path = (*above, source)
    children = tuple(_tree(child, parts, path) for child in child_nodes(node))
    total = parts.get(path)
    below = [child.total_ns for child in children]
    own = None
    if total is not None and None not in below:
        own = round(max(total - sum(ns for ns in below if ns is not None), 0.0), 1)
    leaves = [(type(leaf).__name__, leaf) for leaf in node.get_leaf_guards()]
    epilogue: list[Any] = getattr(node, "get_epilogue_lambda_guards", list)()
    leaves += [("SHAPE", leaf) for leaf in epilogue]
    return GuardNode(
        source=source,
        type="" if not above else _type_name(node),
        checks=tuple(
            GuardCheck(kind, tuple(without_comment(part) for part in leaf.verbose_code_parts()))
            for kind, leaf in leaves
        ),
        total_ns=total,
        own_ns=own,
        children=children,
    )


def _type_name(node: Any) -> str:
    kind = getattr(node, "get_type_of_guarded_value", lambda: None)()
    if kind is None:
        return ""
    return kind.__qualname__ if kind.__module__ == "builtins" else _qualified(kind)


def _qualified(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}".removeprefix("__main__.")
