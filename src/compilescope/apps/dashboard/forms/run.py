"""The form of `run`: run a program under capture."""

from compilescope.apps.dashboard.fields.form import Form, Group
from compilescope.apps.dashboard.fields.kinds import Field, Flag
from compilescope.apps.dashboard.fields.shared import ARGUMENTS, COMPILED, SCRIPT, check_compiled

FORM = Form(
    id="run",
    order=10,
    title="Run a script",
    about="See what torch.compile does with it: graphs, graph breaks, recompiles, time.",
    command=("run",),
    groups=(
        Group("Program", (SCRIPT, ARGUMENTS)),
        COMPILED,
        Group(
            "Also record",
            (
                Field(
                    "time",
                    "Time of calls",
                    Flag(),
                    "--time",
                    help="Time every call of compiled code, inside and outside graphs.",
                ),
                Field(
                    "profile",
                    "Where a step's time goes",
                    Flag(),
                    "--profile",
                    help="torch's profiler records a few steps once nothing is compiled any more.",
                ),
                Field(
                    "ir",
                    "Inductor's IR",
                    Flag(),
                    "--ir",
                    help="Adds about 10% to compile time.",
                ),
                Field(
                    "repro",
                    "Repro scripts",
                    Flag(),
                    "--repro",
                    help="After the program, write a minimal script for each backend failure.",
                ),
            ),
        ),
    ),
    check=check_compiled,
    exits={0: "The program finished."},
)
