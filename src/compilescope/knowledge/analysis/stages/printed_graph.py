"""Reads the code that torch prints for a graph: all that a log or a warm cache has of it.

Line by line, so that a line it cannot read costs that line alone. The tails that free values
(`;  x = None`) and the lines that only rename an input are left out. The nodes also become a
portable graph, with dtypes, shapes and sizes as torch abbreviates them.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Container, Iterable

import msgspec

from compilescope.base.patterns import late
from compilescope.base.texts import whole_number
from compilescope.record.graph import Graph, Node, TensorInfo
from compilescope.record.stack import plain_function_name

_CALL = late(r"([A-Za-z_][\w.]*)\((.*)\)", re.S)
_ITEM = late(r"(\w+)\[(.*)\]", re.S)
_ATTRIBUTE = late(r"(\w+)\.(\w+)")
_BINARY = late(
    r"([\w.+-]+) (\*\*|//|<<|>>|<=|>=|==|!=|[-+*/%@&|^<>])(=?) ([\w.+-]+(?:\(.*\))?)", re.S
)
_UNARY = late(r"([-+~]|not )(\w+)")
_OPERATORS = {
    "+": "add", "-": "sub", "*": "mul", "/": "truediv", "//": "floordiv", "%": "mod",
    "**": "pow", "@": "matmul", "&": "and_", "|": "or_", "^": "xor", "<<": "lshift",
    ">>": "rshift", "<": "lt", "<=": "le", ">": "gt", ">=": "ge", "==": "eq", "!=": "ne",
}  # fmt: skip
_INPLACE = {"and_": "iand", "or_": "ior"}
_SIGNS = {"-": "neg", "+": "pos", "~": "invert", "not ": "not_"}


class PrintedCall(msgspec.Struct, frozen=True, gc=False):
    """An operation and its arguments as text."""

    op: str
    target: str
    arguments: str


def read_call(expression: str, names: Container[str]) -> PrintedCall:
    """`names` are the values that exist so far: what begins with one is a method of it."""
    call = _CALL.fullmatch(expression)
    if call is not None:
        return _named_call(call[1], call[2], names)
    item = _ITEM.fullmatch(expression)
    if item is not None:
        return PrintedCall("call_function", "_operator.getitem", f"{item[1]}, {item[2]}")
    if expression.startswith("self."):
        return PrintedCall("get_attr", expression[len("self.") :], "")
    binary = _BINARY.fullmatch(expression)
    if binary is not None:
        left, sign, inplace, right = binary.groups()
        name = _OPERATORS[sign]
        if inplace:
            name = _INPLACE.get(name, f"i{name}")
        return PrintedCall("call_function", f"_operator.{name}", f"{left}, {right}")
    unary = _UNARY.fullmatch(expression)
    if unary is not None:
        return PrintedCall("call_function", f"_operator.{_SIGNS[unary[1]]}", unary[2])
    attribute = _ATTRIBUTE.fullmatch(expression)
    if attribute is not None:
        return PrintedCall("call_function", "builtins.getattr", f"{attribute[1]}, {attribute[2]!r}")
    if " = " in expression:
        return PrintedCall("call_function", "_operator.setitem", expression.replace(" = ", ", ", 1))
    return PrintedCall("call_function", "?", expression)


def _named_call(name: str, arguments: str, names: Container[str]) -> PrintedCall:
    head, _, rest = name.partition(".")
    if head == "self":
        return PrintedCall("call_module", rest, arguments)
    if rest and head in names:
        return PrintedCall("call_method", rest, f"{head}, {arguments}" if arguments else head)
    return PrintedCall("call_function", name.removeprefix("torch.ops."), arguments)


Place = tuple[str, int]
"""A file and a line of it."""

_LONGEST = 20_000
"""Letters of a line that is taken apart. Chosen: it bounds the time; a longer one, unless a
signature, is shown as it is."""
_CLASS = late(r"class (\S+)\(torch\.nn\.Module\):")
_PLACE = late(r"#(?=(.*?File: ))\1(.{1,1000}):(\d{1,9}) in (.{1,300}?), code: ?(.*)")
_TAIL = late(r";  (?:\w+ = )+None$")
_STATEMENT = late(r'(\w+)(?:\s*:(?:\s*"([^"]*)"|[^="]*?))? = (.*)')
_INPUT = late(
    r'\s*\*{0,2}(\w+)(?:\s*:(?:\s*"([^"]*)"|[^",()=#]*[^",()=#\s]))?(?:\s*=[^,()#]*[^,()#\s])?'
    r"\s*(?:,|$|(?=#))(?:\s*# (.*))?"
)
_WORD = late(r"[A-Za-z_]\w*")
_PLAIN_INPUT = late(r"PlainAOTInput\(idx=(\d{1,9})\)")


class PrintedNode(msgspec.Struct, frozen=True, gc=False):
    """One operation, as it stands in the text."""

    name: str
    op: str
    """FX's word; `bundle` for an argument that only holds inputs."""
    target: str
    arguments: str
    annotation: str
    """dtype, shape, stride and device, as torch writes them."""
    place: Place | None
    """The line it came from, by the comment above it."""
    scope: int
    """0 is the graph itself, others are the graphs within it."""
    position: int | None = None
    """For an input of an AOT graph: which of the compiled function's inputs it is."""


