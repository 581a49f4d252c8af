"""How Dynamo hands a graph to the backend, and that graph as a WrittenGraph, with the numbers of
its inputs beside it.

What cannot be written as source of its own raises Unwritable.

Live, by standing around that call; or afterwards, from the traceback of what the backend raised.
"""

from __future__ import annotations

import functools
import math
import operator
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import msgspec
import torch
from torch.fx import GraphModule, Node

from compilescope.instrument.torchapi.compilation.current import current_model
from compilescope.instrument.torchapi.repros.definitions import Imports, Unwritable, literal
from compilescope.instrument.torchapi.stacks import callers
from compilescope.record.written_graph import Arg, Input, Op, Ref, TensorKind, WrittenGraph


def tensor_kind(value: torch.Tensor) -> TensorKind:
    if value.layout is not torch.strided or value.is_quantized:
        raise Unwritable(f"a tensor of layout {value.layout}")
    shape = tuple(_size(size) for size in value.shape)
    stride = tuple(_size(size) for size in value.stride())
    return TensorKind(
        shape=shape,
        dtype=str(value.dtype).removeprefix("torch."),
        stride=None if stride == contiguous(shape) else stride,
        device=str(value.device),
        grad=value.requires_grad,
        dynamic=tuple(at for at, size in enumerate(value.shape) if is_symbolic(size)),
    )


def is_real(value: Any) -> bool:
    """Has it numbers?"""
    from torch._subclasses.fake_tensor import FakeTensor

    plain = type(value) in (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer)
    return plain and not isinstance(value, FakeTensor) and value.device.type != "meta"


def whole_range(value: torch.Tensor) -> tuple[int, int]:
    """The smallest and largest of whole numbers."""
    if value.dtype.is_floating_point or value.dtype.is_complex or not value.numel():
        return 0, 0
    if value.dtype is torch.bool:
        return 0, 1
    return int(value.min()), int(value.max())


def is_symbolic(size: Any) -> bool:
    """A symbol that a guard has since made a number is none."""
    return not isinstance(size, int) and not size.node.expr.is_number


def number_of(value: Any, name: str) -> int | float | bool:
    """A number, or the one that a symbol stands for."""
    if isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, torch.Tensor):
        return value.item()  # type: ignore[no-any-return]
    hint = getattr(getattr(value, "node", None), "hint", None)
    if hint is None:
        raise Unwritable(f"the input {name} is a number that only the program knows")
    return hint  # type: ignore[no-any-return]


def _size(size: Any) -> int:
    if isinstance(size, int):
        return size
    hint = size.node.hint if is_symbolic(size) else size.node.expr
    if hint is None:
        raise Unwritable(f"the size {size} is one that only the program knows")
    return int(hint)


