"""Which guards of a cache entry do not hold, and the values that broke them.

torch stops at the first. We walk the entry's guard tree, evaluate what each node guards and ask
each leaf, then read the expected value from the leaf's own text. A value of the user's program is
put into a short, safe word: no `repr` of their classes runs, no tensor data is read.
"""

from __future__ import annotations

import enum
import functools
import json
import re
import types
from collections.abc import Iterable, Iterator
from types import CodeType
from typing import Any

import torch

from compilescope.base.processes.interruptions import let_through
from compilescope.record.bodies import FailedGuard
from compilescope.record.guards import readable, without_comment
from compilescope.record.stack import Frame

_LENGTH = 120
"""Letters of a value in words. Chosen: a line of a report."""
_ITEMS = 6
"""Of a container, likewise."""


def describe(value: Any, depth: int = 2) -> str:
    kind = type(value)
    if value is None or kind in (bool, int, float, complex):
        return _short(repr(value))
    if kind in (str, bytes):
        return _short(repr(value[: _LENGTH + 1]))
    if kind in (torch.dtype, torch.device, torch.Size, torch.layout, torch.memory_format):
        return str(value)
    if isinstance(value, torch.Tensor):
        return _tensor(value)
    if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        return _short(str(value))
    if kind in (tuple, list, set, frozenset, dict) and depth:
        return _container(value, kind, depth)
    if isinstance(value, type):
        return value.__qualname__ if value.__module__ == "builtins" else _qualified(value)
    if isinstance(value, (types.FunctionType, types.BuiltinFunctionType, types.MethodType)):
        return f"<function {value.__name__}>"
    if isinstance(value, enum.Enum):
        return f"{kind.__qualname__}.{value._name_}"
    if isinstance(value, types.CodeType):
        return f"<code of {value.co_name}>"
    return f"<{_qualified(kind)} object>"


def type_name(value: Any) -> str:
    kind = type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else _qualified(kind)


def _tensor(value: torch.Tensor) -> str:
    try:
        return f"{type(value).__name__}(shape={tuple(value.shape)}, dtype={value.dtype})"
    except Exception as error:  # A subclass may answer anything at all.
        let_through(error)
        return f"<{type(value).__name__}>"


def _container(value: Any, kind: type, depth: int) -> str:
    items = list(value.items() if kind is dict else value)
    shown = items[:_ITEMS]
    if kind is dict:
        words = [f"{describe(k, depth - 1)}: {describe(v, depth - 1)}" for k, v in shown]
    else:
        words = [describe(item, depth - 1) for item in shown]
    if len(items) > _ITEMS:
        words.append(f"... {len(items)} in all")
    inner = ", ".join(words)
    if kind is tuple:
        return _short(f"({inner},)" if len(items) == 1 else f"({inner})")
    if kind is list:
        return _short(f"[{inner}]")
    return _short(f"{{{inner}}}" if items or kind is dict else f"{kind.__name__}()")


def _qualified(kind: type) -> str:
    return (
        kind.__qualname__
        if kind.__module__ == "__main__"
        else f"{kind.__module__}.{kind.__qualname__}"
    )


def _short(text: str) -> str:
    return text if len(text) <= _LENGTH else text[: _LENGTH - 1] + "…"


