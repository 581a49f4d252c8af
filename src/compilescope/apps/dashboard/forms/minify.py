"""The form of `minify`: the smallest program that still shows the same problem."""

from collections.abc import Iterator
from pathlib import Path

from compilescope.apps.dashboard.fields.choices import backends, devices
from compilescope.apps.dashboard.fields.form import Form, Group, Values
from compilescope.apps.dashboard.fields.kinds import (
    SITE,
    Field,
    Flag,
    OneOf,
    WholeNumber,
)
from compilescope.apps.dashboard.fields.shared import (
    ARGUMENTS,
    SCRIPT,
    Backends,
    DeviceName,
    OutFile,
    time_budget,
    time_limit,
)


def _check(values: Values) -> Iterator[tuple[str, str]]:
    predicate = values.get("predicate")
    if values.get("device") and predicate not in (None, "violation"):
        yield "device", "A device is for a violation only."
    if predicate == "violation" and not values.get("device"):
        yield "device", "A violation needs a device."
    if values.get("test_backend") and predicate not in (None, "crash", "diff"):
        yield "test_backend", "A backend is for a crash or a difference only."


def _writes(values: Values) -> Iterator[Path]:
    yield Path(values.get("output") or Path(values["script"]).with_name("repro.py"))


FORM = Form(
    id="minify",
    order=60,
    title="Minify a problem",
    about="Make the smallest script that still shows a graph break, recompile, crash or "
    "difference.",
    command=("minify",),
    groups=(
        Group("Program", (SCRIPT, ARGUMENTS)),
        Group(
            "What the repro must show",
            (
                Field(
                    "predicate",
                    "Problem",
                    OneOf(("break", "recompile", "crash", "diff", "violation")),
                    "--predicate",
                    help="[default: the crash that ended the program, else its first cause]",
                ),
                Field(
                    "site",
                    "Line",
                    SITE,
                    "--site",
                    help="Which one, if the program shows several.",
                    example="m.py:9",
                ),
                Field(
                    "device",
                    "Device",
                    DeviceName(devices),
                    "--device",
                    help="For a violation: a name, or a .toml file.",
                ),
                Field(
                    "test_backend",
                    "Backend under test",
                    Backends(backends),
                    "--test-backend",
                    help="For a crash or a difference.",
                ),
            ),
        ),
        Group(
            "Result",
            (
                Field(
                    "output",
                    "File",
                    OutFile(),
                    "--output",
                    help="The repro, in one of the folders you allowed. [default: repro.py beside "
                    "the script]",
                    example="repro.py",
                ),
            ),
        ),
        Group(
            "Search",
            (
                Field(
                    "jobs",
                    "Candidates in parallel",
                    WholeNumber(1, 256),
                    "--jobs",
                    help="The result does not depend on it.",
                    default="1",
                ),
                time_budget("The best so far is kept.", "Stop after"),
                time_limit("candidate", "[default: based on the program's run time]"),
                Field("resume", "Resume", Flag(), "--resume", help="Continue a stopped minify."),
            ),
            more=True,
        ),
    ),
    home_option="",
    separator="--",
    check=_check,
    writes=_writes,
    exits={0: "A repro was written.", 2: "No repro.", 130: "Stopped; the best so far is kept."},
)
