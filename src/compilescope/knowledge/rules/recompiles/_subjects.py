"""What a failed guard is about, as the author of the code would write it."""

from __future__ import annotations

import ast
import re
from typing import Literal

from compilescope.base.patterns import late
from compilescope.knowledge.rules.causes.rule import RecompileCase

_LONGEST = 120
"""Letters of a guard in a sentence. Chosen: it stays a line or two."""
_HELPER = late(r"___\w{1,80}\(([^(),]*)\)")
"""What torch wraps around a value in order to compare it."""
_CLASS_MEMBER = late(r"dict\(type\(([^()]*)\)\.__dict__\)\['([^']*)'\]")
_BUILTIN = late(r"G\['__builtins_dict__\w*'\]\['([^']*)'\]")
_IMPORTED = late(r"G\['__import_(\w+)'\]")
_SCOPED = late(r"\b[GL]\['([^']*)'\]")
_KEYWORD = late(r"\bkwargs\['(\w+)'\]")
_STORED = late(r"\.(?:_modules|_parameters|_buffers)\['([^']*)'\]")
_MODULE_PARTS = ("._modules[", "._parameters[", "._buffers[")
_IDENTIFIER = late(r"[A-Za-z_]\w*")
_PATH = late(r"^[A-Za-z_]\w*(?:\.\w+|\[(?:\d+|'[^',]*')\])*$")
_LAST_NAME = late(r"(?<!\w)(\w+)(?:\[\d+\])*$|\['(\w+)'\]$")
_SIZE = late(r"^(?P<tensor>.+)\.size\(\)\[(?P<dim>\d{1,9})\]$")
_TENSOR = late(r"^\w+\(shape=|^<\w*(?:Tensor|Parameter)>$")

ValueKind = Literal["none", "bool", "int", "float", "str", "tensor", "other"]
Use = Literal["branch", "range", "index", "math", "call"]


def cut(text: str) -> str:
    """On one line, and short enough to read."""
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"


def shown(subject: str) -> str:
    """`self._modules['layer']._modules['0'].flag` is `self.layer[0].flag` to its author."""
    text = _HELPER.sub(r"\1", subject)
    text = _CLASS_MEMBER.sub(r"type(\1).\2", text)
    text = _BUILTIN.sub(r"\1", text)
    text = _IMPORTED.sub(lambda match: match[1].replace("_dot_", "."), text)
    text = _SCOPED.sub(r"\1", text)
    text = _KEYWORD.sub(r"\1", text)
    return cut(_STORED.sub(_attribute, text))


def _attribute(match: re.Match[str]) -> str:
    name = match[1]
    return f"[{name}]" if name.isdigit() else f".{name}"


def named(miss: RecompileCase) -> str:
    """The subject of the failed guard, to be put between backticks."""
    return shown(miss.finding.subject) or shown(miss.finding.guard) or "a value"


def inside(subject: str, word: str) -> str:
    """What stands between the brackets of `type(...)` or `len(...)`; else empty."""
    if subject.startswith(f"{word}(") and subject.endswith(")"):
        return subject[len(word) + 1 : -1]
    return ""


def size_of(subject: str) -> tuple[str, int] | None:
    """(tensor, dimension) where the subject is one size of one tensor."""
    match = _SIZE.match(subject)
    if match is None or ", " in match["tensor"]:
        return None
    return match["tensor"], int(match["dim"])


def is_path(subject: str) -> bool:
    """A name with attributes and items, not an expression."""
    return _PATH.match(subject) is not None and not subject.startswith("___")


def is_global(subject: str) -> bool:
    return subject.startswith("G[")


def of_a_module(subject: str) -> bool:
    """An attribute, a parameter or a part of an nn.Module, as far as its path tells."""
    return any(part in subject for part in _MODULE_PARTS) or subject.startswith(("self.", "fn."))


def is_of_plain_object(subject: str) -> bool:
    """Is it an attribute of something that a module holds and that is no module? Those that are
    stand in `_modules`."""
    plain = _STORED.sub("", subject).removeprefix("self.").removeprefix("fn.")
    return subject.startswith(("self.", "fn.")) and "." in plain.lstrip(".")


def on_a_module(miss: RecompileCase) -> bool:
    """As `of_a_module`, and false where the source shows a `self` of a plain class."""
    subject = miss.finding.subject
    if any(part in subject for part in _MODULE_PARTS) or not subject.startswith("self."):
        return of_a_module(subject)
    around = miss.spot.ancestors
    cls = next((node for node in around if isinstance(node, ast.ClassDef)), None)
    return cls is None or not _is_plain(cls, _classes(around), set())


def is_set_later(miss: RecompileCase) -> bool:
    """Does the file of the line set the attribute outside of an `__init__`?"""
    name, around = member(miss.finding.subject), miss.spot.ancestors
    tree = around[-1] if around else None
    if tree is None or not name:
        return False
    stack: list[ast.AST] = [tree]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.FunctionDef) and node.name in ("__init__", "__new__"):
            continue
        is_set = isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
        if is_set and getattr(node, "attr", "") == name:
            return True
        stack.extend(ast.iter_child_nodes(node))
    return False


