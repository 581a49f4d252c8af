"""Explains that torch is missing from compilescope's own environment, and names one that has it."""

from __future__ import annotations

import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from compilescope.base.settings import current_environment

if TYPE_CHECKING:
    from compilescope.knowledge.analysis.digest import Digest

_LOOK_S = 10.0
"""For another Python to name its torch. Chosen: it only finishes an error message."""
_ASK = (
    "import importlib.util as u, importlib.metadata as m\n"
    "print(m.version('torch') if u.find_spec('torch') else '')"
)


class MissingTorch(NamedTuple):
    """What is wrong, and what to do."""

    words: str
    hint: str


def has_torch() -> bool:
    try:
        return importlib.util.find_spec("torch") is not None
    except ImportError:
        return False


def missing_torch(*, takes_python: bool = True) -> MissingTorch | None:
    """None where the Python that runs programs has torch. `takes_python`: the command has
    `--python`."""
    if has_torch():
        return None
    words = f"compilescope runs programs with {sys.executable}, which has no torch"
    for python in _others():
        version = _torch_of(python)
        if version:
            hint = f"Run the program with that one: add `--python {shlex.quote(python)}`."
            if not takes_python:
                hint = f"Install compilescope there: `{python} -m pip install compilescope`."
            return MissingTorch(f"{words}; {python} has torch {version}.", hint)
    install = f'{sys.executable} -m pip install "compilescope[torch]"'
    hint = f"Install it with `{install}`."
    if takes_python:
        hint = f"{hint[:-1]}, or name a Python that has it: `--python PATH`."
    return MissingTorch(f"{words}.", hint)


def tell_missing_torch(seen: Digest) -> bool:
    """On stderr, where that is why the program failed. Was there anything to say?"""
    if seen.torch is not None or "No module named 'torch'" not in seen.ended.exception:
        return False
    missing = missing_torch()
    if missing is None:
        return False
    print(f"\n{missing.words}\n{missing.hint}", file=sys.stderr, flush=True)
    return True


def _others() -> Iterator[str]:
    """The Pythons that a user's shell would start: of the active environment, then of the PATH."""
    environment = current_environment()
    folder = "Scripts" if os.name == "nt" else "bin"
    found = [
        os.path.join(environment[name], folder, "python")
        for name in ("VIRTUAL_ENV", "CONDA_PREFIX")
        if environment.get(name)
    ]
    found += [path for name in ("python", "python3") if (path := shutil.which(name))]
    for python in dict.fromkeys(map(os.path.abspath, found)):
        if python != sys.executable and os.access(python, os.X_OK):
            yield python


def _torch_of(python: str) -> str:
    """The version of its torch; empty where it has none, or does not answer."""
    try:
        done = subprocess.run(
            [python, "-I", "-c", _ASK],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_LOOK_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
