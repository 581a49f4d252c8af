"""A break is counted, whatever its exception and the objects on its traceback do when asked."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest

pytestmark = pytest.mark.torch


class _Lazy:
    """As Dynamo's lazy variables: whoever asks for anything is told of a graph break."""

    def __init__(self, error: type[Exception]) -> None:
        object.__setattr__(self, "_error", error)

    def __getattr__(self, name: str) -> Any:
        raise object.__getattribute__(self, "_error")(f"Attempted to wrap RNN, asked for {name}")

    def fail(self, error: Exception) -> None:
        # Past this class: `self` of this frame is what a walk over the traceback finds.
        raise error


def hostile(name: str) -> Exception:
    """An `Unsupported` that raises another where its `name` is read, with a lazy one behind it."""
    from torch._dynamo.exc import Unsupported

    def refuse(self: object) -> object:
        raise Unsupported(f"{name} refused")

    error: Exception = type("Unsupported", (Unsupported,), {})("A made-up break")
    if name:
        type(error).__getattribute__ = _refusing(name, refuse)  # type: ignore[method-assign]
    try:
        _Lazy.fail(_Lazy(Unsupported), error)
    except Exception as raised:
        return raised
    raise AssertionError


def _refusing(name: str, refuse: Any) -> Any:
    def get(self: Any, asked: str) -> Any:
        return refuse(self) if asked == name else Exception.__getattribute__(self, asked)

    return get


@pytest.mark.parametrize("name", ["", "msg", "real_stack", "logged", "__str__"])
def test_a_hostile_break_is_counted(name: str) -> None:
    import torch._dynamo.symbolic_convert as convert

    import compilescope
    from compilescope.record.bodies import GraphBreak, ToolFault

    class Translator:
        f_code = hostile.__code__

    with compilescope.capture() as run:
        hook: Any = convert.InstructionTranslatorBase.log_graph_break
        with contextlib.suppress(Exception):  # If torch's own method fails, that is its affair.
            hook(Translator(), hostile.__code__, reason="", exc=hostile(name))
    found = [body for _, body in run.run.of(GraphBreak)]
    assert [body.error for body in found] == ["Unsupported"]
    assert not list(run.run.of(ToolFault))


def test_a_walk_over_a_traceback_asks_no_lazy_object() -> None:
    from compilescope.instrument.torchapi.stacks import traced_lines, translators_of, with_columns

    error = hostile("")
    assert translators_of(error) == []
    assert traced_lines(error) == []
    assert with_columns([], error, None) == []
