"""The form of `tune`: find what makes a step faster."""

import re
from collections.abc import Iterator

from compilescope.apps.dashboard.fields.form import Form, Group, Values
from compilescope.apps.dashboard.fields.kinds import RULES, Field, Flag, Text, WholeNumber
from compilescope.apps.dashboard.fields.shared import (
    ARGUMENTS,
    COMPILED,
    SCRIPT,
    check_compiled,
    check_writing,
    time_budget,
    time_limit,
    what_to_write,
    written_script,
)

_STEP = Text(re.compile(r"[^-:][^:]*:[\w.]+"), "Give a file and a function, such as train.py:step.")


def _check(values: Values) -> Iterator[tuple[str, str]]:
    yield from check_compiled(values)
    yield from check_writing(values)


FORM = Form(
    id="tune",
    order=35,
    title="Make a step faster",
    about="Try compile modes, flags, optimizers and layouts, and show only what is faster in two "
    "measurements and computes the same numbers.",
    command=("tune",),
    groups=(
        Group("Program", (SCRIPT, ARGUMENTS)),
        COMPILED,
        Group(
            "What to try",
            (
                Field(
                    "step",
                    "Step",
                    _STEP,
                    "--step",
                    help="A call of this function is a step. [default: it is found]",
                    example="train.py:train_step",
                ),
                Field(
                    "only",
                    "Candidates",
                    RULES,
                    "--only",
                    help="Only these; `compilescope tune --list` names them. [default: all]",
                    example="reduce-overhead fused-optimizer",
                ),
                Field(
                    "lower_precision",
                    "Allow lower precision",
                    Flag(),
                    "--lower-precision",
                    help="TF32 and bfloat16 may be part of the result.",
                ),
            ),
            more=True,
        ),
        what_to_write("SCRIPT_fixed.py: the same program, tuned.", "Change your own files."),
        Group(
            "Search",
            (
                time_limit("process", "Time limit for one process to compile and settle.", "600"),
                time_budget("What is verified by then is shown."),
                Field(
                    "jobs",
                    "Versions at a time",
                    WholeNumber(1, 1024),
                    "--jobs",
                    help="That compile at the same time. [default: a quarter of the cores]",
                ),
            ),
            more=True,
        ),
    ),
    separator="--",
    check=_check,
    writes=written_script,
    exits={
        0: "A candidate is verified.",
        1: "No candidate is verified.",
        2: "The search could not run.",
    },
)