_COMPARE = re.compile(r"^(?P<subject>.+?) (?P<op>==|!=|is not|is|in) (?P<expected>.+)$", re.S)
_TYPE = re.compile(
    r"^___check_type_id\((?P<subject>.+), \d+\), type=<class '(?P<type>[^']+)'>", re.S
)
_IDENTITY = re.compile(r"^___check_obj_id\((?P<subject>.+), \d+\)", re.S)
_TENSOR = re.compile(
    r"^check_tensor\(.{0,1000}?, (?P<type>[^,()]{1,200}), "
    r"(?P<keys>DispatchKeySet\([^)]{0,400}\)), (?P<dtype>[\w.]+), "
    r"device=(?P<device>[^,]{1,60}), requires_grad=(?P<grad>\w+), "
    r"size=(?P<size>\[[^\]]{0,400}\]), stride=(?P<stride>\[[^\]]{0,400}\])\)",
    re.S,
)
_STATE = re.compile(r"___check_global_state\(\) against (\{.*\})", re.S)
_OPERAND = re.compile(
    r"[LG]\['[^']+'\][\w.\[\]'()]{0,300}?\(\)\[\d+\]|[LG]\['[^']+'\][\w.\[\]']*(?:(?<=\.item)\(\))?"
)
_PROCESS_STATE = {
    "TORCH_FUNCTION_MODE_STACK": "torch function modes",
    "DEFAULT_DEVICE": "default device",
}
_MOST_FAILED = 50
"""Guards of one cache entry that are listed. Chosen: more than people read; each is written into
the run."""
_ALIASING = "OBJECT_ALIASING"
"""`x is y`, where torch (2.15) has a leaf for it and not an expression at the end."""


def failed_guards(
    manager: Any, f_locals: dict[str, Any], frames: dict[str, Frame], most: int = _MOST_FAILED
) -> list[FailedGuard]:
    """The guards of `manager` that `f_locals` fails, in the order in which torch checks them."""
    root = getattr(manager, "root", None)
    if root is None or manager.global_scope is None:
        return []
    scope = {"L": f_locals, "G": manager.global_scope["G"], **(manager.closure_vars or {})}
    globals_ = dict(manager.global_scope)
    found: dict[tuple[str, str], FailedGuard] = {}
    for failed in _walk(root, globals_, scope, frames):
        found.setdefault((failed.guard, failed.actual), failed)
        if len(found) >= most:
            break
    return list(found.values())


def tree_nodes(root: Any) -> Iterator[tuple[str, Any]]:
    """Every node of a guard tree with the expression it guards."""
    for node in bare_nodes(root):
        yield node.get_source(), node


def bare_nodes(root: Any) -> Iterator[Any]:
    """The nodes alone, in the same order: to ask each for its expression takes as long again."""
    stack = [root]
    while stack:
        node = stack.pop()
        yield node
        children = child_nodes(node)
        if children:
            stack.extend(reversed(children))


def child_nodes(node: Any) -> list[Any]:
    """The nodes right below one, in the order in which they are checked."""
    children = list(node.get_child_managers())
    if hasattr(node, "get_key_value_managers"):
        for key, value in node.get_key_value_managers().values():
            children += [child for child in (key, value) if child is not None]
    return children


def _walk(
    root: Any, globals_: dict[str, Any], scope: dict[str, Any], frames: dict[str, Frame]
) -> Iterator[FailedGuard]:
    for node in bare_nodes(root):
        leaves = node.get_leaf_guards()
        if not leaves:
            continue
        source = node.get_source()
        try:
            value = eval(_compiled(source), globals_, scope) if source else scope["L"]
        except Exception as error:
            let_through(error)
            # A parent that fails its own guard (None, a shorter list) has no such child.
            continue
        for leaf in leaves:
            if type(leaf).__name__ == _ALIASING:
                # It cannot be asked, but says what it compares.
                yield from _failed_expressions(leaf.verbose_code_parts(), globals_, scope, frames)
            elif _fails(leaf, value):
                yield from _failures_of(leaf, source, value, frames)
    for leaf in getattr(root, "get_epilogue_lambda_guards", list)():
        yield from _failed_expressions(leaf.verbose_code_parts(), globals_, scope, frames)


@functools.lru_cache(maxsize=4096)
def _compiled(expression: str) -> CodeType:
    """Entries of a frame guard the same expressions, and parsing takes longer than all else."""
    return compile(expression.lstrip(), "<guard>", "eval")


def _fails(leaf: Any, value: Any) -> bool:
    if not callable(leaf):
        return False  # Relational guards keep state between calls; asking one would change it.
    try:
        return not leaf(value)
    except Exception as error:
        let_through(error)
        # Not a value for this leaf at all: the guard on its type has failed and is listed.
        return False


