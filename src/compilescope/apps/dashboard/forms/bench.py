"""The form of `bench`: benchmark models on backends."""

from collections.abc import Iterator

from compilescope.apps.dashboard.fields.choices import backends, bench_models
from compilescope.apps.dashboard.fields.form import Form, Group, Values
from compilescope.apps.dashboard.fields.kinds import Checks, Field, Flag, OneOf, WholeNumber
from compilescope.apps.dashboard.fields.shared import CONSTRAINTS, Backends, Builds, time_limit


def _check(values: Values) -> Iterator[tuple[str, str]]:
    if not values.get("models") and not values.get("own"):
        yield "models", "Choose at least one model, or name your own."


FORM = Form(
    id="bench",
    order=50,
    title="Benchmark models",
    about="Measure latency, compile time and memory on backends, compared with eager mode.",
    command=("bench",),
    groups=(
        Group(
            "Models",
            (
                Field("models", "Models", Checks(bench_models), "--model"),
                Field(
                    "own",
                    "Your own models",
                    Builds(),
                    "--model",
                    help="file.py:build, a function that returns (model, args). Several are "
                    "separated by spaces.",
                    example="model.py:build",
                ),
                Field(
                    "small", "Small versions", Flag(), "--small", help="Quick: for trying it out."
                ),
            ),
        ),
        Group(
            "Backends and device",
            (
                Field(
                    "backends",
                    "Backends",
                    Backends(backends, many=True),
                    "--backend",
                    help="Names, mock, or file.py:backend, separated by spaces. Eager mode is "
                    "always measured.",
                    default="inductor",
                ),
                Field("device", "Device", OneOf(("cpu", "cuda")), "--device", default="cpu"),
                Field(
                    "dtype",
                    "dtype",
                    OneOf(("float32", "bfloat16", "float16")),
                    "--dtype",
                    default="float32",
                ),
                CONSTRAINTS,
            ),
        ),
        Group(
            "Measurement",
            (
                Field(
                    "mode",
                    "Mode",
                    OneOf(("inference", "training")),
                    "--mode",
                    help="A forward call, or a training step.",
                    default="inference",
                ),
                Field(
                    "batch",
                    "Batch size",
                    WholeNumber(1, 1_000_000),
                    "--batch",
                    help="[default: the model's own]",
                ),
                Field(
                    "warmup",
                    "Warmup calls",
                    WholeNumber(1, 100_000),
                    "--warmup",
                    help="Calls before timing.",
                    default="3",
                ),
                Field(
                    "runs",
                    "Runs",
                    WholeNumber(1, 100_000),
                    "--runs",
                    help="In each process.",
                    default="10",
                ),
                Field(
                    "processes",
                    "Processes",
                    WholeNumber(1, 1000),
                    "--processes",
                    help="Per backend. The interval covers differences between processes with "
                    "three or more.",
                    default="3",
                ),
            ),
        ),
        Group(
            "More",
            (
                Field(
                    "compile_mode",
                    "Mode of torch.compile",
                    OneOf(
                        ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")
                    ),
                    "--compile-mode",
                    help="For inductor.",
                ),
                Field(
                    "no_examine",
                    "Measure only",
                    Flag(),
                    "--no-examine",
                    help="Skip graphs, graph breaks and KernelDiff.",
                ),
                Field(
                    "threads",
                    "Threads",
                    WholeNumber(1, 4096),
                    "--threads",
                    help="That torch uses. [default: torch's own]",
                ),
                Field(
                    "seed",
                    "Seed",
                    WholeNumber(None),
                    "--seed",
                    help="For weights and inputs.",
                    default="0",
                ),
                time_limit("step", "Building, compiling, or one run.", "600"),
            ),
            more=True,
        ),
    ),
    check=_check,
    exits={
        0: "Everything was measured.",
        1: "A backend has no figures.",
        2: "Nothing could be measured.",
    },
)
