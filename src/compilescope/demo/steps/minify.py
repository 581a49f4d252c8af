"""Minify: the smallest script that shows the bug."""

from compilescope.demo.tour import Command, TourStep

STEP = TourStep(
    id="minify",
    order=8,
    title="Minifier",
    text="Shrinks the graph while the planted bug still shows, and writes a script that needs "
    "only torch. The script exits with 1 while the bug is present.",
    commands=(
        Command(
            (
                *("compilescope", "minify", "model.py", "--predicate", "diff"),
                *("--test-backend", "model.py:fast_gelu", "-o", "repro.py"),
            ),
            shows=("Repro, verified in a fresh process: repro.py",),
        ),
        Command(("python", "repro.py"), expected=1, shows=("The bug is present",)),
    ),
    makes=("repro.py",),
)
