"""Gate: limits for CI, before and after the fixes."""

from compilescope.demo.tour import Command, TourStep

STEP = TourStep(
    id="gate",
    order=10,
    title="Gate",
    text="Fails a CI job when a program exceeds its limits. The model fails; with the verified "
    "fixes from before, it passes.",
    commands=(
        Command(
            ("compilescope", "check", "model.py", "--max-breaks", "0"),
            expected=1,
            shows=("FAIL: 1 graph break, at most 0 allowed",),
            lines=14,
        ),
        Command(
            (
                *("compilescope", "check", "model_fixed.py"),
                *("--max-breaks", "0", "--max-recompiles", "0"),
            ),
            shows=("PASS",),
        ),
    ),
    after=("fix",),
)
