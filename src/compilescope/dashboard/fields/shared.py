"""Fields that several forms have."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from compilescope.dashboard.fields.choices import backends, devices
from compilescope.dashboard.fields.form import Group, Values
from compilescope.dashboard.fields.kinds import (
    DURATION,
    Field,
    Flag,
    NameList,
    ProgramArguments,
    Real,
)
from compilescope.dashboard.fields.paths import Backends, DeviceName, OutFile, RunId, ScriptFile

SCRIPT = Field(
    "script",
    "Script",
    ScriptFile(),
    help="A Python file in one of the folders you allowed.",
    required=True,
    example="train.py",
)
ARGUMENTS = Field(
    "arguments",
    "Arguments",
    ProgramArguments(),
    help="For the script, as you would type them in a shell.",
    example="--epochs 1 --name 'a b'",
)
RUN = Field(
    "run",
    "Recorded run",
    RunId(),
    "--run",
    help="Use the program of this run instead of a script.",
)
COMPILED = Group(
    "What to compile",
    (
        Field(
            "compile_all",
            "Compile the outermost modules",
            Flag(),
            "--compile-all",
            help="For a program that never calls torch.compile.",
        ),
        Field(
            "compile",
            "Compile by name",
            NameList(),
            "--compile",
            help="Module classes or functions: Class, f, Class.method, package.module.f.",
            example="Encoder Decoder.forward",
        ),
        Field(
            "backend",
            "Backend",
            Backends(backends, files=False),
            "--backend",
            help="For what this form compiles; the script chooses its own. [default: inductor]",
        ),
    ),
)
CONSTRAINTS = Field(
    "constraints",
    "Device constraints",
    DeviceName(devices),
    "--constraints",
    help="Also check the graphs against this device: a name, or a .toml file.",
)


def time_limit(of: str, words: str, default: str) -> Field:
    """For one of the many processes of a search."""
    kind = Real(above=True)
    return Field("limit", f"Seconds for one {of}", kind, "--limit", help=words, default=default)


def time_budget(shown: str) -> Field:
    """For the whole search."""
    words = f"90s, 2m, 1h. {shown} [default: none]"
    return Field("budget", "Time for the search", DURATION, "--budget", help=words)


def check_compiled(values: Values) -> Iterator[tuple[str, str]]:
    """A backend is for what we compile."""
    if values.get("backend") and not (values.get("compile_all") or values.get("compile")):
        yield "backend", "Choose what to compile with it: the script chooses its own backend."


def check_program(values: Values) -> Iterator[tuple[str, str]]:
    """Of forms that take a script or a run."""
    if not values.get("script") and not values.get("run"):
        yield "script", "Give a script or a recorded run."
    if values.get("script") and values.get("run"):
        yield "run", "Give a script or a recorded run, not both."
    if values.get("run") and values.get("arguments"):
        yield "arguments", "A recorded run has its own arguments."


def what_to_write(script: str, write: str) -> Group:
    """Of commands that change a program: a new script, or the files themselves. Both as help."""
    return Group(
        "What to write",
        (
            Field("fixed", "Write a fixed script", Flag(), "--script", help=script),
            Field(
                "output",
                "File",
                OutFile(),
                "--output",
                help="For the fixed script. [default: SCRIPT_fixed.py]",
            ),
            Field("write", "Change my files", Flag(), "--write", help=write),
            Field(
                "force",
                "Overwrite",
                Flag(),
                "--force",
                help="Write even if git has uncommitted changes or the file exists.",
            ),
        ),
        more=True,
    )


def check_writing(values: Values) -> Iterator[tuple[str, str]]:
    """What belongs together in that group."""
    if values.get("write") and values.get("fixed"):
        yield "fixed", "Change your files or write a new script, not both."
    if values.get("output") and not values.get("fixed"):
        yield "output", "A file needs the choice “Write a fixed script”."
    if values.get("force") and not (values.get("write") or values.get("fixed")):
        yield "force", "No file is written, so there is nothing to overwrite."


def written_script(values: Values) -> Iterator[Path]:
    """The new script of that group."""
    script = values.get("script")
    if values.get("output"):
        yield Path(values["output"])
    elif values.get("fixed") and script:
        yield Path(script).with_name(f"{Path(script).stem}_fixed.py")
