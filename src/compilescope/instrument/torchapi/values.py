"""Facts about values: of real objects, and of what Dynamo holds for them while it traces.

Looking must change nothing. No property is run, and no lazy variable of Dynamo's is made real:
even `isinstance` would do that (torch 2.13), so classes are told by their names.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import CodeType, ModuleType
from typing import Any

import torch

from compilescope.instrument.torchapi.stacks import translators_of
from compilescope.record.values import ValueFact, ValueKind, is_permuted

_SHORT = 60
"""Letters of a value that is kept. Chosen: enough for numbers and names; of a longer text only the
kind is kept."""
_MOST_NAMES = 80
"""Variables of one frame. Chosen: every break carries them; further ones are not told."""
_PLAIN = (bool, int, float, complex, str, bytes)
_CONTAINERS = {"ListVariable": "list", "TupleVariable": "tuple", "ConstDictVariable": "dict"}
NOTHING = object()


def value_fact(value: Any) -> ValueFact:
    """Of a real object."""
    of = type(value)
    kind, name = _kind(value), f"{of.__module__}.{of.__qualname__}"
    if isinstance(value, torch.Tensor):
        return _tensor_fact(value, kind, name)
    if kind == "array":
        return ValueFact(kind, name, dtype=str(value.dtype), shape=tuple(value.shape))
    if of in _PLAIN or value is None:
        words = repr(value) if not isinstance(value, (str, bytes)) or len(value) <= _SHORT else ""
        return ValueFact(kind, name, value=words if len(words) <= _SHORT else "")
    return ValueFact(kind, name)


def stored_attribute(value: Any, name: str) -> Any:
    """What is stored under a name, without running any property; `NOTHING` where nothing is."""
    if isinstance(value, torch.Tensor):
        return _of_tensor(value, name)
    if isinstance(value, (type, ModuleType)):
        return NOTHING
    held = getattr(value, "__dict__", None)
    if not isinstance(held, dict):
        return NOTHING
    if name in held:
        return held[name]
    if isinstance(value, torch.nn.Module):
        for kind in ("_parameters", "_buffers", "_modules"):
            inner = held.get(kind) or {}
            if name in inner:
                return inner[name]
    stored = vars(type(value)).get(name, NOTHING)
    return stored if isinstance(stored, _PLAIN) else NOTHING


def _of_tensor(tensor: torch.Tensor, name: str) -> Any:
    """What torch keeps beside the numbers; a subclass may compute it, and torch warns who asks a
    tensor for its gradient that is not a leaf."""
    if type(tensor) not in (torch.Tensor, torch.nn.Parameter):
        return NOTHING
    if name == "grad" and tensor.is_leaf:
        return tensor.grad
    return tensor.data if name == "data" else NOTHING


def traced_values(
    error: BaseException, translator: Any
) -> tuple[CodeType | None, dict[str, ValueFact]]:
    """What the variables of the function held at which tracing ended: the innermost one, which was
    inlined into the one that is compiled. Nothing where Dynamo cannot be asked."""
    inner = _innermost(error, translator)
    code = getattr(inner, "f_code", None)
    held = getattr(inner, "symbolic_locals", None)
    if not isinstance(held, dict) or code is None:
        return None, {}
    found: dict[str, ValueFact] = {}
    for name, fact in _facts(held, code, getattr(inner, "f_globals", {})):
        if len(found) >= _MOST_NAMES:
            break
        found[name] = fact
    return code, found


def _innermost(error: BaseException, translator: Any) -> Any:
    return next(reversed(translators_of(error)), translator)


def _facts(
    held: dict[str, Any], code: CodeType, around: dict[str, Any]
) -> Iterator[tuple[str, ValueFact]]:
    for name, variable in list(held.items()):
        fact, value = _traced(variable)
        if fact is None or not name.isidentifier():
            continue
        yield name, fact
        for attribute in code.co_names if value is not NOTHING else ():
            stored = stored_attribute(value, attribute)
            if stored is not NOTHING:
                yield f"{name}.{attribute}", value_fact(stored)
    for name in code.co_names:
        value = around.get(name, NOTHING) if name not in held else NOTHING
        if isinstance(value, (*_PLAIN, torch.Tensor)):
            yield name, value_fact(value)


def _traced(variable: Any) -> tuple[ValueFact | None, Any]:
    """The fact, and the real object where there is one."""
    names = _class_names(variable)
    if "LazyVariableTracker" in names:
        cache = object.__getattribute__(variable, "_cache")
        if cache.vt is None:
            return value_fact(cache.value), cache.value
        variable = cache.vt
        names = _class_names(variable)
    if "TensorVariable" in names:
        return _graph_fact(variable, names), NOTHING
    if "SymNodeVariable" in names:
        number = "float" if isinstance(variable.sym_num, torch.SymFloat) else "int"
        return ValueFact("number", f"builtins.{number}"), NOTHING
    if "ConstantVariable" in names:
        return value_fact(variable.value), NOTHING
    container = next((_CONTAINERS[name] for name in names if name in _CONTAINERS), "")
    if container:
        return ValueFact("other", f"builtins.{container}"), NOTHING
    value = getattr(variable, "value", NOTHING)
    return (value_fact(value), value) if value is not NOTHING else (None, NOTHING)


def _graph_fact(variable: Any, names: frozenset[str]) -> ValueFact | None:
    example = variable.proxy.node.meta.get("example_value")
    if not isinstance(example, torch.Tensor):
        return None
    if "NumpyNdarrayVariable" in names:
        return ValueFact("array", "numpy.ndarray", dtype=str(example.dtype).removeprefix("torch."))
    parameter = getattr(variable, "class_type", None) is torch.nn.Parameter
    name = "torch.nn.parameter.Parameter" if parameter else "torch.Tensor"
    return _tensor_fact(example, "parameter" if parameter else "tensor", name)


def _tensor_fact(value: torch.Tensor, kind: ValueKind, name: str) -> ValueFact:
    return ValueFact(
        kind,
        name,
        dtype=str(value.dtype).removeprefix("torch."),
        shape=tuple(size if isinstance(size, int) else -1 for size in value.shape),
        device=str(value.device),
        requires_grad=value.requires_grad,
        permuted=value.layout is torch.strided and is_permuted(value.shape, value.stride()),
    )


def _kind(value: Any) -> ValueKind:
    if isinstance(value, torch.nn.Parameter):
        return "parameter"
    if isinstance(value, torch.Tensor):
        return "tensor"
    if isinstance(value, torch.nn.Module):
        return "module"
    if value is None:
        return "none"
    if isinstance(value, (bool, int, float, complex)):
        return "number"
    if isinstance(value, (str, bytes)):
        return "text"
    return "array" if type(value).__module__ == "numpy" and hasattr(value, "shape") else "other"


def _class_names(value: Any) -> frozenset[str]:
    return frozenset(each.__name__ for each in type(value).__mro__)
