"""The accelerators' part of the package's front: backends, joined with what they do not know of.

A strict backend hands a refused graph over; here that goes to the maker of repros. A kept graph can
be drawn; here it is given somebody who draws.
"""

from __future__ import annotations

from compilescope.backends.mini.adapter import MiniAdapter
from compilescope.backends.mock.aot import AotMockBackend
from compilescope.backends.mock.backend import MockBackend
from compilescope.minify.violations import verified_repro
from compilescope.report.drawing import draw_graph

mock_backend = MockBackend(reproduce=verified_repro)
aot_mock_backend = AotMockBackend(reproduce=verified_repro, draw=draw_graph)
mini_backend = MiniAdapter()
