"""What the compilations of a run tell of values, and what follows from it."""

from __future__ import annotations

from dataclasses import replace

import libcst as cst
import pytest

from compilescope.change.fixes.subject import Subject
from compilescope.change.fixes.values.kinds import Kind, joined_kind, kind_of
from fixes.repertoire import subjects

PROGRAM = """import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(3))
        self.level = 0.5

    def forward(self, x, counts, times, mask=None):
        h = x * self.weight
        if h.sum() > 0:
            h = h * times
        if mask is None:
            h = h + counts * self.level
        return h


compiled = torch.compile(Net(), backend="eager")
compiled(torch.ones(2, 3), torch.ones(3, dtype=torch.int32), 2)
"""


@pytest.fixture(scope="module")
def subject(tmp_path_factory: pytest.TempPathFactory) -> Subject:
    (found,) = subjects(tmp_path_factory.mktemp("seen"), PROGRAM)
    return found


@pytest.mark.torch
def test_a_run_tells_what_went_into_its_graphs(subject: Subject) -> None:
    (x,) = subject.facts("x")
    assert (x.kind, x.dtype, x.shape, x.requires_grad) == ("tensor", "float32", (2, 3), False)
    (weight,) = subject.facts("self.weight")
    assert weight.requires_grad
    assert {fact.dtype for fact in subject.facts("counts")} == {"int32"}


@pytest.mark.torch
def test_what_the_function_computed_is_known_from_there_on(subject: Subject) -> None:
    assert {fact.shape for fact in subject.facts("h", subject.line)} == {(2, 3)}
    assert subject.facts("nothing_of_that_name") == ()


@pytest.mark.torch
def test_numbers_are_no_tensors(subject: Subject) -> None:
    assert {fact.kind for fact in subject.facts("times", subject.line)} == {"number"}


@pytest.mark.torch
@pytest.mark.parametrize(
    ("code", "dtype", "shape"),
    [
        ("x * 2", "float32", (2, 3)),
        ("counts * 2", "int32", (3,)),
        ("counts * 0.5", "float32", (3,)),
        ("counts / 2", "float32", (3,)),
        ("x + counts", "float32", (2, 3)),
        ("x.sum() > 0", "bool", ()),
        ("x.double().relu()", "float64", (2, 3)),
        ("x.sum(0)", None, None),
        ("x @ x", "float32", None),
    ],
)
def test_kinds_follow_from_how_it_is_written(
    subject: Subject, code: str, dtype: str | None, shape: tuple[int, ...] | None
) -> None:
    # The expression is one of the file itself, so that its names have a place.
    text = PROGRAM.replace("h.sum() > 0", f"({code}).sum() > 0")
    program = replace(subject.program, files={subject.file: text}, _modules={})
    fresh = Subject(subject.finding, program)
    module = fresh.module
    node = next(
        each
        for each in module.walk()
        if isinstance(each, cst.BaseExpression) and module.code(each) == f"({code})"
    )
    found = kind_of(fresh, node)
    assert (found.dtype, found.shape) == (dtype, shape)


def test_a_number_widens_no_tensor_of_its_category() -> None:
    half = Kind("float16", (3,))
    assert joined_kind([half, Kind("float32", (), python=True)]).dtype == "float16"
    assert joined_kind([half, Kind("float32", ())]).dtype == "float16"
    assert joined_kind([half, Kind("float32", (3,))]).dtype == "float32"
    assert joined_kind([Kind("int64", (3,)), Kind("float64", ())]).dtype == "float64"