def _classes(around: tuple[ast.AST, ...]) -> dict[str, ast.ClassDef]:
    """Those at the top of the file."""
    top = around[-1] if around else None
    body = top.body if isinstance(top, ast.Module) else []
    return {each.name: each for each in body if isinstance(each, ast.ClassDef)}


def _is_plain(cls: ast.ClassDef, known: dict[str, ast.ClassDef], seen: set[str]) -> bool:
    """Is every class it is made of in the file, down to `object`? A base from elsewhere may well
    be a module."""
    if cls.name in seen:
        return False
    for base in cls.bases:
        name = base.id if isinstance(base, ast.Name) else ""
        if name == "object":
            continue
        if name not in known or not _is_plain(known[name], known, {*seen, cls.name}):
            return False
    return True


def member(subject: str) -> str:
    """The last name of a path: `step` of `self.step`, `a` of `batch['a']`, `b` of `b[0]`."""
    match = _LAST_NAME.search(subject)
    return (match[1] or match[2] or "") if match else ""


def value_kind(text: str) -> ValueKind:
    """What sort of value a description of one tells of."""
    if text in ("None", "NoneType"):
        return "none"
    if text in ("True", "False"):
        return "bool"
    if _TENSOR.match(text):
        return "tensor"
    if text[:1] in ("'", '"'):
        return "str"
    if re.fullmatch(r"-?\d+", text):
        return "int"
    try:
        float(text)
    except ValueError:
        return "other"
    return "float"


def both(miss: RecompileCase, *kinds: ValueKind) -> bool:
    """Are the expected and the actual value both of one of these sorts?"""
    return value_kind(miss.finding.expected) in kinds and value_kind(miss.finding.actual) in kinds


def called(miss: RecompileCase) -> str:
    """The compiled function's name: of a module of torch's own it is the module's `forward`."""
    known = miss.finding.function != miss.finding.compiled.function
    through_torch = (
        (miss.finding.compiled.is_call and not known)
        or miss.finding.function == "<module>"
        or wrapper_note(miss) != ""
    )
    return "forward" if through_torch else miss.finding.function


def line_of(miss: RecompileCase) -> str:
    """The user's line behind the guard; empty where it is not known."""
    return cut(miss.finding.source)


def at_line(miss: RecompileCase) -> str:
    """Words for the line that reads the value, to follow a verb."""
    line = line_of(miss)
    return f"in `{line}`" if line else f"in `{called(miss)}`"


def reader(miss: RecompileCase) -> str:
    """The line that reads the value, or the function, between backticks."""
    return f"`{line_of(miss) or called(miss)}`"


def wrapper_note(miss: RecompileCase) -> str:
    """Dynamo compiles torch's own modules through a function of torch's with names of its own."""
    names = {
        "fn": "`fn` is the module given to torch.compile",
        "args": "`args` holds the positional arguments of the call",
        "kwargs": "the name is a keyword argument of the call",
    }
    subject = inside(miss.finding.subject, "type") or inside(miss.finding.subject, "len")
    root = _IDENTIFIER.match(subject or miss.finding.subject)
    if root is None or root[0] not in names or _takes(miss, root[0]):
        return ""
    return f" ({names[root[0]]}.)".replace("(the", "(The")


def _takes(miss: RecompileCase, name: str) -> bool:
    function = miss.spot.function
    return function is not None and name in _parameters(function.args)


def uses(miss: RecompileCase, name: str) -> set[Use]:
    """What the guarding line does with a value of this name."""
    found: set[Use] = set()
    for top in _read_at(miss):
        for node in ast.walk(top):
            if isinstance(node, (ast.If, ast.IfExp, ast.While, ast.Assert)):
                _add(found, "branch", node.test, name)
            elif isinstance(node, ast.comprehension):
                for test in node.ifs:
                    _add(found, "branch", test, name)
            elif isinstance(node, ast.Subscript) and not isinstance(
                node.slice, (ast.Slice, ast.Constant)
            ):
                _add(found, "index", node.slice, name)
            elif isinstance(node, ast.Call):
                found |= _uses_in_call(node, name)
    return found


def _uses_in_call(node: ast.Call, name: str) -> set[Use]:
    found: set[Use] = {"call"} if _is_called(node.func, name) else set()
    function = ast.unparse(node.func)
    for argument in (*node.args, *(keyword.value for keyword in node.keywords)):
        if function == "range":
            _add(found, "range", argument, name)
        elif function.startswith("math."):
            _add(found, "math", argument, name)
    return found


def _add(found: set[Use], use: Use, tree: ast.AST, name: str) -> None:
    if any(_is_called(node, name) for node in ast.walk(tree)):
        found.add(use)


