"""One run of one side: from the same state, the same arguments and the same random numbers, with
its backward pass and its optimizer's step.

All that a caller could see of it is kept: outputs, what was written into arguments, weights and
buffers, gradients, the weights after an optimizer's step. And which random numbers are next.
"""

from __future__ import annotations

import contextlib
import difflib
import os
import time
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import torch

from compilescope.base.errors import ToolError
from compilescope.base.package import PACKAGE
from compilescope.instrument.torchapi.trials.backends import root_error
from compilescope.instrument.torchapi.trials.reruns import from_here
from compilescope.measure.diff.runs.model_state import GRADIENT, State
from compilescope.measure.diff.runs.modes import Randomness, reseed, same_world
from compilescope.measure.tensors.copies import (
    CopiedArguments,
    Dtypes,
    gradient_of,
    is_plain,
    same_dtype,
)
from compilescope.measure.tensors.structure import argument_leaves, flatten, take_apart, tensors_of
from compilescope.measure.tensors.tolerances import is_same, is_same_value
from compilescope.record.fingerprint import fingerprint
from compilescope.record.stack import Frame, origin_of

_Optimizers = Callable[[list[torch.Tensor]], torch.optim.Optimizer]
_LR = 0.01
"""Chosen: ten times the default of torch.optim.SGD (1e-3), so that a step is larger beside the
rounding of the weights."""
_STEPS = 8
"""Eighths have three binary digits, as many as the narrowest float8 (e5m2) keeps."""


# The backward pass and the optimizer's step around a call, the same for both sides.


def _differentiate(output: Any, loss: Callable[[Any], Any] | None = None) -> None:
    """Run the backward pass of a loss, or of all outputs with fixed weights.

    The weights are no ones: the sum of a softmax has no gradient at all.
    """
    found = loss(output) if loss is not None else find_loss(output)
    if found is not None:
        if not isinstance(found, torch.Tensor) or found.numel() != 1:
            raise ToolError(
                f"The loss is {_described(found)}; it must be a tensor with one number."
            )
        found.backward()
        return
    tensors = list({id(leaf): leaf for leaf in _differentiable(output)}.values())
    if not tensors:
        raise ToolError(
            "There is nothing to train: no output requires a gradient.",
            hint="Leave out --train, or use a model with weights or inputs that require one.",
        )
    torch.autograd.backward(tensors, [weights_for(t, n) for n, t in enumerate(tensors)])


def find_loss(output: Any) -> torch.Tensor | None:
    """The loss that a model returns among its outputs, or as its only one."""
    if isinstance(output, dict):
        named = output.get("loss")
    else:
        named = getattr(output, "loss", None)
    if named is None:
        leaves = list(flatten(output).values())
        named = leaves[0] if len(leaves) == 1 else None
    if not isinstance(named, torch.Tensor) or named.numel() != 1 or not named.requires_grad:
        return None
    return named if named.is_floating_point() else None


def weights_for(output: torch.Tensor, number: int) -> torch.Tensor:
    """Eighths from -1 to 1, which every precision holds exactly; the same in every run."""
    generator = torch.Generator().manual_seed(number)
    steps = torch.randint(1, _STEPS + 1, output.shape, generator=generator, device="cpu")
    signs = torch.randint(0, 2, output.shape, generator=generator, device="cpu") * 2 - 1
    return (steps * signs / _STEPS).to(output.dtype).to(output.device)


def _differentiable(output: Any) -> Iterable[torch.Tensor]:
    for leaf in flatten(output).values():
        if isinstance(leaf, torch.Tensor) and leaf.requires_grad:
            yield leaf


def find_optimizer(wanted: Any = None) -> _Optimizers:
    """From a name of torch.optim, a class, or a function of the parameters; SGD by default."""
    if wanted is None:
        return lambda parameters: torch.optim.SGD(parameters, lr=_LR)
    if isinstance(wanted, str):
        kinds = {
            name.lower(): kind
            for name, kind in vars(torch.optim).items()
            if isinstance(kind, type) and issubclass(kind, torch.optim.Optimizer)
        }
        kind = kinds.get(wanted.lower())
        if kind is None or kind is torch.optim.Optimizer:
            near = difflib.get_close_matches(wanted.lower(), kinds, n=3)
            hint = f"Did you mean {' or '.join(near)}?" if near else ""
            raise ToolError(f"torch.optim has no optimizer named {wanted!r}.", hint=hint)
        return lambda parameters: kind(parameters, lr=_LR)
    if not callable(wanted):
        raise ToolError(
            f"The optimizer is {_described(wanted)}; it must be a torch.optim name, a class or "
            "a function of the parameters."
        )
    return _checked(wanted)


