"""The models that can be benchmarked: those here, those of plugins, and a user's own file.

A plugin's are entry points of the group `compilescope.models`; a user's are `file.py:build`.
"""

from __future__ import annotations

import difflib
import importlib.util
import inspect
from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import nn

from compilescope.base.errors import ToolError
from compilescope.base.objects import call_theirs, load_object, model_and_inputs, names_file
from compilescope.base.plugins import discover
from compilescope.instrument.torchapi.trials.backends import uncompiled
from compilescope.measure.bench import models
from compilescope.measure.bench.built import Built, Model, count_parameters
from compilescope.measure.bench.preparation import PreparedModel, prepare

if TYPE_CHECKING:
    from compilescope.measure.bench.protocol import Spec


GROUP = "compilescope.models"


def model_of_file(text: str) -> Model:
    """What `file.py:build` names; the function is called `build` where no name is given."""
    return _model(load_object(text, "build"), text, Path(text.rpartition(".py")[0]).name)


def plugged_models(taken: set[str]) -> Iterator[Model]:
    """Those of installed packages. One that cannot be loaded comes with its reason."""
    for entry in sorted(entry_points(group=GROUP), key=lambda each: (each.name, each.value)):
        problem = ""
        name = entry.name
        if name in taken:
            problem = f"Another model is already named {name!r}."
            name = entry.value
        if name in taken:
            continue  # The same one, found twice on the path.
        taken.add(name)
        yield _broken(name, problem) if problem else _loaded(entry)


def _loaded(entry: EntryPoint) -> Model:
    try:
        found = call_theirs(entry.load, f"{entry.value} cannot be loaded")
        return _model(found, entry.name, entry.name)
    except ToolError as error:
        return _broken(entry.name, error.message)


def _broken(name: str, problem: str) -> Model:
    def build(small: bool, batch: int) -> Built:
        raise ToolError(problem)

    return Model(name=name, title=name, about="From a plugin.", build=build, problem=problem)


def _model(found: Any, name: str, title: str) -> Model:
    if isinstance(found, Model):
        return found
    if not callable(found):
        raise ToolError(f"{name} is not a function (its type is {type(found).__name__}).")
    about = inspect.getdoc(found) or ""
    return Model(
        name=name,
        title=title,
        about=about.splitlines()[0] if about and inspect.isroutine(found) else "Your own model.",
        build=lambda small, batch: _built(found, name, small, batch),
    )


def _built(make: Callable[..., Any], name: str, small: bool, batch: int) -> Built:
    asked: dict[str, Any] = {}
    if batch:
        asked["batch"] = batch
    if small:
        asked["small"] = True
    for word in asked:
        if not _takes(make, word):
            raise ToolError(
                f"{name} takes no argument {word!r}, so --{word} does not apply to it.",
                hint=f"Write it as `def build({word}=...)`.",
            )
    made = call_theirs(lambda: make(**asked), f"{name} failed")
    if isinstance(made, Built):
        return made
    model, args, kwargs = model_and_inputs(made, name)
    model = uncompiled(model)
    if not isinstance(model, nn.Module):
        model = _FunctionModule(model)
    # It was made for us: backends are compared with what is not compiled.
    model._compiled_call_impl = None
    if not isinstance(args, (tuple, list)):
        args = (args,)
    return Built(model, tuple(args), dict(kwargs))


def _takes(make: Callable[..., Any], word: str) -> bool:
    try:
        parameters = inspect.signature(make).parameters.values()
    except (TypeError, ValueError):
        return False
    kinds = inspect.Parameter
    return any(
        each.kind is kinds.VAR_KEYWORD
        or (each.name == word and each.kind in (kinds.POSITIONAL_OR_KEYWORD, kinds.KEYWORD_ONLY))
        for each in parameters
    )


class _FunctionModule(nn.Module):  # type: ignore[misc]
    """A plain function as a module without parameters."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)


__all__ = [
    "Built",
    "Model",
    "PreparedModel",
    "all_models",
    "count_parameters",
    "find_model",
    "prepared",
    "unavailable",
]


def all_models() -> list[Model]:
    """Ours first, then those of plugins."""
    ours = discover(models, "MODEL", Model)
    taken = {word for model in ours for word in (model.name, *model.aliases)}
    return [*ours, *plugged_models(taken)]


def find_model(name: str) -> Model:
    """A name or an alias of `all_models`, or `file.py:build`."""
    if names_file(name):
        return model_of_file(name)
    known = {_plain(word): model for model in all_models() for word in (model.name, *model.aliases)}
    found = known.get(_plain(name))
    if found is not None:
        return found
    near = difflib.get_close_matches(_plain(name), known, n=3, cutoff=0.5)
    names = list(dict.fromkeys(known[word].name for word in near))
    hint = (
        f"Did you mean {' or '.join(names)}?"
        if names
        else f"Known models: {', '.join(dict.fromkeys(m.name for m in known.values()))}."
    )
    raise ToolError(f"There is no model named {name!r}.", hint=f"{hint} Or give file.py:build.")


def unavailable(model: Model) -> str:
    """Why it cannot be built here, in a sentence; empty: it can."""
    if model.problem:
        return model.problem
    missing = [name for name in model.needs if importlib.util.find_spec(name) is None]
    if missing:
        return f'{model.name} needs {" and ".join(missing)}: pip install "compilescope[models]".'
    return ""


def prepared(spec: Spec) -> PreparedModel:
    """The model that `spec` names, built and ready to run as `spec` says."""
    model = find_model(spec.model)
    reason = unavailable(model)
    if reason:
        raise ToolError(reason)
    return prepare(model, spec)


def _plain(name: str) -> str:
    return name.lower().replace("_", "-")
