"""What this torch can do that not every one can: one row for each thing that this tool, a fix or a
test relies on, and how to find out. Nothing here compares versions.

In which versions each was seen is on record (`registry.capabilities`), which
docs/reference/versions.md shows.
"""

from __future__ import annotations

import functools
import importlib
import itertools
import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from compilescope.base.processes.interruptions import let_through
from compilescope.instrument.torchapi.compilation.settings import compile_arguments
from compilescope.instrument.torchapi.install import all_hooks, find_target
from compilescope.knowledge.registry.table import load_registry

CapabilityKind = Literal[
    "hook", "argument", "flag", "setting", "function", "guard", "break", "tracing"
]


@dataclass(frozen=True)
class Capability:
    """Something that a torch has or has not."""

    kind: CapabilityKind
    name: str
    use: str
    """What it is for; of a hook, what is lost without it."""

    @property
    def id(self) -> str:
        return f"{self.kind}/{self.name}"


_ARGUMENTS = {
    "dynamic": "fixes of recompiles",
    "recompile_limit": "the fix `raised-limit`; elsewhere it sets the limit of every function",
    "isolate_recompiles": "the fix `isolated-recompiles`; our own compilations apart from others",
}
_FLAGS = {
    "accumulated_recompile_limit": "room for compilations of ours",
    "allow_rnn": "the fix `rnn-traced`",
    "allow_unspec_int_on_nn_module": "the fix `unspecialised-ints`",
    "capture_dynamic_output_shape_ops": "the fix `capture-shapes`",
    "capture_scalar_outputs": "the fix `capture-scalars`",
    "force_nn_module_property_static_shapes": "the fix `dynamic-parameters`",
    "force_parameter_static_shapes": "the fix `dynamic-parameters`",
    "graph_break_on_nn_param_ctor": "the fix `parameter-traced`",
    "recompile_limit": "the fix `raised-limit`",
    "reorderable_logging_functions": "the fix `print-after-graph`",
    "skip_fwd_side_effects_in_bwd_under_checkpoint": "the fix `checkpoint-once`",
    "trace_autograd_ops": "the fix `autograd-traced`",
}
_SETTINGS = {
    "_post_fusion_custom_pass": "Inductor's IR after fusion",
    "_pre_fusion_custom_pass": "Inductor's IR before fusion",
    "custom_partitioner_fn": "the joint graph of AOTAutograd",
    "fallback_random": "random numbers of compiled code that agree with eager mode",
}
_FUNCTIONS = {
    "torch._assert_async": "the fix `async-assert`",
    "torch._dynamo.config.patch": "fixes that set a flag",
    "torch._dynamo.decorators.mark_unbacked": "the fix `mark-unbacked`",
    "torch._dynamo.decorators.skip": "fixes that leave a call to eager mode",
    "torch._dynamo.guards.guard_manager_testing_hook_fn": "the cost of guards",
    "torch._dynamo.maybe_mark_dynamic": "the fix `mark-dynamic`",
    "torch._dynamo.nonstrict_trace": "the fix `nonstrict-part`",
    "torch.while_loop": "the fix `while-loop`",
    "torch._library.effects.EffectType.ORDERED": "the fixes `print-in-graph` and `report-in-graph`",
    "torch.compiler.assume_constant_result": "the fix `pure-call-once`",
    "torch.compiler.config.dynamic_sources": "the fix `dynamic-sources`",
    "torch.compiler.disable": "the fix `number-for-size`",
    "torch.compiler.is_compiling": "the fix `print-while-eager`",
    "torch.compiler.save_cache_artifacts": "the candidate `mega-cache` of `compilescope tune`",
    "torch.compiler.set_stance": "fixes that leave the first call to eager mode",
    "torch.cond": "the fix `cond-for-if`",
    "torch.func.jacrev": "the fix `functional-for-autograd`",
    "torch.library.custom_op": "fixes that make an operator",
}
_GUARDS = {
    "DEFAULT_DEVICE": "the default device in words",
    "DICT_LENGTH": "lengths in words",
    "DIMENSION_DYNAMIC_MARKING_GUARD": "marks of dynamic sizes in words",
    "GLOBAL_STATE": "autocast, grad mode and the like in words",
    "LENGTH_CHECK": "lengths in words",
    "OBJECT_ALIASING": "two arguments that are one object",
    "TENSOR_MATCH": "size, stride, dtype and device of a tensor in words",
    "TORCH_FUNCTION_MODE_STACK": "modes in words",
}
_BREAKS = {
    "GB8985": "`requires_grad_()` is traced, and breaks where a result needs the leaf",
    "GB9193": "the clock has a type of its own, `Call to a time function`",
}


_ROWS: dict[CapabilityKind, Callable[[], Mapping[str, str]]] = {
    # Triton is a package of its own, and not every torch comes with it.
    "hook": lambda: {h.id: h.loses for h in all_hooks() if h.module.startswith("torch.")},
    "argument": lambda: _ARGUMENTS,
    "flag": lambda: _FLAGS,
    "setting": lambda: _SETTINGS,
    "function": lambda: _FUNCTIONS,
    "guard": lambda: _GUARDS,
    "break": lambda: _BREAKS,
    "tracing": lambda: {each.name: each.use for each in _PROBES},
}


def capabilities() -> tuple[Capability, ...]:
    """The table."""
    return tuple(
        Capability(kind, name, use) for kind, rows in _ROWS.items() for name, use in rows().items()
    )


def detected() -> frozenset[str]:
    """The ids of those that this torch has."""
    return frozenset(each.id for each in capabilities() if has(each.id))


