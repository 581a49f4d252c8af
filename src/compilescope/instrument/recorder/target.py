"""What the user asks to run, and the Python command line that runs it."""

from __future__ import annotations

import importlib.util
import itertools
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from compilescope.base.errors import ToolError
from compilescope.base.settings import env_machines

Kind = Literal["script", "module", "code", "stdin", "pytest", "torchrun"]
"""`stdin`: `-`, the program's text on standard input."""

_PLAIN_FLAGS = frozenset("bBdOqRsuv")
_FLAGS_WITH_VALUE = frozenset("WX")


@dataclass(frozen=True)
class Target:
    """A program and its arguments."""

    kind: Kind
    words: tuple[str, ...]
    folder: Path | None = None
    """Where it runs; None: the current folder."""

    @property
    def cwd(self) -> Path:
        return self.folder if self.folder is not None else Path(os.getcwd())

    def check(self) -> None:
        """Say what is wrong before anything runs."""
        if self.kind in ("script", "module", "code") and not self.words:
            raise ToolError(
                "No program given.", hint="Try `compilescope run script.py`, or -m MODULE."
            )
        if self.kind == "script":
            _check_script(Path(self.words[0]))
        needs = {"pytest": "pytest", "torchrun": "torch"}.get(self.kind)
        if needs and importlib.util.find_spec(needs) is None:
            raise ToolError(
                f"{needs} is not installed alongside compilescope.", hint=f"pip install {needs}"
            )

    def command(self, functions: tuple[str, ...] = ()) -> list[str]:
        """The command line; `functions` are compiled where they are defined."""
        python = [sys.executable]
        if functions:
            if self.kind not in ("script", "module"):
                raise ToolError("--compile with a function name needs a script or a module.")
            flag = ["-m"] if self.kind == "module" else []
            runner = "compilescope.instrument.recorder.decorating_runner"
            return [*python, "-m", runner, ",".join(functions), *flag, *self.words]
        if self.kind == "module":
            return [*python, "-m", *self.words]
        if self.kind == "code":
            return [*python, "-c", *self.words]
        if self.kind == "pytest":
            return [*python, "-m", "pytest", *self.words]
        if self.kind == "torchrun":
            return [*python, "-m", "torch.distributed.run", *self.words]
        return [*python, *self.words]

    @property
    def label(self) -> str:
        """A short name for the run."""
        if self.kind == "script":
            return Path(self.words[0]).stem
        if self.kind == "module":
            return self.words[0].rsplit(".", 1)[-1]
        if self.kind == "torchrun":
            scripts = [Path(word).stem for word in self.words if word.endswith(".py")]
            return scripts[0] if scripts else "torchrun"
        return self.kind

    @property
    def machines(self) -> str:
        """How many torchrun runs ranks on, as it is told; `1` for all else."""
        own = list(itertools.takewhile(lambda word: not word.endswith(".py"), self.words))
        said = env_machines()
        for word, following in itertools.zip_longest(own, own[1:], fillvalue=""):
            name, _, value = word.partition("=")
            if self.kind == "torchrun" and name == "--nnodes":
                said = value or following
        return said.removeprefix("1:") if self.kind == "torchrun" else "1"

    @property
    def root(self) -> str:
        """The folder that the program's files are named from."""
        if self.kind == "script":
            path = (self.cwd / self.words[0]).resolve()
            return str(path if path.is_dir() else path.parent)
        return str(self.cwd)

    @property
    def shown(self) -> tuple[str, ...]:
        """As the user would type it."""
        prefix = {"module": "-m", "code": "-c", "pytest": "pytest", "torchrun": "torchrun"}
        return (prefix[self.kind], *self.words) if self.kind in prefix else self.words

    @property
    def given(self) -> tuple[str, ...]:
        """As a command of ours is given it."""
        flags = {"module": "-m", "code": "-c", "pytest": "--pytest", "torchrun": "--torchrun"}
        return (flags[self.kind], *self.words) if self.kind in flags else self.words


def python_flags(words: Sequence[str]) -> list[str]:
    """Those of a Python's command line that a program under capture can have too: `python -O -m
    compilescope run` means the program. With -E, -I or -S it would not find us; -P keeps a folder's
    files from hiding our modules, and is no word about the program; -i is for the one who types.
    What variables say need not be repeated: the program has them."""
    flags: list[str] = []
    rest = iter(words[1:])
    for word in rest:
        if not word.startswith("-") or word.startswith("--"):
            break
        for at, letter in enumerate(word[1:], 1):
            if letter in _FLAGS_WITH_VALUE:
                flags += [f"-{letter}", word[at + 1 :] or next(rest, "")]
                break
            if letter in _PLAIN_FLAGS:
                flags.append(f"-{letter}")
            elif letter in "mc":
                return flags
    return flags


def _check_script(path: Path) -> None:
    if not path.exists():
        raise ToolError(
            f"There is no file {path}.",
            hint=f"To run a module, use `compilescope run -m {path}`."
            if path.suffix == "" and os.sep not in str(path)
            else "",
        )
    if not os.access(path, os.R_OK):
        raise ToolError(f"{path} cannot be read: permission denied.")
    if path.is_dir() and not (path / "__main__.py").exists():
        raise ToolError(f"{path} is a folder without __main__.py.")
