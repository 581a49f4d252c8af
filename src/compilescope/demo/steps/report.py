"""Report: everything in one page."""

from compilescope.demo.tour import Command, TourStep

STEP = TourStep(
    id="report",
    order=4,
    title="Report",
    text="Writes the latest run as one HTML page: causes, your source, a timeline, every graph. "
    "Markdown, JSON, SARIF and a Perfetto trace work the same way.",
    commands=(Command(("compilescope", "report", "-o", "report.html")),),
    after=("capture",),
    makes=("report.html",),
)
