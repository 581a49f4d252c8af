"""Constraints: the graphs checked against a device."""

from compilescope.demo.tour import Command, TourStep

STEP = TourStep(
    id="constraints",
    order=5,
    title="Hardware constraints",
    text="Checks every graph against a device described in a TOML file, without the device. "
    "npu-a wants matrix sizes in multiples of 16; the batch here is 8, so the check fails.",
    commands=(
        Command(
            ("compilescope", "preflight", "model.py", "--device", "npu-a"),
            expected=1,
            shows=("multiples of 16",),
        ),
    ),
)
