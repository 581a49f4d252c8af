"""The public `KernelDiffHarness`: the comparison of `diff`, connected to the view that draws it."""

from __future__ import annotations

from compilescope.measure.diff.harness import KernelDiffHarness as Harness
from compilescope.record.run import Run
from compilescope.report.document import report_document
from compilescope.report.render.html import to_html
from compilescope.report.section import Reading


def _as_html(run: Run) -> str:
    return to_html(report_document(Reading(run)))


class KernelDiffHarness(Harness):
    __doc__ = Harness.__doc__
    draw = staticmethod(_as_html)
