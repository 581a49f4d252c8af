"""The plain numbers beside a call's arguments that its code may read: attributes of the user's
objects and classes, global variables, variables of an outer function.

Each is moved for one replay: a version that has written down what such a number happened to be
gives what it gave, and the original something else.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Collection, Iterator
from types import FunctionType
from typing import Any, NamedTuple

import torch

from compilescope.change.repair.trials.child.recipes import PLAIN_NUMBER, InputRecipe
from compilescope.measure.diff.runs.model_state import ReachableState
from compilescope.record.stack import origin_of

_MOST = 12
"""Chosen: each costs one or two more replays of the region."""


_LARGEST = 2048
"""As a loop's turns or a size it takes time and memory. Chosen."""


class PlainNumber(NamedTuple):
    """Where it is kept."""

    name: str
    value: bool | int | float
    put: Callable[[Any], None]


class PlainNumbers:
    """Those that can be reached from a region."""

    def __init__(self, reachable: ReachableState) -> None:
        self._reachable = reachable

    def recipes(self, numbers: Collection[float]) -> list[InputRecipe]:
        """`numbers` stand in the change: what comes at one of them is to be seen too."""
        found = {each.name: each for each in self._all()}
        made = []
        for name, each in list(found.items())[:_MOST]:
            amounts = [float(_other(each.value))]
            if not isinstance(each.value, bool):
                wanted = [n for n in numbers if isinstance(each.value, float) or n == int(n)]
                amounts += [n for n in wanted if n <= _LARGEST]
            made += [
                InputRecipe(PLAIN_NUMBER, amount=n, target=name) for n in dict.fromkeys(amounts)
            ]
        return made

    @contextlib.contextmanager
    def moved(self, recipe: InputRecipe) -> Iterator[None]:
        """Within the block it is the recipe's."""
        known = [each for each in self._all() if each.name == recipe.target]
        for each in known:
            each.put(type(each.value)(recipe.amount))
        try:
            yield
        finally:
            for each in known:
                each.put(each.value)

    def _all(self) -> Iterator[PlainNumber]:
        yield from self._variables()
        yield from self._defaults()
        yield from self._of_classes()
        yield from self._of_objects()

    def _variables(self) -> Iterator[PlainNumber]:
        for name, space in self._reachable.globals:
            if _is_number(space[name]) and not name.startswith("__"):
                yield PlainNumber(name, space[name], _setter(space, name))
        for name, cell in self._reachable.cells:
            with contextlib.suppress(ValueError):  # It is empty.
                if _is_number(cell.cell_contents):
                    yield PlainNumber(name, cell.cell_contents, _cell_setter(cell))

    def _defaults(self) -> Iterator[PlainNumber]:
        """Of parameters of the user's functions."""
        functions = [each for each in self._reachable.everything if isinstance(each, FunctionType)]
        for function in functions:
            if origin_of(function.__code__.co_filename) != "user":
                continue
            values = function.__defaults__ or ()
            count = function.__code__.co_argcount
            names = function.__code__.co_varnames[count - len(values) : count]
            for place, (name, value) in enumerate(zip(names, values, strict=True)):
                if _is_number(value):
                    told = f"{function.__name__}'s {name}"
                    yield PlainNumber(told, value, _default_setter(function, place))

    def _of_classes(self) -> Iterator[PlainNumber]:
        kinds = dict.fromkeys(type(each) for each in self._reachable.everything)
        for kind in kinds:
            if _is_users(kind):
                for key, value in list(vars(kind).items()):
                    if _is_number(value) and not key.startswith("__"):
                        name = f"{kind.__qualname__}.{key}"
                        yield PlainNumber(name, value, _class_setter(kind, key))

    def _of_objects(self) -> Iterator[PlainNumber]:
        """Not those that torch's own modules keep: their sizes are those of their weights."""
        own = {
            id(vars(each))
            for each in self._reachable.everything
            if hasattr(each, "__dict__") and _is_users(type(each))
        }
        objects = {id(vars(each)) for each in self._reachable.modules}
        for name, held in self._reachable.containers:
            if id(held) in objects and id(held) not in own:
                continue
            items = held.items() if isinstance(held, dict) else enumerate(held)
            for key, value in [] if isinstance(held, set) else list(items):
                private = id(held) in objects and str(key).startswith("_")
                if _is_number(value) and key not in _MODULES_OWN and not private:
                    told = f"{name}.{key}" if name else str(key)
                    yield PlainNumber(told, value, _setter(held, key))


_MODULES_OWN = frozenset(vars(torch.nn.Module()))


def _is_users(kind: type) -> bool:
    module = sys.modules.get(kind.__module__)
    file = getattr(module, "__file__", None)
    return isinstance(file, str) and origin_of(file) == "user"


def _is_number(value: Any) -> bool:
    return type(value) in (bool, int, float)


def _other(value: bool | int | float) -> bool | int | float:
    """Near it: what is a size or a share may be no other one at all."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    return value * 1.5 if value else 0.5


def _setter(held: Any, key: Any) -> Callable[[Any], None]:
    def put(value: Any) -> None:
        held[key] = value

    return put


def _default_setter(function: FunctionType, place: int) -> Callable[[Any], None]:
    def put(value: Any) -> None:
        values = list(function.__defaults__ or ())
        values[place] = value
        function.__defaults__ = tuple(values)

    return put


def _cell_setter(cell: Any) -> Callable[[Any], None]:
    def put(value: Any) -> None:
        cell.cell_contents = value

    return put


def _class_setter(kind: type, key: str) -> Callable[[Any], None]:
    return lambda value: setattr(kind, key, value)
