"""Peak memory of a graph, from what is alive when: no tensor is made.

As torch runs a graph: a value goes after its last use, a storage with the last of its views; inputs
and parameters stay, since the caller holds them; results stay, and so does what autograd saved.
In-place operators and views make no new storage. While a node runs, what it makes on the way (the
indices of a pooling, the copy of a broadcast operand) and its kernels' workspace are there too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import msgspec

from compilescope.knowledge.rules.hardware.constraint import lacks_value, shown_op
from compilescope.knowledge.rules.hardware.operands import is_dense, makes_memory, shares_memory
from compilescope.record.graph import Call, Graph, Node, TensorInfo
from compilescope.record.graphs.completion import complete
from compilescope.record.graphs.user_lines import line_of
from compilescope.record.stack import Frame

_INPUTS = ("placeholder", "get_attr")
_MOST_ALIVE = 10
"""Tensors that are named at the worst moment, largest first. Chosen: those that matter."""


class Peak(msgspec.Struct, frozen=True, kw_only=True):
    """The moment at which a graph needs most memory."""

    peak_bytes: int
    inputs_bytes: int
    """Inputs and parameters, each counted once."""
    saved_bytes: int
    """Of those alive then: what autograd keeps for the backward pass, and no input."""
    node: str
    """The node at which the peak is reached."""
    op: str
    frame: Frame | None
    """The user's line of that node."""
    alive: tuple[tuple[str, int], ...]
    """The largest storages alive then: the node that made it, and its bytes."""
    unknown: tuple[str, ...]
    """Nodes whose bytes are not known: the peak is at least what it says."""


def peak_memory(graph: Graph) -> Peak:
    graph = complete(graph)
    storages = _StorageLifetimes(graph)
    made, freed = storages.made_bytes, storages.freed_bytes()
    now = peak = at = 0
    for step, node in enumerate(graph.nodes):
        now += made[step]
        passing = _passing(node, made[step]) if node.calls or node.graphs else 0
        if now + passing > peak:
            peak, at = now + passing, step
        now -= freed[step]
    alive = storages.alive_at(at)
    inputs = sum(storages.size[storage] for storage in storages.inputs)
    waiting = storages.saved - storages.inputs
    worst = graph.nodes[at] if graph.nodes else None
    return Peak(
        peak_bytes=peak,
        inputs_bytes=inputs,
        saved_bytes=sum(storages.size[storage] for storage in alive if storage in waiting),
        node=worst.name if worst else "",
        op=shown_op(worst) if worst else "",
        frame=line_of(worst, graph) if worst else None,
        alive=tuple(storages.largest(alive)),
        unknown=tuple(dict.fromkeys(storages.unknown)),
    )


def _passing(node: Node, made: int) -> int:
    """Bytes that a node makes beside what it gives."""
    within = workspace = 0
    for inner in node.graphs:
        peak = peak_memory(inner)
        within = max(within, peak.peak_bytes - peak.inputs_bytes)
    if not node.graphs:
        for call in node.calls or ():
            if makes_memory(call.op):
                within += sum(result.size_bytes or 0 for result in call.outputs)
                workspace = max(workspace, _workspace_bytes(call))
    return max(0, within - made) + workspace


