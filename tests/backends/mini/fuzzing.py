"""Random graphs of ATen operators: the small compiler's answer compared with eager mode's.

Every graph is made from a seed. What may turn a rounding into another number (comparisons, floor,
casts to integers, argmax) is only given values that both sides compute exactly. How far results may
be apart is measured, not guessed: eager mode runs again with every result moved by a rounding.
"""

from __future__ import annotations

import ctypes
import math
import operator
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.fx import Graph, GraphModule, Interpreter, Node

from compilescope.backends.mini.adapter import CompiledIsland
from compilescope.backends.mini.builder import Untranslatable
from compilescope.backends.mini.library import Library, LibraryFunction, MiniError
from compilescope.backends.mini.translation import Translation, translate

aten = torch.ops.aten
_MOST_ELEMENTS = 4096
_RUNS = 6
_SIZES = (1, 2, 3, 4, 5, 7, 8, 16, 33)
_FLOATS = (torch.float32, torch.float64)
_DTYPES = (torch.float32, torch.float32, torch.float32, torch.float64, torch.int64, torch.bool)


@dataclass
class Known:
    """A value of the graph that is being made."""

    node: Node
    value: torch.Tensor
    exact: bool
    """Both sides compute it to the last bit."""


@dataclass
class RandomProgram:
    seed: int
    module: GraphModule
    inputs: list[torch.Tensor]
    ops: list[str] = field(default_factory=list)


def make_program(seed: int) -> RandomProgram:
    return _Maker(seed).make()


