"""Explain: why each cause happens."""

from compilescope.demo.tour import Command, TourStep

STEP = TourStep(
    id="explain",
    order=2,
    title="Explain",
    text="Explains each cause of that run: why it happens, and what to change.",
    commands=(
        Command(
            ("compilescope", "explain", "--site", "model.py:18"),
            shows=("GB0170", "torch.where"),
        ),
    ),
    after=("capture",),
)
