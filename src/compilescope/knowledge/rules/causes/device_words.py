"""Why torch_xla, or a log without Dynamo's lines, ends a graph, and what to do about it."""

from __future__ import annotations

import ast
from collections.abc import Callable

import msgspec

from compilescope.base.patterns import late
from compilescope.knowledge.findings.remedy import Remedy, judgement, source
from compilescope.record.python_text import parse_python
from compilescope.record.stack import Frame

_METHODS = ("item", "tolist", "cpu", "numpy", "__bool__", "__float__", "__int__", "__len__")
_FUNCTIONS = ("float", "int", "bool", "print", "repr", "str", "format", "len", "list", "tuple")
_PRINTERS = late(r"(?:^|[/\\])torch[/\\]_tensor_str\.py$")
_READERS = {"__repr__", "__str__", "__format__", "tolist", "item", "__bool__", "__float__", "numpy"}


class DeviceBreak(msgspec.Struct, frozen=True):
    """What is known of one place at which a graph ended."""

    text: str
    """The program's line; empty where it is not known."""
    function: str
    graphs: int
    different: int
    """Of these, as one rank has them."""
    runs: int
    """How often a graph was executed because of it; 0 where the log doesn't count."""
    in_module: bool
    stack: tuple[Frame, ...]
    ops: tuple[str, ...] = ()
    operators: bool | None = None
    """Does the line call operators without reading a value itself? None where it is not known."""


class DeviceRule(msgspec.Struct, frozen=True):
    """One way in which a graph ends there."""

    id: str
    category: str
    title: str
    """Of the rule, for a list of rules."""
    why: Callable[[DeviceBreak], str]
    remedies: Callable[[DeviceBreak], list[Remedy]]
    by_hand: str
    """Why there is no automatic fix."""
    no_repro: str


def reader_in(source_line: str, inner: tuple[Frame, ...]) -> str | None:
    """The expression that brings a value to the host; empty where the line is not known, None where
    it has no such expression."""
    for frame in inner:
        if _PRINTERS.search(frame.file):
            return _shown(source_line, ("print",)) or "printing the tensor"
    text = source_line.strip()
    if not text:
        return next((f"`{f.function}`" for f in inner if f.function in _READERS), "")
    tree = _parsed(text)
    if tree is None:
        return ""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _reads(node):
            return f"`{ast.unparse(node)}`"
    if isinstance(tree.body[-1], (ast.If, ast.While, ast.Assert)):
        return f"the condition `{ast.unparse(tree.body[-1].test)}`"
    if any(isinstance(node, ast.JoinedStr) for node in ast.walk(tree)):
        return "formatting the tensor"
    return None


def _shown(text: str, names: tuple[str, ...]) -> str:
    tree = _parsed(text.strip())
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.Call) and ast.unparse(node.func) in names:
            return f"`{ast.unparse(node)}`"
    return ""


def _parsed(text: str) -> ast.Module | None:
    """A header line is completed so that it parses."""
    for candidate in (text, f"{text}\n    pass", f"if 1:\n    pass\n{text}\n    pass"):
        try:
            return parse_python(candidate)
        except SyntaxError:
            continue
    return None


def _reads(node: ast.Call) -> bool:
    if isinstance(node.func, ast.Attribute):
        return node.func.attr in _METHODS
    return isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS


def _why_read(seen: DeviceBreak) -> str:
    lazy = "torch_xla records operations and compiles them at the next `torch_xla.sync()`."
    reader = reader_in(seen.text, seen.stack)
    if seen.operators:
        return (
            f"{lazy} This line reads no value itself, so it probably calls an operator that "
            "torch_xla has no lowering for. Such an operator runs on the CPU and needs its inputs "
            "there, which ends the graph."
        )
    if reader:
        return (
            f"{lazy} {reader[0].upper()}{reader[1:]} needs the value on the host before that, so "
            "everything recorded so far is compiled and run as a graph of its own."
        )
    return (
        f"{lazy} Something on this line needs a value before that, so everything recorded so far "
        "is compiled and run as a graph of its own. It either reads a tensor (`.item()`, `print`, "
        "`if`) or calls an operator without a lowering, which runs on the CPU."
    )


def _read_remedies(seen: DeviceBreak) -> list[Remedy]:
    if seen.operators:
        return _fallback_remedies(seen)
    if seen.in_module:
        first = (
            f"Keep the value a tensor in `{seen.function}` (`torch.where` for a branch, tensor "
            "arithmetic for a number), or return it and read it after `torch_xla.sync()`."
        )
    else:
        first = (
            "Read the value after `torch_xla.sync()`, and not in every step. "
            "`xm.add_step_closure(f, args=(t,))` runs `f` after the step."
        )
    found = [source(first)]
    if reader_in(seen.text, seen.stack) == "":
        found.append(judgement("Run again with `PT_XLA_DEBUG=1`: it names missing lowerings."))
    return found