class _Maker:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.torch = torch.Generator().manual_seed(seed)
        self.seed = seed
        self.graph = Graph()
        self.known: list[Known] = []
        self.inputs: list[torch.Tensor] = []
        self.ops: list[str] = []
        self.special = self.random.random() < 0.2
        self.empty = self.random.random() < 0.03
        rank = self.random.choice((0, 1, 1, 2, 2, 2, 3, 3, 4))
        sizes = _SIZES if rank < 3 else _SIZES[:6]
        self.shape = [self.random.choice(sizes) for _ in range(rank)]
        if self.empty and rank:
            self.shape[self.random.randrange(rank)] = 0

    def make(self) -> RandomProgram:
        for _ in range(self.random.randint(1, 4)):
            self._input()
        wanted = self.random.randint(2, 14)
        for _ in range(wanted * 12):
            if len(self.ops) >= wanted:
                break
            self._step()
        self._finish()
        module = GraphModule(torch.nn.Module(), self.graph)
        return RandomProgram(self.seed, module, self.inputs, self.ops)

    # Inputs.

    def _input(self, tensor: torch.Tensor | None = None) -> Known:
        if tensor is None:
            tensor = self._tensor(self.random.choice(_DTYPES), self._shape())
        before = next((n for n in self.graph.nodes if n.op != "placeholder"), None)
        with self.graph.inserting_before(before) if before else _nothing():
            node = self.graph.placeholder(f"x{len(self.inputs)}")
        node.meta["val"] = tensor
        self.inputs.append(tensor)
        known = Known(node, tensor, True)
        self.known.append(known)
        return known

    def _shape(self) -> list[int]:
        """The program's own, or one that can be broadcast to it."""
        shape = list(self.shape)
        choice = self.random.random()
        if choice < 0.6 or not shape:
            return shape
        if choice < 0.85:
            return [1 if self.random.random() < 0.4 else size for size in shape]
        return shape[self.random.randrange(len(shape)) :]

    def _tensor(self, dtype: torch.dtype, shape: list[int]) -> torch.Tensor:
        layout = self.random.random()
        if layout < 0.45 or not shape:
            return self._numbers(dtype, shape)
        if layout < 0.65:
            order = self.random.sample(range(len(shape)), len(shape))
            back = sorted(range(len(shape)), key=order.__getitem__)
            return self._numbers(dtype, [shape[dim] for dim in order]).permute(back)
        if layout < 0.85:  # Every other element of something larger, from an offset on.
            dim = self.random.randrange(len(shape))
            larger = list(shape)
            larger[dim] = 2 * shape[dim] + 3
            whole = self._numbers(dtype, larger)
            return whole[(slice(None),) * dim + (slice(1, 1 + 2 * shape[dim], 2),)]
        narrow = [1 if self.random.random() < 0.5 else size for size in shape]
        return self._numbers(dtype, narrow).expand(shape)

    def _numbers(self, dtype: torch.dtype, shape: list[int]) -> torch.Tensor:
        if dtype is torch.bool:
            return torch.randint(0, 2, shape, generator=self.torch).bool()
        if dtype is torch.int64:
            reach = self.random.choice((3, 10, 1000))
            return torch.randint(-reach, reach + 1, shape, generator=self.torch)
        numbers = torch.randn(shape, generator=self.torch, dtype=torch.float64)
        numbers = (numbers * self.random.choice((0.1, 1.0, 1.0, 10.0))).to(dtype)
        if self.special and self.random.random() < 0.5 and numbers.numel():
            flat = numbers.reshape(-1)
            for _ in range(max(1, flat.numel() // 6)):
                flat[self.random.randrange(flat.numel())] = self.random.choice(_SPECIAL)
            numbers = flat.reshape(shape)
        elif self.random.random() < 0.2:
            numbers = numbers.round()
        return numbers

    # Steps.

    def _step(self) -> None:
        family = self.random.choices(_FAMILIES, _WEIGHTS)[0]
        proposal = family(self)
        if proposal is None:
            return
        op, args, kwargs, exact = proposal
        given = [a for a in _leaves((args, kwargs)) if isinstance(a, Known)]
        try:
            value = op(*_mapped(args, lambda k: k.value), **_mapped(kwargs, lambda k: k.value))
        except (RuntimeError, IndexError, ValueError, TypeError, NotImplementedError):
            return
        results = list(value) if isinstance(value, (tuple, list)) else [value]
        if any(r.numel() > _MOST_ELEMENTS or r.dtype not in _DTYPES for r in results):
            return
        node = self.graph.call_function(
            op, _mapped(args, lambda k: k.node), _mapped(kwargs, lambda k: k.node)
        )
        node.meta["val"] = value
        node.meta["exact"] = exact and all(k.exact for k in given)
        self.ops.append(str(op))
        known_exact = node.meta["exact"]
        if not isinstance(value, (tuple, list)):
            self.known.append(Known(node, value, known_exact))
            return
        for number, each in enumerate(results):
            item = self.graph.call_function(operator.getitem, (node, number))
            item.meta.update(val=each, exact=True)  # Moved already, where it is to be.
            self.known.append(Known(item, each, known_exact))

    def pick(self, *, want: Callable[[Known], bool] = lambda known: True) -> Known | None:
        """Rather a late one: chains grow long."""
        fitting = [known for known in self.known if want(known)]
        if not fitting:
            return None
        place = len(fitting) - 1 - int(len(fitting) * self.random.random() ** 2)
        return fitting[place]

    def number(self, known: Known) -> bool | int | float:
        if known.value.dtype is torch.bool:
            return self.random.choice((True, False, 1, 0))
        if known.value.dtype is torch.int64 or self.random.random() < 0.3:
            return self.random.choice((-3, -2, -1, 1, 2, 3, 7))
        return self.random.choice((0.5, -1.5, 0.1, 2.0, 3.7, 1e-3, -0.25))

    def dim(self, known: Known) -> int:
        rank = known.value.dim()
        return self.random.randrange(-rank, rank) if rank else 0

    def _finish(self) -> None:
        used = {inner for node in self.graph.nodes for inner in node.all_input_nodes}
        loose = [k.node for k in self.known if k.node not in used and k.node.op != "placeholder"]
        results = loose or [self.known[-1].node]
        if self.random.random() < 0.3:
            results.append(self.random.choice(self.known).node)  # Inside, an input, or twice.
        self.graph.output(tuple(results[:6]))


_SPECIAL = (math.nan, math.inf, -math.inf, 0.0, -0.0, 1e30, -1e-30, 1e-42, 88.0, -104.0)


class _nothing:
    def __enter__(self) -> None: ...
    def __exit__(self, *error: object) -> None: ...


def _is_float(known: Known) -> bool:
    return known.value.dtype in _FLOATS


def _is_exact(known: Known) -> bool:
    return known.exact or not _is_float(known)


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, (tuple, list)):
        for item in value:
            yield from _leaves(item)
    elif isinstance(value, dict):
        yield from _leaves(list(value.values()))
    else:
        yield value


def _mapped(value: Any, change: Callable[[Known], Any]) -> Any:
    if isinstance(value, Known):
        return change(value)
    if isinstance(value, (tuple, list)):
        return type(value)(_mapped(item, change) for item in value)
    if isinstance(value, dict):
        return {key: _mapped(item, change) for key, item in value.items()}
    return value


Proposal = tuple[Any, tuple[Any, ...], dict[str, Any], bool] | None

_SMOOTH = (
    aten.exp, aten.expm1, aten.log, aten.log1p, aten.log2, aten.sqrt, aten.rsqrt, aten.reciprocal,
    aten.sin, aten.cos, aten.tanh, aten.erf, aten.sigmoid,
)  # fmt: skip
_PLAIN = (aten.neg, aten.abs, aten.relu, aten.sign, aten.isnan, aten.isinf, aten.logical_not)
_ROUNDING = (aten.floor, aten.ceil, aten.trunc, aten.round)
_COMPARING = (aten.eq, aten.ne, aten.lt, aten.le, aten.gt, aten.ge)


def _unary(m: _Maker) -> Proposal:
    choice = m.random.random()
    if choice < 0.55:
        x = m.pick()
        return x and (m.random.choice(_SMOOTH).default, (x,), {}, False)
    if choice < 0.85:
        op = m.random.choice(_PLAIN)
        x = m.pick(want=_is_exact if op in (aten.sign, aten.isnan, aten.isinf) else lambda k: True)
        if op is aten.logical_not:
            x = m.pick(want=_is_exact)
        return x and (op.default, (x,), {}, True)
    x = m.pick(want=_is_exact)
    return x and (m.random.choice(_ROUNDING).default, (x,), {}, True)


def _arithmetic(m: _Maker) -> Proposal:
    x, y = m.pick(), m.pick()
    if x is None or y is None:
        return None
    op = m.random.choice((aten.add, aten.sub, aten.mul, aten.mul, aten.div))
    exact = not _is_float(x) and not _is_float(y) and op is not aten.div
    more: dict[str, Any] = {}
    if op in (aten.add, aten.sub) and m.random.random() < 0.2:
        more = {"alpha": m.random.choice((2, -1, 3))}
    if m.random.random() < 0.3:
        return op.Scalar if op is aten.div else op.Tensor, (x, m.number(x)), more, exact
    return op.Tensor, (x, y), more, exact


def _whole_division(m: _Maker) -> Proposal:
    x, y = m.pick(want=_is_exact), m.pick(want=_is_exact)
    if x is None or y is None:
        return None
    choice = m.random.random()
    other = y if m.random.random() < 0.4 else m.number(x)
    suffix = "Tensor" if isinstance(other, Known) else "Scalar"
    if choice < 0.4:
        mode = m.random.choice(("floor", "trunc"))
        op = getattr(aten.div, f"{suffix}_mode")
        return op, (x, other), {"rounding_mode": mode}, True
    name = m.random.choice((aten.remainder, aten.fmod))
    return getattr(name, suffix), (x, other), {}, True


def _power(m: _Maker) -> Proposal:
    x = m.pick()
    if x is None:
        return None
    if _is_float(x):
        exponent = m.random.choice((2, 3, 0.5, -1, 1.5, -2, 2.0, 4, -0.5, 0))
        return aten.pow.Tensor_Scalar, (x, exponent), {}, False
    return aten.pow.Tensor_Scalar, (x, m.random.choice((0, 1, 2, 3))), {}, True


def _has_one_zero(known: Known) -> bool:
    """Which of 0.0 and -0.0 is the larger one, everybody decides for himself."""
    value = known.value
    return value.dtype not in _FLOATS or not bool(((value == 0) & value.signbit()).any())


def _extremes(m: _Maker) -> Proposal:
    x, y = m.pick(want=_has_one_zero), m.pick(want=_has_one_zero)
    if x is None or y is None:
        return None
    choice = m.random.random()
    if choice < 0.6:
        return m.random.choice((aten.maximum, aten.minimum)).default, (x, y), {}, True
    low, high = sorted((m.random.uniform(-2, 1), m.random.uniform(-1, 2)))
    if not _is_float(x):
        low, high = int(low), int(high)
    bounds = m.random.choice(((low, high), (low, None), (None, high)))
    return aten.clamp.default, (x, *bounds), {}, True


def _comparing(m: _Maker) -> Proposal:
    x, y = m.pick(want=_is_exact), m.pick(want=_is_exact)
    if x is None or y is None:
        return None
    op = m.random.choice(_COMPARING)
    if m.random.random() < 0.4:
        return op.Scalar, (x, m.number(x)), {}, True
    return op.Tensor, (x, y), {}, True


def _logic(m: _Maker) -> Proposal:
    x, y = m.pick(want=_is_exact), m.pick(want=_is_exact)
    if x is None or y is None:
        return None
    choice = m.random.random()
    if choice < 0.5:
        op = m.random.choice((aten.logical_and, aten.logical_or, aten.logical_xor))
        return op.default, (x, y), {}, True
    if choice < 0.6:
        return aten.bitwise_not.default, (x,), {}, True
    op = m.random.choice((aten.bitwise_and, aten.bitwise_or, aten.bitwise_xor))
    return op.Tensor, (x, y), {}, True


def _choosing(m: _Maker) -> Proposal:
    mask = m.pick(want=lambda k: k.value.dtype is torch.bool)
    x, y = m.pick(), m.pick()
    if mask is None or x is None or y is None:
        return None
    return aten.where.self, (mask, x, y), {}, True


def _casting(m: _Maker) -> Proposal:
    dtype = m.random.choice((torch.float32, torch.float64, torch.int64, torch.bool))
    to_whole = dtype in (torch.int64, torch.bool)

    def want(known: Known) -> bool:
        if not to_whole or not _is_float(known):
            return True
        finite = known.value.numel() == 0 or bool((known.value.abs() < 1e15).all())
        return known.exact and (dtype is torch.bool or finite)

    x = m.pick(want=want)
    return x and (aten._to_copy.default, (x,), {"dtype": dtype}, True)


def _reducing(m: _Maker) -> Proposal:
    choice = m.random.random()
    keepdim = m.random.random() < 0.5
    if choice < 0.45:
        x = m.pick()
        if x is None:
            return None
        op = m.random.choice((aten.sum.dim_IntList, aten.sum.dim_IntList, aten.mean.dim))
        return op, (x, _some_dims(m, x), keepdim), {}, not _is_float(x)
    if choice < 0.65:
        x = m.pick(want=_has_one_zero)
        op = m.random.choice((aten.amax, aten.amin))
        return x and (op.default, (x, _some_dims(m, x), keepdim), {}, True)
    if choice < 0.75:
        x = m.pick(want=_is_exact)
        op = m.random.choice((aten.any, aten.all))
        return x and (op.dim, (x, m.dim(x), keepdim), {}, True)
    if choice < 0.83:
        x = m.pick(want=lambda k: k.exact and k.value.dtype is not torch.bool and _has_one_zero(k))
        op = m.random.choice((aten.argmax.default, aten.argmin.default, aten.max.dim, aten.min.dim))
        return x and (op, (x, m.dim(x), keepdim), {}, True)
    if choice < 0.88:
        # Whether a product overflows on its way depends on the order.
        x = m.pick(want=lambda k: not _is_float(k) or k.value.abs().clamp_min(1).prod() < 1e30)
        return x and (aten.prod.dim_int, (x, m.dim(x), keepdim), {}, not _is_float(x))
    x = m.pick(want=_is_float)
    if x is None:
        return None
    if choice < 0.94:
        # Of infinities torch's running mean makes NaN or not by their place.
        if not bool(torch.isfinite(x.value).all()):
            return None
        options = {"correction": m.random.choice((0, 1)), "keepdim": keepdim}
        op = m.random.choice((aten.var_mean.correction, aten.var.correction))
        return op, (x, _some_dims(m, x)), options, False
    op = m.random.choice((aten._softmax, aten._log_softmax))
    return op.default, (x, m.dim(x), False), {}, False


def _some_dims(m: _Maker, x: Known) -> list[int]:
    rank = x.value.dim()
    return m.random.sample(range(rank), m.random.randint(1, rank)) if rank else []


def _multiplying(m: _Maker) -> Proposal:
    x = m.pick(want=lambda k: _is_float(k) and k.value.dim() in (1, 2, 3))
    if x is None:
        return None
    size, rank, dtype = x.value.shape, x.value.dim(), x.value.dtype
    columns = m.random.choice(_SIZES)
    shape = [size[-1]] if rank == 1 else [*size[:-2], size[-1], columns]
    fitting = m.pick(
        want=lambda k: k.value.dtype is dtype and list(k.value.shape[:-1]) == shape[:-1]
    )
    y = fitting if fitting and m.random.random() < 0.5 else m._input(m._tensor(dtype, shape))
    if rank == 1:
        return aten.dot.default, (x, y), {}, False
    if rank == 3:
        return aten.bmm.default, (x, y), {}, False
    if m.random.random() < 0.3:
        bias = m._input(m._tensor(dtype, [columns]))
        options = {"alpha": m.random.choice((1, 0.5)), "beta": m.random.choice((1, 2, 0))}
        return aten.addmm.default, (bias, x, y), options, False
    return aten.mm.default, (x, y), {}, False


def _viewing(m: _Maker) -> Proposal:
    x = m.pick()
    if x is None:
        return None
    rank, shape = x.value.dim(), list(x.value.shape)
    choice = m.random.randrange(9)
    if choice == 0:
        flat = m.random.choice(([-1], [*shape, 1], [1, *shape]))
        if len(shape) >= 2 and m.random.random() < 0.5:
            flat = [shape[0] * shape[1], *shape[2:]]
        return aten.reshape.default, (x, flat), {}, True
    if choice == 1:
        order = m.random.sample(range(rank), rank)
        return aten.permute.default, (x, order), {}, True
    if choice == 2:
        wanted = [m.random.choice((2, 3)) if size == 1 else size for size in shape]
        wanted = [2, *wanted] if m.random.random() < 0.3 else wanted
        return aten.expand.default, (x, wanted), {}, True
    if choice == 3:
        step = m.random.choice((1, 1, 2, 3))
        start, end = m.random.randint(-4, 4), m.random.randint(-4, 9)
        return aten.slice.Tensor, (x, m.dim(x), start, end, step), {}, True
    if choice == 4:
        return aten.select.int, (x, m.dim(x), m.random.randint(-2, 1)), {}, True
    if choice == 5:
        return aten.unsqueeze.default, (x, m.random.randint(-rank - 1, rank)), {}, True
    if choice == 6:
        return aten.squeeze.dims, (x, _some_dims(m, x)), {}, True
    if choice == 7:
        return aten.flip.default, (x, _some_dims(m, x)), {}, True
    return aten.clone.default, (x,), {}, True


def _joining(m: _Maker) -> Proposal:
    x = m.pick(want=lambda k: k.value.dim() > 0)
    if x is None:
        return None
    choice = m.random.random()
    if choice < 0.6:
        same = [k for k in m.known if k.value.shape == x.value.shape]
        parts = [x, *m.random.choices(same, k=m.random.randint(1, 2))]
        return aten.cat.default, (parts, m.dim(x)), {}, True
    if choice < 0.8:
        pad = [m.random.randint(-1, 3) for _ in range(2 * m.random.randint(1, x.value.dim()))]
        value = 0 if x.value.dtype is torch.bool else m.number(x)
        return aten.constant_pad_nd.default, (x, pad, value), {}, True
    if choice < 0.9:
        repeats = [m.random.randint(1, 3) for _ in range(x.value.dim() + m.random.randint(0, 1))]
        return aten.repeat.default, (x, repeats), {}, True
    return aten.split.Tensor, (x, m.random.randint(1, 4), m.dim(x)), {}, True


def _indexing(m: _Maker) -> Proposal:
    x = m.pick(want=lambda k: k.value.dim() > 0 and k.value.numel() > 0)
    if x is None:
        return None
    dim = m.dim(x)
    size = x.value.shape[dim]
    choice = m.random.random()
    shape = [m.random.randint(1, 4) for _ in range(m.random.randint(1, 2))]
    if choice < 0.3:
        index = torch.randint(0, x.value.shape[0], shape, generator=m.torch)
        if x.value.dim() == 2 and m.random.random() < 0.5:
            return aten.embedding.default, (x, m._input(index)), {}, True
        return aten.index.Tensor, (x, [m._input(index)]), {}, True
    if choice < 0.5:
        index = torch.randint(-size, size, shape, generator=m.torch)
        before: list[Any] = [None] * (dim % x.value.dim())
        return aten.index.Tensor, (x, [*before, m._input(index)]), {}, True
    if choice < 0.65 and x.value.dim() > 1:
        pair = [torch.randint(-s, s, shape, generator=m.torch) for s in x.value.shape[:2]]
        return aten.index.Tensor, (x, [m._input(index) for index in pair]), {}, True
    if choice < 0.8:
        index = torch.randint(0, size, (m.random.randint(1, 5),), generator=m.torch)
        return aten.index_select.default, (x, dim, m._input(index)), {}, True
    if choice < 0.92:
        wanted = list(x.value.shape)
        wanted[dim] = m.random.randint(1, 5)
        index = torch.randint(0, size, wanted, generator=m.torch)
        return aten.gather.default, (x, dim, m._input(index)), {}, True
    wanted = list(x.value.shape)
    wanted[dim] = 1
    index = torch.randint(0, size, wanted, generator=m.torch)
    value = m.number(x)
    if x.value.dtype is torch.int64:
        value = int(value)
    return aten.scatter.value, (x, dim, m._input(index), value), {}, True


def _creating(m: _Maker) -> Proposal:
    x = m.pick()
    if x is None:
        return None
    if m.random.random() < 0.5:
        return aten.full_like.default, (x, m.number(x)), {}, True
    length = x.value.shape[-1] if x.value.dim() else 3
    dtype = m.random.choice((torch.int64, torch.float32))
    args = (m.random.randint(-3, 3), 0, m.random.choice((1, 2)))
    args = (args[0], args[0] + args[2] * length, args[2])
    return aten.arange.start_step, args, {"dtype": dtype}, True


_FAMILIES = [
    _unary, _arithmetic, _whole_division, _power, _extremes, _comparing, _logic, _choosing,
    _casting, _reducing, _multiplying, _viewing, _joining, _indexing, _creating,
]  # fmt: skip
_WEIGHTS = [18, 22, 4, 4, 6, 6, 4, 7, 5, 16, 5, 16, 6, 6, 3]


# Judging.


class _Moved(Interpreter):
    """Eager mode with every float result that is not exact moved by a rounding or two."""

    def __init__(self, module: GraphModule, seed: int) -> None:
        super().__init__(module)
        self._torch = torch.Generator().manual_seed(seed)
        # Of a sum that is zero, it depends on where the summing begins.
        self._sign_of_zero = (-1) ** seed

    def run_node(self, n: Node) -> Any:
        if n.op != "call_function" or n.meta["exact"]:
            return super().run_node(n)
        # What goes in is moved too: an operator may round on its way, a long sum often.
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        value = n.target(*tree_map(self._moved, args), **kwargs)
        return tree_map(self._moved, value)

    def _moved(self, value: Any) -> Any:
        if not isinstance(value, torch.Tensor) or value.dtype not in _FLOATS:
            return value
        by = torch.rand(value.shape, generator=self._torch, dtype=value.dtype) * 2 - 1
        moved = value * (1 + by * 2 * torch.finfo(value.dtype).eps)
        return torch.where(moved == 0, moved.abs() * self._sign_of_zero, moved)


class _InDouble(Interpreter):
    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        if kwargs.get("dtype") is torch.float32:
            kwargs = {**kwargs, "dtype": torch.float64}
        return super().call_function(target, args, kwargs)


@dataclass
class Judge:
    """Knows what a program should give, and how far from it is still rounding."""

    program: RandomProgram

    def __post_init__(self) -> None:
        program = self.program
        self.wanted = _run(Interpreter(program.module), program.inputs)
        self._moved: list[list[torch.Tensor]] | None = None
        self._anchor: list[torch.Tensor] | None = None

    def differences(self, given: Sequence[torch.Tensor]) -> list[str]:
        """What is wrong, result by result, in words."""
        found = []
        for number, (wanted, value) in enumerate(zip(self.wanted, given, strict=True)):
            if wanted.dtype != value.dtype or wanted.shape != value.shape:
                found.append(
                    f"result {number} is {value.dtype} {list(value.shape)}, "
                    f"not {wanted.dtype} {list(wanted.shape)}"
                )
            elif not _same(wanted, value):
                found += self._beyond_rounding(number, wanted, value)
        return found

    def _beyond_rounding(self, number: int, wanted: torch.Tensor, value: torch.Tensor) -> list[str]:
        if wanted.dtype not in _FLOATS:
            count = int((wanted != value).sum())
            return [f"result {number}: {count} of {wanted.numel()} elements differ"]
        runs = self._runs()
        others = [run[number] for run in runs]
        exact, near = wanted.double(), value.double()
        eps = torch.finfo(wanted.dtype).eps
        spread = torch.stack([(o.double() - exact).abs() for o in others]).nan_to_num(
            nan=0.0, posinf=0.0
        )
        finite = torch.isfinite(exact) & torch.isfinite(near)
        tiny = torch.finfo(wanted.dtype).tiny * 16
        allowed = 24 * spread.amax(0) + 24 * eps * exact.abs() + tiny
        wrong = finite & ((near - exact).abs() > allowed)
        # Where a rounding decides whether there is a number at all, both answers are right.
        unsettled = torch.zeros_like(finite)
        for other in others:
            unsettled |= torch.isfinite(other) != torch.isfinite(exact)
            unsettled |= torch.isinf(other) & torch.isinf(exact) & (other != exact)
        odd = ~finite & ~((exact == near) | (exact.isnan() & near.isnan())) & ~unsettled
        odd &= ~self._is_true(number, wanted.dtype, near)
        wrong &= ~self._as_good(number, exact, near)
        count = int((wrong | odd).sum())
        if not count:
            return []
        place = (wrong | odd).nonzero()[0].tolist()
        at = tuple(place)
        return [
            f"result {number}: {count} of {wanted.numel()} elements are off; at {place} "
            f"{value[at].item()!r}, eager mode has {wanted[at].item()!r}"
        ]

    def _is_true(self, number: int, dtype: torch.dtype, near: torch.Tensor) -> torch.Tensor:
        """Where it is what float64 gives, whatever eager mode says: torch 2.13's vectorized fmod
        gives NaN for very small divisors."""
        truth = self._in_double(number).to(dtype).double()
        return (near == truth) | ((near - truth).abs() <= 24 * torch.finfo(dtype).eps * truth.abs())

    def _as_good(self, number: int, exact: torch.Tensor, near: torch.Tensor) -> torch.Tensor:
        """Where it is about as near to what float64 gives as eager mode's results are."""
        anchor = self._in_double(number)
        off = (exact - anchor).abs().nan_to_num(nan=0.0, posinf=0.0)
        return (near - anchor).abs() <= 4 * off.amax() if off.numel() else off.bool()

    def _in_double(self, number: int) -> torch.Tensor:
        if self._anchor is None:
            inputs = [v.double() if v.dtype is torch.float32 else v for v in self.program.inputs]
            before = torch.get_default_dtype()
            torch.set_default_dtype(torch.float64)  # What integers become, in a division.
            try:
                self._anchor = _run(_InDouble(self.program.module), inputs)
            finally:
                torch.set_default_dtype(before)
        return self._anchor[number].double()

    def _runs(self) -> list[list[torch.Tensor]]:
        if self._moved is None:
            module, inputs = self.program.module, self.program.inputs
            self._moved = [_run(_Moved(module, seed), inputs) for seed in range(_RUNS)]
        return self._moved


def _run(interpreter: Interpreter, inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    return list(interpreter.run(*inputs))


def _same(one: torch.Tensor, other: torch.Tensor) -> bool:
    if one.dtype not in _FLOATS:
        return bool((one == other).all())
    return bool(((one == other) | (one.isnan() & other.isnan())).all())


def tree_map(change: Callable[[Any], Any], value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return type(value)(tree_map(change, item) for item in value)
    return change(value)


# Trying.


@dataclass
class Trial:
    """One program under one setting of the compiler."""

    seed: int
    setting: str
    problems: list[str]
    """Empty: it agrees."""


class Fuzzer:
    """Tries programs under many settings. `library` is compilescope.backends.mini's."""

    def __init__(self, library: Library, cache: str = "", flags: str = "") -> None:
        self.library = library
        self.untranslatable = 0
        self.programs = 0
        passes = library.passes
        self._interpreted = {"all on": "", "all off": ",".join(passes)}
        self._interpreted |= {f"without {name}": name for name in passes}
        self._cache, self._flags = cache, flags

    def interpreted(self, seeds: Sequence[int]) -> Iterator[Trial]:
        """By the interpreter: all passes, none, and each one left out."""
        for task in self._tasks(seeds):
            for setting, off in self._interpreted.items():
                options = {"backend": "interpreter", "off": off}
                yield self._trial(task, f"interpreter, {setting}", options)

    def compiled(self, seeds: Sequence[int]) -> Iterator[Trial]:
        """By generated code, with all passes and with none; one call of the C++ compiler each."""
        tasks = list(self._tasks(seeds))
        if not tasks:
            return
        texts = [task.translation.text for task in tasks]
        for setting in ("all on", "all off"):
            off = self._interpreted[setting]
            options = {"backend": "compiler", "off": off, "fallback": "error", "threads": "2"}
            options |= {"cache": self._cache, "flags": self._flags}
            options = {key: value for key, value in options.items() if value}
            functions = _compile_batch(self.library, texts, options)
            for task, function in zip(tasks, functions, strict=True):
                yield self._judged(task, f"generated code, {setting}", function)

    def _tasks(self, seeds: Sequence[int]) -> Iterator[_Task]:
        for seed in seeds:
            program = make_program(seed)
            try:
                translation = translate(program.module, program.inputs)
            except Untranslatable:
                self.untranslatable += 1
                continue
            self.programs += 1
            yield _Task(program, translation, Judge(program))

    def _trial(self, task: _Task, setting: str, options: dict[str, str]) -> Trial:
        try:
            function = self.library.compile(task.translation.text, options)
        except MiniError as error:
            return Trial(task.program.seed, setting, [str(error)])
        return self._judged(task, setting, function)

    def _judged(self, task: _Task, setting: str, function: LibraryFunction) -> Trial:
        compiled = CompiledIsland(task.translation, function)
        before = [value.clone() for value in task.program.inputs]
        try:
            given = compiled.run(task.program.inputs)
        except (MiniError, IndexError) as error:
            return Trial(task.program.seed, setting, [str(error)])
        problems = task.judge.differences(given)
        if not all(map(_same, before, task.program.inputs)):
            problems.append("it wrote to its inputs")
        return Trial(task.program.seed, setting, problems)


@dataclass
class _Task:
    program: RandomProgram
    translation: Translation
    judge: Judge


def _compile_batch(
    library: Library, graphs: Sequence[str], options: dict[str, str]
) -> list[LibraryFunction]:
    """Many graphs by one call of the machine's compiler; all or none."""
    compile_batch = library._c.mini_compile_batch
    compile_batch.restype = ctypes.c_int32
    texts = (ctypes.c_char_p * len(graphs))(*(graph.encode() for graph in graphs))
    handles = (ctypes.c_void_p * len(graphs))()
    lines = "\n".join(f"{key}={value}" for key, value in options.items()).encode()
    if compile_batch(texts, ctypes.c_int32(len(graphs)), lines, handles):
        raise library._error()
    return [LibraryFunction(library, handle) for handle in handles if handle is not None]
