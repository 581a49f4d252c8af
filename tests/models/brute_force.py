"""What a device refuses, found the long way: a graph is run on real tensors and each is looked at.

Written without the constraints' code. A graph's inputs and what its nodes give are judged, each
fact once a node; operators are those that torch really dispatches.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from compilescope.model.device import Device

Facts = Counter[str]


def count_facts(
    module: torch.fx.GraphModule, inputs: list[Any], devices: Sequence[Device]
) -> dict[str, Facts]:
    """Device -> rule -> how many facts break it. The graph is run once."""
    judges = [_Judge(device) for device in devices]
    _Run(module, judges).run(*inputs)
    return {judge.device.name: +judge.facts for judge in judges}


class _Dispatched(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[str, list[torch.Tensor], dict[str, Any]]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        named = dict(zip([a.name for a in func._schema.arguments], args, strict=False)) | kwargs
        self.calls.append((str(func), _tensors((result, args, kwargs)), named))
        return result


class _Run(torch.fx.Interpreter):
    def __init__(self, module: torch.fx.GraphModule, judges: list[_Judge]) -> None:
        super().__init__(module, garbage_collect_values=True)
        self.judges = judges

    def run_node(self, n: torch.fx.Node) -> Any:
        picks = self._picks(n)
        with _Dispatched() as seen:
            result = super().run_node(n)
        if n.op != "output" and not picks:
            for judge in self.judges:
                judge.look(_tensors(result), seen)
        return result

    def _picks(self, n: torch.fx.Node) -> bool:
        whole = self.env.get(n.args[0]) if n.args and isinstance(n.args[0], torch.fx.Node) else None
        return getattr(n.target, "__name__", "") == "getitem" and not torch.is_tensor(whole)


class _Judge:
    def __init__(self, device: Device) -> None:
        self.device = device
        self.facts: Facts = Counter()

    def look(self, tensors: list[torch.Tensor], seen: _Dispatched) -> None:
        self.facts["dtype"] += len(self._bad_dtypes(tensors))
        self.facts["shape"] += self._bad_shapes(tensors, seen)
        self.facts["layout"] += len(self._bad_layouts(tensors))
        self.facts["operators"] += len(self._bad_ops(seen))
        limit = self.device.memory.tensor_bytes
        if limit is not None:
            big = {(t.shape, t.dtype) for t in tensors if t.numel() * t.element_size() > limit}
            self.facts["memory"] += len(big)

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
                concerned = [t for op, used, _ in seen.calls if _named(op, rule.ops) for t in used]
            for tensor in concerned:
                for dim in rule.dims:
                    if -tensor.dim() <= dim < tensor.dim() and tensor.shape[dim] % rule.multiple:
                        odd.add(tensor.shape[dim])
        return count + len(odd)

    def _bad_layouts(self, tensors: list[torch.Tensor]) -> set[Any]:
        layout = self.device.layout
        bad = set()
        for tensor in tensors:
            formats = [getattr(torch, _TORCH_NAMES.get(name, name)) for name in layout.formats]
            fitting = [f for f in formats if _RANKS.get(f, tensor.dim()) == tensor.dim()]
            dense = tensor.numel() == 0 or any(
                tensor.is_contiguous(memory_format=form)
                for form in fitting or [torch.contiguous_format]
            )
            shared = not layout.overlapping and _shares(tensor)
            dented = tensor.dim() > 0 and tensor.shape[-1] > 1 and tensor.stride()[-1] != 1
            high = layout.max_rank is not None and tensor.dim() > layout.max_rank
            if (
                (formats and not dense)
                or shared
                or (dented and layout.inner_stride_one)
                or (high and not tensor.is_contiguous())
            ):
                bad.add((tensor.shape, tensor.stride()))
        return bad

    def _bad_ops(self, seen: _Dispatched) -> set[Any]:
        ops = self.device.ops
        bad: set[Any] = set()
        for op, _, named in seen.calls:
            if _named(op, ops.denied) or (ops.allowed and not _named(op, ops.allowed)):
                bad.add(op)
            for number, condition in enumerate(ops.conditions):
                if _named(op, [condition.op]) and _refused(condition.when, named):
                    bad.add((op, number))
        return bad


_TORCH_NAMES = {"contiguous": "contiguous_format"}
_RANKS = {torch.channels_last: 4, torch.channels_last_3d: 5}


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
    """The three conditions that the example devices have."""
    name, sign, wanted = when.split()
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
    return any(fnmatchcase(each, pattern) for pattern in patterns for each in names)


def _tensors(value: Any) -> list[torch.Tensor]:
    return [leaf for leaf in torch.utils._pytree.tree_leaves(value) if torch.is_tensor(leaf)]
