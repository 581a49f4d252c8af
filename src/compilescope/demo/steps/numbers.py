"""Numbers: KernelDiff on a backend with a planted bug, and its heatmap."""

from compilescope.demo.tour import Command, TourStep

STEP = TourStep(
    id="numbers",
    order=7,
    title="KernelDiff",
    text="Compares a backend with eager mode and a float64 run, and names the wrong operation. "
    "The backend `fast_gelu` has a planted bug. The heatmap shows where the errors are.",
    commands=(
        Command(
            (
                *("compilescope", "diff", "model.py:build"),
                *("--test-backend", "model.py:fast_gelu", "--localize"),
            ),
            expected=1,
            shows=("FAIL", "wrong operation: torch._C._nn.gelu"),
        ),
        Command(
            ("compilescope", "show", "--all", "--section", "diffs"),
            shows=("where the errors are", "+----"),
            since="where the errors are",
        ),
    ),
)
