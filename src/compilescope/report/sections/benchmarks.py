"""Models on backends: bars with intervals, and all figures of each model."""

from __future__ import annotations

from compilescope.report.benchmarks import LATENCY_NOTE, benchmark_items
from compilescope.report.section import Section

SECTION = Section("benchmarks", 2, benchmark_items, "Benchmarks", LATENCY_NOTE)
