"""One recorded call of a region, called again: from the same state, plain values around it
included, on copies of its arguments.

Weights, buffers or the modules' mode may be moved for one replay: a patch may be right for those
that a program begins with, and for no others.

A region may write into globals of the user's modules and attributes of the user's classes without
holding them. They are noted before a replay, compared and brought back after it. Containers are
looked at one level deep.
"""

from __future__ import annotations

import contextlib
import os
import sys
import zlib
from collections import deque
from collections.abc import Callable, Collection, Iterator
from types import FunctionType, ModuleType
from typing import Any

import torch

from compilescope.base.errors import ToolError
from compilescope.change.repair.trials.child.branches import Coverage
from compilescope.change.repair.trials.child.kept_outcomes import OutcomeKeeper
from compilescope.change.repair.trials.child.list_contents import list_contents
from compilescope.change.repair.trials.child.notes import CallNotes, describe_error
from compilescope.change.repair.trials.child.plain_numbers import PlainNumbers
from compilescope.change.repair.trials.child.recipes import (
    AROUND,
    OTHER_MODE,
    OTHER_WEIGHTS,
    PLAIN_NUMBER,
    TRAINED,
    InputRecipe,
    is_exact,
    prepare,
)
from compilescope.instrument.torchapi.compilation.settings import roomy_caches
from compilescope.instrument.torchapi.regions import CompiledRegion, Regions, Versions, model_of
from compilescope.instrument.torchapi.trials.reruns import with_leaves
from compilescope.measure.diff.runs.model_state import State
from compilescope.measure.diff.runs.modes import Randomness
from compilescope.measure.diff.runs.sides import believed, survey, widened
from compilescope.measure.diff.runs.trial import AFTER, TrialOutcome, TrialPlan, TrialValue, run
from compilescope.measure.tensors.copies import CopiedArguments, is_plain
from compilescope.measure.tensors.structure import MISSING
from compilescope.measure.tensors.tolerances import is_same
from compilescope.record.stack import origin_of

_RELATIVE, _LEAST = 0.1, 0.01
"""How far a number is moved: by a tenth of it, and zeros by a hundredth. Chosen: signs mostly stay,
as those of a variance must, and rounding is far smaller."""


def movable(state: State) -> list[str]:
    """The names of the weights and buffers that have a fraction."""
    owned = {
        id(tensor)
        for module in state.reachable.modules
        for held in (module.parameters(recurse=False), module.buffers(recurse=False))
        for tensor in held
    }
    return [
        name
        for name, tensor in state.reachable.tensors.items()
        if id(tensor) in owned and tensor.is_floating_point() and is_plain(tensor)
    ]


def state_recipes(state: State) -> list[InputRecipe]:
    recipes = [InputRecipe(OTHER_WEIGHTS, 6)] if movable(state) else []
    return recipes + ([InputRecipe(OTHER_MODE)] if state.reachable.modules else [])


def can_move(state: State, recipe: InputRecipe, names: Collection[str]) -> bool:
    """Has this version what the other one moves?"""
    if recipe.kind == OTHER_WEIGHTS:
        return state.reachable.tensors.keys() >= set(names)
    return recipe.kind != OTHER_MODE or bool(state.reachable.modules)


def move(state: State, recipe: InputRecipe, names: Collection[str]) -> None:
    """In place; the state itself can bring it back."""
    if recipe.kind == OTHER_MODE:
        # First asked, then set: what `torch.compile` makes of a module passes both on to it, and
        # would turn it twice.
        modes = [(module, not module.training) for module in state.reachable.modules]
        for module, mode in modes:
            module.training = mode
        return
    for name in names:
        tensor = state.reachable.tensors[name]
        if recipe.target == AROUND:
            # Some beyond the number, some before it.
            share = torch.rand(tensor.shape, generator=_generator(recipe, name), device="cpu")
            with torch.no_grad():
                tensor.copy_((share * 3 * recipe.amount).to(tensor.device, tensor.dtype))
            continue
        if recipe.amount:
            with torch.no_grad():
                tensor.mul_(recipe.amount)
            continue
        noise = torch.randn(tensor.shape, generator=_generator(recipe, name), device="cpu")
        with torch.no_grad():
            step = noise.to(tensor.device, tensor.dtype)
            tensor.add_(step * (tensor.abs() * _RELATIVE + _LEAST * (tensor == 0)))


def _generator(recipe: InputRecipe, name: str) -> torch.Generator:
    """By the name: another version may hold more, or in another order."""
    seed = zlib.crc32(f"{recipe.seed} {name}".encode())
    return torch.Generator().manual_seed(seed)


