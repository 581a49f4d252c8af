"""`compilescope bench --list`: the models, and whether they can be built here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compilescope.cli.options import print_json
from compilescope.errors import ToolError

if TYPE_CHECKING:
    from compilescope.bench.model import Model


def all_models() -> list[Model]:
    try:
        from compilescope.bench import model
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise ToolError(
            "Benchmarks need torch, which is not installed in this Python.",
            hint='pip install "compilescope[torch,bench]"',
        ) from None
    return model.all_models()


def print_models(*, as_json: bool) -> int:
    every = all_models()
    from compilescope.bench.model import unavailable

    models = [(model, unavailable(model)) for model in every]
    if as_json:
        print_json(
            {
                "models": [
                    {
                        "name": model.name,
                        "title": model.title,
                        "about": model.about,
                        "parameters": model.parameters,
                        "batch": model.batch,
                        "small_batch": model.small_batch,
                        "needs": model.needs,
                        "unavailable": reason,
                    }
                    for model, reason in models
                ]
            }
        )
        return 0
    widest = max((len(model.name) for model, _ in models), default=0)
    for model, reason in models:
        size = f"{model.parameters / 1e6:,.0f}M" if model.parameters else "?"
        print(f"{model.name:<{widest}}  {size:>6}  {model.about}")
        if reason:
            print(f"{'':<{widest}}  {'':>6}  Not available here: {reason}")
    print("\nYour own: --model file.py:build, a function that returns (model, args).")
    return 0
