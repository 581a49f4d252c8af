"""Code that is copied into repro scripts by its source; it needs nothing but torch.

Each file may use what it imports, and functions of its neighbours if the script brings those too.
So that a script recognises a failure as compilescope does, compilescope may import from it as well.
"""

from __future__ import annotations

import ast
import inspect
from types import ModuleType


def code_of(module: ModuleType) -> str:
    """The source below the docstring, the imports and the comments for our tools."""
    text = inspect.getsource(module)
    head = (ast.Expr, ast.Import, ast.ImportFrom)
    first = next(node for node in ast.parse(text).body if not isinstance(node, head))
    return "\n".join(text.splitlines()[first.lineno - 1 :])


def imports_of(module: ModuleType) -> set[str]:
    """The lines that bring what its code needs."""
    lines = inspect.getsource(module).splitlines()
    return {line for line in lines if line.startswith(("import ", "from "))}
