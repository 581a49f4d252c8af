"""The form of `fix`: search for fixes and verify them."""

from collections.abc import Iterator
from dataclasses import replace

from compilescope.apps.dashboard.fields.form import Form, Group, Values
from compilescope.apps.dashboard.fields.kinds import RULES, SITE, Field, Flag
from compilescope.apps.dashboard.fields.shared import (
    ARGUMENTS,
    COMPILED,
    RUN,
    SCRIPT,
    check_compiled,
    check_program,
    check_writing,
    time_budget,
    time_limit,
    what_to_write,
    written_script,
)


def _check(values: Values) -> Iterator[tuple[str, str]]:
    yield from check_program(values)
    yield from check_compiled(values)
    yield from check_writing(values)


FORM = Form(
    id="fix",
    order=30,
    title="Fix graph breaks and recompiles",
    about="Try patches, and show only those that running the program verifies.",
    command=("fix",),
    groups=(
        Group("Program", (replace(SCRIPT, required=False), ARGUMENTS, RUN)),
        COMPILED,
        Group(
            "What to fix",
            (
                Field("site", "Line", SITE, "--site", help="Only fix this line.", example="m.py:9"),
                Field(
                    "rules",
                    "Rules",
                    RULES,
                    "--rule",
                    help="Only causes with these rules, graph-break IDs or categories, or only "
                    "fixes with these names.",
                ),
                Field(
                    "safe_only",
                    "Safe fixes only",
                    Flag(),
                    "--safe-only",
                    help="Only use fixes that change nothing you can observe.",
                ),
            ),
            more=True,
        ),
        what_to_write(
            "SCRIPT_fixed.py: the same program with all fixes, third-party code included.",
            "Change your own files, never installed packages.",
        ),
        Group(
            "Search",
            (
                time_limit("run", "Time limit for one run of the program.", "300"),
                time_budget("Fixes verified by then are shown."),
                Field("no_time", "Don't time the result", Flag(), "--no-time"),
            ),
            more=True,
        ),
    ),
    separator="--",
    check=_check,
    writes=written_script,
    exits={
        0: "A fix is verified, or there is nothing to fix.",
        1: "No fix could be verified.",
        2: "The search could not run.",
    },
)