def contiguous(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(math.prod(max(size, 1) for size in shape[at + 1 :]) for at in range(len(shape)))


_FRAME = re.compile(r'File "([^"]+)", line (\d+), in .*\n\s*([^\n]*)')
_NAME = re.compile(r"\W")


class GraphAndInputs(msgspec.Struct):
    """A graph and what its inputs were."""

    graph: WrittenGraph
    values: dict[str, Any]
    """Name of an input -> the tensor, where there is a real one."""
    loose: bool = False
    """Numbers that are inputs were symbols: everything must be compiled as dynamic."""


def write_graph(module: GraphModule, inputs: Sequence[Any] | None = None) -> GraphAndInputs:
    """`inputs` are the arguments of the graph, for their numbers."""
    writer = _GraphWriter(module, inputs, _sizes_of_inputs(module), Imports())
    graph = writer.write()
    graph = msgspec.structs.replace(
        graph, imports=writer.imports.lines, folders=tuple(writer.imports.folders)
    )
    return GraphAndInputs(graph, writer.values, writer.loose)


class _GraphWriter:
    """One graph under way."""

    def __init__(
        self,
        module: GraphModule,
        inputs: Sequence[Any] | None,
        sizes: Mapping[Node, tuple[Node, int] | None],
        imports: Imports,
    ) -> None:
        self._module = module
        self._given = iter(inputs) if inputs is not None else None
        self._sizes = sizes
        self.imports = imports
        self.values: dict[str, Any] = {}
        self.loose = False
        self._inputs: list[Input] = []
        self._late: list[Op] = []
        self._ops: list[Op] = []
        self._graphs: dict[str, WrittenGraph] = {}
        self._modules: dict[str, str] = {}
        self._names: dict[Node, str] = {}
        self._attributes: dict[str, str] = {}

    def write(self) -> WrittenGraph:
        output: Arg = None
        for node in self._module.graph.nodes:
            if node.op == "placeholder":
                self._placeholder(node)
            elif node.op == "get_attr":
                self._attribute(node)
            elif node.op == "output":
                output = self._arg(node.args[0])
            else:
                self._call(node)
        ops = tuple(self._late + self._ops)
        return WrittenGraph(tuple(self._inputs), ops, output, self._graphs, self._modules)

    def _placeholder(self, node: Node) -> None:
        given = next(self._given, None) if self._given is not None else None
        value = node.meta.get("example_value", node.meta.get("val"))
        value = given if value is None else value
        self._names[node] = node.name
        of = self._sizes.get(node)
        if of is not None:
            number = number_of(value, node.name)
            tensor, dim = of
            self._late.append(
                Op(node.name, "size", "shape", (Ref(tensor.name), dim), number=number)
            )
        elif _is_passed_as_tensor(node):
            read = (user.meta.get("example_value") for user in node.users if user.target == "item")
            number = number_of(next(read, value), node.name)
            self._inputs.append(Input(node.name, value=literal(number, self.imports)))
        elif isinstance(value, torch.Tensor):
            self._tensor_input(node.name, value, given if is_real(given) else None)
        elif value is None or isinstance(value, (bool, int, float, str)):
            self._inputs.append(Input(node.name, value=literal(value, self.imports)))
        elif isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
            self.loose = self.loose or node in self._sizes
            number = number_of(value, node.name)
            self._inputs.append(Input(node.name, value=literal(number, self.imports)))
        else:
            raise Unwritable(f"the input {node.name} is of type {type(value).__name__}")

    def _tensor_input(
        self, name: str, noted: torch.Tensor, real: torch.Tensor | None, attribute: bool = False
    ) -> None:
        kind = tensor_kind(noted)
        fill, low, high = "random", 0, 0
        if real is not None:
            low, high = whole_range(real)
            fill = "saved"
            self.values[name] = real.detach()
        self._inputs.append(
            Input(
                name,
                kind,
                attribute=attribute,
                fill=fill,  # type: ignore[arg-type]
                saved=name if fill == "saved" else "",
                seed=len(self._inputs),
                low=low,
                high=high,
            )
        )

    def _attribute(self, node: Node) -> None:
        name = self._attributes.get(str(node.target))
        if name is None:
            name = "held_" + _NAME.sub("_", str(node.target)).strip("_")
            self._attributes[str(node.target)] = name
            value = operator.attrgetter(str(node.target))(self._module)
            if isinstance(value, GraphModule):
                inner = _GraphWriter(value, None, {}, self.imports)
                self._graphs[name] = inner.write()
            elif isinstance(value, torch.Tensor):
                self._tensor_input(name, value, value if is_real(value) else None, attribute=True)
            else:
                kind = type(value).__name__
                raise Unwritable(f"the graph contains an object of type {kind}")
        self._names[node] = name

    def _call(self, node: Node) -> None:
        first = node.args[0] if node.args else None
        if node.target == "item" and isinstance(first, Node) and _is_passed_as_tensor(first):
            # Dynamo passes a number as a tensor and reads it off. Here it is a number again.
            self._names[node] = first.name
            return
        self._names[node] = node.name
        kind: Any = node.op.removeprefix("call_")
        if kind == "function":
            target = self.imports.target(node.target)
        elif kind == "module":
            target = self._module_name(str(node.target))
        else:
            target = str(node.target)
        value = node.meta.get("example_value", node.meta.get("val"))
        self._ops.append(
            Op(
                node.name,
                kind,
                target,
                tuple(self._arg(arg) for arg in node.args),
                {name: self._arg(arg) for name, arg in node.kwargs.items()},
                tensor=_kind_or_none(value),
                number=_number_or_none(value),
                note=_note(node),
            )
        )

    def _module_name(self, target: str) -> str:
        value = self._module.get_submodule(target)
        name = "held_" + _NAME.sub("_", target)
        if next(value.children(), None) is not None or not _is_plain(value):
            raise Unwritable(f"the graph contains a module of type {type(value).__name__}")
        self._modules[name] = f"torch.nn.{value!r}.train({value.training})"
        return name

    def _arg(self, value: Any) -> Arg:
        return literal(value, self.imports, self._names)


def _is_plain(module: torch.nn.Module) -> bool:
    return type(module).__module__.startswith("torch.nn")


def _is_passed_as_tensor(node: Node) -> bool:
    """A number that is read off a tensor. Arrays of numpy are passed so too, and stay tensors."""
    passed = getattr(node.meta.get("grapharg"), "pass_arg_as_tensor", False)
    read = any(user.target == "item" for user in node.users)
    return node.op == "placeholder" and bool(passed) and read


def _sizes_of_inputs(module: GraphModule) -> dict[Node, tuple[Node, int] | None]:
    """Inputs that are symbolic numbers -> the dimension of another input that each is, or None."""
    places: dict[str, tuple[Node, int]] = {}
    numbers: list[tuple[Node, str]] = []
    for node in module.graph.nodes:
        value = node.meta.get("example_value")
        if node.op != "placeholder":
            continue
        if isinstance(value, torch.Tensor):
            for dim, size in enumerate(value.shape):
                if is_symbolic(size):
                    places.setdefault(str(size), (node, dim))
        elif isinstance(value, torch.SymInt):
            numbers.append((node, str(value)))
    return {node: places.get(symbol) for node, symbol in numbers}


def _kind_or_none(value: Any) -> Any:
    if not isinstance(value, torch.Tensor):
        return None
    try:
        return tensor_kind(value)
    except Unwritable:
        return None


def _number_or_none(value: Any) -> int | float | bool | None:
    if isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        try:
            return number_of(value, "")
        except Unwritable:
            return None
    return None


def _note(node: Node) -> str:
    frames = _FRAME.findall(node.meta.get("stack_trace") or "")
    if not frames:
        return ""
    file, line, source = frames[-1]
    return f"{os.path.basename(file)}:{line}: {source.strip()}"


_POINTS = ("_call_user_compiler", "call_user_compiler")


@dataclass(frozen=True)
class BackendCall:
    """A graph on its way to the backend."""

    module: GraphModule
    inputs: Sequence[Any]
    compiler: Any
    """The backend, in torch's wrappers."""
    compile: Callable[[], Callable[..., Any]]
    """Goes on: gives the compiled function, or raises what the backend raised."""

    frame: str = ""
    """The function that is compiled."""

    @property
    def model(self) -> str:
        return current_model() or self.frame

    @property
    def place(self) -> tuple[str, int | None]:
        """The user's line that called it."""
        frames = callers()
        return (frames[-1].file, frames[-1].line) if frames else ("", None)


@contextmanager
def watched_backends(watch: Callable[[BackendCall], Any]) -> Iterator[None]:
    """`watch` returns the compiled function in the backend's stead, or raises.

    On a torch without such a point nothing is watched, and RuntimeError says so.
    """
    from torch._dynamo.output_graph import OutputGraph

    point = next((name for name in _POINTS if hasattr(OutputGraph, name)), None)
    if point is None:
        raise RuntimeError("this torch has no place to observe backends from")
    original = getattr(OutputGraph, point)

    @functools.wraps(original)
    def around(self: Any, gm: GraphModule, *args: Any, **kwargs: Any) -> Any:
        inputs = args[0] if args else kwargs.get("example_inputs", ())
        return watch(
            BackendCall(gm, inputs, self.compiler_fn, lambda: original(self, gm, *args, **kwargs))
        )

    setattr(OutputGraph, point, around)
    try:
        yield
    finally:
        setattr(OutputGraph, point, original)


def call_of(error: BaseException) -> BackendCall | None:
    """What the backend was given that raised it, from the frames of its traceback."""
    trace = error.__traceback__
    found: BackendCall | None = None
    while trace is not None:
        frame = trace.tb_frame
        if frame.f_code.co_name in _POINTS:
            seen = frame.f_locals
            module, owner = seen.get("gm"), seen.get("self")
            if isinstance(module, GraphModule) and owner is not None:
                inputs = seen.get("example_inputs", ())
                code = getattr(getattr(owner, "root_tx", None), "f_code", None)
                name = getattr(code, "co_name", "")
                found = BackendCall(module, inputs, owner.compiler_fn, _over, name)
        trace = trace.tb_next
    return found


def _over() -> Callable[..., Any]:
    raise RuntimeError("it is already compiled")
