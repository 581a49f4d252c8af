"""Runs a call without data, and notes the operators that it leads to.

Shadows are tried first, then torch's fake tensors.
"""

from __future__ import annotations

import contextlib
import functools
import logging
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

from compilescope.torchapi.calls.stand_ins import (
    Cast,
    Shadow,
    computed_shadow,
    fake_tensor,
    plain_shadow,
    shadow,
)
from compilescope.torchapi.calls.trial_sizes import TrialSizes, Unclear

aten = torch.ops.aten
_fake_log = logging.getLogger("torch._subclasses.fake_tensor")


class Seen(NamedTuple):
    """One operator, as it was dispatched."""

    op: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    result: Any


def rehearse(
    function: Callable[..., Any],
    args: Any,
    kwargs: Any,
    *,
    sizes: TrialSizes,
    at: int,
    expected: Any,
    in_place: bool = False,
) -> list[Seen]:
    """The operators that a call runs into. Unclear where it cannot be run without data."""
    failure = ""
    first = () if in_place else (shadow,)
    for make in (*first, computed_shadow, plain_shadow, fake_tensor):
        cast = Cast(sizes, at, make)
        given = cast.of(args), cast.of(kwargs)
        noting = Noting(functools.partial(cast.of, expected), cast.fake)
        with quietly(cast.fake), noting:
            try:
                function(*given[0], **given[1])
                return _without_replays(noting.seen) if make is computed_shadow else noting.seen
            except Exception as error:  # The border to torch: it may refuse for any reason.
                failure = f"{type(error).__name__}: {error}"
    raise Unclear(failure)


def _without_replays(seen: list[Seen]) -> list[Seen]:
    """Autograd repeats the views of what was changed in place, since a shadow has no storage."""
    changes = [at for at, each in enumerate(seen) if each.op._schema.is_mutable]
    if not changes:
        return seen
    end = changes[-1] + 1
    before = {each.op for each in seen[:end]}
    return [*seen[:end], *(each for each in seen[end:] if each.op not in before)]


@contextlib.contextmanager
def quietly(fake: FakeTensorMode | None) -> Iterator[None]:
    """Whoever watches operators in this thread does not see ours, and no log speaks of them."""
    with _disable_current_modes(), contextlib.ExitStack() as undo:
        if fake is not None:
            # torch logs it as an error if an operator refuses fake tensors. Here it is an answer.
            undo.callback(setattr, _fake_log, "disabled", _fake_log.disabled)
            _fake_log.disabled = True
            undo.enter_context(fake)
        yield


class Noting(TorchDispatchMode):  # type: ignore[misc]
    """Notes every operator, and lets shadows pass for tensors on their device."""

    def __init__(self, expected: Callable[[], Any], fake: FakeTensorMode | None) -> None:
        super().__init__()
        self.seen: list[Seen] = []
        self._expected = expected
        self._fake = fake

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        try:
            result = func(*args, **kwargs) if self._fake else self._compute(func, args, kwargs)
        except Exception:  # The border to torch: it has no one error for this.
            if not _depends_on_data(func):
                raise
            result = self._expected_of(func)
        self.seen.append(Seen(func, args, kwargs, result))
        return result

    def _compute(self, func: Any, args: Any, kwargs: Any) -> Any:
        if func is aten._local_scalar_dense.default:
            return _number(args[0])
        if torch.Tag.inplace_view in func.tags:
            raise Unclear(f"{func} changes a shadow's sizes")
        borrowed: dict[int, Shadow] = {}
        device = _device(func, args, kwargs)
        plain = _metas(args, borrowed), _metas(kwargs, borrowed)
        if _takes_device(func):
            plain[1]["device"] = "meta"
            plain[1].pop("pin_memory", None)
        return _shadows(func(*plain[0], **plain[1]), device, borrowed)

    def _expected_of(self, func: Any) -> Any:
        """The compiler has given the result's sizes a name: those are what it returns."""
        expected = self._expected()
        wanted = [str(result.type) for result in func._schema.returns]
        if wanted == ["bool"]:
            return True
        given = list(expected) if isinstance(expected, (list, tuple)) else [expected]
        if not all(isinstance(value, torch.Tensor) for value in given) or set(wanted) != {"Tensor"}:
            raise Unclear(f"{func} depends on data")
        if "unique" in func._opname:
            # Python gives back only what was asked for; the others are indices and counts.
            rest = len(wanted) - len(given)
            given += [torch.empty(given[0].shape[:1], dtype=torch.int64) for _ in range(rest)]
        if len(given) != len(wanted):
            raise Unclear(f"{func} depends on data")
        return given[0] if len(wanted) == 1 else tuple(given)


def _number(scalar: torch.Tensor) -> Any:
    if scalar.dtype is torch.bool:
        return True
    return 1.5 if scalar.dtype.is_floating_point else 1


@functools.lru_cache(maxsize=4096)
def _depends_on_data(func: Any) -> bool:
    tags = func.tags
    return torch.Tag.dynamic_output_shape in tags or torch.Tag.data_dependent_output in tags


@functools.lru_cache(maxsize=4096)
def _takes_device(func: Any) -> bool:
    return any(argument.name == "device" for argument in func._schema.arguments)


def _device(func: Any, args: Any, kwargs: Any) -> Any:
    """Where the result lies: where it is asked for, else with the operands."""
    asked = kwargs.get("device")
    if asked is not None:
        return asked
    devices = [leaf.device for leaf in _tensors((args, kwargs)) if leaf.dim()]
    scalars = [leaf.device for leaf in _tensors((args, kwargs)) if not leaf.dim()]
    return next(iter((*devices, *scalars)), None) or torch.get_default_device()


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _tensors(item)


def _metas(value: Any, borrowed: dict[int, Shadow]) -> Any:
    if isinstance(value, Shadow):
        borrowed[id(value.meta)] = value
        return value.meta
    if isinstance(value, torch.Tensor):
        return value.to("meta")  # A constant that the node itself makes.
    if isinstance(value, (list, tuple)):
        return type(value)([_metas(item, borrowed) for item in value])
    if isinstance(value, dict):
        return {key: _metas(item, borrowed) for key, item in value.items()}
    return value


def _shadows(value: Any, device: Any, borrowed: dict[int, Shadow]) -> Any:
    if isinstance(value, torch.Tensor):
        # An operator that works in place gives back what it was given.
        known = borrowed.get(id(value))
        return Shadow(value, device) if known is None else known
    if isinstance(value, (list, tuple)):
        return type(value)([_shadows(item, device, borrowed) for item in value])
    return value
