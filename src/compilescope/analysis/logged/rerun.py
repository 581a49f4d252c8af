"""The command that would write a fuller log, and what to do before it.

As far as the log shows them: the program, its arguments, the environment it ran in, and the log's
own name.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from pathlib import PurePosixPath

from compilescope.model.logged import LogRead
from compilescope.model.run import Run
from compilescope.model.stack import Frame
from compilescope.patterns import late

_ASSIGNED = late(r"(?P<name>[A-Za-z_]\w*)=(?P<value>\S*)\s+")
_ENVIRONMENT = late(r"^(?P<root>/.*?)/lib/python3\.\d+/(?:site|dist)-packages/")
_SYSTEM = ("/usr", "/usr/local", "/opt/python")
_PACKED = (".xz", ".gz", ".zst", ".bz2")
_RUNNERS = ("pytest", "py.test")
_LOG = "model.log"
_TT_BUILD = (
    "cmake -G Ninja -B build -DCMAKE_BUILD_TYPE=Debug",
    "cmake --build build",
)
"""As tt-xla's own guide has it: `source venv/activate` comes first, in the checkout."""


def command_again(run: Run, settings: list[str], interleaved: str) -> str:
    asked = _merged(settings, [flag for _, body in run.of(LogRead) for flag in body.flags])
    logs = [body.source for _, body in run.of(LogRead)]
    shown = next((body.command for _, body in run.of(LogRead) if body.command), "")
    own, command = _split(shown or _from_stacks(run))
    kept = [f"{name}={value}" for name, value in own.items() if name not in asked]
    variables = " ".join([*(f"{name}={value}" for name, value in asked.items()), *kept])
    if interleaved == "ambiguous":
        # One file a rank: torchrun can do that itself.
        script = re.sub(r"^(?:\S*/)?(?:python[\d.]*|torchrun)\s+", "", command)
        return f"{variables} torchrun --redirects 3 --log-dir logs {script}"
    return f"{variables} {command} 2>&1 | tee {shlex.quote(_name(logs))}"


def steps_before(run: Run, systems: tuple[str, ...], *, release: bool) -> Iterable[str]:
    """The environment to activate, and how to build for more messages."""
    if "tt-xla" in systems:
        yield "source venv/activate  # in your tt-xla checkout"
    else:
        root = next((root for root in map(_environment, _files(run)) if root), "")
        if root and "/envs/" in root:
            yield f"conda activate {shlex.quote(PurePosixPath(root).name)}"
        elif root:
            yield f"source {shlex.quote(root)}/bin/activate"
    if release:
        yield from _TT_BUILD


def _environment(file: str) -> str:
    found = _ENVIRONMENT.match(file)
    return found["root"] if found is not None and found["root"] not in _SYSTEM else ""


def _files(run: Run) -> Iterable[str]:
    return (frame.file for event in run.events for frame in event.stack)


def _merged(wanted: list[str], had: list[str]) -> dict[str, str]:
    """Variable -> value. What the log had on stays on."""
    asked = {name: value for name, _, value in (each.partition("=") for each in wanted)}
    for name, _, value in (each.partition("=") for each in had):
        if name == "TORCH_LOGS":
            parts = dict.fromkeys([*asked.get(name, "").split(","), *value.split(",")])
            loud = {part[1:] for part in parts if part.startswith("+")}
            asked[name] = ",".join(part for part in parts if part and part not in loud)
        elif name in asked and value in ("VERBOSE", "TRACE"):
            asked[name] = value
    return asked


def _split(command: str) -> tuple[dict[str, str], str]:
    """The variables that a command sets, and the rest of it."""
    own: dict[str, str] = {}
    command = command.removeprefix("env ")
    while found := _ASSIGNED.match(command):
        own[found["name"]] = found["value"]
        command = command[found.end() :].removeprefix("env ")
    return own, command


def _from_stacks(run: Run) -> str:
    """The program that the stacks begin in."""
    for event in run.events:
        main = next((f for f in event.stack if _is_main(f)), None)
        if main is None:
            continue
        if PurePosixPath(main.file).name not in _RUNNERS:
            return f"python {shlex.quote(main.file)}"
        test = next((f for f in event.stack if f.origin == "user" and f != main), None)
        return f"pytest {shlex.quote(test.file)}" if test is not None else "pytest"
    return "python your_script.py"


def _is_main(frame: Frame) -> bool:
    return frame.function == "<module>" and frame.origin == "user"


def _name(logs: list[str]) -> str:
    """The log's own; one of several, or one that came through a pipe, has none to use."""
    if len(logs) != 1 or logs[0] == "-":
        return _LOG
    path = PurePosixPath(logs[0].replace("\\", "/"))
    return (path.stem if path.suffix in _PACKED else path.name) or _LOG
