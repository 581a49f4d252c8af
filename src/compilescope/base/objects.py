"""Objects of the user's own files, named as `file.py:build`, and what such a function returns."""

from __future__ import annotations

import difflib
import importlib.util
import sys
import traceback
from collections import UserDict
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from compilescope.base.errors import ToolError
from compilescope.base.package import PACKAGE

_LONGEST = 300
"""Letters of an error in our own message. Chosen: a few lines; the traceback has the rest."""


def names_file(text: str) -> bool:
    """Is it `file.py:name`, and no plain name?"""
    return ".py:" in text or text.endswith(".py")


def load_object(text: str, usual: str = "") -> Any:
    """What `file.py:name` names; `usual` is the name where none is given."""
    file, _, name = text.rpartition(":") if ".py:" in text else (text, "", usual)
    if not name:
        raise ToolError(
            f"{text!r} names no function.", hint=f"Write {file}:NAME, where {file} defines NAME."
        )
    found: Any = _load_file(Path(file))
    for part in name.split("."):
        if not hasattr(found, part):
            near = difflib.get_close_matches(part, _public(found), n=3)
            hint = f"Did you mean {' or '.join(near)}?" if near else ""
            raise ToolError(f"{file} has no {name!r}.", hint=hint)
        found = getattr(found, part)
    return found


def _public(holder: Any) -> list[str]:
    return [name for name in dir(holder) if not name.startswith("_")]


def _load_file(path: Path) -> ModuleType:
    if not path.exists():
        raise ToolError(f"There is no file {path}.")
    if not path.is_file():
        raise ToolError(f"{path} is not a file.")
    path = path.absolute()
    known = sys.modules.get(path.stem)
    if known is not None and getattr(known, "__file__", None) == str(path):
        return known
    # Python would find the files beside it, were it the program.
    folder = str(path.parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    name = path.stem if known is None else f"compilescope_file_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ToolError(f"{path} is not a Python file.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    loader = spec.loader
    try:
        call_theirs(lambda: loader.exec_module(module), f"{path.name} cannot be loaded")
    except BaseException:
        del sys.modules[name]
        raise
    return module


def call_theirs(function: Callable[[], Any], failure: str) -> Any:
    """Run code of the user's; what it raises becomes one sentence."""
    try:
        return function()
    except ToolError:
        raise
    except SystemExit as error:
        raise ToolError(
            f"{failure}: it calls sys.exit({error.code!r}){_raised_at(error)}.",
            hint='Move script-only code under `if __name__ == "__main__":`.',
        ) from None
    except Exception as error:  # The border to the user's code.
        said = " ".join(str(error).split())[:_LONGEST]
        words = f"{type(error).__name__}: {said}" if said else type(error).__name__
        raise ToolError(f"{failure}: {words}{_raised_at(error)}") from error


def _raised_at(error: BaseException) -> str:
    if isinstance(error, SyntaxError) and error.filename:
        return f" ({error.filename}:{error.lineno})"
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not _is_ours(f)]
    return f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""


def _is_ours(frame: traceback.FrameSummary) -> bool:
    return frame.filename.startswith(PACKAGE) or frame.filename.startswith("<frozen ")


def model_and_inputs(made: Any, build: str) -> tuple[Any, Any, dict[str, Any]]:
    """(model, args, kwargs) of whatever the function returned."""
    parts = made if isinstance(made, (tuple, list)) else (made,)
    right = 1 <= len(parts) <= 3 and callable(parts[0])
    if right and len(parts) == 3 and not isinstance(parts[2], dict):
        right = False
    if not right:
        raise ToolError(
            f"{build} returned {_described(made)}; it must return (model, args) or "
            "(model, args, kwargs)."
        )
    args = parts[1] if len(parts) > 1 else ()
    return parts[0], args, parts[2] if len(parts) > 2 else {}


def call_arguments(
    inputs: Any, kwargs: dict[str, Any] | None = None
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """(args, kwargs) of example inputs: one value, a tuple or list of arguments, or a dict of
    keyword arguments; `kwargs` come on top."""
    named = dict(kwargs or {})
    # A tokenizer's BatchEncoding is a UserDict. A ModelOutput is a dict too, but one argument.
    if type(inputs) is dict or isinstance(inputs, UserDict):
        return (), {**inputs, **named}
    if isinstance(inputs, list) or type(inputs) is tuple:
        return tuple(inputs), named
    return (inputs,), named


def _described(made: Any) -> str:
    if isinstance(made, (tuple, list)):
        kinds = ", ".join(type(part).__name__ for part in made[:4])
        return f"a {type(made).__name__} of {len(made)} ({kinds})"
    return "nothing" if made is None else f"a {type(made).__name__}"
