"""The form of `demo` with a model: one of `transformers` by name, for users without a script."""

import re

from compilescope.apps.dashboard.fields.choices import backends, families
from compilescope.apps.dashboard.fields.form import Form, Group
from compilescope.apps.dashboard.fields.kinds import Field, Number, Text, WholeNumber
from compilescope.apps.dashboard.fields.shared import CONSTRAINTS, Backends

_FAMILY = Text(
    re.compile(r"[A-Za-z0-9][\w.-]*"), "This is not the name of a model family.", families, True
)
_PADDING = Text(re.compile(r"\d+(?:\.\d+)?%?"), "Give a number of tokens (8) or a share (25%).")

FORM = Form(
    id="model",
    order=20,
    title="Try a transformers model",
    about="No script needed: build a small model by its name, capture it, check it, compare its "
    "numbers.",
    command=("demo",),
    groups=(
        Group(
            "Model",
            (
                Field(
                    "model",
                    "Model family",
                    _FAMILY,
                    "--model",
                    help="For example bert, gpt2 or llama. Built small, with random weights.",
                    required=True,
                    example="bert",
                ),
                Field("batch", "Batch size", WholeNumber(1, 4096), "--batch", default="2"),
                Field("seq", "Sequence length", WholeNumber(1, 65536), "--seq", default="16"),
                Field(
                    "padding",
                    "Padding",
                    _PADDING,
                    "--padding",
                    help="At the end of each sequence: tokens (8) or a share (25%).",
                    default="25%",
                ),
            ),
        ),
        Group(
            "Numbers",
            (
                Field(
                    "backend",
                    "Backend",
                    Backends(backends, files=False),
                    "--backend",
                    help="[default: inductor, or aot_eager without a C++ compiler]",
                ),
                Field("atol", "Absolute tolerance", Number(), "--atol", help="[default: by dtype]"),
                Field("rtol", "Relative tolerance", Number(), "--rtol", help="[default: by dtype]"),
            ),
        ),
        Group("Device", (CONSTRAINTS,)),
    ),
    home_option="--runs",
    needs=(("torch", "torch"), ("transformers", "models")),
    exits={0: "The numbers agree.", 1: "The numbers don't agree, or can't be compared."},
)
