"""The models that can be benchmarked: those here, those of plugins, and a user's own file."""

from __future__ import annotations

import difflib
import importlib.util
from typing import TYPE_CHECKING

from compilescope.bench import models
from compilescope.bench.built import Built, Model, count_parameters
from compilescope.bench.own_models import model_of_file, plugged_models
from compilescope.bench.preparation import Prepared, prepare
from compilescope.errors import ToolError
from compilescope.objects import names_file
from compilescope.plugins import discover

if TYPE_CHECKING:
    from compilescope.bench.spec import Spec

__all__ = [
    "Built",
    "Model",
    "Prepared",
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


def prepared(spec: Spec) -> Prepared:
    """The model that `spec` names, built and ready to run as `spec` says."""
    model = find_model(spec.model)
    reason = unavailable(model)
    if reason:
        raise ToolError(reason)
    return prepare(model, spec)


def _plain(name: str) -> str:
    return name.lower().replace("_", "-")
