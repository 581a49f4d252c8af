"""Which guards of a cache entry do not hold, and the values that broke them.

torch stops at the first. We walk the entry's guard tree, evaluate what each node guards and ask
each leaf, then read the expected value from the leaf's own text.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

import torch

from compilescope.model.bodies import FailedGuard
from compilescope.model.guard_text import readable, without_comment
from compilescope.model.stack import Frame
from compilescope.torchapi.guards.values import describe, type_name

_COMPARE = re.compile(r"^(?P<subject>.+?) (?P<op>==|!=|is not|is|in) (?P<expected>.+)$", re.S)
_TYPE = re.compile(
    r"^___check_type_id\((?P<subject>.+), \d+\), type=<class '(?P<type>[^']+)'>", re.S
)
_IDENTITY = re.compile(r"^___check_obj_id\((?P<subject>.+), \d+\)", re.S)
_TENSOR = re.compile(
    r"^check_tensor\(.*?, (?P<type>[^,()]+), (?P<keys>DispatchKeySet\([^)]*\)), (?P<dtype>[\w.]+), "
    r"device=(?P<device>[^,]+), requires_grad=(?P<grad>\w+), "
    r"size=(?P<size>\[.*?\]), stride=(?P<stride>\[.*?\])\)",
    re.S,
)
_STATE = re.compile(r"___check_global_state\(\) against (\{.*\})", re.S)
_OPERAND = re.compile(
    r"[LG]\['[^']+'\][\w.\[\]'()]*?\(\)\[\d+\]|[LG]\['[^']+'\][\w.\[\]']*(?:(?<=\.item)\(\))?"
)
_PROCESS_STATE = {
    "TORCH_FUNCTION_MODE_STACK": "torch function modes",
    "DEFAULT_DEVICE": "default device",
}
_MOST_FAILED = 50


def failed_guards(
    manager: Any, f_locals: dict[str, Any], frames: dict[str, Frame]
) -> list[FailedGuard]:
    """Every guard of `manager` that `f_locals` fails, in the order in which torch checks them."""
    root = getattr(manager, "root", None)
    if root is None or manager.global_scope is None:
        return []
    scope = {"L": f_locals, "G": manager.global_scope["G"], **(manager.closure_vars or {})}
    globals_ = dict(manager.global_scope)
    found: dict[tuple[str, str], FailedGuard] = {}
    for failed in _walk(root, globals_, scope, frames):
        found.setdefault((failed.guard, failed.actual), failed)
        if len(found) >= _MOST_FAILED:
            break
    return list(found.values())


def tree_nodes(root: Any) -> Iterator[tuple[str, Any]]:
    """Every node of a guard tree with the expression it guards."""
    stack = [root]
    while stack:
        node = stack.pop()
        yield node.get_source(), node
        stack.extend(reversed(child_nodes(node)))


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
    for source, node in tree_nodes(root):
        leaves = node.get_leaf_guards()
        if not leaves:
            continue
        try:
            value = eval(source, globals_, scope) if source else scope["L"]
        except Exception:
            # A parent that fails its own guard (None, a shorter list) has no such child.
            continue
        for leaf in leaves:
            yield from _failures_of(leaf, source, value, frames)
    for leaf in getattr(root, "get_epilogue_lambda_guards", list)():
        yield from _failed_expressions(leaf.verbose_code_parts(), globals_, scope, frames)


def _failures_of(
    leaf: Any, source: str, value: Any, frames: dict[str, Frame]
) -> Iterator[FailedGuard]:
    if not callable(leaf):
        return  # Relational guards keep state between calls; asking one would change it.
    try:
        if leaf(value):
            return
    except Exception:
        return  # Not a value for this leaf at all: the guard on its type has failed and is listed.
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
    try:
        return [item if isinstance(item, int) else None for item in ast.literal_eval(text)]
    except (ValueError, SyntaxError):
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
    """Conditions on sizes: Python expressions, each judged by itself."""
    for check in checks:
        text = without_comment(check)
        try:
            if eval(text, globals_, scope) is not False:
                continue
        except Exception:
            continue  # An operand is of another type; that guard has failed and is listed.
        subject, expected, actual = _operands(text, globals_, scope)
        sources = [source for source in frames if source and source in text]
        frame = frames[max(sources, key=len)] if sources else None
        yield FailedGuard(readable(text), readable(subject), expected, actual, "SHAPE", frame)


def _operands(text: str, globals_: dict[str, Any], scope: dict[str, Any]) -> tuple[str, str, str]:
    """What a condition speaks of, what it wants, and what is so now."""
    names = list(dict.fromkeys(_OPERAND.findall(text)))
    if " is " in text or not names:
        return text, "True", "False"
    values = []
    for name in names:
        try:
            values.append(describe(eval(name, globals_, scope)))
        except Exception:
            values.append("?")
    return ", ".join(names), readable(text), ", ".join(values)
