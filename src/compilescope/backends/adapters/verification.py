"""Runs a model eagerly and through an adapter in checking mode, and says what was found."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import msgspec
import torch
from torch.fx import GraphModule

from compilescope.backends.adapters.comparison import Opinion, compare_numbers, widened
from compilescope.backends.islands.records import AdapterReport, WrongnessCheck
from compilescope.instrument.torchapi.graphs.values import leaves_of, map_tensors
from compilescope.instrument.torchapi.guards.cost import compiled_apart
from compilescope.record.body import Verdict

OUTPUTS = "model-outputs"
GRADIENTS = "model-gradients"
COMPILED = "compiled-at-all"


class AdapterVerification(msgspec.Struct, frozen=True, kw_only=True):
    """What was looked at, and what came of it."""

    report: AdapterReport
    checks: tuple[WrongnessCheck, ...]
    """Of the whole model, then of each island."""

    @property
    def verdict(self) -> Verdict:
        """`pass` only where every check passed."""
        found = {check.verdict for check in self.checks}
        if "fail" in found:
            return "fail"
        return "unknown" if "unknown" in found or not found else "pass"

    @property
    def failures(self) -> tuple[WrongnessCheck, ...]:
        return tuple(check for check in self.checks if check.verdict == "fail")

    @property
    def unknown(self) -> tuple[WrongnessCheck, ...]:
        return tuple(check for check in self.checks if check.verdict == "unknown")


class CheckedBackend(Protocol):
    """A backend in checking mode, as far as it is looked at here."""

    @property
    def tolerance(self) -> float | None: ...
    @property
    def random(self) -> str: ...
    @property
    def report(self) -> AdapterReport: ...
    def __call__(
        self, gm: GraphModule, inputs: Sequence[Any], **options: Any
    ) -> Callable[..., Any]: ...


def verify(
    adapter: CheckedBackend,
    model: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
) -> AdapterVerification:
    eager, tested = _copies(model)
    compiled = compiled_apart(tested, adapter, {})
    checks: list[WrongnessCheck] = []
    given = (tuple(args), dict(kwargs))
    with torch.random.fork_rng(devices=[]):
        state = torch.get_rng_state()
        rounds = [given, _other_inputs(model, given)]
        torch.set_rng_state(state)
        for inputs in _twice_where_unclear(rounds, adapter):
            torch.set_rng_state(state)
            wanted = _run(eager, eager, inputs)
            exact = _ExactModel(model, inputs, drew=not torch.equal(torch.get_rng_state(), state))
            torch.set_rng_state(state)
            found = _run(compiled, tested, inputs)
            checks += _compared(wanted, found, exact, adapter)
    report = adapter.report
    if not report.graphs:
        why = "Dynamo passed no graph to the adapter: nothing was compiled"
        checks.append(WrongnessCheck(name=COMPILED, verdict="unknown", reason=why))
    return AdapterVerification(report=report, checks=(*_worst(checks), *report.checks))


def _other_inputs(model: Callable[..., Any], given: Any) -> Any:
    """Other numbers that the model takes as well.

    Integers and truths may be indices, lengths or masks, and mean nothing in another order: where
    the model fails on such, or gives no numbers, they stay as they are.
    """
    other = map_tensors(_changed, given)
    if all(t.is_floating_point() or t.is_complex() for t in _tensors(given)):
        return other
    trials = zip(_copies(model), (given, other), strict=True)
    try:
        with torch.no_grad():
            results = [_run(fresh, fresh, each)[0] for fresh, each in trials]
    except Exception:  # The model is the user's: it may raise anything.
        return map_tensors(_changed_number, given)
    was_finite, is_finite = (all(map(_is_finite, each)) for each in results)
    return other if is_finite or not was_finite else map_tensors(_changed_number, given)


def _is_finite(value: torch.Tensor) -> bool:
    return not value.is_floating_point() or bool(value.isfinite().all())


def _twice_where_unclear(rounds: list[Any], adapter: CheckedBackend) -> Iterator[Any]:
    """A model may compile anew for the second call: then no graph has seen two."""
    yield from rounds
    if any(check.verdict == "unknown" for check in adapter.report.checks):
        yield from rounds


def _copies(model: Callable[..., Any]) -> tuple[Any, Any]:
    """Buffers change as a model runs: the caller's stay as they are."""
    if not isinstance(model, torch.nn.Module):
        return model, model
    return copy.deepcopy(model), copy.deepcopy(model)


