"""Runs one call of torch without data, with plain numbers in place of symbolic sizes, and notes the
operators that it dispatches to.

Stand-ins take the places of its tensors and numbers; their sizes are plain numbers. A shadow wraps
a meta tensor and passes for a tensor on its device, as torch's fake tensors do; but nothing is kept
of what it did, which makes it ten times as fast. Shadows are tried first, then fake tensors.

An operator is run once with each set. A size that comes out the same for both is fixed, one that
does not is dynamic. torch's shape environment is only read: no guard and no symbol is left in it.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import sympy
import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

from compilescope.base.processes.interruptions import let_through

_PLAIN = (torch.Tensor, torch.nn.Parameter, FakeTensor)
_MISSING_FLOAT = 1.5
"""For a number that only the running program knows. Chosen: exact in every float, no whole number,
and neither 0 nor 1."""


class Shadow(torch.Tensor):  # type: ignore[misc]
    """It has a device, a dtype, sizes and strides, and nothing else."""

    __torch_function__ = torch._C._disabled_torch_function_impl
    meta: torch.Tensor

    @staticmethod
    def __new__(cls: type, meta: torch.Tensor, device: Any, requires_grad: bool = False) -> Shadow:
        made = torch.Tensor._make_wrapper_subclass(
            cls,
            meta.size(),
            strides=meta.stride(),
            storage_offset=meta.storage_offset(),
            dtype=meta.dtype,
            layout=meta.layout,
            device=device,
            requires_grad=requires_grad,
        )
        made.meta = meta
        return made  # type: ignore[no-any-return]

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise Unclear(f"{func} outside of a rehearsal")


def fake_cast(sizes: TrialSizes, at: int) -> Cast:
    """Stand-ins that are torch's own fake tensors."""
    return Cast(sizes, at, fake_tensor)


class Cast:
    """Stand-ins for a call's arguments; one for each tensor."""

    def __init__(self, sizes: TrialSizes, at: int, make: Callable[..., torch.Tensor]) -> None:
        self._sizes = sizes
        self._at = at
        self._make = make
        self._made: dict[int, torch.Tensor] = {}
        self.fake = FakeTensorMode() if make is fake_tensor else None

    def of(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            if self.fake is not None and getattr(value, "fake_mode", None) is self.fake:
                return value
            made = self._made.get(id(value))
            if made is None:
                made = self._made[id(value)] = self._tensor(value)
            return made
        if isinstance(value, torch.SymInt):
            return self._sizes.both(value)[self._at]
        if isinstance(value, (torch.SymFloat, torch.SymBool)):
            hint = value.node.hint
            if hint is None:
                return _MISSING_FLOAT if isinstance(value, torch.SymFloat) else True
            return hint
        if isinstance(value, (list, tuple)):
            items = [self.of(item) for item in value]
            if hasattr(value, "_fields"):
                return type(value)(*items)
            return items if isinstance(value, list) else tuple(items)
        if isinstance(value, dict):
            return {key: self.of(item) for key, item in value.items()}
        if isinstance(value, slice):
            return slice(self.of(value.start), self.of(value.stop), self.of(value.step))
        return value

    def _tensor(self, value: torch.Tensor) -> torch.Tensor:
        plain = type(value) in _PLAIN and value.layout is torch.strided and not value.is_quantized
        if not plain or torch._C._functorch.is_functorch_wrapped_tensor(value):
            raise Unclear(f"a tensor of type {type(value).__name__}")
        shape = [self._sizes.both(size)[self._at] for size in value.shape]
        stride = [self._sizes.both(size)[self._at] for size in value.stride()]
        return self._make(value, shape, stride, self.fake)


def shadow(
    value: torch.Tensor, shape: Sequence[int], stride: Sequence[int], _: Any
) -> torch.Tensor:
    meta = torch.empty_strided(shape, stride, dtype=value.dtype, device="meta")
    return Shadow(meta, value.device, value.requires_grad)


def computed_shadow(
    value: torch.Tensor, shape: Sequence[int], stride: Sequence[int], _: Any
) -> torch.Tensor:
    """In-place operators refuse what requires a gradient, unless it was computed."""
    made = shadow(value, shape, stride, _)
    return made if value.is_leaf else _Computed.apply(made)


def plain_shadow(
    value: torch.Tensor, shape: Sequence[int], stride: Sequence[int], _: Any
) -> torch.Tensor:
    return shadow(value.detach(), shape, stride, _)


class _Computed(torch.autograd.Function):  # type: ignore[misc]
    @staticmethod
    def forward(ctx: Any, value: Shadow) -> Shadow:
        return Shadow(value.meta, value.device)


def fake_tensor(
    value: torch.Tensor, shape: Sequence[int], stride: Sequence[int], mode: Any
) -> torch.Tensor:
    with mode:
        return torch.empty_strided(shape, stride, dtype=value.dtype, device=value.device)


aten = torch.ops.aten
_fake_log = logging.getLogger("torch._subclasses.fake_tensor")


class DispatchedOperator(NamedTuple):
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
) -> list[DispatchedOperator]:
    """The operators that a call runs into. Unclear where it cannot be run without data."""
    failure = ""
    first = () if in_place else (shadow,)
    for make in (*first, computed_shadow, plain_shadow, fake_tensor):
        cast = Cast(sizes, at, make)
        given = cast.of(args), cast.of(kwargs)
        noting = OperatorNotes(functools.partial(cast.of, expected), cast.fake)
        with quietly(cast.fake), noting:
            try:
                function(*given[0], **given[1])
                return _without_replays(noting.seen) if make is computed_shadow else noting.seen
            except Exception as error:  # The border to torch: it may refuse for any reason.
                let_through(error)
                failure = f"{type(error).__name__}: {error}"
    raise Unclear(failure)


