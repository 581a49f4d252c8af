"""`config-field` sets arguments of calls in compiled code, not those of the compiled call."""

from __future__ import annotations

from pathlib import Path

import pytest

from compilescope.fixes.catalogue import all_fixes
from compilescope.fixes.subject import subjects_of
from compilescope.source.refusals import Refused
from fixes.repertoire import program_of

pytestmark = pytest.mark.torch
LIBRARY = """import torch


def scored(x, checked=True):
    if checked:
        print("checked")
    return x * 2
"""
ENTERING = """import torch
from scores import scored

x = torch.ones(3)
compiled = torch.compile(scored, backend="eager")
compiled(x)
"""
INSIDE = """import torch
from scores import scored


def f(x):
    y = scored(x)
    return y + 1


torch.compile(f, backend="eager")(torch.ones(3))
"""


@pytest.mark.parametrize(("text", "is_offered"), [(ENTERING, False), (INSIDE, True)])
def test_only_inside(tmp_path: Path, text: str, is_offered: bool) -> None:
    (tmp_path / "scores.py").write_text(LIBRARY)
    fix = next(each for each in all_fixes() if each.id == "config-field")
    (subject,) = subjects_of(program_of(tmp_path, text))
    if is_offered:
        (new,) = fix.propose(subject).files.values()
        assert "scored(x, checked=False)" in new
        return
    with pytest.raises(Refused, match="argument of the compiled call"):
        fix.propose(subject)
