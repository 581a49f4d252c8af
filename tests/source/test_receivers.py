"""The object that a method is called on, by whatever name the method has for it."""

from __future__ import annotations

import pytest

from compilescope.knowledge.source.flow.aliasing import changes_in_place, is_buffer
from compilescope.knowledge.source.flow.purity import operator_of
from compilescope.knowledge.source.syntax.bindings import is_receiver, receiver_of
from compilescope.knowledge.source.syntax.module import SourceModule
from compilescope.knowledge.source.trees import cst

TEXT = """
class Net:
    def __init__(this):
        this.register_buffer("seen", zeros(3))
    def forward(module, x, /, y):
        module.seen += x
        def inner(z):
            return module.add(z)
        return inner(x).add(y)
    @classmethod
    def make(kind): ...
    @staticmethod
    def helper(first): ...
    if True:
        def nested(this, *rest): ...
    def none(*args): ...

def later(self, x): ...
def free(net, x):
    return net.add(x)
"""


@pytest.fixture(scope="module")
def module() -> SourceModule:
    return SourceModule("net.py", TEXT)


def _function(module: SourceModule, name: str) -> cst.FunctionDef:
    (found,) = (
        each
        for each in module.walk()
        if isinstance(each, cst.FunctionDef) and each.name.value == name
    )
    return found


@pytest.mark.parametrize(
    ("function", "name"),
    [
        ("__init__", "this"),
        ("forward", "module"),
        ("inner", ""),
        ("make", "kind"),
        ("helper", ""),
        ("nested", "this"),
        ("none", ""),
        ("later", "self"),
        ("free", ""),
    ],
)
def test_what_a_method_calls_its_object(module: SourceModule, function: str, name: str) -> None:
    assert receiver_of(module, _function(module, function)) == name


def test_a_method_of_the_module_is_no_operator(module: SourceModule) -> None:
    called = {
        module.code(each): operator_of(module, each)
        for each in module.walk()
        if isinstance(each, cst.Call)
    }
    assert called["module.add(z)"] is None
    assert called["inner(x).add(y)"] == called["net.add(x)"] == "add"


def test_what_the_object_holds_is_changed_and_not_the_object(module: SourceModule) -> None:
    forward = _function(module, "forward")
    ((where, changed),) = changes_in_place(module, forward)
    assert changed == "module.seen"
    assert isinstance(where, cst.AugAssign)
    assert is_buffer(module, where.target)
    assert is_receiver(module, where.target.value)  # type: ignore[attr-defined]