def _span(value: TensorInfo) -> int | None:
    """Bytes from its first to its last element."""
    elements = reach = 1
    for size, step in zip(value.shape, value.stride or (), strict=False):
        if isinstance(size, str) or isinstance(step, str):
            return None
        elements *= size
        reach += (size - 1) * step
    if value.stride is None or not value.size_bytes or not elements:
        return value.size_bytes
    return reach * (value.size_bytes // elements)


class _StorageLifetimes:
    """Which storages a graph has, who makes them and who uses them last."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.size: dict[int, int] = {}
        self.made_bytes = [0] * len(graph.nodes)
        self.inputs: set[int] = set()
        self.saved: set[int] = set()
        self.unknown: list[str] = []
        self._results: set[int] = set()
        self._made_at: dict[int, int] = {}
        self._last_use: dict[int, int] = {}
        self._of: dict[str, tuple[int, ...]] = {}
        self._given: dict[str, TensorInfo] = {}
        self._same_as: dict[int, int] = {}
        self._fresh = -1
        for step, node in enumerate(graph.nodes):
            self._read(step, node)
        if graph.nodes and graph.nodes[-1].op != "output":
            self._keep_unused()
        self._fit_inputs()

    def _read(self, step: int, node: Node) -> None:
        held = tuple(self._places(step, node))
        self._of[node.name] = held
        for storage in held:
            self._last_use[storage] = step
        for name in node.inputs:
            for storage in self._of.get(name, ()):
                self._last_use[storage] = step
        if node.outputs and node.outputs[0].storage is None:
            self._given[node.name] = node.outputs[0]
        if node.op in _INPUTS:
            self.inputs.update(held)
        elif node.op == "output":
            for name in node.inputs:
                self._results.update(self._of.get(name, ()))
        for value in node.saved:
            self.saved.add(self._place(step, node, value))

    def _places(self, step: int, node: Node) -> Iterator[int]:
        passed_on = self._passed_on(node)
        for number, value in enumerate(node.outputs):
            if passed_on is not None and value.storage not in self.size:
                if value.storage is not None:
                    self._same_as[value.storage] = passed_on
                yield passed_on
            elif value.storage is None:
                yield self._guess(step, node, value, number)
            else:
                yield self._place(step, node, value)
        if not node.outputs and not node.no_tensor and node.op != "output":
            # A tuple, or something that nobody noted: it may hold what it was given.
            if lacks_value(node):
                self.unknown.append(node.name)
            for name in node.inputs:
                yield from self._of.get(name, ())

    def _passed_on(self, node: Node) -> int | None:
        """No operator was called, so nothing was made: `dropout` may give back what it was given.

        The compiler's own tensors do not show it: torch 2.13 copies there.
        """
        if node.calls != () or node.graphs or len(node.outputs) != 1:
            return None
        held = [storage for name in node.inputs for storage in self._of.get(name, ())]
        return held[0] if len(held) == 1 else None

    def _place(self, step: int, node: Node, value: TensorInfo) -> int:
        storage = value.storage
        if storage is None:
            storage, self._fresh = self._fresh, self._fresh - 1
        storage = self._same_as.get(storage, storage)
        if storage not in self.size:
            size = value.storage_bytes if value.storage_bytes is not None else value.size_bytes
            if size is None:
                self.unknown.append(node.name)
                size = 0
            self.size[storage] = size
            self._made_at[storage] = step
            self.made_bytes[step] += size
        return storage

    def _guess(self, step: int, node: Node, value: TensorInfo, number: int) -> int:
        """Where nobody noted the storages, the operator tells whether it makes one."""
        sources = [name for name in node.inputs if self._of.get(name)]
        if node.op in _INPUTS or not sources:
            return self._place(step, node, value)
        shared = shares_memory(node, self._given.get(sources[0]))
        if shared is None:
            self.unknown.append(node.name)
        if shared is False:
            return self._place(step, node, value)
        held = self._of[sources[0]]
        if len(held) == 1:
            return held[0]
        # One of several results: that of the same bytes, as far as one can see.
        same = [storage for storage in held if self.size[storage] == value.size_bytes]
        return same[number % len(same)] if same else held[0]

    def _keep_unused(self) -> None:
        """A graph that was read from text has no output: what nobody uses is what it returns."""
        used = {name for node in self.graph.nodes for name in node.inputs}
        for node in self.graph.nodes:
            if node.name not in used:
                self._results.update(self._of[node.name])

    def _fit_inputs(self) -> None:
        """Of a large storage of which only a part was passed, only that part is needed."""
        passed: dict[int, int | None] = {}
        for node in self.graph.nodes:
            if node.op in _INPUTS:
                for storage, value in zip(self._of[node.name], node.outputs, strict=False):
                    before, more = passed.get(storage, 0), _span(value)
                    passed[storage] = None if before is None or more is None else before + more
        for storage, size in passed.items():
            surplus = self.size[storage] - size if size is not None else 0
            if surplus > 0:
                self.size[storage] -= surplus
                self.made_bytes[self._made_at[storage]] -= surplus

    def _stays(self, storage: int) -> bool:
        """Inputs, which the caller holds; results; what autograd needs."""
        return storage in self.inputs or storage in self._results or storage in self.saved

    def freed_bytes(self) -> list[int]:
        """After each step."""
        freed = [0] * len(self.graph.nodes)
        for storage, step in self._last_use.items():
            if not self._stays(storage):
                freed[step] += self.size[storage]
        return freed

    def alive_at(self, step: int) -> set[int]:
        return {
            storage
            for storage, made in self._made_at.items()
            if made <= step and (self._stays(storage) or self._last_use[storage] >= step)
        }

    def largest(self, alive: Iterable[int]) -> Iterator[tuple[str, int]]:
        """The node that made it, and its bytes."""
        for storage in sorted(alive, key=lambda s: (-self.size[s], s))[:_MOST_ALIVE]:
            yield self.graph.nodes[self._made_at[storage]].name, self.size[storage]


_Sizes = list[int]


def _workspace_bytes(call: Call) -> int:
    """What its kernel takes for itself while it runs; 0 where nothing is known of it.

    Known for kernels of torch's CPU build where it is not small. oneDNN copies what a convolution
    works on into blocks of its own; measured with torch 2.13, in float32.
    """
    measure = _KERNELS.get(call.op.rpartition(".")[0])
    if measure is None or not all(t.device.startswith("cpu") for t in call.inputs):
        return 0
    given = [tensor.size_bytes for tensor in call.inputs]
    made = [tensor.size_bytes for tensor in call.outputs]
    known = [size for size in given if size is not None], [s for s in made if s is not None]
    if len(known[0]) < max(len(given), 2) or len(known[1]) < max(len(made), 1):
        return 0
    if call.constants.get("transposed") is True and measure is _convolution:
        measure = _transposed_convolution
    return measure(_is_channels_last(call.inputs), *known)


def _is_channels_last(given: tuple[TensorInfo, ...]) -> bool:
    return any(
        is_dense(tensor, form) is True and is_dense(tensor, "contiguous") is not True
        for tensor in given[:2]
        for form in ("channels_last", "channels_last_3d")
    )


def _convolution(channels_last: bool, given: _Sizes, made: _Sizes) -> int:
    """Input and weight in blocks, and then the result, which is copied out of them."""
    image, weight = given[:2]
    return weight if channels_last else max(image + weight, made[0])


def _transposed_convolution(channels_last: bool, given: _Sizes, made: _Sizes) -> int:
    image, weight = given[:2]
    return weight if channels_last else max(image + weight, 2 * made[0])


def _convolution_backward(channels_last: bool, given: _Sizes, made: _Sizes) -> int:
    if len(given) < 3:
        return 0
    gradient, image, weight = given[:3]
    return 2 * weight if channels_last else max(gradient + image, weight)


def _batch_norm_backward(channels_last: bool, given: _Sizes, made: _Sizes) -> int:
    return 0 if channels_last else given[1]


_KERNELS: dict[str, Callable[[bool, _Sizes, _Sizes], int]] = {
    "aten.convolution": _convolution,
    "aten.convolution_backward": _convolution_backward,
    "aten.native_batch_norm_backward": _batch_norm_backward,
}
