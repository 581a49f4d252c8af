"""The public names for accelerators: the backends, connected to minify, report and recording.

Backends know nothing of those. A strict backend hands a refused graph over; here that goes to
minify, which makes a repro. A kept graph can be drawn; here it is given somebody who draws. A
program that imports one of them leaves a run.
"""

from __future__ import annotations

from compilescope.backends.mini.adapter import MiniAdapter
from compilescope.backends.mock.aot import AotMockBackend
from compilescope.backends.mock.backend import MockBackend
from compilescope.change.minify.violations.repros import verified_repro
from compilescope.instrument.automatic import begin
from compilescope.report.graph_drawing import draw_graph

mock_backend = MockBackend(reproduce=verified_repro)
aot_mock_backend = AotMockBackend(reproduce=verified_repro, draw=draw_graph)
mini_backend = MiniAdapter()

begin()
