"""What was seen of values decides where the text alone cannot."""

from __future__ import annotations

import dataclasses
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import pytest

from compilescope.change.fixes.catalogue import all_fixes
from compilescope.change.fixes.patch import Patch
from compilescope.change.fixes.subject import Program, Subject
from compilescope.change.fixes.values.graph_values import ValueFact, ValueFacts
from compilescope.knowledge.source.refusals import Refused
from fixes.repertoire import in_order, program_of

pytestmark = pytest.mark.torch

_TENSOR = ValueFact(kind="tensor", type="torch.Tensor", dtype="float32", shape=(3,), device="cpu")
_NUMBER = ValueFact(kind="number", type="builtins.float", value="0.1")

_LOG = """import torch


def f(x):
    y = x
    if x.min() > 0:
        y = x.log()
    return y * 2


torch.compile(f, backend="eager")(torch.ones(3))
"""

_SCALE = """import torch


def f(x):
    if x.sum() > 0:
        scale = 0.1
    else:
        scale = 0.3
    return x * scale


torch.compile(f, backend="eager")(torch.ones(3))
"""


@cache
def _program(text: str) -> Program:
    """Run once, and kept with its text: its file is gone."""
    with TemporaryDirectory() as folder:
        program = program_of(Path(folder), text)
    return dataclasses.replace(program, files={program.main: text})


def _subject(text: str, **names: ValueFact) -> Subject:
    """The one subject of a program, with these facts at every line."""
    program = _program(text)
    lines = range(1, len(text.splitlines()) + 1)
    seen = {program.main: {line: {n: (f,) for n, f in names.items()} for line in lines}}
    (found,) = in_order(dataclasses.replace(program, facts=ValueFacts(seen if names else {})))
    return found


def _propose(fix: str, subject: Subject) -> Patch:
    return next(each for each in all_fixes() if each.id == fix).propose(subject)


def test_a_logarithm_is_of_one_where_it_is_for_nothing_and_has_a_gradient() -> None:
    (text,) = _propose("where-for-if", _subject(_LOG, x=_TENSOR, y=_TENSOR)).files.values()
    assert "y = torch.where(x.min() > 0, x.log(), y)" in text
    trained = _LOG.replace("torch.ones(3)", "torch.ones(3, requires_grad=True)")
    fact = msgspec.structs.replace(_TENSOR, requires_grad=True)
    for subject in (_subject(_LOG), _subject(trained, x=fact, y=fact)):
        (text,) = _propose("where-for-if", subject).files.values()
        assert "y = torch.where(taken, torch.where(taken, x, 1).log(), y)" in text


def test_a_number_becomes_a_tensor_only_where_it_is_not_rounded() -> None:
    (text,) = _propose("where-for-if", _subject(_SCALE, x=_TENSOR)).files.values()
    assert "scale = torch.where(x.sum() > 0, 0.1, 0.3)" in text
    double = ValueFact(kind="tensor", type="torch.Tensor", dtype="float64", shape=(3,))
    with pytest.raises(Refused, match="would be rounded"):
        _propose("where-for-if", _subject(_SCALE, x=double))


def test_a_check_on_a_device_is_told_apart() -> None:
    text = """import torch


def f(x):
    if (x < 0).any():
        raise RuntimeError("negative")
    return x + 1


torch.compile(f, backend="eager")(torch.ones(3))
"""
    here = _propose("async-assert", _subject(text, x=_TENSOR))
    assert here.safe
    cuda = ValueFact(kind="tensor", type="torch.Tensor", dtype="float32", device="cuda:0")
    there = _propose("async-assert", _subject(text, x=cuda))
    assert "cannot be caught" in there.states
    assert "exception-type" in there.allows


_CLIP = """import torch


def clip(grads, limit):
    norm = torch.stack([g.norm() for g in grads]).norm()
    if norm > limit:
        for g in grads:
            g.mul_(limit / norm)
    return norm


torch.compile(clip, backend="eager")([torch.ones(3), torch.ones(2)], 1.0)
"""
_LIST = ValueFact(kind="other", type="builtins.list")
_SINGLE = msgspec.structs.replace(_TENSOR, shape=())


def test_each_item_of_a_list_is_changed_in_place() -> None:
    subject = _subject(_CLIP, grads=_LIST, g=_TENSOR, norm=_SINGLE, limit=_NUMBER)
    patch = _propose("where-for-if", subject)
    (text,) = patch.files.values()
    wanted = """    taken = norm > limit
    for g in grads:
        g.copy_(torch.where(taken, g.mul(limit / norm), g))
    return norm
"""
    assert wanted in text
    assert patch.states == ""


@pytest.mark.parametrize(
    ("changes", "because"),
    [
        ({"g": {"dtype": "int64"}}, "no floating-point dtype"),
        ({"g": {"requires_grad": True}}, "requires a gradient"),
        ({"g": {"kind": "none"}}, "not always a tensor"),
        ({"grads": {"type": "torch.Tensor"}}, "not known to be a list"),
    ],
)
def test_items_that_a_copy_would_treat_otherwise(
    changes: dict[str, dict[str, object]], because: str
) -> None:
    facts = {"grads": _LIST, "g": _TENSOR, "norm": _SINGLE, "limit": _NUMBER}
    for name, fields in changes.items():
        facts[name] = msgspec.structs.replace(facts[name], **fields)
    with pytest.raises(Refused, match=because):
        _propose("where-for-if", _subject(_CLIP, **facts))
