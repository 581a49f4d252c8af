"""A model made ready for a benchmark: seeded, on its device, in its dtype, with a step to run."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from compilescope.base.errors import ToolError
from compilescope.base.objects import call_theirs, load_object, names_file
from compilescope.measure.bench.built import Loss, Model, count_parameters, squares_loss

if TYPE_CHECKING:
    from compilescope.measure.bench.protocol import Spec

EAGER = "eager"
"""Without torch.compile at all: what every other backend is compared with."""
MOCK = ("mock", "compilescope_mock")
_SHORT_NAMES = {"mini": "compilescope_mini"}
_RATE = 1e-4
"""Of the optimizer. Chosen: small, so that hundreds of steps on one batch stay finite."""
_LACKING = re.compile(r"not implemented for|not support|unsupported|same dtype", re.IGNORECASE)
_NARROW = re.compile(r"half|float16|float8|low precision", re.IGNORECASE)


class PreparedModel:
    """A model and its inputs. `step()` is what is timed."""

    def __init__(
        self,
        model: nn.Module,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        *,
        spec: Spec,
        loss: Loss,
        batch: int,
    ) -> None:
        self.model = model
        self.args = args
        self.kwargs = kwargs
        self.spec = spec
        self.loss = loss
        self.batch = batch
        """Samples in a step."""
        self.parameters = count_parameters(model)
        self._call: Callable[..., Any] = model
        self._optimizer: torch.optim.Optimizer | None = None
        if spec.mode == "training" and self.parameters:
            self._optimizer = torch.optim.SGD(model.parameters(), lr=_RATE)

    def step(self) -> Any:
        """One call without gradients, or one training step: its output, or its loss."""
        try:
            return self._train() if self.spec.mode == "training" else self._infer()
        except (RuntimeError, NotImplementedError) as error:
            raise self._explained(error) from error

    def compiled(self, backend: str, compile_mode: str = "") -> PreparedModel:
        """The same model and inputs with torch.compile. It shares its weights with this one.

        `eager` is the model as it is, without torch.compile.
        """
        if backend == EAGER:
            return self
        found = backend_for(backend, self.spec.constraints)
        options = {"mode": compile_mode} if compile_mode else {}
        ready = PreparedModel(
            self.model,
            self.args,
            self.kwargs,
            spec=self.spec,
            loss=self.loss,
            batch=self.batch,
        )
        ready._call = torch.compile(self.model, backend=found, **options)
        return ready

    def _infer(self) -> Any:
        with torch.no_grad():
            return self._call(*self.args, **self.kwargs)

    def _train(self) -> Tensor:
        loss = self.loss(self._call(*self.args, **self.kwargs))
        loss.backward()
        if self._optimizer is not None:
            self._optimizer.step()
            self._optimizer.zero_grad(set_to_none=True)
        return loss.detach()

    def _explained(self, error: Exception) -> Exception:
        """An operation that a device lacks in this dtype is nothing that a traceback explains."""
        spec = self.spec
        said = str(error)
        if spec.dtype == "float32" or not (_LACKING.search(said) and _NARROW.search(said)):
            return error
        said = " ".join(said.split())[:200]
        return ToolError(
            f"{spec.model} cannot run in {spec.dtype} on {spec.device}: {said}",
            hint="Use --dtype float32, or another device.",
        )


def prepare(model: Model, spec: Spec) -> PreparedModel:
    dtype = find_dtype(spec.dtype)
    check_device(spec.device)
    torch.manual_seed(spec.seed)
    built = model.build(spec.small, spec.batch or model.usual_batch(spec.small))
    module = call_theirs(
        lambda: built.model.to(device=spec.device, dtype=dtype),
        f"{spec.model} cannot be moved to {spec.device}",
    )
    training = spec.mode == "training"
    module.train(training)
    if training:
        _require_gradients(module, spec.model)
    else:
        # A graph that only hands a weight on would else look as if it had a backward pass.
        module.requires_grad_(False)
    return PreparedModel(
        module,
        _moved(built.args, spec.device, dtype),
        _moved(built.kwargs, spec.device, dtype),
        spec=spec,
        loss=built.loss or squares_loss,
        batch=_batch(spec, model, built.args, built.kwargs),
    )


def find_dtype(name: str) -> torch.dtype:
    """`bfloat16`, `torch.bfloat16`, `bf16`."""
    short = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32", "half": "float16"}
    plain = name.removeprefix("torch.")
    found = getattr(torch, short.get(plain, plain), None)
    if not isinstance(found, torch.dtype) or not found.is_floating_point:
        raise ToolError(
            f"{name!r} is not a floating-point dtype.", hint="Use float32, bfloat16 or float16."
        )
    return found


def backend_for(name: str, constraints: str = "") -> str | Callable[..., Any]:
    """What torch.compile is given: a name, or the function of `file.py:backend`. The mock backend
    checks against `constraints` and lets every graph through, so that it can be measured."""
    if names_file(name):
        found = load_object(name, "backend")
        if not callable(found):
            raise ToolError(f"{name} is not a backend (its type is {type(found).__name__}).")
        return found  # type: ignore[no-any-return]
    if name in MOCK:
        from compilescope.backends.mock.backend import MockBackend
        from compilescope.backends.mock.configuration import configure

        return MockBackend(configure(device=constraints or None, strict=False, repro=False))
    return _SHORT_NAMES.get(name, name)


def check_device(name: str) -> None:
    try:
        device = torch.device(name)
    except RuntimeError:
        raise ToolError(f"{name!r} is not a device.", hint="Use cpu or cuda.") from None
    if device.type == "cuda" and not torch.cuda.is_available():
        raise ToolError("No CUDA device is available here.", hint="Use --device cpu.")


def _require_gradients(module: nn.Module, name: str) -> None:
    for parameter in module.parameters():
        if parameter.is_floating_point():
            parameter.requires_grad_(True)
    if not any(parameter.requires_grad for parameter in module.parameters()):
        raise ToolError(f"{name} has no parameters to train.", hint="Use --mode inference.")


def _moved(value: Any, device: str, dtype: torch.dtype) -> Any:
    """Inputs on the device; only floating-point tensors change their dtype."""
    if isinstance(value, Tensor):
        return value.to(device=device, dtype=dtype if value.is_floating_point() else None)
    if isinstance(value, Mapping) and type(value) is dict:
        return {key: _moved(each, device, dtype) for key, each in value.items()}
    if type(value) in (tuple, list):
        return type(value)(_moved(each, device, dtype) for each in value)
    return value


def _batch(spec: Spec, model: Model, args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
    asked = spec.batch or model.usual_batch(spec.small)
    if asked:
        return asked
    tensors = [each for each in (*args, *kwargs.values()) if isinstance(each, Tensor)]
    return next((int(each.shape[0]) for each in tensors if each.dim()), 1)
