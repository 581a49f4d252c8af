"""Registry: PyTorch's own table of graph breaks."""

from compilescope.demo.tour import Command, TourStep

STEP = TourStep(
    id="registry",
    order=11,
    title="Registry",
    text="Looks up the graph break in PyTorch's own table. `registry search` finds others, "
    "`registry build` makes a site of them all.",
    commands=(
        Command(
            ("compilescope", "registry", "show", "GB0170"), shows=("Data-dependent branching",)
        ),
    ),
    programs=(),
    modules=(),
)
