"""Fix: patches that were tried."""

from compilescope.demo.tour import Command, TourStep

STEP = TourStep(
    id="fix",
    order=3,
    title="Fix",
    text="Tries patches in fresh processes and keeps those it has verified: the cause is gone, "
    "and the program computes and prints the same. --script writes model_fixed.py.",
    commands=(
        Command(
            ("compilescope", "fix", "model.py", "--script", "--no-time"),
            shows=("2 fixes verified", "graph breaks 1 -> 0"),
        ),
    ),
    makes=("model_fixed.py",),
)
