"""Benchmarks: the model on a backend and in eager mode, with intervals."""

from compilescope.demo.tour import Command, TourStep

STEP = TourStep(
    id="bench",
    order=9,
    title="Benchmarks",
    text="Measures the model in eager mode and on a backend, in processes that take turns: latency "
    "with a 95 % interval, compile time, and whether the difference is real.",
    commands=(
        Command(
            (
                *("compilescope", "bench", "--model", "model.py:build"),
                *("--backend", "eager", "--backend", "aot_eager"),
                *("--runs", "5", "--processes", "1"),
            ),
            shows=("Eager ms", "aot_eager ms", "Speed-up", "KernelDiff"),
            since="compilescope bench ",
            lines=36,
        ),
    ),
    modules=("torch", "numpy", "scipy"),
)
