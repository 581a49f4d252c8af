"""What runs within a program that is tried, in this process: recipes, notes, surroundings."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

pytestmark = pytest.mark.torch


def _arguments(*args: Any, **kwargs: Any) -> Any:
    from compilescope.measure.tensors.copies import CopiedArguments

    return CopiedArguments(args, kwargs, [])


def test_a_recipe_gives_the_same_each_time() -> None:
    import torch

    from compilescope.change.repair.trials.child.recipe_sets import usual_recipes
    from compilescope.change.repair.trials.child.recipes import prepare

    x, n = torch.linspace(-1, 1, 8).reshape(2, 4), torch.tensor([3, 5])
    arguments = _arguments(x, n, 3, flag=True)
    recipes = usual_recipes(arguments, sizes=True, first=True)
    kinds = {recipe.kind for recipe in recipes}
    assert {"recorded", "values", "scaled", "nan", "infinity", "empty", "extreme"} <= kinds
    for recipe in recipes:
        one, other = prepare(arguments, recipe), prepare(arguments, recipe)
        assert torch.equal(one[0][0].nan_to_num(), other[0][0].nan_to_num())
        assert torch.equal(one[0][1], other[0][1])
        assert (one[0][2], one[1]) == (other[0][2], other[1])
        assert recipe.words()


def test_recipes_change_what_they_say() -> None:
    import torch

    from compilescope.change.repair.trials.child.recipes import InputRecipe, prepare

    x, n = torch.linspace(1, 2, 6).reshape(2, 3).t(), torch.tensor([3, 5, 3])
    arguments = _arguments(x, n, 3, flag=True)

    def made(*recipe: Any) -> Any:
        return prepare(arguments, InputRecipe(*recipe))

    assert torch.equal(made("scaled", 0, -1.0)[0][0], -x)
    assert made("scaled", 0, -1.0)[0][0].stride() == x.stride()
    assert made("nan")[0][0].isnan().any()
    assert made("infinity")[0][0].isinf().any()
    assert made("filled")[0][0].abs().sum() == 0
    assert set(made("values", 1)[0][1].tolist()) <= {3, 5}
    assert [t.shape[0] for t in made("first-size", 0, 1.0)[0][:2]] == [4, 4]
    assert [t.shape[0] for t in made("empty")[0][:2]] == [0, 0]
    assert made("extreme")[0][1].max() == torch.iinfo(torch.int64).max
    assert made("flag", 0, 0.0, "flag")[1] == {"flag": False}
    assert made("flag", 0, 4.0, "2")[0][2] == 4


def test_integers_beside_those_that_were_seen() -> None:
    import torch

    from compilescope.change.repair.trials.child.recipe_sets import usual_recipes
    from compilescope.change.repair.trials.child.recipes import InputRecipe, prepare

    one = torch.tensor(3)
    kinds = [recipe.kind for recipe in usual_recipes(_arguments(one), sizes=False, first=True)]
    assert kinds.count("near") == kinds.count("whole") == 2
    assert "extreme" not in kinds, "a loop of so many turns has no end"
    several = _arguments(torch.tensor([3, 5], dtype=torch.uint8), one)
    kinds = [recipe.kind for recipe in usual_recipes(several, sizes=False, first=True)]
    assert "extreme" in kinds

    def made(kind: str, amount: float) -> list[Any]:
        return [each.tolist() for each in prepare(several, InputRecipe(kind, 0, amount))[0]]

    assert made("near", 1.0) == [[4, 6], 4]
    assert made("near", -1.0) == [[2, 4], 2]
    assert made("whole", 0.0) == [[0, 0], 0]
    assert made("extreme", 0.0)[1] == 3
    ends = _arguments(torch.tensor([0, 255], dtype=torch.uint8))
    assert prepare(ends, InputRecipe("near", 0, 1.0))[0][0].tolist() == [1, 255]
    assert prepare(ends, InputRecipe("near", 0, -1.0))[0][0].tolist() == [0, 254]


def test_weights_move_alike_by_their_names_and_come_back() -> None:
    import torch

    from compilescope.change.repair.trials.child.replay import (
        can_move,
        movable,
        move,
        state_recipes,
    )
    from compilescope.measure.diff.runs.model_state import State

    model = torch.nn.BatchNorm1d(2).eval()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    state = State(model)
    names = movable(state)
    assert {name.rpartition(".")[2] for name in names} == {
        *("weight", "bias", "running_mean", "running_var")
    }
    weights, mode = state_recipes(state)
    moved = []
    for _ in range(2):
        move(state, weights, names)
        moved.append({name: value.clone() for name, value in model.state_dict().items()})
        state.restore()
        assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert all(torch.equal(moved[0][name], moved[1][name]) for name in before)
    assert not torch.equal(moved[0]["bias"], before["bias"]), "zeros move too"
    assert not can_move(state, weights, [*names, "another"])
    move(state, mode, names)
    assert model.training
    state.restore()
    assert not model.training


def test_a_compiled_module_turns_its_mode_once() -> None:
    import torch

    from compilescope.change.repair.trials.child.replay import move, state_recipes
    from compilescope.measure.diff.runs.model_state import State

    model = torch.nn.Sequential(torch.nn.BatchNorm1d(2)).eval()
    state = State(torch.compile(model, backend="eager"))
    move(state, state_recipes(state)[-1], [])
    assert [each.training for each in model.modules()] == [True, True]
    state.restore()
    assert not any(each.training for each in model.modules())


@pytest.fixture
def module(tmp_path: Path) -> Iterator[ModuleType]:
    made = ModuleType("a_user_module")
    made.__file__ = str(tmp_path / "a_user_module.py")
    source = "count = 0\nitems = [1]\nclass Config:\n    seen = {'a': 1}\n    n = 2\n"
    exec(source, made.__dict__)
    sys.modules["a_user_module"] = made
    yield made
    del sys.modules["a_user_module"]


def test_surroundings_are_noted_and_brought_back(module: ModuleType) -> None:
    from compilescope.change.repair.trials.child.replay import CallSurroundings

    around = CallSurroundings()
    assert around.changes() == {}
    module.count = 5
    module.items.append(2)
    module.Config.seen["b"] = 2
    module.Config.n = 3
    assert set(around.changes()) == {
        "a_user_module.count",
        "a_user_module.items",
        "a_user_module.Config.seen",
        "a_user_module.Config.n",
    }
    around.restore()
    assert around.changes() == {}
    assert (module.count, module.items, module.Config.seen) == (0, [1], {"a": 1})


def test_a_registry_that_imports_when_it_is_read_is_left_alone(module: ModuleType) -> None:
    from compilescope.change.repair.trials.child.replay import CallSurroundings

    class Registry(dict[str, int]):
        def keys(self) -> Any:
            raise ValueError("Could not find the model")

    module.registry = Registry(a=1)
    module.counts = Counter("aab")
    around = CallSurroundings()
    module.registry["b"] = 2
    module.counts["c"] += 1
    assert set(around.changes()) == {"a_user_module.counts"}
    around.restore()
    assert module.counts == Counter("aab")


def test_what_is_whose_memory() -> None:
    import torch

    from compilescope.change.repair.trials.child.notes import CallNotes
    from compilescope.measure.diff.runs.model_state import State

    weight = torch.nn.Linear(2, 2)

    def f(x: Any, y: Any) -> Any:
        print("said")
        return x, y[0], x + 1, weight.weight

    notes = CallNotes(f, State(f))
    with notes.listening():
        notes(torch.ones(2), torch.ones(2, 2))
    assert notes.aliases["output[0]"] == "args[0] itself"
    assert notes.aliases["output[1]"] == "the memory of args[1]"
    assert "output[2]" not in notes.aliases
    assert "itself" in notes.aliases["output[3]"]
    assert notes.gradients == {
        "output[0]": False, "output[1]": False, "output[2]": False, "output[3]": True
    }  # fmt: skip
    assert notes.printed == ["said"]


def test_who_raised() -> None:
    import torch

    from compilescope.change.repair.trials.child.notes import describe_error

    def caught(function: Any) -> dict[str, Any]:
        try:
            function()
        except Exception as error:
            return describe_error(error)
        raise AssertionError("nothing was raised")

    def by_hand() -> None:
        raise ValueError("bad")

    assert caught(by_hand) == {"type": "ValueError", "message": "bad", "raised": True}
    assert not caught(lambda: torch.ones(2) @ torch.ones(3))["raised"]


def test_versions_are_brought_back() -> None:
    import torch

    from compilescope.instrument.torchapi.regions import Versions

    weight = torch.ones(2, requires_grad=True)
    loss = (weight * weight).sum()
    versions = Versions([weight])
    with torch.no_grad():
        weight.mul_(2).div_(2)
    versions.restore()
    loss.backward()
    assert weight.grad is not None