def _checked(make: Callable[..., Any]) -> _Optimizers:
    def made(parameters: list[torch.Tensor]) -> torch.optim.Optimizer:
        given = make(parameters)
        if not isinstance(given, torch.optim.Optimizer):
            raise ToolError(f"The optimizer function returned {_described(given)}.")
        return given

    return made


def _described(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return f"a tensor of {list(value.shape)}"
    return "None" if value is None else f"an object of type {type(value).__name__}"


Around = Callable[[], contextlib.AbstractContextManager[Any]]
ValueKind = Literal["output", "change", "gradient", "step", "structure"]
AFTER = " after the call"
STEPPED = " after the step"


class TrialValue(NamedTuple):
    """One leaf of what a run gave."""

    kind: ValueKind
    leaf: Any


@dataclass
class TrialPlan:
    """What every run of a comparison does."""

    model: Any
    state: State
    arguments: CopiedArguments
    randomness: Randomness
    train: bool = False
    loss: Callable[[Any], Any] | None = None
    optimizer: _Optimizers = field(default_factory=find_optimizer)
    input_gradients: bool = False
    """Inputs require gradients, whether they did or not."""
    calls: int = 1
    """More than one, without a restored state between: for a model that writes into its own."""

    def before(self, path: str) -> Any:
        """What an argument or a part of the state was before the run, `MISSING` if it was not."""
        name = path.removesuffix(AFTER).split(": ", 1)[-1]
        leaves = argument_leaves(self.arguments.args, self.arguments.kwargs)
        return leaves[name] if name in leaves else self.state.before(name)


@dataclass
class TrialOutcome:
    """What one run gave."""

    values: dict[str, TrialValue] = field(default_factory=dict)
    containers: dict[str, str] = field(default_factory=dict)
    error: BaseException | None = None
    randomness: Randomness | None = None
    """The state of the generators after it."""
    seconds: float = 0.0
    wrote_state: bool = False
    """It left the model's own state changed."""


def run(
    plan: TrialPlan,
    call: Callable[..., Any],
    *,
    around: Around = contextlib.nullcontext,
    dtypes: Dtypes = same_dtype,
    seed: int | None = None,
    nudged: bool = False,
) -> TrialOutcome:
    """`around` is entered whenever code of the program runs, and not for what we do ourselves.
    `seed` draws other random numbers than the other runs do. `nudged`: inputs and weights are off
    by the smallest amount that there is."""
    outcome = TrialOutcome()
    # What a run changes stays so until the next one begins, or the comparison ends.
    plan.state.restore()
    with same_world():
        plan.randomness.restore()
        if seed is not None:
            reseed(seed)
        step = _Step(plan, call, outcome, around, dtypes, nudged)
        if nudged:
            _nudge(plan.state.reachable.tensors.values())
        started = time.perf_counter()
        try:
            step.run()
        except _ProgramRaised as raised:
            outcome.error = raised.error
        outcome.seconds = time.perf_counter() - started
        outcome.randomness = Randomness()
    return outcome


class _ProgramRaised(Exception):
    """The program, its backend or its optimizer raised."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(str(error))
        self.error = error


class _Step:
    """The run itself."""

    def __init__(
        self,
        plan: TrialPlan,
        call: Callable[..., Any],
        outcome: TrialOutcome,
        around: Around,
        dtypes: Dtypes,
        nudged: bool,
    ) -> None:
        self._plan = plan
        self._call = call
        self._outcome = outcome
        self._around = around
        self._dtypes = dtypes
        self._nudged = nudged

    def run(self) -> None:
        for number in range(self._plan.calls):
            args, kwargs = self._arguments()
            output = self._theirs(lambda: self._call(*args, **kwargs))  # noqa: B023
            prefix = f"call {number + 1}: " if number else ""
            self._keep_output(output, prefix)
            self._keep_arguments(args, kwargs, prefix)
            if self._plan.train:
                break
        if self._plan.train:
            self._train(output, args, kwargs)
        else:
            self._keep_changes()

    def _theirs(self, function: Callable[[], Any]) -> Any:
        """Run what is not ours."""
        try:
            with self._around():
                return function()
        except (Exception, SystemExit) as error:  # The border to the program and its backend.
            raise _ProgramRaised(error) from error

    def _arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        if self._plan.train:
            self._plan.state.forget_gradients()
        made = self._plan.arguments.copied(
            self._dtypes, gradients=self._plan.input_gradients, forget=self._plan.train
        )
        if self._nudged:
            _nudge(tensors_of(made))
        return made

    def _train(self, output: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        plan = self._plan
        self._theirs(lambda: _differentiate(output, plan.loss))
        parameters = plan.state.parameters
        for name, tensor in parameters.items():
            if tensor.grad is not None:
                self._keep(f"{GRADIENT}{name}", "gradient", tensor.grad)
        for name, leaf in argument_leaves(args, kwargs).items():
            if isinstance(leaf, torch.Tensor) and leaf.is_leaf and leaf.grad is not None:
                self._keep(f"{GRADIENT}{name}", "gradient", leaf.grad)
        self._keep_changes()
        trained = [tensor for tensor in parameters.values() if tensor.grad is not None]
        if not trained:
            return
        self._theirs(lambda: plan.optimizer(trained).step())
        for name, tensor in parameters.items():
            if tensor.grad is not None:
                self._keep(f"{name}{STEPPED}", "step", tensor)
        # A backend that keeps a weight of before the step is found out by the next call.
        args, kwargs = self._arguments()
        output = self._theirs(lambda: self._call(*args, **kwargs))
        for path, leaf in flatten(output).items():
            self._keep(f"{path}{STEPPED}", "step", leaf)

    def _keep_output(self, output: Any, prefix: str) -> None:
        apart = take_apart(output, f"{prefix}output")
        self._outcome.containers.update(apart.containers)
        for path, leaf in apart.leaves.items():
            self._keep(path, "output", leaf)

    def _keep_arguments(self, args: Any, kwargs: Any, prefix: str) -> None:
        """What was written into them."""
        before = argument_leaves(self._plan.arguments.args, self._plan.arguments.kwargs)
        for name, leaf in argument_leaves(args, kwargs).items():
            earlier = before.get(name)
            if name not in before or _differs(leaf, earlier):
                self._keep(f"{prefix}{name}{AFTER}", "change", leaf)
            if not self._plan.train and _differs(_gradient(leaf), _gradient(earlier)):
                self._keep(f"{prefix}grad of {name}{AFTER}", "change", _gradient(leaf))

    def _keep_changes(self) -> None:
        for name, leaf in self._plan.state.changes().items():
            if not (self._plan.train and name.startswith(GRADIENT)):
                self._outcome.wrote_state = True
                self._keep(f"{name}{AFTER}", "change", leaf)

    def _keep(self, path: str, kind: ValueKind, leaf: Any) -> None:
        # It may lie in memory that the next run writes into.
        kept = leaf.detach().clone() if isinstance(leaf, torch.Tensor) else leaf
        self._outcome.values[path] = TrialValue(kind, kept)


def _gradient(leaf: Any) -> torch.Tensor | None:
    return gradient_of(leaf) if isinstance(leaf, torch.Tensor) else None


def _nudge(tensors: Iterable[torch.Tensor]) -> None:
    generator = torch.Generator().manual_seed(0)
    for tensor in tensors:
        if tensor.is_floating_point() and is_plain(tensor) and not tensor.is_inference():
            signs = torch.randint(0, 2, tensor.shape, generator=generator, device="cpu") * 2.0 - 1.0
            factor = 1 + signs.to(torch.float64) * torch.finfo(tensor.dtype).eps
            with torch.no_grad():
                tensor.copy_(tensor.to(torch.float64) * factor.to(tensor.device))


def _differs(now: Any, before: Any) -> bool:
    if isinstance(now, torch.Tensor) and isinstance(before, torch.Tensor):
        same = now if now.dtype is before.dtype or now.is_quantized else now.to(before.dtype)
        return not is_same(same.detach(), before.detach())
    return not is_same_value(now, before, unclear=True)


_LONGEST = 300
"""Letters. Chosen: one sentence of an error; some carry a compiler's whole log."""


def describe_failure(error: BaseException, *, marked: bool = True) -> str:
    """`marked`: with its fingerprint."""
    inner = root_error(error)
    if isinstance(inner, ToolError):
        return inner.message
    said = " ".join(str(inner).split())
    said = said if len(said) <= _LONGEST else said[:_LONGEST] + "..."
    kind = type(inner).__name__
    frame = _raising_frame(inner)
    place = (
        f" ({from_here(frame.file)}:{frame.line} in {frame.function})" if frame is not None else ""
    )
    mark = f" [{_failure_fingerprint(error)}]" if marked else ""
    return f"{kind}: {said}{place}{mark}" if said else f"{kind}{place}{mark}"


def _failure_fingerprint(error: BaseException) -> str:
    """The same for the same failure, whatever the machine and the line number."""
    inner = root_error(error)
    return fingerprint(f"raised-{type(inner).__name__}", _raising_frame(inner), os.getcwd())


def _raising_frame(error: BaseException) -> Frame | None:
    """The innermost line that is not torch's, nor ours if there is another."""
    frames = [
        Frame(f.filename, f.lineno or 0, f.name, source=f.line or "", origin=origin_of(f.filename))
        for f in traceback.extract_tb(error.__traceback__)
    ]
    ours = os.path.join(PACKAGE, "")
    theirs = [f for f in frames if f.origin in ("user", "library") and not f.file.startswith(ours)]
    return theirs[-1] if theirs else None