class PrintedLine(msgspec.Struct, frozen=True, gc=False):
    """A line to show."""

    text: str
    node: int | None = None
    place: Place | None = None
    """For a comment: the line of source that it names."""


class PrintedGraph(msgspec.Struct):
    """A graph read from its text."""

    nodes: list[PrintedNode] = msgspec.field(default_factory=list)
    lines: list[PrintedLine] = msgspec.field(default_factory=list)
    scopes: list[str] = msgspec.field(default_factory=lambda: [""])
    codes: dict[Place, tuple[str, str]] = msgspec.field(default_factory=dict)
    """Function and source of the lines that comments name."""
    returned: list[str] = msgspec.field(default_factory=list)
    """Names of what the graph gives back."""


def read_printed(text: str) -> PrintedGraph:
    reader = _PrintedGraphReader()
    for line in text.splitlines():
        reader.read(line)
    printed = reader.printed
    if any(node.op == "bundle" for node in printed.nodes):
        printed.lines = [line for line in printed.lines if not _is_bundle(line, printed)]
    return printed


def _without_tail(bare: str) -> str:
    # It is the last of a line: only there the expression is asked.
    at = bare.rfind(";  ") if bare.endswith("None") else -1
    return bare[:at] if at >= 0 and _TAIL.match(bare, at) else bare


def _is_bundle(line: PrintedLine, printed: PrintedGraph) -> bool:
    return line.node is not None and printed.nodes[line.node].op == "bundle"


