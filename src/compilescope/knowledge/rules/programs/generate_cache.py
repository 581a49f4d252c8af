"""transformers' cache grows by a token a call while `generate()` runs."""

from __future__ import annotations

import ast

from compilescope.knowledge.findings.recompiles import RecompileFinding
from compilescope.knowledge.rules.causes.rule import ProgramCase, ProgramRule
from compilescope.knowledge.rules.programs._names import code
from compilescope.knowledge.source.outline import dotted

_CACHES = ("past_key_values", "past_key_value", "cache_params")
_SIZES = ("size-change", "size-zero-one", "length-change", "attribute-presence", "equal-sizes")
_MOST_LETTERS = 60
"""Of a call in a sentence. Chosen."""


def _applies(case: ProgramCase) -> bool:
    finding = case.finding
    if not isinstance(finding, RecompileFinding) or not case.passes("transformers"):
        return False
    guards = (finding, *finding.together)
    return any(name in each.subject for each in guards for name in _CACHES)


def _words(case: ProgramCase) -> str:
    if any("StaticCache" in outline_text for outline_text in _texts(case)):
        return ""
    config, call = _call(case, "GenerationConfig"), _call(case, "generate")
    static = 'cache_implementation="static"'
    if not case.passes("transformers/generation"):
        return (
            "The cache is longer at each call of the model, so no call has the sizes of the one "
            "before. Give the model one of a fixed length: `StaticCache(config=model.config, "
            "max_cache_len=...)` of transformers as `past_key_values`, for the longest sequence. "
            "What stays is one graph for the prompt and one for a token."
        )
    if call is None:
        return ""
    held = [*(config.keywords if config is not None else ()), *call.keywords]
    if any(each.arg == "cache_implementation" for each in held):
        return ""
    if config is not None:
        where = f"write `{static}` into {code(_with(config, static))}"
    else:
        where = f"write {code(_with(call, static))}"
    return (
        f"`{dotted(call.func)}` gives the model a cache that is one token longer at each call, so "
        f"no call has the sizes of the one before. For a cache of a fixed length, {where}: "
        "every token then has the same sizes, where the model supports it. What stays is one graph "
        "for the prompt and one for a token."
    )


def _with(call: ast.Call, option: str) -> str:
    """The call with one more option; cut where it is long."""
    given = [ast.unparse(each) for each in call.args]
    given += [ast.unparse(each) for each in call.keywords]
    whole = ", ".join(given)
    options = [whole if len(whole) <= _MOST_LETTERS else "…", option] if given else [option]
    return f"{dotted(call.func)}({', '.join(options)})"


def _call(case: ProgramCase, name: str) -> ast.Call | None:
    found = [
        call
        for outline in case.outlines
        for call, _ in outline.calls
        if dotted(call.func).rpartition(".")[2] == name
    ]
    lines = {each.line for each in case.stack}
    here = [each for each in found if each.lineno in lines]
    return next(iter(here or found), None)


def _texts(case: ProgramCase) -> list[str]:
    return [name for o in case.outlines for call, _ in o.calls if (name := dotted(call.func))]


RULE = ProgramRule(
    id="generate-cache",
    order=35,
    applies=_applies,
    words=_words,
)