def _failures_of(
    leaf: Any, source: str, value: Any, frames: dict[str, Frame]
) -> Iterator[FailedGuard]:
    kind = type(leaf).__name__
    frame = _frame_behind(source, frames)
    checks = leaf.verbose_code_parts()
    if kind == "DIMENSION_DYNAMIC_MARKING_GUARD":
        checks = checks[:1]  # One leaf, many conditions: which of them failed it does not say.
    for check in checks:
        text = without_comment(check)
        for guard, subject, expected, actual in _explain(text, kind, source, value):
            yield FailedGuard(guard, readable(subject), expected, actual, kind, frame)


def _frame_behind(source: str, frames: dict[str, Frame]) -> Frame | None:
    """The line that made Dynamo guard `source`, or else what `source` is a part of."""
    if source in frames:
        return frames[source]
    owners = [name for name in frames if name and source.startswith(name)]
    return frames[max(owners, key=len)] if owners else None


def _explain(text: str, kind: str, source: str, value: Any) -> Iterable[tuple[str, str, str, str]]:
    """(guard, subject, expected, actual) for a check that failed."""
    if kind == "TENSOR_MATCH":
        return (
            list(_tensor_differences(text, source, value))
            or list(_dispatch_keys(text, source, value))
            or [(readable(text), source, "", describe(value))]
        )
    if kind in _PROCESS_STATE:
        subject, actual = _PROCESS_STATE[kind], "another"
        if kind == "DEFAULT_DEVICE":
            actual = str(getattr(torch.utils._device, "CURRENT_DEVICE", "another"))
        match = _COMPARE.match(text)
        return [(f"{subject} unchanged", subject, match["expected"] if match else "", actual)]
    if "__math_isnan" in text:
        return [(f"{readable(source)} is nan", source, "nan", describe(value))]
    if kind == "GLOBAL_STATE":
        return list(_state_differences(text)) or [("global state", "global state", "", "changed")]
    match = _TYPE.match(text)
    if match:
        subject = f"type({match['subject']})"
        expected = match["type"].removeprefix("__main__.")
        return [(readable(f"{subject} is {expected}"), subject, expected, type_name(value))]
    if kind == "LENGTH_CHECK" or kind.endswith("_LENGTH") or kind == "DICT_LENGTH":
        match = re.match(r"^len\((.+)\) == (\d+)$", text)
        subject, expected = (match[1], match[2]) if match else (text.removeprefix("not "), "0")
        actual = str(len(value)) if hasattr(value, "__len__") else type_name(value)
        guard = f"len({subject}) == {expected}"
        return [(readable(guard), f"len({subject})", expected, actual)]
    match = _IDENTITY.match(text)
    if match:
        subject = match["subject"]
        return [
            (readable(f"{subject} is the same object"), subject, "the same object", describe(value))
        ]
    match = _COMPARE.match(text)
    if match:
        actual = describe(value) if match["subject"] == source else ""
        expected = match["expected"]
        if match["op"] != "==" and match["op"] != "is":
            expected = f"{match['op']} {expected}"
        return [(readable(text), match["subject"], readable(expected), actual or describe(value))]
    return [(readable(text), source, "", describe(value))]


def _tensor_differences(text: str, source: str, value: Any) -> Iterator[tuple[str, str, str, str]]:
    match = _TENSOR.match(text)
    if match is None:
        return
    if not isinstance(value, torch.Tensor):
        wanted = match["type"]
        yield _pair(f"type({source})", wanted, type_name(value), " is ")
        return
    if type(value).__name__ != match["type"].rsplit(".", 1)[-1]:
        yield _pair(f"type({source})", match["type"], type(value).__name__, " is ")
    if str(value.dtype) != match["dtype"]:
        yield _pair(f"{source}.dtype", match["dtype"], str(value.dtype))
    device = "None" if value.device.index is None else str(value.device.index)
    if device != match["device"]:
        yield _pair(f"{source}.device.index", match["device"], device)
    if str(value.requires_grad) != match["grad"]:
        yield _pair(f"{source}.requires_grad", match["grad"], str(value.requires_grad))
    size = _numbers(match["size"])
    if len(size) != value.dim():
        yield _pair(f"{source}.dim()", str(len(size)), str(value.dim()))
    else:
        yield from _number_differences(f"{source}.size()", size, tuple(value.size()))
        # A stride follows from the sizes unless the layout changed; then it says something new.
        if _sizes_fit(size, value):
            stride = _numbers(match["stride"])
            yield from _number_differences(f"{source}.stride()", stride, tuple(value.stride()))


