"""The wrapper around a choke point: arguments by name, and what it settles without a look."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

pytest.importorskip("torch")

from compilescope.instrument.torchapi.hook import Hook, HookedCall, Parameters, Watch, observed

pytestmark = pytest.mark.torch


class Told:
    """A sink that keeps the faults."""

    def __init__(self) -> None:
        self.faults: list[str] = []

    def fault(self, where: str, error: BaseException) -> None:
        self.faults.append(str(error))


def plain(a: Any, b: Any = 2, *, c: Any = 3) -> Any: ...
def gathering(a: Any, *rest: Any, **more: Any) -> Any: ...


@pytest.mark.parametrize("function", [plain, gathering])
@pytest.mark.parametrize(
    ("args", "kwargs"), [((1,), {}), ((1, 4), {}), ((1,), {"b": 4, "c": 5}), ((), {"a": 1})]
)
def test_arguments_by_name_are_those_that_python_would_bind(function, args, kwargs) -> None:
    signature = inspect.signature(function)
    call = HookedCall(args, kwargs, Parameters(signature))
    bound = signature.bind(*args, **kwargs).arguments
    assert {name: call[name] for name in bound} == bound
    assert call.get("nothing", 7) == 7
    with pytest.raises(KeyError):
        call["nothing"]


def watched(settles: Any) -> tuple[list[Any], Told]:
    """What was noted of three calls, and the faults."""
    noted: list[Any] = []
    told = Told()
    hook = Hook(
        "one", "m", "f", "all", after=lambda _, call: noted.append(call.result), settles=settles
    )
    double = observed(lambda x: x * 2, hook, Watch(told))  # type: ignore[arg-type]
    assert [double(number) for number in range(3)] == [0, 2, 4]
    return noted, told


def test_what_a_first_look_settles_is_not_looked_at_again() -> None:
    noted, told = watched(lambda watch, args, result: result == 2)
    assert (noted, told.faults) == ([0, 4], [])


def test_a_fault_of_the_first_look_stays_ours() -> None:
    noted, told = watched(lambda watch, args, result: 1 // result == 1)
    assert (noted, told.faults) == ([2, 4], ["integer division or modulo by zero"])


def test_a_first_look_may_come_before_the_call() -> None:
    seen: list[Any] = []
    hook = Hook(
        "one",
        "m",
        "f",
        "all",
        before=lambda _, call: seen.append(("observer", call.args)),
        settles=lambda watch, args, result: args == (1,),
    )
    told = Told()
    call = observed(lambda x: seen.append(x) or x, hook, Watch(told))  # type: ignore[arg-type]
    assert [call(1), call(2)] == [1, 2]
    assert (seen, told.faults) == ([1, ("observer", (2,)), 2], [])


def test_calls_with_another_first_argument_are_left_alone() -> None:
    noted: list[Any] = []
    hook = Hook(
        "one", "m", "f", "all", before=lambda _, c: noted.append(c["x"]), first=frozenset({"a"})
    )
    call = observed(lambda x=0: x, hook, Watch(Told()))  # type: ignore[arg-type]
    assert [call("a"), call("b"), call(x="c")] == ["a", "b", "c"]
    assert noted == ["a", "c"]


@pytest.mark.parametrize("cleans_up", [True, False])
def test_what_torch_began_is_ended_though_the_program_is_interrupted(cleans_up: bool) -> None:
    def interrupted(watch: Any, call: HookedCall) -> None:
        raise KeyboardInterrupt

    calls: list[int] = []
    hook = Hook("one", "m", "f", "all", before=interrupted, cleans_up=cleans_up)
    ends = observed(calls.append, hook, Watch(Told()))  # type: ignore[arg-type]
    with pytest.raises(KeyboardInterrupt):
        ends(1)
    assert calls == ([1] if cleans_up else [])