class Replay:
    """What a region was given at one call, kept until it has been asked everything."""

    def __init__(
        self,
        regions: Regions,
        region: CompiledRegion,
        call: tuple[tuple[Any, ...], dict[str, Any]],
        keeper: OutcomeKeeper,
        like: dict[str, Any] | None = None,
        *,
        wary: bool = False,
    ) -> None:
        """`like`: what the plan of another version's probe says of this call. `wary`: what a call
        leaves behind in which the program raises is kept too."""
        self._wary = wary
        self._regions = regions
        self._region = region
        self._call = call
        self._keeper = keeper
        self._state = State(model_of(region.eager), call)
        self._around_it = CallSurroundings()
        self._randomness = Randomness()
        self._versions = Versions(self._state.reachable.tensors.values())
        self.arguments = CopiedArguments(*call, self._state.own)
        self.train = False
        """The outputs require a gradient, so gradients are compared too."""
        self._decided = like is not None
        if like is not None:
            self.train = bool(like["train"])
        self.weights: list[str] = movable(self._state) if like is None else like["weights"]
        """The names of those that a replay moves: the other version's, where there is one."""
        self._forms: dict[str, str] = like["forms"] if like is not None else {}
        self._lists: dict[str, Any] = like["lists"] if like is not None else {}

    def restore(self) -> None:
        """As if nothing had been called."""
        self._state.restore()
        self._around_it.restore()
        self._versions.restore()
        self._randomness.restore()

    def held(self, changed: list[str]) -> dict[str, Any]:
        """What the state had before the call where the other version's call left a change."""
        found = {path: self._state.before(path.removesuffix(AFTER)) for path in changed}
        return {path: value for path, value in found.items() if value is not MISSING}

    def state_recipes(self) -> list[InputRecipe]:
        return state_recipes(self._state)

    def number_recipes(self, numbers: Collection[float]) -> list[InputRecipe]:
        """Other numbers than those that its code finds beside the arguments."""
        return PlainNumbers(self._state.reachable).recipes(numbers)

    def can(self, recipe: InputRecipe) -> bool:
        """Can this version be asked that?"""
        return can_move(self._state, recipe, self.weights)

    def eagerly(self, recipe: InputRecipe, coverage: Coverage | None = None) -> dict[str, Any]:
        if self._decided and self.train and recipe.kind == "recorded":
            # As many calls as where it was decided: some things are printed only once.
            first = self._plan(recipe)
            first.train = False
            self._kept(first, recipe, "eager", coverage)
        plan = self._plan(recipe)
        kept = self._kept(plan, recipe, "eager", coverage)
        if not self._decided and recipe.kind == "recorded" and any(kept["gradients"].values()):
            self.train = True
            trained = self._kept(self._plan(recipe), recipe, "eager", coverage)
            if trained["error"] is None:
                return trained
            # The region has gone backward itself: its gradients are what it leaves behind.
            self.train = False
        return kept

    def is_exact(self, recipe: InputRecipe) -> bool:
        """Are its inputs such that sums and products of them are not rounded?"""
        made = CopiedArguments(*prepare(self.arguments, recipe, self._forms, self._lists), ())
        return all(map(is_exact, made.tensors()))

    def glance(self, recipe: InputRecipe, coverage: Coverage) -> None:
        """Only to see which branches it takes."""
        plan = self._plan(recipe)
        plan.train = False
        notes = CallNotes(self._region.eager, self._state)
        with self._moved(plan, recipe):
            run(plan, notes, around=lambda: self._around("eager", notes, coverage))

    def compiled(self, recipe: InputRecipe) -> dict[str, Any]:
        with roomy_caches():
            return self._kept(self._plan(recipe), recipe, "compiled", None)

    def exactly(self, recipe: InputRecipe) -> dict[str, Any] | None:
        """In float64; None where there is no such run, or nobody would believe it."""
        plan = self._plan(recipe)
        silent = CallNotes(self._region.eager, self._state)
        with (
            self._moved(plan, recipe),
            silent.listening(),
            self._regions.calling("eager"),
        ):
            reference, seen = survey(plan)
            if reference.error is not None:
                return None
            exact, _, _ = widened(plan, seen)
            if exact is None:
                return None
            exact, _ = believed(reference, exact, lambda: run(plan, plan.model, nudged=True))
        kept = self._described(recipe, "exact", silent, exact)
        kept["reduction"] = seen.reduction
        return kept

    def _plan(self, recipe: InputRecipe) -> TrialPlan:
        args, kwargs = prepare(self.arguments, recipe, self._forms, self._lists)
        eager = self._region.eager
        return TrialPlan(
            model=_on_activations(eager, self._state) if recipe.kind == TRAINED else eager,
            state=self._state,
            arguments=CopiedArguments(args, kwargs, self._state.own),
            randomness=self._randomness,
            train=self.train or recipe.kind == TRAINED,
            input_gradients=recipe.kind == TRAINED,
        )

    def _kept(
        self, plan: TrialPlan, recipe: InputRecipe, mode: Any, coverage: Coverage | None
    ) -> dict[str, Any]:
        call = plan.model if mode == "eager" else self._region.compiled
        notes = CallNotes(call, self._state)
        self._around_it.restore()
        with self._moved(plan, recipe):
            outcome = run(plan, notes, around=lambda: self._around(mode, notes, coverage))
            if mode == "eager" and self._wary:
                _keep_left_behind(outcome, plan.state)
        notes.surroundings = self._around_it.changes()
        self._around_it.restore()
        if isinstance(outcome.error, ToolError):
            if not plan.train:
                raise outcome.error
            # On these inputs no output requires a gradient, which is not the program's error.
            plan.train = False
            return self._kept(plan, recipe, mode, coverage)
        return self._described(recipe, mode, notes, outcome)

    @contextlib.contextmanager
    def _moved(self, plan: TrialPlan, recipe: InputRecipe) -> Iterator[None]:
        """The plan begins from another state, if the recipe is about that."""
        if recipe.kind == PLAIN_NUMBER:
            # What a version no longer looks at is moved nowhere: it has to give the same.
            self._state.restore()
            with PlainNumbers(self._state.reachable).moved(recipe):
                plan.state = State(model_of(self._region.eager), self._call)
                yield
                plan.state.restore()
            self._state.restore()
            return
        if recipe.kind not in (OTHER_WEIGHTS, OTHER_MODE):
            yield
            return
        self._state.restore()
        move(self._state, recipe, self.weights)
        plan.state = State(model_of(self._region.eager), self._call)
        try:
            yield
        finally:
            self._state.restore()

    @contextlib.contextmanager
    def _around(self, mode: Any, notes: CallNotes, coverage: Coverage | None) -> Iterator[None]:
        with self._regions.calling(mode), notes.listening(), coverage or contextlib.nullcontext():
            yield

    def _described(
        self,
        recipe: InputRecipe,
        mode: str,
        notes: CallNotes,
        outcome: TrialOutcome,
    ) -> dict[str, Any]:
        error = outcome.error
        changed = [name for name, value in outcome.values.items() if value.kind == "change"]
        before = {name: self._state.before(name.removesuffix(AFTER)) for name in changed}
        lists = list_contents(changed, notes.lists)
        return {
            "recipe": list(recipe),
            "mode": mode,
            "file": self._keeper.keep(outcome),
            "containers": outcome.containers,
            "lists": self._keeper.keep(TrialOutcome(values=lists)) if lists else "",
            "error": describe_error(error) if error is not None else None,
            "aliases": notes.aliases,
            "replaced": notes.replaced,
            "gradients": notes.gradients,
            "printed": notes.printed,
            "surroundings": notes.surroundings,
            "changed": changed,
            "created": [name for name in changed if before[name] is MISSING],
            "rebound": [
                name for name in changed if _is_equal(outcome.values[name].leaf, before[name])
            ],
            "random": notes.random,
            "train": self.train,
            "seconds": round(outcome.seconds, 6),
        }


