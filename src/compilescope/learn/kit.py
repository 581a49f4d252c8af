"""The functions that lessons import: to draw and to measure.

Everything that draws does so at once: in a notebook as HTML, elsewhere as text on stdout.
"""

from __future__ import annotations

from compilescope.learn.display import bars, beside, code, missing, show, table, timeline
from compilescope.learn.graphs import draw_graph
from compilescope.learn.measurement import first_call_seconds, fresh_cache, median_ms, peak_bytes
from compilescope.learn.verdict import judge

__all__ = [
    "bars",
    "beside",
    "code",
    "draw_graph",
    "first_call_seconds",
    "fresh_cache",
    "judge",
    "median_ms",
    "missing",
    "peak_bytes",
    "show",
    "table",
    "timeline",
]
