"""What a device refuses, found the long way: a graph is run on real tensors and each is looked at.

Written without the constraints' code. Judged are a graph's inputs, what the operators that torch
really dispatches read and give, and views that the graph returns; each fact once a node.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from compilescope.record.device import Device

Facts = Counter[str]


def count_facts(
    module: torch.fx.GraphModule, inputs: list[Any], devices: Sequence[Device]
) -> dict[str, Facts]:
    """Device -> rule -> how many facts break it. The graph is run once."""
    judges = [_Judge(device) for device in devices]
    _Run(module, judges).run(*inputs)
    return {judge.device.name: +judge.facts for judge in judges}


class _Call(NamedTuple):
    """One operator, as it was dispatched."""

    op: str
    results: list[torch.Tensor]
    reads: list[torch.Tensor]
    named: dict[str, Any]
    is_view: bool

    @property
    def name(self) -> str:
        return self.op.split(".")[1].rstrip("_")

    @property
    def copies(self) -> bool:
        return self.name in _COPIES or self.name.endswith("_like") or self.name.startswith("new_")


class _Dispatched(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.calls: list[_Call] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        named = dict(zip([a.name for a in func._schema.arguments], args, strict=False)) | kwargs
        given = [returned.alias_info for returned in func._schema.returns]
        is_view = all(each is not None and not each.is_write for each in given) and bool(given)
        is_view = is_view or func._opname in ("_unsafe_view", "as_strided_")
        is_view = is_view and func._opname != "lift_fresh"  # A literal is new.
        reads = _tensors((args, kwargs))
        self.calls.append(_Call(str(func), _tensors(result), reads, named, is_view))
        return result


class _Run(torch.fx.Interpreter):
    def __init__(self, module: torch.fx.GraphModule, judges: list[_Judge]) -> None:
        super().__init__(module, garbage_collect_values=False)
        self.judges = judges
        self._views: set[str] = set()
        end = next(node for node in module.graph.nodes if node.op == "output")
        kinds = [type(each).__name__ for each in end.meta.get("desc", ())]
        returned = list(torch.utils._pytree.tree_leaves(end.args))
        kinds += [""] * (len(returned) - len(kinds))
        self._for_caller = {
            node
            for node, kind in zip(returned, kinds, strict=True)
            if isinstance(node, torch.fx.Node) and not kind.startswith("SavedForBackwards")
        }
        self._is_backward = any("tangents" in node.name for node in module.graph.nodes)

    def run_node(self, n: torch.fx.Node) -> Any:
        picks = self._picks(n)
        with _Dispatched() as seen:
            result = super().run_node(n)
        if n.op in ("placeholder", "get_attr"):
            for judge in self.judges:
                judge.look(_tensors(result), [], seen)
        elif n.op != "output" and not picks:
            self._look(n, result, seen)
        return result

    def _look(self, n: torch.fx.Node, result: Any, seen: _Dispatched) -> None:
        computing = [call for call in seen.calls if not call.is_view]
        if seen.calls and not computing:
            self._views.add(n.name)
        made = self._made(n, _tensors(result), seen.calls)
        looked = [
            (tensor, _looks(call, tensor))
            for call in computing
            for tensor in call.reads
            if not call.copies
        ]
        own = {id(tensor) for call in computing for tensor in call.results}
        own |= {
            id(tensor)
            for given in n.all_input_nodes
            if self._is_computed(given)
            for tensor in _tensors(self.env[given])
        }
        reread = [
            (tensor, _looks(call, tensor)[0])
            for call in computing
            for tensor in call.reads
            if not (call.copies or call.name in _PRODUCTS or "scaled_dot_product" in call.op)
            and id(tensor) not in own
        ]
        if computing and not any(call.reads for call in computing):
            looked = [(tensor, [_lies(tensor)]) for tensor in made]
        if n.name in self._views and n in self._for_caller and not self._is_backward:
            looked = [(tensor, [_lies(tensor)]) for tensor in _tensors(result)]
        for judge in self.judges:
            judge.look(made, looked, seen)
            judge.look_at_order(reread)

    def _is_computed(self, n: torch.fx.Node) -> bool:
        """By an operator that is no view: it lies as its kernel left it."""
        if n.op in ("placeholder", "get_attr"):
            return False
        return (
            self._is_computed(n.all_input_nodes[0]) if self._picks(n) else n.name not in self._views
        )

    def _made(
        self, n: torch.fx.Node, given: list[torch.Tensor], calls: list[_Call]
    ) -> list[torch.Tensor]:
        """Results that somebody reads. A clone is the same value once more."""
        wanted = {_key(tensor) for tensor in given}
        if len(calls) == 1:
            # Under `vmap` the node's value and the operator's result have different shapes.
            wanted |= {_key(tensor) for tensor in calls[0].results[: len(given)]}
        if isinstance(n.target, torch._ops.OpOverload) and len(given) > 1:
            picks = [user for user in n.users if _is_pick(user)]
            if picks and len(picks) == len(n.users):
                wanted = {_key(given[p.args[1]]) for p in picks if self._is_read(p)}
        found: list[torch.Tensor] = []
        for call in reversed(calls):
            if not call.is_view and not _is_clone(call):
                alone = len(calls) == 1
                for number, result in enumerate(call.results):
                    first = not found and not number and not alone
                    if result.numel() and (_key(result) in wanted or first):
                        found.append(result)
            wanted = wanted | {_key(tensor) for tensor in call.reads}
        return found

    def _is_read(self, n: torch.fx.Node) -> bool:
        """By an operator, or by the caller; what only autograd keeps is not."""
        return n in self._for_caller or any(
            user.op != "output" and (not _passes_on(user) or self._is_read(user))
            for user in n.users
        )

    def _picks(self, n: torch.fx.Node) -> bool:
        whole = self.env.get(n.args[0]) if n.args and isinstance(n.args[0], torch.fx.Node) else None
        return getattr(n.target, "__name__", "") == "getitem" and not torch.is_tensor(whole)


def _is_pick(n: torch.fx.Node) -> bool:
    return getattr(n.target, "__name__", "") == "getitem"


def _passes_on(n: torch.fx.Node) -> bool:
    views = ("view", "detach", "t", "permute", "transpose", "expand", "slice", "unsqueeze", "alias")
    name = str(n.target).split(".")
    return _is_pick(n) or (len(name) == 3 and name[1] in views)


def _key(tensor: torch.Tensor) -> Any:
    return tuple(tensor.shape), tensor.dtype, tensor.stride()


def _is_clone(call: _Call) -> bool:
    return call.name == "clone" and 0 not in call.reads[0].stride()


_COPIES = (
    "clone", "copy", "_to_copy", "fill", "zero", "lift_fresh_copy", "select_scatter",
    "slice_scatter", "diagonal_scatter", "as_strided_scatter",
)  # fmt: skip
_PRODUCTS = ("mm", "addmm", "bmm", "baddbmm", "mv", "addmv")
_Strided = tuple[tuple[int, ...], tuple[int, ...]]


def _lies(tensor: torch.Tensor) -> _Strided:
    return tuple(tensor.shape), tuple(tensor.stride())


def _looks(call: _Call, tensor: torch.Tensor) -> list[_Strided]:
    """The ways to see an operand of which one must be allowed."""
    shape, stride = _lies(tensor)
    once = tuple(1 if step == 0 else size for size, step in zip(shape, stride, strict=True))
    if "scaled_dot_product" in call.op and shape:
        return [(shape[-1:], stride[-1:])]
    if call.name in _PRODUCTS:
        swapped = (*once[:-2], *once[:-3:-1]), (*stride[:-2], *stride[:-3:-1])
        return [(once, stride), swapped]
    if any(result.shape == tensor.shape for result in call.results):
        return [(once, stride)]
    return [(shape, stride)]


class _Judge:
    def __init__(self, device: Device) -> None:
        self.device = device
        self.facts: Facts = Counter()

    def look(
        self,
        tensors: list[torch.Tensor],
        looked: list[tuple[torch.Tensor, list[_Strided]]],
        seen: _Dispatched,
    ) -> None:
        self.facts["dtype"] += len(self._bad_dtypes(tensors))
        self.facts["shape"] += self._bad_shapes(tensors, seen)
        self.facts["layout"] += len(
            {_lies(tensor) for tensor, looks in looked if all(map(self._is_badly_laid, looks))}
        )
        self.facts["operators"] += len(self._bad_ops(seen))
        limit = self.device.memory.tensor_bytes
        if limit is not None:
            big = {(t.shape, t.dtype) for t in tensors if t.numel() * t.element_size() > limit}
            self.facts["memory"] += len(big)

    def look_at_order(self, reread: list[tuple[torch.Tensor, _Strided]]) -> None:
        """Taken, but copied first: not what matrix products and attention read."""
        if self.device.layout.reordered_rows == "copied":
            self.facts["layout"] += len(
                {
                    _lies(tensor)
                    for tensor, look in reread
                    if tensor.numel() and not self._is_badly_laid(look) and not _is_ordered(look)
                }
            )

    def _bad_dtypes(self, tensors: list[torch.Tensor]) -> set[torch.dtype]:
        dtypes = self.device.dtypes
        bad = set()
        for tensor in tensors:
            name = str(tensor.dtype).split(".")[1]
            integer = not tensor.dtype.is_floating_point and not tensor.dtype.is_complex
            bits = tensor.element_size() * 8
            too_wide = (
                integer
                and tensor.dtype is not torch.bool
                and dtypes.integer_width is not None
                and bits > dtypes.integer_width
            )
            if too_wide or (dtypes.supported and name not in dtypes.supported):
                bad.add(tensor.dtype)
        return bad

    def _bad_shapes(self, tensors: list[torch.Tensor], seen: _Dispatched) -> int:
        shapes = self.device.shapes
        count = len({t.shape for t in tensors if shapes.max_rank and t.dim() > shapes.max_rank})
        if shapes.max_size:
            count += len({size for t in tensors for size in t.shape if size > shapes.max_size})
        odd = set()
        for rule in shapes.alignment:
            concerned = list(tensors)
            if rule.ops:
                named = [call for call in seen.calls if _named(call.op, rule.ops)]
                concerned = [t for call in named for t in (*call.results, *call.reads)]
            for tensor in concerned:
                for dim in rule.dims:
                    if -tensor.dim() <= dim < tensor.dim() and tensor.shape[dim] % rule.multiple:
                        odd.add(tensor.shape[dim])
        return count + len(odd)

    def _is_badly_laid(self, look: _Strided) -> bool:
        layout = self.device.layout
        tensor = torch.empty(1, dtype=torch.uint8, device="meta").as_strided(*look)
        formats = [getattr(torch, _TORCH_NAMES.get(name, name)) for name in layout.formats]
        fitting = [f for f in formats if _RANKS.get(f, tensor.dim()) == tensor.dim()]
        dense = tensor.numel() == 0 or any(
            tensor.is_contiguous(memory_format=form)
            for form in fitting or [torch.contiguous_format]
        )
        wide = [(n, s) for n, s in zip(tensor.shape, tensor.stride(), strict=True) if n > 1]
        if layout.dense_rows:
            dense = dense or not wide or (wide[-1][1] == 1 and not _shares(tensor))
        shared = not layout.overlapping and _shares(tensor)
        dented = tensor.dim() > 0 and tensor.shape[-1] > 1 and tensor.stride()[-1] != 1
        high = layout.max_rank is not None and tensor.dim() > layout.max_rank
        return (
            bool(formats and not dense)
            or shared
            or (dented and layout.inner_stride_one)
            or (high and not tensor.is_contiguous())
        )

    def _bad_ops(self, seen: _Dispatched) -> set[Any]:
        ops = self.device.ops
        bad: set[Any] = set()
        for op, _, _, named, is_view in seen.calls:
            missing = ops.allowed and not is_view and not _named(op, ops.allowed)
            if _named(op, ops.denied) or missing:
                bad.add(op)
            for number, condition in enumerate(ops.conditions):
                if _named(op, [condition.op]) and _refused(condition.when, named):
                    bad.add((op, number))
        return bad


_TORCH_NAMES = {"contiguous": "contiguous_format"}
_RANKS = {torch.channels_last: 4, torch.channels_last_3d: 5}


def _is_ordered(look: _Strided) -> bool:
    steps = [step for size, step in zip(*look, strict=True) if size != 1]
    return steps == sorted(steps, reverse=True)


def _shares(tensor: torch.Tensor) -> bool:
    """Do elements share memory? Read off sizes and steps, which values under `vmap` have too."""
    steps = [(s, n) for s, n in zip(tensor.stride(), tensor.shape, strict=True) if n > 1]
    if tensor.numel() == 0 or not _in_doubt(steps):
        return False
    places = torch.zeros(1, dtype=torch.int64)
    for step, size in steps:
        places = (places[:, None] + torch.arange(size) * step).flatten()
    return len(places.unique()) < len(places)


def _in_doubt(steps: list[tuple[int, int]]) -> bool:
    """Whether some dimension steps no further than those within it reach."""
    reach = 0
    for step, size in sorted(steps):
        if step <= reach:
            return True
        reach += step * (size - 1)
    return False


def _refused(when: str, named: dict[str, Any]) -> bool:
    """The conditions that the example devices have."""
    name, sign, wanted = when.split()
    if name.startswith("len("):
        return len(named.get(name[4:-1], ())) > int(wanted)
    value = named.get(name)
    if value is None:
        return False
    values = value if isinstance(value, (list, tuple)) else [value]
    if sign == ">":
        return any(item > int(wanted) for item in values)
    return any(item is (wanted == "true") for item in values)


def _named(op: str, patterns: Any) -> bool:
    library, name, _ = op.split(".")
    names = [op, f"{library}.{name}", f"{library}.{name.rstrip('_')}"]
    names.append(f"{library}.{name.removesuffix('_functional')}")
    if name.endswith("_scatter"):
        names.append(f"{library}.copy")
    return any(fnmatchcase(each, pattern) for pattern in patterns for each in names)


def _tensors(value: Any) -> list[torch.Tensor]:
    return [leaf for leaf in torch.utils._pytree.tree_leaves(value) if torch.is_tensor(leaf)]
