"""The form of `sweep`: capture many programs or model classes."""

import re
from collections.abc import Iterator

from compilescope.apps.dashboard.fields.choices import backends
from compilescope.apps.dashboard.fields.form import Form, Group, Values
from compilescope.apps.dashboard.fields.kinds import Field, Flag, Number, OneOf, Text, WholeNumber
from compilescope.apps.dashboard.fields.shared import Backends, RunId, SweepSource, time_limit

_PATTERN = Text(
    re.compile(r"[\w*?\[][\w*?\[\].,!-]*"),
    "Give all, a family such as bert, or a glob on class names such as *ForCausalLM.",
)


def _check(values: Values) -> Iterator[tuple[str, str]]:
    classes = values.get("transformers")
    if not values.get("source") and not classes:
        yield "source", "Give a folder, or a pattern of transformers classes below."
    if values.get("source") and classes:
        yield "transformers", "Give a folder or a pattern, not both."
    if classes and values.get("compile_all"):
        yield "compile_all", "Classes of transformers are compiled anyway."
    uses = (classes, *(values.get(name) for name in ("compile_all", "bench", "diff")))
    if values.get("backend") and not any(uses):
        own = "The programs choose their own backend."
        yield "backend", f"{own} This one is for modules that are compiled here."


FORM = Form(
    id="sweep",
    order=80,
    title="Sweep over many programs",
    about="Capture a whole folder, or model classes of transformers, and sum up the causes.",
    command=("sweep",),
    groups=(
        Group(
            "Programs",
            (
                Field(
                    "source",
                    "Folder or list",
                    SweepSource(),
                    help="A folder that is searched for .py files, or a text file with one program "
                    "a line.",
                ),
                Field(
                    "transformers",
                    "Classes of transformers",
                    _PATTERN,
                    "--transformers",
                    help="Instead: all, *ForCausalLM, or bert. Each is built tiny.",
                    example="*ForCausalLM",
                ),
            ),
        ),
        Group(
            "How they run",
            (
                Field(
                    "compile_all",
                    "Compile the outermost modules",
                    Flag(),
                    "--compile-all",
                    help="Of programs that never call torch.compile.",
                ),
                Field(
                    "backend",
                    "Backend",
                    Backends(backends, files=False),
                    "--backend",
                    help="For whatever is compiled here. [default: inductor]",
                ),
                Field("device", "Device", OneOf(("cpu", "cuda")), "--device"),
            ),
        ),
        Group(
            "Also",
            (
                Field("bench", "Measure the speed-up over eager mode", Flag(), "--bench"),
                Field("diff", "Compare the numbers with eager mode's", Flag(), "--diff"),
                Field("fix", "Search for fixes and verify them", Flag(), "--fix"),
            ),
        ),
        Group(
            "Limits",
            (
                Field(
                    "jobs",
                    "Programs at a time",
                    WholeNumber(1, 1024),
                    "--jobs",
                    help="[default: half the cores]",
                ),
                time_limit("program", default="300"),
                Field(
                    "memory",
                    "Memory for one program, in GB",
                    Number(above=True),
                    "--memory",
                    help="[default: this machine's memory divided by programs at a time]",
                ),
                Field(
                    "resume",
                    "Resume",
                    Flag(),
                    "--resume",
                    help="Continue an unfinished sweep; run only what is left.",
                ),
                Field(
                    "against",
                    "Compare with run",
                    RunId(),
                    "--against",
                    help="Show what changed since this earlier sweep.",
                ),
            ),
            more=True,
        ),
    ),
    check=_check,
    exits={
        0: "Every program is ok.",
        1: "Some programs are not ok.",
        2: "The sweep could not run.",
        130: "Stopped; what is done is kept. “Resume” continues.",
    },
)
