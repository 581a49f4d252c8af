"""What candidates ask about a program before they are tried, read from its objects in a step."""

from __future__ import annotations

from collections import Counter
from types import FrameType
from typing import Any

import torch

from compilescope.tune.child.snapshot import variables_around

_REPEATED = 3
"""Blocks of one class in a row. Chosen: with two there is nothing to win by compiling one."""


def facts_around(frame: FrameType) -> dict[str, Any]:
    """Plain JSON."""
    values = list(variables_around(frame).values())
    values += [each for value in values for each in _parts(value)]
    modules = [each for each in values if isinstance(each, torch.nn.Module)]
    optimizers = [each for each in values if isinstance(each, torch.optim.Optimizer)]
    parameters = {id(p): p for module in modules for p in module.parameters()}
    for optimizer in optimizers:
        parameters |= {id(p): p for group in optimizer.param_groups for p in group["params"]}
    held = [*parameters.values(), *(each for each in values if isinstance(each, torch.Tensor))]
    return {
        "devices": sorted({tensor.device.type for tensor in held}),
        "dtypes": sorted({str(t.dtype) for t in parameters.values()}),
        "trains": bool(optimizers) or any(p.grad is not None for p in parameters.values()),
        "grad_enabled": torch.is_grad_enabled(),
        "optimizers": [_optimizer(each) for each in optimizers],
        "convolutions": sum(_convolutions(module) for module in _outermost(modules)),
        "blocks": _blocks(modules),
        "matmul_precision": torch.get_float32_matmul_precision(),
        "autocast": any(torch.is_autocast_enabled(kind) for kind in ("cuda", "cpu")),
        "bf16": _has_bf16(),
        "capability": list(torch.cuda.get_device_capability()) if _on_cuda() else None,
        "device_name": torch.cuda.get_device_name() if _on_cuda() else "",
    }


def _parts(value: Any) -> list[Any]:
    if isinstance(value, (list, tuple)) and len(value) <= 16:
        return list(value)
    if isinstance(value, dict) and len(value) <= 64:
        return list(value.values())
    if type(value).__module__ == "__main__" and hasattr(value, "__dict__"):
        return [] if isinstance(value, type) else list(vars(value).values())
    return []


def _on_cuda() -> bool:
    return bool(torch.cuda.is_available() and torch.cuda.is_initialized())


def _has_bf16() -> bool:
    return bool(torch.cuda.is_bf16_supported()) if _on_cuda() else True


def _optimizer(optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    group = optimizer.param_groups[0]
    return {
        "class": type(optimizer).__name__,
        "module": type(optimizer).__module__,
        "fused": group.get("fused"),
        "foreach": group.get("foreach"),
        "capturable": group.get("capturable"),
        "has_fused": "fused" in group,
        "has_foreach": "foreach" in group,
        "parameters": sum(len(each["params"]) for each in optimizer.param_groups),
    }


def _outermost(modules: list[torch.nn.Module]) -> list[torch.nn.Module]:
    inner = {id(child) for module in modules for child in list(module.modules())[1:]}
    return list({id(m): m for m in modules if id(m) not in inner}.values())


def _convolutions(module: torch.nn.Module) -> int:
    return sum(isinstance(each, torch.nn.Conv2d) for each in module.modules())


def _blocks(modules: list[torch.nn.Module]) -> list[dict[str, Any]]:
    """Lists of blocks of one class: the name of the class, how many, and where they are."""
    found: dict[str, dict[str, Any]] = {}
    for module in _outermost(modules):
        for name, each in module.named_modules():
            if not isinstance(each, (torch.nn.ModuleList, torch.nn.Sequential)):
                continue
            kinds = Counter(type(child).__name__ for child in each.children())
            kind, count = kinds.most_common(1)[0] if kinds else ("", 0)
            if count >= _REPEATED and count == len(each):
                path = name.replace("_orig_mod.", "").removeprefix("_orig_mod")
                found.setdefault(path, {"path": path, "class": kind, "count": count})
    return list(found.values())
