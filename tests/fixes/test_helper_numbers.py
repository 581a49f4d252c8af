"""A number that a helper returns stays a number wherever somebody else may ask for it."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")

from compilescope.change.fixes.breaks.tensor_for_number import FIX
from compilescope.knowledge.source.refusals import Refused
from fixes.repertoire import subjects

pytestmark = pytest.mark.torch
_PLAIN = """
def peak(x):
    return x.max().item()
"""
_END = """

def f(x):
    return x * peak(x)


torch.compile(f, backend="eager")(torch.ones(3))
"""


@pytest.mark.parametrize(
    ("helper", "because"),
    [
        (_PLAIN, "no run shows what is done with"),
        (f"{_PLAIN}\nmetrics = {{'peak': peak}}\n", "passed on, and may be called elsewhere"),
        (f"{_PLAIN}\nasked = getattr(torch, 'peak', None)\n", "gives the function itself"),
        (f"import functools\n\n\n@functools.wraps(abs){_PLAIN}", "has a decorator"),
        (
            f"{_PLAIN}\n\nclass Meter:\n    def peak(self):\n        return 1.0\n",
            "several functions called `peak`",
        ),
        (
            "def peak(x):\n    if x.ndim == 0:\n        return 0.0\n    return x.max().item()\n",
            "returns in several places",
        ),
    ],
)
def test_who_else_may_call_it(helper: str, because: str, tmp_path: Path) -> None:
    text = f"import torch\n{helper}{_END}"
    found = [each for each in subjects(tmp_path, text) if FIX.rules & each.keys]
    with pytest.raises(Refused, match=because):
        FIX.propose(found[0])
