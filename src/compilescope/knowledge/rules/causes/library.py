"""Words for code of a library: what its caller can pass or set, never what to edit inside."""

from __future__ import annotations

import ast

from compilescope.knowledge.findings.remedy import Remedy, judgement
from compilescope.knowledge.rules.causes.rule import BreakCase, RecompileCase
from compilescope.knowledge.rules.recompiles._subjects import called, named, of_a_module
from compilescope.record.stack import origin_of

# About the call itself (its mode, its inputs): the rule's own words are for the caller.
_OF_THE_CALL = frozenset(
    {
        "aliasing",
        "autocast",
        "backend-change",
        "default-device",
        "default-dtype",
        "device-change",
        "dispatch-keys",
        "dtype-change",
        "dynamic-marking",
        "global-state",
        "inference-tensor",
        "num-threads",
        "optimizer-setting",
        "rank-change",
        "requires-grad-change",
        "tensor-class",
        "torch-function-mode",
        "train-eval",
    }
)
_OF_THE_INPUTS = frozenset({"key-change", "length-change", "none-or-value", "type-change"})
"""For the caller as well, where the subject is passed and not a part of the library's modules."""
_OF_SIZES = frozenset(
    {
        "equal-sizes",
        "int-change",
        "length-change",
        "number-needed",
        "shape-condition",
        "size-change",
        "size-unrolled",
        "tensor-read",
    }
)
_OF_INSTANCES = frozenset(
    {
        "layer-index",
        "length-change",
        "module-class",
        "module-flag",
        "module-number",
        "none-or-value",
        "parameter-size",
    }
)
_CACHES = ("cache", "past_key_values", "key_states")


def in_library(file: str) -> bool:
    """Installed code, torch's own too: nothing that its user would edit."""
    return origin_of(file) in ("library", "torch")


def library_break(case: BreakCase) -> list[Remedy]:
    """Inside a library the question is what its caller can pass or set."""
    where = f"`{case.text}` is in a library"
    names = _steering_names(case)
    if names:
        listed = ", ".join(f"`{name}`" for name in names[:4])
        return [
            judgement(
                f"{where} and depends on {listed}: look for an argument or a config field of that "
                "name that you can set where you build or call the model."
            )
        ]
    return [
        judgement(
            f"{where}: look for an argument, a config field or an environment variable that avoids "
            "it, or compile only the parts of the model that don't reach it."
        )
    ]


def library_miss(miss: RecompileCase, rule: str, told: list[Remedy]) -> list[Remedy]:
    """What the caller can do about a guard on a library's line; `told` are the rule's own words."""
    passed = not of_a_module(miss.finding.subject)
    weighed = [each for each in told if each.kind != "source"]
    if rule in _OF_THE_CALL or (rule in _OF_THE_INPUTS and passed) or weighed == told:
        return told
    if rule in ("broken-size", "size-zero-one"):
        # The break has words of its own. And text is generated one token at a time: there is no
        # other size to pad to.
        return weighed
    if rule in _OF_SIZES and (passed or _about_a_cache(miss)):
        first = _fixed_sizes(miss)
    elif rule in _OF_INSTANCES and not passed:
        first = _whole_model(miss)
    else:
        first = _kept_the_same(miss)
    return [first, *(weighed[:1] or [_warm_up(miss)])]


def _about_a_cache(miss: RecompileCase) -> bool:
    text = f"{miss.finding.subject} {miss.finding.source}"
    return any(word in text for word in _CACHES)


def _fixed_sizes(miss: RecompileCase) -> Remedy:
    if not _about_a_cache(miss):
        return judgement(
            f"Keep `{named(miss)}` constant from outside the library: pad the model's inputs to "
            "one length, or to a few, and mask the padding."
        )
    example = ""
    if "/transformers/" in miss.finding.file.replace("\\", "/"):
        example = ' (`cache_implementation="static"` in `generate()`, for models that support it)'
    return judgement(
        f"`{named(miss)}` grows with a cache in the library: give the model a fixed-size cache if "
        f"it has one{example}, and pad its inputs to one length."
    )


def _kept_the_same(miss: RecompileCase) -> Remedy:
    return judgement(
        f"`{named(miss)}` changes inside a library: look for an argument or a config field that "
        "keeps it constant between calls."
    )


def _whole_model(miss: RecompileCase) -> Remedy:
    return judgement(
        "If you compile parts of the model one by one, compile the model that holds them instead. "
        f"Each `{called(miss)}` is then traced at its own call site."
    )


def _warm_up(miss: RecompileCase) -> Remedy:
    return judgement(
        "Otherwise, call the model during warm-up with each kind of input you expect: "
        f"`{called(miss)}` is compiled once for each, up to the recompile limit."
    )


def _steering_names(case: BreakCase) -> list[str]:
    """Parameters and attributes that decide whether the line runs, and how."""
    spot = case.spot
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
