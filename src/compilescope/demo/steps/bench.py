"""Benchmarks, in a version of the tool that has them."""

from compilescope.demo.step import Command, Step

STEP = Step(
    id="bench",
    order=9,
    title="Benchmarks",
    text="The benchmarks in this version, and their options.",
    commands=(Command(("compilescope", "bench", "--help")),),
    programs=(),
    modules=(),
)
