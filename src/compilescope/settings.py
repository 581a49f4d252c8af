"""The one place that reads the environment.

The launcher hands its wishes to the program's processes through `COMPILESCOPE_*` variables;
`Settings` is what they say, `child_environment` is how they are said.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

DEFAULT_DIR = ".compilescope"


@dataclass(frozen=True)
class Settings:
    """What the environment asks of this process."""

    home: Path = Path(DEFAULT_DIR)
    """Where runs live."""
    run_dir: Path | None = None
    """The run this process belongs to; None outside `compilescope run`."""
    ir: bool = False
    """Record Inductor's IR before and after fusion."""
    compile_names: tuple[str, ...] = ()
    """Modules to compile for the program: class names, or "*" for every outermost module."""
    compile_backend: str | None = None
    """The backend for those; None is torch's default."""
    planted_fault: str = ""
    """Raise inside this hook, or inside "all": how the tests prove that hooks are harmless."""


def read_settings(environment: Mapping[str, str] | None = None) -> Settings:
    env = os.environ if environment is None else environment
    run_dir = env.get("COMPILESCOPE_RUN")
    names = env.get("COMPILESCOPE_COMPILE", "")
    return Settings(
        home=Path(env.get("COMPILESCOPE_DIR") or DEFAULT_DIR),
        run_dir=Path(run_dir) if run_dir else None,
        ir=env.get("COMPILESCOPE_IR") == "1",
        compile_names=tuple(name for name in names.split(",") if name),
        compile_backend=env.get("COMPILESCOPE_COMPILE_BACKEND") or None,
        planted_fault=env.get("COMPILESCOPE_PLANT_FAULT", ""),
    )


def child_environment(settings: Settings, boot: Path) -> dict[str, str]:
    """The environment for a program under capture: ours, with `boot` first on its path."""
    env = dict(os.environ)
    assert settings.run_dir is not None
    env["COMPILESCOPE_RUN"] = str(settings.run_dir)
    if settings.ir:
        env["COMPILESCOPE_IR"] = "1"
    if settings.compile_names:
        env["COMPILESCOPE_COMPILE"] = ",".join(settings.compile_names)
    if settings.compile_backend:
        env["COMPILESCOPE_COMPILE_BACKEND"] = settings.compile_backend
    # An empty entry would put the current folder on the path, which the program did not have.
    before = env.get("PYTHONPATH")
    env["PYTHONPATH"] = f"{boot}{os.pathsep}{before}" if before else str(boot)
    return env


def torch_loads_extensions() -> bool:
    """Does `import torch` call `torch.backends` entry points? They are how capture gets in."""
    return os.environ.get("TORCH_DEVICE_BACKEND_AUTOLOAD", "1") == "1"


def env_rank() -> int:
    """The rank that torchrun gave this process; 0 where nobody did."""
    value = os.environ.get("RANK", "")
    return int(value) if value.isdigit() else 0


def current_test() -> str | None:
    """The pytest node that runs now, as pytest tells it."""
    value = os.environ.get("PYTEST_CURRENT_TEST")
    return value.rsplit(" (", 1)[0] if value else None


def wants_colour() -> bool | None:
    """False under NO_COLOR, True under FORCE_COLOR, None to look at the terminal."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return None
