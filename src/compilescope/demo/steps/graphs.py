"""Graphs: FX and AOT capture from Python."""

from compilescope.demo.tour import Command, TourStep

STEP = TourStep(
    id="graphs",
    order=6,
    title="FX and AOT graphs",
    text="The same capture from Python, around one training step: the FX graphs of Dynamo, and "
    "the joint, forward and backward graphs of AOTAutograd. graphs.py is 25 lines.",
    commands=(
        Command(
            ("python", "graphs.py"),
            shows=("2 FX graphs", "aot_joint", "aot_forward", "aot_backward"),
        ),
    ),
    programs=("model.py", "graphs.py"),
)
