"""KernelDiff: comparisons of numbers, newest first, with heatmaps."""

from __future__ import annotations

from html import unescape

from dashboard_server import Served


def test_comparisons_with_verdict_error_and_tolerance(history: Served) -> None:
    page = unescape(history.client.get("/numbers").text)
    assert page.index("00000e-diff-mlp") < page.index("00000d-diff-mlp")
    assert "all agree" in page and "1 of 2 values differ" in page
    assert "0.5 in <code>output['logits']</code>" in page
    assert "atol 1e-5; compared with a float64 run" in page
    assert '<figure class="heatmap">' in page
    assert 'href="/start/diff"' in page and 'href="/runs/00000d-diff-mlp"' in page