def _why_sync(seen: DeviceBreak) -> str:
    if seen.in_module:
        return (
            "`torch_xla.sync()` ends the graph wherever it is called. Inside the model, it splits "
            f"each step: what comes before and after it in `{seen.function}` is compiled "
            "separately."
        )
    if seen.different > 1:
        return (
            f"This sync compiled {seen.different} different graphs. torch_xla records each step "
            "anew, and a step that differs from the ones before (another shape, another Python "
            "number, another branch) is compiled again."
        )
    return (
        "Operations outside the compiled function were pending here, so this sync compiled them "
        "as a graph of their own."
    )


def _sync_remedies(seen: DeviceBreak) -> list[Remedy]:
    if seen.in_module:
        return [source("Remove this sync. One per step is enough, after the optimizer's step.")]
    if seen.different > 1:
        return [
            source(
                "Make all steps record the same graph: pass Python numbers that change (a step "
                "count, a learning rate) as tensors, and pad inputs to one shape or a few."
            )
        ]
    return [source("Move those operations into the compiled function.")]


def _why_fallback(seen: DeviceBreak) -> str:
    if not seen.ops:
        return (
            "The graph was split at operators that torch_xla has no lowering for. They run on the "
            "CPU: their inputs are computed and copied to the host, and the rest is a new graph. "
            "The log does not name them."
        )
    named = ", ".join(f"`{op}`" for op in seen.ops)
    it, runs = ("it", "runs") if len(seen.ops) == 1 else ("they", "run")
    return (
        f"torch_xla has no lowering for {named}: {it} {runs} on the CPU. The graph ends there, the "
        "inputs are copied to the host and the results back, and the rest is a new graph."
    )


def _fallback_remedies(seen: DeviceBreak) -> list[Remedy]:
    found = []
    if not seen.ops:
        found.append(judgement("Run again with `PT_XLA_DEBUG=1`: it names the operators."))
    what = "them" if len(seen.ops) != 1 else f"`{seen.ops[0]}`"
    found.append(
        source(
            f"Replace {what} with operators that torch_xla lowers, or move the computation out of "
            "the model: before the first step or after the last one."
        )
    )
    found.append(
        judgement("A missing lowering can be requested at https://github.com/pytorch/xla/issues.")
    )
    return found


def _why_pending(seen: DeviceBreak) -> str:
    return (
        "The inputs of a compiled function were still pending operations when it was called. "
        "torch_xla compiled and ran those first, as a graph of their own."
    )


def _pending_remedies(seen: DeviceBreak) -> list[Remedy]:
    return [
        source(
            "Compute the inputs inside the compiled function, or on the CPU before they are moved "
            "to the device."
        )
    ]


def _why_outside(seen: DeviceBreak) -> str:
    return (
        "These operators ran outside compiled code: no Dynamo graph came before this one. The "
        "device compiled them as a graph of their own."
    )


def _outside_remedies(seen: DeviceBreak) -> list[Remedy]:
    return [
        source("Move these operators into the compiled function, or run them on the CPU."),
    ]


def _why_unreported(seen: DeviceBreak) -> str:
    return (
        f"`{seen.function}` continues here in a graph of its own "
        "(`torch_dynamo_resume_in_...`), so there is a graph break on this line. No Dynamo "
        "line in the log gives its reason."
    )


def _unreported_remedies(seen: DeviceBreak) -> list[Remedy]:
    again = "Run again with `TORCH_LOGS=+dynamo` from the start: it shows the reason and the stack."
    return [judgement(again)]


_NEEDS_XLA = "it only shows on torch_xla, which records operations lazily"
_RULES = (
    DeviceRule(
        "xla/host-read",
        "host-read",
        "A value that torch_xla needs on the host",
        _why_read,
        _read_remedies,
        "no fix keeps this value on the device",
        _NEEDS_XLA,
    ),
    DeviceRule(
        "xla/sync",
        "sync",
        "A sync that splits a step, or whose graph changes",
        _why_sync,
        _sync_remedies,
        "where a step ends is for you to decide",
        _NEEDS_XLA,
    ),
    DeviceRule(
        "xla/cpu-fallback",
        "cpu-fallback",
        "An operator without a lowering",
        _why_fallback,
        _fallback_remedies,
        "which operators can replace it depends on the model",
        "it needs torch_xla, and the log has no arguments of the operator",
    ),
    DeviceRule(
        "xla/pending-inputs",
        "eager-ops",
        "Inputs of a compiled function that were still pending",
        _why_pending,
        _pending_remedies,
        "the log does not show which operations these are",
        _NEEDS_XLA,
    ),
    DeviceRule(
        "xla/eager-ops",
        "eager-ops",
        "Operators outside compiled code",
        _why_outside,
        _outside_remedies,
        "which function they belong in is for you to decide",
        "the log does not show the operators' arguments",
    ),
    DeviceRule(
        "log/unreported-break",
        "unreported",
        "A graph break whose reason the log lacks",
        _why_unreported,
        _unreported_remedies,
        "the log does not give the reason",
        "the log does not give the reason",
    ),
)
DEVICE_RULES = {rule.id: rule for rule in _RULES}
