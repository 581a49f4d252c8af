"""Capture: what torch.compile did with a program."""

from compilescope.demo.tour import Command, TourStep

STEP = TourStep(
    id="capture",
    order=1,
    title="Capture",
    text="Runs a program unmodified and records everything torch.compile does. "
    "This model has one graph break and one recompile on purpose.",
    commands=(
        Command(
            ("compilescope", "run", "model.py"),
            shows=("4 graphs instead of 1", "Data-dependent branching"),
        ),
    ),
)