class _PrintedGraphReader:
    def __init__(self) -> None:
        self.printed = PrintedGraph()
        self._names: set[str] = set()
        self._inputs: dict[str, tuple[int, int]] = {}
        """Name -> its node and its line."""
        self._place: Place | None = None
        self._indent = 8
        self._in_signature = self._returning = False
        self._fresh = True
        """No class has begun yet: the first one is the graph itself."""

    def read(self, line: str) -> None:
        bare = line.strip()
        if not bare:
            return
        if len(bare) > _LONGEST and not bare.startswith("def "):
            self._show(line)
        elif self._in_signature:
            self._read_input(line, bare)
        elif bare[0] == "#":
            self._read_comment(line, bare)
        elif bare.startswith(("class ", "def ")) and bare[-1] in ":(":
            self._begin(line, bare)
        else:
            self._read_statement(line, bare)

    def _begin(self, line: str, bare: str) -> None:
        header = _CLASS.match(bare)
        if header is not None:
            if not self._fresh:
                self.printed.scopes.append(header[1])
                self._names, self._inputs = set(), {}
                self._show(line)
            self._fresh, self._place, self._returning = False, None, False
        elif bare.endswith("("):
            self._in_signature = True
        else:
            self._read_signature(line, bare)

    def _read_signature(self, line: str, bare: str) -> None:
        inside = bare[bare.find("(") + 1 : bare.rfind(")")]
        at = 0
        while at < len(inside):
            found = _INPUT.match(inside, at)
            if found is None or found.end() == at:
                return
            self._add_input(found, line)
            at = found.end()

    def _read_input(self, line: str, bare: str) -> None:
        if bare.startswith(")"):
            self._in_signature = False
            return
        found = _INPUT.match(bare)
        if found is not None:
            self._add_input(found, line)

    def _add_input(self, found: re.Match[str], line: str) -> None:
        name, annotation, comment = found[1], found[2] or "", found[3] or ""
        if name == "self":
            return
        position = _PLAIN_INPUT.match(comment)
        node = PrintedNode(
            name, "placeholder", name, "", annotation, None, len(self.printed.scopes) - 1,
            int(position[1]) if position else None,
        )  # fmt: skip
        self._names.add(name)
        self._inputs[name] = (len(self.printed.nodes), len(self.printed.lines))
        shown = f'{name}: "{annotation}"' if annotation else name
        self._add(node, shown + (f"  # {comment}" if comment else ""), line)

    def _read_comment(self, line: str, bare: str) -> None:
        found = _PLACE.match(bare)
        if found is None:
            if "No stacktrace found" in bare:
                self._place = None
            else:
                self._show(line)
            return
        _, file, number, function, source = found.groups()
        function = plain_function_name(function)
        self._place = (file, int(number))
        self.printed.codes.setdefault(self._place, (function, source))
        base = file.rpartition("/")[2].rpartition("\\")[2]
        text = f"# {base}:{number} in {function}" + (f": {source}" if source else "")
        self.printed.lines.append(PrintedLine(text, None, self._place))

    def _read_statement(self, line: str, bare: str) -> None:
        body = _without_tail(bare)
        if self._returning or bare.startswith("return "):
            self._read_return(line, bare)
            return
        if " = fx_pytree." in bare:
            self._unpack()
            return
        found = _STATEMENT.fullmatch(body)
        if found is None or ";  " in body:
            # `x += y;  x_1: "f32[2]" = x`: the name comes second.
            first, _, second = body.partition(";  ")
            found = _STATEMENT.fullmatch(second) if second else None
            if found is None:
                declared = _INPUT.fullmatch(bare)
                if declared is not None and declared[2]:
                    self._add_input(declared, line)
                else:
                    self._show(line)
                return
            self._add_operation(found[1], found[2] or "", first, body, line)
            return
        name, annotation, expression = found.groups()
        if expression in self._names or (not annotation and name.lower() == expression.lower()):
            self._rename(expression, name)
            return
        self._add_operation(name, annotation or "", expression, body, line)

    def _read_return(self, line: str, bare: str) -> None:
        self._returning = bare[0] not in ")]" and (self._returning or bare[-1] in "([")
        if len(self.printed.scopes) == 1:
            names = _WORD.findall(bare.partition("#")[0].removeprefix("return "))
            self.printed.returned += [name for name in names if name in self._names]
        self._show(line)

    def _unpack(self) -> None:
        """The joint graph's arguments are bundles; its inputs are declared below them."""
        for index, _ in self._inputs.values():
            node = self.printed.nodes[index]
            if not node.annotation:
                self.printed.nodes[index] = msgspec.structs.replace(node, op="bundle")

    def _rename(self, old: str, new: str) -> None:
        """Dynamo's inputs are declared by one name and used by another: the latter is shown."""
        self._names.add(new)
        if old in self._inputs:
            index, row = self._inputs[old]
            node, line = self.printed.nodes[index], self.printed.lines[row]
            self.printed.nodes[index] = msgspec.structs.replace(node, name=new)
            self.printed.lines[row] = msgspec.structs.replace(
                line, text=line.text.replace(old, new, 1)
            )

    def _add_operation(
        self, name: str, annotation: str, expression: str, body: str, line: str
    ) -> None:
        call = read_call(expression, self._names)
        node = PrintedNode(
            name, call.op, call.target, call.arguments, annotation, self._place,
            len(self.printed.scopes) - 1,
        )  # fmt: skip
        self._names.add(name)
        self._add(node, body, line)

    def _add(self, node: PrintedNode, text: str, line: str) -> None:
        self.printed.nodes.append(node)
        self._show(line, text, len(self.printed.nodes) - 1)

    def _show(self, line: str, text: str | None = None, node: int | None = None) -> None:
        bare = line.strip() if text is None else text
        lead = len(line) - len(line.lstrip()) - self._indent
        self.printed.lines.append(PrintedLine(" " * lead + bare if lead > 0 else bare, node))