def _is_called(node: ast.AST, name: str) -> bool:
    if isinstance(node, ast.Name):
        return node.id == name
    if isinstance(node, ast.Attribute):
        return node.attr == name
    return isinstance(node, ast.Constant) and node.value == name


def _read_at(miss: RecompileCase) -> list[ast.AST]:
    """The parts of the statement that stand on its first line."""
    statement = miss.spot.statement
    if isinstance(statement, (ast.If, ast.While)):
        line = getattr(statement, "lineno", 0)
        head = type(statement)(test=statement.test, body=[], orelse=[])
        return [head, *(part for part in statement.body if part.lineno == line)]
    if isinstance(statement, (ast.For, ast.AsyncFor)):
        return [statement.iter]
    if isinstance(statement, (ast.With, ast.AsyncWith)):
        return [item.context_expr for item in statement.items]
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return [part for part in statement.body if part.lineno == statement.lineno]
    return [statement] if statement is not None else []


def condition(miss: RecompileCase, *, of_numbers: bool = False) -> str:
    """The test of the guarding line, as its author wrote it."""
    for top in _read_at(miss):
        for node in ast.walk(top):
            if isinstance(node, (ast.If, ast.IfExp, ast.While, ast.Assert)) and (
                _compares_numbers(node.test) or not of_numbers
            ):
                return cut(ast.unparse(node.test))
    return ""


def _compares_numbers(test: ast.expr) -> bool:
    """Not `mask is None`, nor `"key" in options`, nor a bare flag."""
    numeric = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)
    return any(
        isinstance(node, ast.BinOp)
        or (isinstance(node, ast.Compare) and any(isinstance(op, numeric) for op in node.ops))
        for node in ast.walk(test)
    )


def is_closed_over(miss: RecompileCase, name: str) -> bool:
    """Does the function read `name` from a function around it?"""
    function = miss.spot.function
    if function is None:
        return False
    if miss.finding.function == "<lambda>":
        tree = miss.spot.statement
        lambdas = [node for node in ast.walk(tree) if isinstance(node, ast.Lambda)] if tree else []
        own = {name for each in lambdas for name in _parameters(each.args)}
        return bool(lambdas) and name not in own and name in _bound(function)
    if name in _bound(function) or not _reads(function, name):
        return False
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    outer = [node for node in miss.spot.ancestors if isinstance(node, kinds)]
    return any(name in _bound(around) for around in outer if around is not function)


def _reads(function: ast.AST, name: str) -> bool:
    return any(isinstance(node, ast.Name) and node.id == name for node in ast.walk(function))


def _parameters(arguments: ast.arguments) -> set[str]:
    plain = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    extra = [each for each in (arguments.vararg, arguments.kwarg) if each is not None]
    return {argument.arg for argument in (*plain, *extra)}


def _bound(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    """Parameters of a function and names that its own body assigns."""
    names = _parameters(function.args)
    stack: list[ast.AST] = list(function.body)
    while stack:
        node = stack.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.add(node.name)
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        stack.extend(ast.iter_child_nodes(node))
    return names


_CODES = {
    "0": "torch.uint8",
    "1": "torch.int8",
    "2": "torch.int16",
    "3": "torch.int32",
    "4": "torch.int64",
    "5": "torch.float16",
    "6": "torch.float32",
    "7": "torch.float64",
    "9": "torch.complex64",
    "10": "torch.complex128",
    "11": "torch.bool",
    "15": "torch.bfloat16",
}
_SUBJECT = "dispatch keys of "
_ALWAYS = {"BackendSelect"}
"""In the guard's text, not in a tensor's own keys (torch 2.13)."""
_DEVICES = (
    "CPU",
    "CUDA",
    "Meta",
    "XPU",
    "MPS",
    "HPU",
    "XLA",
    "MTIA",
    "PrivateUse1",
    "IPU",
    "VE",
    "Lazy",
    "MAIA",
)


def dispatch_tensor(miss: RecompileCase) -> str:
    """The tensor whose dispatch keys changed; else empty."""
    subject = miss.finding.subject
    return subject[len(_SUBJECT) :] if subject.startswith(_SUBJECT) else ""


def keys_gone_and_new(miss: RecompileCase) -> tuple[set[str], set[str]]:
    """Keys that the compilation had and this call lacks, and the reverse."""
    if not dispatch_tensor(miss):
        return set(), set()
    gone = set(re.findall(r"\w+", miss.finding.expected)) - _ALWAYS
    new = set(re.findall(r"\w+", miss.finding.actual)) - _ALWAYS
    # A tensor's own keys name its autocast even when that is off: it says something only alone.
    others = {key for key in gone | new if not key.startswith("Autocast")}
    return (gone & others, new & others) if others else (gone, new)


def device_among(keys: set[str]) -> str:
    """The device that a set of keys belongs to, as torch spells it; else empty."""
    return next((device.lower() for device in _DEVICES if device in keys), "")


# Torch's numbers for dtypes, as its guards on global state write them.


def dtype_of_code(code: str) -> str:
    return _CODES.get(code, code)
