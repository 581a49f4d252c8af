"""Describes calls, and what they covered, as plain JSON that can be compared and stored."""

from __future__ import annotations

from typing import Any

import torch

from compilescope.repair.trials.child.branches import Coverage
from compilescope.repair.trials.child.recipes import is_whole
from compilescope.tensors.structure import argument_leaves


def described(coverage: Coverage) -> dict[str, Any]:
    """As plain JSON values."""
    return {
        "lines": {file: sorted(lines) for file, lines in coverage.lines.items()},
        "branches": [
            {
                "file": file,
                "line": branch.line,
                "column": branch.column,
                "function": branch.function,
                "sides": sorted(branch.sides),
                "by_tensor": branch.by_tensor,
            }
            for file, branch in coverage.branches()
        ],
    }


def forms_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, str]:
    """How numbers are handed in: a whole number's dtype, or `number` for one of Python's. Another
    version may hand in the same numbers in another form."""
    found: dict[str, str] = {}
    for path, leaf in argument_leaves(args, kwargs).items():
        if is_whole(leaf):
            found[path] = str(leaf.dtype).removeprefix("torch.")
        elif type(leaf) in (int, float):
            found[path] = "number"
    return found


def signature_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What a compiler would look at."""
    found: list[Any] = [torch.is_grad_enabled()]
    for path, leaf in argument_leaves(args, kwargs).items():
        if isinstance(leaf, torch.Tensor):
            found.append((path, tuple(leaf.shape), leaf.dtype, leaf.requires_grad))
        else:
            found.append((path, repr(leaf)[:80]))
    return tuple(found)