# torch.utils._dtype_abbrs of torch 2.13: name and bytes of an element.
_DTYPES = {
    "u8": ("uint8", 1), "u16": ("uint16", 2), "u32": ("uint32", 4), "u64": ("uint64", 8),
    "i8": ("int8", 1), "i16": ("int16", 2), "i32": ("int32", 4), "i64": ("int64", 8),
    "f16": ("float16", 2), "f32": ("float32", 4), "f64": ("float64", 8),
    "bf16": ("bfloat16", 2), "c32": ("complex32", 4), "c64": ("complex64", 8),
    "c128": ("complex128", 16), "b8": ("bool", 1), "b1x8": ("bits1x8", 1),
    "b2x4": ("bits2x4", 1), "b4x2": ("bits4x2", 1), "b8x1": ("bits8", 1),
    "b16x1": ("bits16", 2), "f8e5m2": ("float8_e5m2", 1), "f8e4m3fn": ("float8_e4m3fn", 1),
    "f8e5m2fnuz": ("float8_e5m2fnuz", 1), "f8e4m3fnuz": ("float8_e4m3fnuz", 1),
    "f8e8m0fnu": ("float8_e8m0fnu", 1), "f4e2m1fnx2": ("float4_e2m1fn_x2", 1),
}  # fmt: skip
_TENSOR = late(r"(?:\w+\()?(\w+)\[([^\]]*)\](?:\[([^\]]*)\])?([^,)]*)")


@functools.lru_cache(maxsize=8192)
def tensor_of(annotation: str) -> TensorInfo | None:
    """`f32[8, 16][16, 1]cpu`; None for what is no tensor, such as a symbolic number."""
    found = _TENSOR.match(annotation)
    if found is None or annotation.startswith("Sym("):
        return None
    dtype, item_bytes = _DTYPES.get(found[1], (found[1], None))
    shape = tuple(_sizes(found[2]))
    size_bytes = item_bytes
    for size in shape:
        size_bytes = None if size_bytes is None or isinstance(size, str) else size_bytes * size
    return TensorInfo(
        shape=shape,
        dtype=dtype,
        stride=tuple(_sizes(found[3])) if found[3] is not None else None,
        device=found[4],
        size_bytes=size_bytes,
    )


def _sizes(text: str) -> Iterable[int | str]:
    """Sizes may be formulas, with commas of their own: `s0 + ((s0//2)), Max(1, s1)`."""
    depth, start = 0, 0
    for at, sign in enumerate(f"{text},"):
        depth += (sign == "(") - (sign == ")")
        if sign != "," or depth > 0:
            continue
        size, start = text[start:at].strip(), at + 1
        if size:
            number = whole_number(size)
            yield size if number is None else number


def portable_graphs(printed: PrintedGraph) -> list[Graph]:
    """The graph, then the graphs within it."""
    nodes: list[list[Node]] = [[] for _ in printed.scopes]
    for node in printed.nodes:
        if node.op == "bundle":
            continue
        tensor = tensor_of(node.annotation) if node.annotation else None
        nodes[node.scope].append(
            Node(
                name=node.name,
                op=node.op,
                target=node.target,
                outputs=(tensor,) if tensor is not None else (),
                arguments=node.arguments,
                no_tensor=node.annotation.startswith("Sym("),
            )
        )
    return [Graph(tuple(of_scope)) for of_scope in nodes]