def _run(function: Any, owner: Any, inputs: Any) -> tuple[list[Any], list[Any]]:
    """The results, and the gradients where something asks for any."""
    args, kwargs = map_tensors(_own, inputs)
    parameters = list(owner.parameters()) if isinstance(owner, torch.nn.Module) else []
    sources = [t for t in (*parameters, *_tensors((args, kwargs))) if t.requires_grad]
    for source in sources:
        source.grad = None
    results = list(_tensors(function(*args, **kwargs)))
    if torch.is_grad_enabled() and sources:
        losses = [_loss(r) for r in results if r.requires_grad and r.is_floating_point()]
        if losses:
            sum(losses[1:], losses[0]).backward()
    return [r.detach() for r in results], [s.grad for s in sources if s.grad is not None]


def _loss(result: torch.Tensor) -> torch.Tensor:
    """Every number counts, and each otherwise: a plain sum of a softmax has no gradient."""
    weights = torch.linspace(0.5, 1.5, max(result.numel(), 1), dtype=torch.float64, device="cpu")
    return (result.flatten() * weights.to(result)[: result.numel()]).sum()


class _ExactModel:
    """The model run in float64, once it is asked for."""

    def __init__(self, model: Callable[..., Any], inputs: Any, drew: bool) -> None:
        self._model, self._inputs = model, inputs
        # Random numbers of another width are other numbers.
        self._results: tuple[list[Any], list[Any]] | None = ([], []) if drew else None

    def result(self, kind: int, number: int) -> torch.Tensor | None:
        if self._results is None:
            self._results = self._run()
        found = self._results[kind]
        return found[number] if number < len(found) else None

    def _run(self) -> tuple[list[Any], list[Any]]:
        if not isinstance(self._model, torch.nn.Module):
            return [], []
        try:
            wide = copy.deepcopy(self._model).double()
            return _run(wide, wide, map_tensors(widened, self._inputs))
        except Exception:  # A model may name a dtype that does not go with the others.
            return [], []


def _own(value: torch.Tensor) -> torch.Tensor:
    return value.detach().clone().requires_grad_(value.requires_grad)


def _changed(value: torch.Tensor) -> torch.Tensor:
    """Other numbers of the same kind: integers stay among those that were given."""
    if value.is_floating_point() or value.is_complex() or not value.dim():
        return _changed_number(value)
    return value.flip(tuple(range(value.dim())))


def _changed_number(value: torch.Tensor) -> torch.Tensor:
    if not (value.is_floating_point() or value.is_complex()):
        return value.clone()
    with torch.no_grad():
        other = value.detach() * 1.25
    return other.requires_grad_(value.requires_grad)


def _compared(
    wanted: tuple[list[Any], list[Any]],
    found: tuple[list[Any], list[Any]],
    exact: _ExactModel,
    adapter: CheckedBackend,
) -> Iterator[WrongnessCheck]:
    for kind, name in enumerate((OUTPUTS, GRADIENTS)):
        one, other = found[kind], wanted[kind]
        if len(one) != len(other):
            words = f"{len(one)} tensors; {len(other)} in eager mode"
            yield WrongnessCheck(name=name, verdict="fail", reason=words)
            continue
        for number, (given, asked) in enumerate(zip(one, other, strict=True)):
            ask = functools.partial(exact.result, kind, number)
            opinion = compare_numbers(given, asked, adapter.tolerance, ask)
            if adapter.random == "device" and opinion.verdict == "fail":
                opinion = Opinion(
                    "unknown", f"{opinion.reason}; the device draws its own random numbers"
                )
            reason = f"{name.removeprefix('model-')[:-1]} {number}: {opinion.reason}"
            yield WrongnessCheck(name=name, verdict=opinion.verdict, reason=reason)


def _worst(checks: Sequence[WrongnessCheck]) -> Iterator[WrongnessCheck]:
    """One of each kind."""
    order: dict[Verdict, int] = {"fail": 0, "unknown": 1, "pass": 2}
    for name in dict.fromkeys(check.name for check in checks):
        same = [check for check in checks if check.name == name]
        worst = min(same, key=lambda check: order[check.verdict])
        yield msgspec.structs.replace(worst, calls=len(same))


def _tensors(tree: Any) -> Iterator[torch.Tensor]:
    return (leaf for leaf in leaves_of(tree) if isinstance(leaf, torch.Tensor))