def _without_replays(seen: list[DispatchedOperator]) -> list[DispatchedOperator]:
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


class OperatorNotes(TorchDispatchMode):  # type: ignore[misc]
    """Notes every operator, and lets shadows pass for tensors on their device."""

    def __init__(self, expected: Callable[[], Any], fake: FakeTensorMode | None) -> None:
        super().__init__()
        self.seen: list[DispatchedOperator] = []
        self._expected = expected
        self._fake = fake

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        try:
            result = func(*args, **kwargs) if self._fake else self._compute(func, args, kwargs)
        except Exception as error:  # The border to torch: it has no one error for this.
            let_through(error)
            if not _depends_on_data(func):
                raise
            result = self._expected_of(func)
        self.seen.append(DispatchedOperator(func, args, kwargs, result))
        return result

    def _compute(self, func: Any, args: Any, kwargs: Any) -> Any:
        if func is aten._local_scalar_dense.default:
            return _number(args[0])
        if torch.Tag.inplace_view in func.tags:
            raise Unclear(f"{func} changes a shadow's sizes")
        borrowed: dict[int, Shadow] = {}
        device = _device(args, kwargs)
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
            given += [
                given[0].new_empty(given[0].shape[:1], dtype=torch.int64) for _ in range(rest)
            ]
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


def _device(args: Any, kwargs: Any) -> Any:
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


Pair = tuple[int, int]
"""What a size is in the first and in the second trial."""

_FACTORS = (3, 5, 7, 11, 13)
"""From one trial to the next a size grows by a factor: what divided it still does. Different
primes: how much a product grew tells of which sizes it is one."""
_UNBACKED = 24
"""For a size that only the running program knows. Chosen: it can be halved, and split in 3, 4, 6 or
8; and it is not 0 or 1, which torch treats apart."""
_MOST_SYMBOLS = 6
"""Sizes that a product is sought among. Chosen: 6 make 83 products of up to three, and all are
tried."""


class Unclear(Exception):
    """Running it with numbers and without data does not tell what it does."""


class TrialSizes:
    """The numbers for the symbols of one graph."""

    def __init__(self) -> None:
        self._symbols: dict[Any, Pair] = {}
        self._environment: Any = None
        self._held: set[Any] | None = None
        self._pairs: dict[Any, Pair] = {}
        self._names: dict[Pair, str] = {}
        self._products: dict[Pair, str] = {}

    def both(self, size: Any) -> Pair:
        if type(size) is int:
            return size, size
        expression = size.node.expr
        pair = self._pairs.get(expression)
        if pair is None:
            self._environment = size.node.shape_env
            pair = self._pairs[expression] = self._evaluate(expression)
            # A number that a guard holds may be equal to a fixed one: that is then dynamic too.
            if pair[0] != pair[1] or (self._held and pair[0] > 1):
                self._names.setdefault(pair, str(expression))
        return pair

    def shown(self, first: int, second: int) -> int | str:
        """The number, or for a dynamic one the expression that gave it."""
        pair = (first, second)
        if pair in self._names:
            return self._names[pair]
        if first == second:
            return first
        if pair not in self._products:
            self._products[pair] = self._product(first, second)
        return self._products[pair]

    def hold_to_guards(self) -> bool:
        """Where the second trial fails: leave sizes alone that a guard ties to others.

        False if that was done before, or there is nothing to hold.
        """
        if self._held is not None:
            return False
        self._held = set()
        guards = [guard.expr for guard in getattr(self._environment, "guards", ())]
        changed = True
        while changed:
            changed = False
            for guard in guards:
                loose = guard.free_symbols - self._held
                if loose and self._at(guard, 1) != sympy.true:
                    self._held |= loose
                    changed = True
        self._pairs.clear()
        self._names.clear()
        self._products.clear()
        return bool(self._held)

    def _evaluate(self, expression: Any) -> Pair:
        if isinstance(expression, int):
            return expression, expression
        first, second = self._at(expression, 0), self._at(expression, 1)
        if not (first.is_Integer and second.is_Integer):
            raise Unclear(f"{expression} is not a number")
        return int(first), int(second)

    def _at(self, expression: Any, trial: int) -> Any:
        """The expression with numbers in place of symbols."""
        numbers = {}
        for symbol in expression.free_symbols:
            if symbol not in self._symbols:
                self._symbols[symbol] = self._numbers(symbol)
            held = self._held is not None and symbol in self._held
            numbers[symbol] = sympy.Integer(self._symbols[symbol][0 if held else trial])
        return expression.xreplace(numbers)

    def _numbers(self, symbol: Any) -> Pair:
        # torch 2.13 calls them backed; before, there were only those.
        known = getattr(self._environment, "backed_var_to_val", None)
        if known is None:
            known = getattr(self._environment, "var_to_val", {})
        first = int(known.get(symbol, _UNBACKED))
        return first, first * _FACTORS[len(self._symbols) % len(_FACTORS)]

    def _product(self, first: int, second: int) -> str:
        """`2*s0*s1`, as flattening makes it. What is no product has no name of its own."""
        symbols = list(self._symbols.items())[:_MOST_SYMBOLS]
        for length in (1, 2, 3):
            for chosen in itertools.combinations_with_replacement(symbols, length):
                one = two = 1
                for _, (small, large) in chosen:
                    one, two = one * small, two * large
                if one and not first % one and not second % two and first // one == second // two:
                    names = "*".join(str(symbol) for symbol, _ in chosen)
                    return names if first == one else f"{first // one}*{names}"
        return "dynamic"
