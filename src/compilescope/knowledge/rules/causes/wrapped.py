"""Arguments of a function that torch wraps, as its author calls them.

Under `@torch.no_grad()` and the like Dynamo compiles torch's wrapper, which takes `args` and
`kwargs` and passes them on: a guard on `args[2]` is about the third parameter.
"""

from __future__ import annotations

import re

import msgspec

from compilescope.base.patterns import late
from compilescope.knowledge.findings.recompiles import RecompileFinding
from compilescope.knowledge.source.outline import Function, dotted
from compilescope.knowledge.source.spots import Sources

_GIVEN = late(r"(?<![\w.])args\[(\d{1,3})\]")
_NAMED = late(r"(?<![\w.])kwargs\['(\w+)'\]")
_RAW = ("args[", "kwargs['")


def wrapped_function(finding: RecompileFinding, sources: Sources) -> Function | None:
    """The user's function inside of the wrapper, where the line that called it names it."""
    if not finding.compiled.is_call or not finding.is_placed:
        return None
    outline = sources.outline(finding.file)
    function = outline.function_at(finding.line, finding.function) if outline is not None else None
    caller = sources.outline(finding.compiled.file)
    if function is None or function.owner is not None or caller is None:
        return None
    called = {
        dotted(call.func).rpartition(".")[2]
        for call, _ in caller.calls
        if call.lineno <= finding.compiled.line <= (call.end_lineno or call.lineno)
    }
    return function if function.name in called and function.node.decorator_list else None


def in_own_names(finding: RecompileFinding, sources: Sources) -> RecompileFinding:
    """With the parameters' names in place of the wrapper's."""
    if not any(word in finding.subject for word in _RAW):
        return finding
    function = wrapped_function(finding, sources)
    if function is None or {"args", "kwargs"} & {*function.all_parameters}:
        return finding
    names = function.parameters

    def name(match: re.Match[str]) -> str:
        at = int(match[1])
        return names[at] if at < len(names) else match[0]

    def told(text: str) -> str:
        return _NAMED.sub(lambda match: match[1], _GIVEN.sub(name, text))

    return msgspec.structs.replace(
        finding,
        subject=told(finding.subject),
        guard=told(finding.guard),
        expected=told(finding.expected),
        compiled_in=told(finding.compiled_in),
    )
