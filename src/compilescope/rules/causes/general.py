"""Words for breaks that no rule knows: from their category, and from the user's own line."""

from __future__ import annotations

import ast
import re

from compilescope.registry.taxonomy import Category
from compilescope.rules.causes.remedy import Remedy, config, judgement, source, upgrade
from compilescope.rules.causes.rule import Cause
from compilescope.rules.failures import Failure

_CONFIG = re.compile(r"torch\._\w+\.config\.\w+(?:\s*=\s*\w+)?")


def general_why(cause: Cause, category: Category | None) -> str:
    said = cause.site.explanation.strip().split("\n", 1)[0] or cause.site.gb_type
    if category is None:
        return f"At `{cause.text}` PyTorch says: {said}"
    return f"{category.why} Here it is `{cause.text}`. PyTorch says: {said}"


def general_remedies(cause: Cause, category: Category | None) -> list[Remedy]:
    remedies: list[Remedy] = []
    means = category.means if category is not None else ("judgement",)
    fix = category.fix if category is not None else "Keep it out of the compiled code."
    if "rewrite" in means:
        remedies.append(source(f"For `{cause.text}` in `{cause.function}`: {fix}"))
    for flag in _flags(cause):
        remedies.append(
            config(
                f"`{flag}`, as PyTorch hints for `{cause.text}`. Not tried here: flags can move a break."
            )
        )
    if "upgrade" in means:
        remedies.append(
            upgrade(
                f"A newer PyTorch may trace `{cause.text}`: if it does not, report it with this line."
            )
        )
    if not remedies:
        remedies.append(judgement(f"About `{cause.text}`: {fix}"))
    return remedies


def _flags(cause: Cause) -> list[str]:
    """Config flags that PyTorch's own hints name."""
    found = [flag for hint in cause.site.hints for flag in _CONFIG.findall(hint)]
    return list(dict.fromkeys(found))


def failure_words(failure: Failure) -> tuple[str, str, list[Remedy]]:
    """Category, reason and remedies of a failure that is no graph break."""
    said = _said(failure.message)
    if failure.error == "BackendCompilerFailed" or failure.backend or failure.phase == "backward":
        backend = failure.backend or "the backend"
        return (
            "backend-failure",
            f"The {failure.phase} graph of `{failure.function}` was handed to {backend}, which raised: {said}",
            [
                judgement(
                    f'See whether `{failure.function}` compiles with `backend="aot_eager"` and with '
                    f'`backend="eager"`: the first that works tells which stage fails.'
                ),
                upgrade(f"If {backend} is PyTorch's own, a newer PyTorch may have mended it."),
            ],
        )
    if failure.error in ("FailOnRecompileLimitHit", "RecompileError"):
        return (
            "recompile-limit",
            f"`{failure.function}` had to be compiled again, and was told to raise instead: {said}",
            [
                judgement(
                    f"Mend the recompiles of `{failure.function}`; their causes are listed there."
                )
            ],
        )
    if failure.error == "TorchRuntimeError":
        return (
            "user-error",
            f"The operation fails on tensors of these shapes and dtypes, and would fail in eager mode "
            f"too: {said}",
            [
                judgement(
                    f"Run `{failure.function}` without torch.compile and mend the error it raises."
                )
            ],
        )
    return (
        "compiler-bug",
        f"Compiling `{failure.function}` raised {failure.error}: {said}",
        [
            judgement(
                f"Leave `{failure.function}` to eager mode with `@torch.compiler.disable` for now."
            ),
            upgrade("A newer PyTorch may have mended it; if not, report it with this message."),
        ],
    )


def _said(message: str) -> str:
    """The first line that says something: Dynamo puts `backend='x' raised:` before the error."""
    lines = message.strip().split("\n", 2)
    return lines[1] if len(lines) > 1 and lines[0].endswith(" raised:") else lines[0]


def library_remedies(cause: Cause) -> list[Remedy]:
    """Inside a library the first question is what its caller can pass or set."""
    names = _steering_names(cause)
    where = f"`{cause.text}` stands in a library, not in your code."
    if names:
        listed = ", ".join(f"`{name}`" for name in names[:4])
        return [
            judgement(
                f"{where} The line is steered by {listed}: look first for an argument or a config field "
                "of that name which you can set where you build or call the model."
            )
        ]
    return [
        judgement(
            f"{where} Look first for an argument of the call or a config field that avoids it, or call "
            "the model once eagerly before compiling if it prepares something on its first call."
        )
    ]


def _steering_names(cause: Cause) -> list[str]:
    """Parameters and attributes that decide whether the line runs, and how."""
    spot = cause.spot
    tests = [node.test for node in spot.ancestors if isinstance(node, (ast.If, ast.IfExp))]
    nodes: list[ast.AST] = [*tests]
    if spot.expression is not None:
        nodes.insert(0, spot.expression)
    parameters: set[str] = set()
    if spot.function is not None:
        arguments = spot.function.args
        parameters = {a.arg for a in [*arguments.args, *arguments.kwonlyargs]} - {"self"}
    found: dict[str, None] = {}
    for node in nodes:
        for part in ast.walk(node):
            if isinstance(part, ast.Attribute) and _of_self(part):
                found[part.attr] = None
            elif isinstance(part, ast.Name) and part.id in parameters:
                found[part.id] = None
    return list(found)


def _of_self(node: ast.Attribute) -> bool:
    value = node.value
    if isinstance(value, ast.Attribute) and value.attr == "config":
        return True
    return isinstance(value, ast.Name) and value.id in ("self", "config") and node.attr != "config"