@functools.cache
def has(capability: str) -> bool:
    """Has this torch it? KeyError for what is not in the table."""
    kind, _, name = capability.partition("/")
    rows = next((rows for each, rows in _ROWS.items() if each == kind), None)
    if rows is None or name not in rows():
        raise KeyError(capability)
    return _DETECTORS[kind](name)


def _has_hook(name: str) -> bool:
    hook = next(each for each in all_hooks() if each.id == name)
    return find_target(importlib.import_module(hook.module), hook.target) is not None


def _has_function(name: str) -> bool:
    found, path = _imported(name)
    for part in path:
        if not hasattr(found, part):
            return False
        found = getattr(found, part)
    return True


def _imported(name: str) -> tuple[Any, list[str]]:
    """The innermost module of a name, and what is left of it."""
    parts = name.split(".")
    for length in range(len(parts) - 1, 0, -1):
        try:
            return importlib.import_module(".".join(parts[:length])), parts[length:]
        except ImportError as error:
            let_through(error)
    raise AssertionError(name)


def _has_attribute(module: str) -> Callable[[str], bool]:
    return lambda name: hasattr(importlib.import_module(module), name)


_DETECTORS: dict[str, Callable[[str], bool]] = {
    "hook": _has_hook,
    "argument": lambda name: name in compile_arguments(),
    "flag": _has_attribute("torch._dynamo.config"),
    "setting": _has_attribute("torch._inductor.config"),
    "function": _has_function,
    "guard": _has_attribute("torch._C._dynamo.guards"),
    "break": lambda name: any(entry.gb_id == name for entry in load_registry()),
    "tracing": lambda name: next(each for each in _PROBES if each.name == name).found(),
}


@dataclass(frozen=True)
class TracingProbe:
    """A question, and how to find out."""

    name: str
    use: str
    """What is so where the answer is yes."""
    found: Callable[[], bool]


class _Counting:
    """`torch.compile` of a function that counts its graphs, with nothing compiled before."""

    def __init__(self, function: Callable[..., Any], *, fullgraph: bool = False) -> None:
        torch._dynamo.reset()
        self.graphs = 0
        self.error = ""
        self.stack: list[Any] = []
        self._compiled = torch.compile(function, backend=self._backend, fullgraph=fullgraph)

    def __call__(self, *args: Any) -> None:
        try:
            self._compiled(*args)
        except Exception as error:
            # Whatever a torch raises: that is the answer.
            let_through(error)
            self.error = str(error) or type(error).__name__
            self.stack = list(getattr(error, "real_stack", None) or ())

    def _backend(self, graph: Any, inputs: Any) -> Any:
        self.graphs += 1
        return graph.forward


def _is_whole(function: Callable[[torch.Tensor], Any]) -> bool:
    counting = _Counting(function, fullgraph=True)
    counting(torch.ones(2))
    return not counting.error


def _kept(x: torch.Tensor) -> torch.Tensor:
    return x * len(list(itertools.takewhile(lambda n: n < 3, [1, 2, 3])))


def _enters_json() -> bool:
    counting = _Counting(lambda x: x * len(json.dumps({"a": 1})), fullgraph=True)
    counting(torch.ones(2))
    return "marked as skipped" not in counting.error


def _resumes_in_hooks() -> bool:
    layer = torch.nn.Linear(2, 2)
    layer.register_forward_hook(lambda module, args, output: torch._dynamo.graph_break())
    counting = _Counting(lambda x: layer(x + 1).relu())
    counting(torch.ones(1, 2))
    return counting.graphs == 3


def _breaks_at_symbols() -> bool:
    from torch._dynamo import config

    factors: Any = [1, 2, 3, 4]
    counting = _Counting(lambda x: x * factors[x.sum().item()])
    with config.patch(capture_scalar_outputs=True):
        counting(torch.tensor([1, 2]))
    return not counting.error


class _Quiet(TorchDispatchMode):  # type: ignore[misc]
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


def _compiles_after_modes() -> bool:
    counting = _Counting(lambda x: x * 2)
    with _Quiet():
        counting(torch.ones(2))
    counting(torch.ones(2))
    return counting.graphs == 1


def _broken(x: torch.Tensor) -> torch.Tensor:
    torch._dynamo.graph_break()
    return x * 2


def _keeps_columns() -> bool:
    counting = _Counting(_broken, fullgraph=True)
    counting(torch.ones(2))
    return any(getattr(each, "colno", None) is not None for each in counting.stack)


_PROBES: tuple[TracingProbe, ...] = (
    TracingProbe(
        "random",
        "`random.random()` is part of the graph",
        lambda: _is_whole(lambda x: x * random.random()),
    ),
    TracingProbe(
        "itertools-predicates",
        "functions given to `itertools` are traced",
        lambda: _is_whole(_kept),
    ),
    TracingProbe("json", "`json.dumps` is entered before it breaks the graph", _enters_json),
    TracingProbe(
        "resumed-hooks",
        "after a break in a forward hook, the rest of the module is compiled",
        _resumes_in_hooks,
    ),
    TracingProbe(
        "symbol-index-breaks",
        "a list indexed by a captured number breaks the graph instead of raising",
        _breaks_at_symbols,
    ),
    TracingProbe(
        "compiled-after-modes",
        "a function first called under a dispatch mode is compiled in later calls",
        _compiles_after_modes,
    ),
    TracingProbe(
        "quantized",
        "quantised tensors are made in the graph",
        lambda: _is_whole(lambda x: torch.quantize_per_tensor(x, 0.1, 0, torch.qint8)),
    ),
    TracingProbe(
        "stack-columns",
        "the stacks of graph breaks have columns, in traces too",
        _keeps_columns,
    ),
)
