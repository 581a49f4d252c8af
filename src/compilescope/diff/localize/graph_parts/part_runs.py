"""Runs a part of a graph: by the reference, in float64, with other roundings, or compiled.

Every run starts from copies of the same values and the same random numbers, in the same modes.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.fx import Graph, GraphModule

from compilescope.diff.localize.graph_parts.part_values import PartValues, as_in_program
from compilescope.diff.localize.graph_parts.parts import GraphPart, is_dynamic, value_of
from compilescope.diff.runs.modes import CallModes, RandomState, kept_random_state
from compilescope.tensors.copies import copied_values
from compilescope.torchapi.compilation.current import symbolic_inputs
from compilescope.torchapi.compilation.fresh import uncached
from compilescope.torchapi.trials.reruns import Jitter, NotReplayable, Tape, Widening, wide_dtype
from compilescope.torchapi.trials.survey import Saturation, Survey


@dataclass
class Results:
    """All that a run gave."""

    outputs: list[Any] = field(default_factory=list)
    after: list[Any] = field(default_factory=list)
    """The inputs once it has run: it may have written into them."""
    gradients: list[Any] | None = None
    """Of the inputs; None where there was no backward pass."""


@dataclass
class Reference:
    """What the part should give, and what bears on how near another run can come to it."""

    results: Results
    reduction: int | None = None
    tape: Tape | None = None
    overflowing: bool = False
    """It casts numbers to integers that cannot hold them: any answer is right."""


@dataclass(frozen=True)
class PartCall:
    """One call of a part."""

    values: PartValues
    ambient: CallModes
    cotangents: tuple[Any, ...] | None = None
    """For each result what comes back to it; None: no backward pass."""


def run_part(function: Callable[..., Any], occasion: PartCall, mode: Any = None) -> Results:
    """What the function raises goes to the caller."""
    return _run(function, occasion, copied_values(occasion.values.values), mode)


def run_eagerly(part: GraphPart, occasion: PartCall, mode: Any = None) -> Results:
    """By the reference."""
    module = part.eager if not _has_constants(part) else part.module()
    if part.writes:
        return run_part(module.forward, occasion, mode)
    return _run(module.forward, occasion, list(occasion.values.values), mode)


def _has_constants(part: GraphPart) -> bool:
    return any(node.op in ("get_attr", "call_module") for node in part.graph.nodes)


def run_reference(part: GraphPart, occasion: PartCall) -> Reference:
    survey = Survey()
    try:
        results = run_eagerly(part, occasion, survey)
    except (NotImplementedError, RuntimeError):
        # An operator over operators may not let itself be watched.
        return Reference(run_eagerly(part, occasion))
    reduction = survey.reduction if survey.reduction > 1 else None
    return Reference(results, reduction, survey.tape, bool(survey.overflowing))


def run_exact(part: GraphPart, occasion: PartCall, reference: Reference) -> Results | None:
    """In float64; None where that cannot be done."""
    given = occasion.values.values
    values = [_wide(value) for value in (copied_values(given) if part.writes else given)]
    cotangents = occasion.cotangents
    wide = cotangents and tuple(_wide(value) for value in cotangents)
    occasion = PartCall(occasion.values, occasion.ambient, wide)
    try:
        module = part.module() if _has_constants(part) else part.eager
        return _run(module.forward, occasion, values, Widening(reference.tape))
    except (NotReplayable, NotImplementedError, RuntimeError, TypeError, ValueError, IndexError):
        return None


def run_saturated(part: GraphPart, occasion: PartCall) -> Results | None:
    try:
        return run_eagerly(part, occasion, Saturation())
    except (NotImplementedError, RuntimeError):
        return None


def _wide(value: Any) -> Any:
    if not isinstance(value, torch.Tensor) or value.is_quantized:
        return value
    needs = value.requires_grad
    made = value.detach().to(wide_dtype(value.dtype))
    if isinstance(value, torch.nn.Parameter):
        return torch.nn.Parameter(made, requires_grad=needs)
    return made.requires_grad_(needs) if needs else made


def _run(function: Callable[..., Any], occasion: PartCall, leaves: list[Any], mode: Any) -> Results:
    train = occasion.cotangents is not None
    with (
        kept_random_state(),
        occasion.ambient.entered(),
        mode if mode is not None else contextlib.nullcontext(),
    ):
        occasion.values.random.restore()
        given = as_in_program(leaves)
        found = function(*given)
        outputs = list(found) if isinstance(found, (tuple, list)) else [found]
        kept = Results([_kept(value) for value in outputs], [_kept(value) for value in given])
        if train:
            kept.gradients = _gradients(outputs, leaves, occasion.cotangents or ())
    return kept


def _kept(value: Any) -> Any:
    # It may lie in memory that the next run writes into.
    return value.detach().clone() if isinstance(value, torch.Tensor) else value


def _gradients(
    outputs: Sequence[Any], leaves: Sequence[Any], cotangents: Sequence[Any]
) -> list[Any]:
    wanted = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor) and leaf.requires_grad]
    unique = list({id(leaf): leaf for leaf in wanted}.values())
    pairs = [
        (output, cotangent.to(output.dtype))
        for output, cotangent in zip(outputs, cotangents, strict=False)
        if cotangent is not None and isinstance(output, torch.Tensor) and output.requires_grad
    ]
    found: dict[int, Any] = {}
    if pairs and unique:
        gradients = torch.autograd.grad(
            [output for output, _ in pairs], unique, [c for _, c in pairs], allow_unused=True
        )
        found = {id(leaf): g for leaf, g in zip(unique, gradients, strict=True)}
    return [_kept(found.get(id(leaf))) for leaf in leaves]


def run_jittered(part: GraphPart, occasion: PartCall, seed: int) -> Results | None:
    """With other roundings; None where that cannot be done."""
    try:
        return run_eagerly(part, occasion, Jitter(seed))
    except (NotImplementedError, RuntimeError):
        return None


def compile_part(
    backend: Callable[..., Any], part: GraphPart, occasion: PartCall
) -> Callable[..., Any]:
    """What the backend made. What it raises goes to the caller."""
    values = copied_values(occasion.values.values)
    made: Callable[..., Any]
    with kept_random_state(), occasion.ambient.entered(), uncached():
        occasion.values.random.restore()
        examples = as_in_program(values)
        if not is_dynamic(part):
            made = backend(part.module(), examples)
        else:
            noted = [value_of(given.node) for given in part.inputs]
            with symbolic_inputs(noted, examples) as symbolic:
                made = backend(part.module(), symbolic)
    return made


_COUNT = 64
"""Numbers that both draw. Chosen: that so many agree by chance is out of the question."""


def draws_as_eager(backend: Callable[..., Any], device: torch.device) -> bool | None:
    """None where it cannot tell. Costs one compilation."""
    graph = Graph()
    value = graph.placeholder("value")
    graph.output((graph.call_function(torch.rand_like, (value,)),))
    module = GraphModule(torch.nn.Module(), graph)
    example = torch.zeros(_COUNT, device=device)
    with kept_random_state(), torch.no_grad():
        state = RandomState()
        wanted = torch.rand_like(example)
        state.restore()
        try:
            function = backend(module, [example])
            state.restore()
            [given] = function(example)
        except Exception:  # The border to the backend.
            return None
    return bool(torch.equal(wanted, given))
