"""The modes and settings under which the program compiles, as Python source."""

from __future__ import annotations

import ast
import re

import torch

_ASSIGNMENT = re.compile(r"^torch\._dynamo\.config\.\w+ = (.+)$")


def changed_settings() -> list[str]:
    """Only those with plain values: what is a function or an object cannot be written down."""
    import torch._dynamo.config as config

    write = getattr(config, "codegen_config", None)
    if write is None:
        return []
    kept = []
    for line in str(write()).splitlines():
        match = _ASSIGNMENT.match(line)
        if match is None:
            continue
        try:
            ast.literal_eval(match[1])
        except (ValueError, SyntaxError):
            continue
        kept.append(line)
    return ["import torch._dynamo", *kept] if kept else []


def current_contexts() -> tuple[str, ...]:
    """Context managers that bring about the modes of this moment."""
    found = [] if torch.is_grad_enabled() else ["torch.no_grad()"]
    for device in ("cpu", "cuda", "xpu"):
        if torch.is_autocast_enabled(device):
            dtype = torch.get_autocast_dtype(device)
            found.append(f"torch.autocast({device!r}, {dtype})")
    return tuple(found)


def is_restart(error: BaseException) -> bool:
    """Dynamo begins anew: it will hand over another graph in place of this one."""
    from torch._dynamo.exc import RestartAnalysis

    return isinstance(error, RestartAnalysis)
