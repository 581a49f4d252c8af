"""Logs: a trace that PyTorch wrote, read back."""

from compilescope.demo.tour import Command, TourStep

STEP = TourStep(
    id="logs",
    order=12,
    title="Logs",
    text="Reads what PyTorch itself writes with TORCH_TRACE or TORCH_LOGS, for machines where "
    "you can't install anything. It finds the same graph break and the same recompiles.",
    commands=(
        Command(("python", "model.py"), environment=(("TORCH_TRACE", "trace"),)),
        Command(("compilescope", "logs", "trace"), shows=("4 graphs instead of 1",)),
    ),
    makes=("trace",),
)
