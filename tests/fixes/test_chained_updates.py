"""`x.mul_(a).add_(b)` under a condition: `b` may not read what `mul_` has changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from compilescope.change.fixes.catalogue import all_fixes
from compilescope.change.fixes.patch import Patch
from compilescope.knowledge.source.refusals import Refused
from fixes.repertoire import meant, subjects

pytestmark = [pytest.mark.torch]
PROGRAM = """
import torch


class Mean(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.rate = 0.5
        self.register_buffer("mean", torch.zeros(3))

    def shift(self):
        return self.mean.sum()

    def forward(self, x):
        if x.sum() > 0:
            {update}
        return x - self.mean


torch.compile(Mean(), backend="eager")(torch.ones(3))
"""


def proposed(folder: Path, update: str) -> Patch:
    fix = next(each for each in all_fixes() if each.id == "where-for-if")
    subject = meant(fix, subjects(folder, PROGRAM.format(update=update)))
    assert subject is not None
    return fix.propose(subject.meant_for(fix.rules))


def test_another_attribute_of_the_same_object_is_no_second_read(tmp_path: Path) -> None:
    patch = proposed(tmp_path, "self.mean.mul_(1 - self.rate).add_(x, alpha=self.rate)")
    assert "self.mean.mul(1 - self.rate).add(x, alpha=self.rate)" in "".join(patch.files.values())


@pytest.mark.parametrize(
    "update", ["add_(self.mean.mean())", "add_(self.shift())", "add_(self.mean[0])"]
)
def test_the_changed_tensor_is(tmp_path: Path, update: str) -> None:
    with pytest.raises(Refused, match="has changed in place"):
        proposed(tmp_path, f"self.mean.mul_(2).{update}")
