"""The form of `diff` (KernelDiff): compare the numbers of two backends."""

from collections.abc import Iterator

from compilescope.apps.dashboard.fields.choices import backends
from compilescope.apps.dashboard.fields.form import Form, Group, Values
from compilescope.apps.dashboard.fields.kinds import Field, Flag, Number, Text, WholeNumber
from compilescope.apps.dashboard.fields.shared import Backends, Build


def _check(values: Values) -> Iterator[tuple[str, str]]:
    if values.get("optimizer") and not values.get("train"):
        yield "optimizer", "An optimizer is for training: choose “Training” too."


FORM = Form(
    id="diff",
    order=40,
    title="Compare numbers (KernelDiff)",
    about="Check that a backend computes what eager mode computes, and find where it doesn't.",
    command=("diff",),
    groups=(
        Group(
            "Model",
            (
                Field(
                    "build",
                    "File and function",
                    Build(),
                    help="FILE.py:BUILD, a function that returns (model, args) or "
                    "(model, args, kwargs).",
                    required=True,
                    example="model.py:build",
                ),
                Field(
                    "inputs",
                    "Input sets",
                    WholeNumber(1, 10_000),
                    "--inputs",
                    help="The function is called this many times, for the inputs of each call.",
                    default="1",
                ),
                Field(
                    "variants",
                    "Generated input sets",
                    WholeNumber(0, 10_000),
                    "--variants",
                    help="Like the first, with other values and sizes.",
                    default="0",
                ),
            ),
        ),
        Group(
            "Backends",
            (
                Field(
                    "test_backend",
                    "Backend under test",
                    Backends(backends),
                    "--test-backend",
                    help="A name, or file.py:backend.",
                    default="inductor",
                ),
                Field(
                    "reference",
                    "Reference",
                    Backends(backends, files=True),
                    "--reference",
                    help="eager is plain Python; any other backend is compiled.",
                    default="eager",
                ),
            ),
        ),
        Group(
            "Tolerances",
            (
                Field(
                    "atol",
                    "Absolute tolerance",
                    Number(),
                    "--atol",
                    help="[default: by dtype and float64]",
                ),
                Field(
                    "rtol",
                    "Relative tolerance",
                    Number(),
                    "--rtol",
                    help="[default: by dtype and float64]",
                ),
                Field(
                    "no_fp64",
                    "Tolerances only",
                    Flag(),
                    "--no-fp64",
                    help="Compare without a float64 run.",
                ),
            ),
        ),
        Group(
            "What to compare",
            (
                Field(
                    "train",
                    "Training",
                    Flag(),
                    "--train",
                    help="Also compare gradients and one training step.",
                ),
                Field(
                    "optimizer",
                    "Optimizer",
                    Text(),
                    "--optimizer",
                    help="For training: a torch.optim name. [default: SGD]",
                    example="AdamW",
                ),
                Field(
                    "localize",
                    "Localize",
                    Flag(),
                    "--localize",
                    help="Find the operation where they diverge.",
                ),
            ),
        ),
        Group(
            "Repetition",
            (
                Field(
                    "runs",
                    "Runs per input set",
                    WholeNumber(1, 10_000),
                    "--runs",
                    help="Equal runs must give equal results.",
                    default="2",
                ),
                Field(
                    "seed",
                    "Seed",
                    WholeNumber(None),
                    "--seed",
                    help="For the function and for generated inputs.",
                    default="0",
                ),
            ),
            more=True,
        ),
    ),
    check=_check,
    exits={0: "The numbers agree.", 1: "The numbers differ.", 2: "Inconclusive, or an error."},
)