def _keep_left_behind(outcome: TrialOutcome, state: State) -> None:
    """What the program changed before it raised. Of what torch raises, compiled code may have left
    more or less."""
    if outcome.error is not None and describe_error(outcome.error)["raised"]:
        for name, leaf in state.changes().items():
            kept = leaf.detach().clone() if isinstance(leaf, torch.Tensor) else leaf
            outcome.values[f"{name}{AFTER}"] = TrialValue("change", kept)


def _on_activations(call: Callable[..., Any], state: State) -> Callable[..., Any]:
    """Calls it with what layers before it would give: nobody may write into a leaf that requires a
    gradient, and everybody into what was computed from it."""
    own = {id(tensor) for tensor in state.own}

    def computed(leaf: Any) -> Any:
        is_input = isinstance(leaf, torch.Tensor) and leaf.requires_grad and leaf.is_leaf
        return leaf.clone() if is_input and id(leaf) not in own else leaf

    def called(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = with_leaves(computed, (args, kwargs))
        return call(*args, **kwargs)

    return called


def _is_equal(now: Any, before: Any) -> bool:
    """Another tensor with the same numbers."""
    both = isinstance(now, torch.Tensor) and isinstance(before, torch.Tensor)
    return both and now.dtype == before.dtype and is_same(now.detach(), before.detach())


_PLAIN = (bool, int, float, complex, str, bytes, type(None))
_CONTAINERS = (list, dict, set, deque)
_READ_AND_WRITTEN = (
    "__iter__",
    "__len__",
    "__getitem__",
    "keys",
    "items",
    "clear",
    "update",
    "extend",
)
_NOBODYS = ("compilescope", "torch", "sitecustomize")
_MOST = 20_000
"""Values that are watched. Chosen: they are looked at before and after every replay; of a larger
program the rest is not watched."""
_SHORT = 80
"""Letters of a value in words. Chosen: what a report can show."""


class CallSurroundings:
    """The plain values around a region when this was made."""

    def __init__(self) -> None:
        self._known: list[tuple[str, Any, str, Any, Any]] = []
        for name, holder, key, value in _values():
            content = _content(value) if not isinstance(value, _PLAIN) else None
            self._known.append((name, holder, key, value, content))
            if len(self._known) >= _MOST:
                break

    def changes(self) -> dict[str, str]:
        """What is no longer as it was, in words."""
        found: dict[str, str] = {}
        for name, holder, key, value, content in self._known:
            now = vars(holder).get(key)
            if now is not value and not (isinstance(value, _PLAIN) and _equal(now, value)):
                found[name] = _words(now)
            elif content is not None and not _same(_content(value), content):
                found[name] = _words(value)
        return found

    def restore(self) -> None:
        for _, holder, key, value, content in self._known:
            if vars(holder).get(key) is not value:
                setattr(holder, key, value)
            if content is not None and not _same(_content(value), content):
                value.clear()
                if isinstance(value, (dict, set)):
                    value.update(content)
                else:
                    value.extend(content)


def _values() -> Iterator[tuple[str, Any, str, Any]]:
    for name, module in list(sys.modules.items()):
        if not isinstance(module, ModuleType) or name.partition(".")[0] in _NOBODYS:
            continue
        file = vars(module).get("__file__")
        # Some modules of libraries make up a name that is no path.
        if not isinstance(file, str) or not os.path.isabs(file) or origin_of(file) != "user":
            continue
        for key, value in list(vars(module).items()):
            if key.startswith("__"):
                continue
            if _is_watched(value):
                yield f"{name}.{key}", module, key, value
            elif isinstance(value, type) and value.__module__ == name:
                yield from _of_class(value)


def _of_class(kind: type) -> Iterator[tuple[str, Any, str, Any]]:
    for key, value in list(vars(kind).items()):
        if not key.startswith("__") and _is_watched(value):
            yield f"{kind.__module__}.{kind.__qualname__}.{key}", kind, key, value


def _is_watched(value: Any) -> bool:
    """A container with ways of its own is left alone: to read a registry may import all that it
    could name."""
    if isinstance(value, _PLAIN):
        return True
    return isinstance(value, _CONTAINERS) and not any(
        isinstance(way := getattr(type(value), name, None), FunctionType)
        and way.__module__ != "collections"  # A Counter's ways are known.
        for name in _READ_AND_WRITTEN
    )


def _content(value: Any) -> Any:
    return dict(value) if isinstance(value, dict) else list(value)


def _same(one: Any, other: Any) -> bool:
    if len(one) != len(other):
        return False
    if isinstance(one, dict):
        return all(key in other and _equal(item, other[key]) for key, item in one.items())
    return all(_equal(a, b) for a, b in zip(one, other, strict=True))


def _equal(one: Any, other: Any) -> bool:
    if one is other:
        return True
    return type(one) is type(other) and isinstance(one, _PLAIN) and one == other


def _words(value: Any) -> str:
    if isinstance(value, _PLAIN):
        return repr(value)[:_SHORT]
    if _is_watched(value):
        items = value.items() if isinstance(value, dict) else value
        shown = [repr(item)[:_SHORT] for item in items if _is_shown(item)]
        return f"{type(value).__name__} of {len(value)}: {', '.join(shown)}"[:400]
    return type(value).__qualname__


def _is_shown(item: Any) -> bool:
    parts = item if isinstance(item, tuple) else (item,)
    return all(isinstance(part, _PLAIN) for part in parts)
