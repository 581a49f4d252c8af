"""`config-field` sets arguments of calls in compiled code, not those of the compiled call."""

from __future__ import annotations

from pathlib import Path

import pytest

from compilescope.change.fixes.catalogue import all_fixes
from compilescope.knowledge.source.refusals import Refused
from fixes.repertoire import subjects

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


MODELS = """import torch
from torch import nn


class NetConfig:
    def __init__(self, is_gated=True, noted=True):
        self.is_gated, self.noted = is_gated, noted


class Net(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config

    def forward(self, x, noted=None):
        noted = self.config.noted if noted is None else noted
        result = {"loss": x.sum()}
        if noted:
            if self.config.is_gated:
                print("noted")
                result["notes"] = x + 1
        return result
"""
TRAINED = """import torch
from nets import Net, NetConfig

compiled = torch.compile(Net(NetConfig()), backend="eager")
print(compiled(torch.ones(3))["loss"])
"""


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('print(compiled(torch.ones(3))["loss"])', ""),
        ("print(compiled(torch.ones(3)))", "may read all of the result"),
    ],
)
def test_a_parameter_that_the_config_decides(tmp_path: Path, line: str, words: str) -> None:
    """Not the nearest flag, `is_gated`: with another it is another model."""
    (tmp_path / "nets.py").write_text(MODELS)
    fix = next(each for each in all_fixes() if each.id == "config-field")
    text = TRAINED.replace('print(compiled(torch.ones(3))["loss"])', line)
    (subject,) = subjects(tmp_path, text)
    if words:
        with pytest.raises(Refused, match=words):
            fix.propose(subject)
        return
    patch = fix.propose(subject)
    assert "NetConfig(noted=False)" in "".join(patch.files.values())
    assert "`loss` alone" in patch.states


@pytest.mark.parametrize(("text", "is_offered"), [(ENTERING, False), (INSIDE, True)])
def test_only_inside(tmp_path: Path, text: str, is_offered: bool) -> None:
    (tmp_path / "scores.py").write_text(LIBRARY)
    fix = next(each for each in all_fixes() if each.id == "config-field")
    (subject,) = subjects(tmp_path, text)
    if is_offered:
        (new,) = fix.propose(subject).files.values()
        assert "scored(x, checked=False)" in new
        return
    with pytest.raises(Refused, match="argument of the compiled call"):
        fix.propose(subject)


DEEP = """import torch
from scores.parts import copied


def scored(x, checked=True):
    if checked:
        x = copied(x)
    return x * 2
"""
PARTS = """import torch


def copied(x):
    print("copied")
    return x.clone()
"""


def test_the_flag_goes_to_its_own_function_not_to_one_it_calls(tmp_path: Path) -> None:
    package = tmp_path / "scores"
    package.mkdir()
    (package / "__init__.py").write_text("from scores.deep import scored\n")
    (package / "deep.py").write_text(DEEP)
    (package / "parts.py").write_text(PARTS)
    (subject,) = subjects(tmp_path, INSIDE)
    assert subject.file.endswith("parts.py")
    fix = next(each for each in all_fixes() if each.id == "config-field")
    files = fix.propose(subject).files
    assert [Path(file).name for file in files] == ["program.py"]
    assert "scored(x, checked=False)" in "".join(files.values())