def _dispatch_keys(text: str, source: str, value: Any) -> Iterator[tuple[str, str, str, str]]:
    """What is left when a tensor's guard failed and all that can be seen of it fits."""
    match = _TENSOR.match(text)
    if match is None or not isinstance(value, torch.Tensor):
        return
    wanted = set(re.findall(r"\w+", match["keys"])) - {"DispatchKeySet"}
    found = set(re.findall(r"\w+", str(torch._C._dispatch_keys(value)))) - {"DispatchKeySet"}
    gone, new = ", ".join(sorted(wanted - found)) or "-", ", ".join(sorted(found - wanted)) or "-"
    yield readable(f"dispatch keys of {source}"), f"dispatch keys of {source}", gone, new


def _sizes_fit(size: list[int | None], value: torch.Tensor) -> bool:
    return all(want is None or want == have for want, have in zip(size, value.size(), strict=True))


def _number_differences(
    subject: str, wanted: list[int | None], found: tuple[int, ...]
) -> Iterator[tuple[str, str, str, str]]:
    for index, (want, have) in enumerate(zip(wanted, found, strict=False)):
        if want is not None and want != have:
            yield _pair(f"{subject}[{index}]", str(want), str(have))


def _numbers(text: str) -> list[int | None]:
    """`[2, None]`, as a guard's text has it; empty where it is something else."""
    items = text[1:-1].split(", ") if len(text) > 2 else []
    try:
        return [None if item == "None" else int(item) for item in items]
    except ValueError as error:
        let_through(error)
        return []


def _pair(
    subject: str, expected: str, actual: str, relation: str = " == "
) -> tuple[str, str, str, str]:
    return readable(f"{subject}{relation}{expected}"), subject, expected, actual


def _state_differences(text: str) -> Iterator[tuple[str, str, str, str]]:
    match = _STATE.search(text)
    if match is None:
        return
    wanted = json.loads(match[1])
    guard = torch._C._dynamo.guards.GlobalStateGuard()
    if not hasattr(guard, "__getstate__"):
        return
    found = json.loads(guard.__getstate__())
    for name in sorted(wanted):
        if wanted[name] != found.get(name):
            yield _pair(name, str(wanted[name]), str(found.get(name)))


def _failed_expressions(
    checks: Iterable[str], globals_: dict[str, Any], scope: dict[str, Any], frames: dict[str, Frame]
) -> Iterator[FailedGuard]:
    """Conditions on sizes: Python expressions, each judged by itself and told once."""
    told: set[str] = set()
    for check in checks:
        text = without_comment(check)
        try:
            if eval(_compiled(text), globals_, scope) is not False:
                continue
        except Exception as error:
            let_through(error)
            continue  # An operand is of another type; that guard has failed and is listed.
        guard = readable(text)
        if guard in told:
            continue
        told.add(guard)
        subject, expected, actual = _operands(text, globals_, scope)
        sources = [source for source in frames if source and source in text]
        frame = frames[max(sources, key=len)] if sources else None
        yield FailedGuard(guard, readable(subject), expected, actual, "SHAPE", frame)


def _operands(text: str, globals_: dict[str, Any], scope: dict[str, Any]) -> tuple[str, str, str]:
    """What a condition speaks of, what it wants, and what is so now."""
    names = list(dict.fromkeys(_OPERAND.findall(text)))
    if " is " in text or not names:
        return text, "True", "False"
    values = []
    for name in names:
        try:
            values.append(describe(eval(name, globals_, scope)))
        except Exception as error:
            let_through(error)
            values.append("?")
    return ", ".join(names), readable(text), ", ".join(values)
