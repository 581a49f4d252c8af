"""How a forked child becomes the program: what a new interpreter would have set up for it."""

from __future__ import annotations

import builtins
import os
import runpy
import sys
import types
import zipfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from compilescope.repair.trials.child.overlay import Overlay, ending_as_python, run_script
from compilescope.repair.trials.warm.environments import COLD, differing
from compilescope.repair.trials.warm.hidden_modules import Hidden, loaded_files
from compilescope.settings import current_environment, read_settings, take_environment


def become(order: Mapping[str, Any], environment: Mapping[str, str]) -> Callable[[], None]:
    """What is left to do at the end: run the program. `environment` is the warm process' own."""
    folder = Path(order["folder"])
    _take_streams(folder)
    os.chdir(order["cwd"])
    take_environment(order["environment"])
    command: list[str] = order["command"]
    sys.orig_argv = list(command)

    def cold(reason: str) -> None:
        (folder / COLD).write_text(reason, encoding="utf-8")
        os._exit(0)

    def check() -> str:
        names = differing(current_environment(), environment)
        return f"{names[0]} is set before torch is imported" if names else ""

    loaded = loaded_files(sys.modules)
    hidden = Hidden(check, cold)
    hidden.hide()
    if read_settings().run_dir is not None:
        hidden.after_torch = _begin_capture
    from compilescope.repair.trials.child import startup

    overlay = startup.begin()
    for path in overlay.paths:
        if path in loaded:
            cold(f"the warm process has imported {path}")
    return lambda: _run(command[1:], overlay)


def _take_streams(folder: Path) -> None:
    """The objects of Python's own streams stay: only what is behind them is another file."""
    for number, (name, flags) in enumerate(
        (
            ("stdin", os.O_RDONLY),
            ("stdout", os.O_WRONLY | os.O_CREAT | os.O_TRUNC),
            ("stderr", os.O_WRONLY | os.O_CREAT | os.O_TRUNC),
        )
    ):
        descriptor = os.open(folder / name, flags, 0o600)
        os.dup2(descriptor, number)
        os.close(descriptor)


def _begin_capture() -> None:
    from compilescope.recorder import autoload

    # The program comes first. A run without events says that capture did not begin.
    with suppress(Exception):
        autoload.begin()


def _run(words: Sequence[str], overlay: Overlay) -> None:
    """As `python WORDS` does."""
    main = types.ModuleType("__main__")
    main.__dict__["__builtins__"] = builtins
    sys.modules["__main__"] = main
    first, *rest = words
    runner: Any = runpy
    if first == "-m":
        _first_on_path(os.getcwd())
        sys.argv = ["-m", *rest[1:]]
        with ending_as_python():
            runner._run_module_as_main(rest[0])
    elif first == "-c":
        _first_on_path("")
        sys.argv = ["-c", *rest[1:]]
        with ending_as_python():
            exec(compile(rest[0], "<string>", "exec", dont_inherit=True), main.__dict__)
    elif os.path.isdir(first) or zipfile.is_zipfile(first):
        sys.path.insert(0, os.path.abspath(first))
        sys.argv = list(words)
        with ending_as_python():
            runner._run_module_as_main("__main__", False)
    else:
        sys.argv = list(words)
        run_script(first, overlay)


def _first_on_path(folder: str) -> None:
    if not getattr(sys.flags, "safe_path", False) and not sys.flags.isolated:
        sys.path.insert(0, folder)
