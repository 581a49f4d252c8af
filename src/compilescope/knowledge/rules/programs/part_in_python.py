"""A helper that decides from values how much it makes (suppression of boxes, decoding, a search),
called where the rest can be compiled."""

from __future__ import annotations

import ast

from compilescope.knowledge.findings.finding import is_own
from compilescope.knowledge.findings.recompiles import RecompileFinding
from compilescope.knowledge.rules.causes.rule import ProgramCase, ProgramRule
from compilescope.knowledge.rules.programs._names import code, listed
from compilescope.knowledge.source.outline import Function, dotted, names_in
from compilescope.record.stack import Frame

_RULES = frozenset(
    {
        "category/data-dependent-branch",
        "dynamic-shape",
        "scalar-extraction",
        "symbolic-value",
        "tensor-if",
        "tensor-truth",
        "tensor-while",
        "validation-guard",
    }
)
_OF_SIZES = frozenset(
    {"broken-size", "size-change", "size-zero-one", "shape-condition", "equal-sizes"}
)
_CATEGORIES = frozenset({"data-dependent-branch", "dynamic-shape-operator", "scalar-extraction"})
_READS = frozenset({"item", "tolist", "nonzero", "argwhere", "unique", "masked_select"})
_GROWS = frozenset({"append", "extend", "add", "update", "setdefault"})
_MOST_LETTERS = 80
"""Of a call that is named. Chosen."""


def _applies(case: ProgramCase) -> bool:
    finding = case.finding
    if isinstance(finding, RecompileFinding):
        return case.rule in _OF_SIZES
    return case.rule in _RULES or finding.category in _CATEGORIES


def _words(case: ProgramCase) -> str:
    frames = _frames(case)
    for at in range(len(frames) - 1, 0, -1):
        helper = case.function_around(frames[at].file, frames[at].line, frames[at].function)
        outer = case.function_around(
            frames[at - 1].file, frames[at - 1].line, frames[at - 1].function
        )
        if helper is None or outer is None or helper.node is outer.node:
            continue
        if frames[at].file not in case.own_files:
            continue
        if not (_makes_as_many_as_values_say(helper) or _lists_pieces(case, helper, frames[at])):
            continue
        return _apart(case, helper, outer, frames[at - 1])
    return ""


def _frames(case: ProgramCase) -> tuple[Frame, ...]:
    """What was compiled. Where the break made Dynamo give up the function around the helper, what
    the helper calls is compiled alone, for one size after the other: then all that leads there."""
    if not isinstance(case.finding, RecompileFinding):
        return case.traced
    asked = {each.target.rpartition(".")[2] for each in case.compile_calls}
    if case.compiled is None or case.compiled.function in asked:
        return ()
    own = tuple([each for each in case.stack if is_own(each.file)])
    given_up = [at for at, each in enumerate(own) if each.function in {*asked, "forward"}]
    return own[given_up[0] :] if given_up else ()


def _makes_as_many_as_values_say(helper: Function) -> bool:
    """Nobody can rewrite it as operations on tensors of known sizes: it loops until values say it
    is enough, or it returns Python objects made of values."""
    nodes = helper.own_nodes
    for node in nodes:
        if isinstance(node, ast.While) and _grows(node):
            return True
        if isinstance(node, ast.For) and _grows(node) and _is_left_early(node):
            return True
    return any(_is_of_python(node.value, nodes) for node in nodes if isinstance(node, ast.Return))


def _lists_pieces(case: ProgramCase, helper: Function, frame: Frame) -> bool:
    """Does it cut a piece of a size that values decide in each turn of a loop, and return the list
    of them? Each would have a size of its own."""
    if case.rule != "dynamic-shape" and case.finding.category != "dynamic-shape-operator":
        return False
    nodes = helper.own_nodes
    filled: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.For) and node.lineno < frame.line <= (node.end_lineno or 0):
            filled |= {
                dotted(each.func.value)
                for each in ast.walk(node)
                if isinstance(each, ast.Call)
                and isinstance(each.func, ast.Attribute)
                and each.func.attr in _GROWS
            }
    returned: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Return) and node.value is not None:
            parts = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
            returned |= {dotted(each) for each in parts} - {""}
    return bool(filled & returned)


def _grows(loop: ast.While | ast.For) -> bool:
    """Does it put something into a container at each turn?"""
    return any(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in _GROWS
        for node in ast.walk(loop)
    )


def _is_left_early(loop: ast.For) -> bool:
    """On a condition that reads values of a tensor."""
    return any(
        isinstance(node, ast.If)
        and any(isinstance(each, (ast.Break, ast.Return)) for each in ast.walk(node))
        and any(
            isinstance(each, ast.Attribute) and each.attr in (*_READS, "any", "all")
            for each in ast.walk(node.test)
        )
        for node in ast.walk(loop)
    )


def _is_of_python(value: ast.expr | None, nodes: list[ast.AST]) -> bool:
    """Lists or numbers that were read from tensors."""
    if value is None:
        return False
    if isinstance(value, (ast.ListComp, ast.DictComp, ast.SetComp, ast.List, ast.Dict)):
        return any(_reads(each) for each in ast.walk(value))
    if isinstance(value, ast.Tuple):
        return any(_is_of_python(each, nodes) for each in value.elts)
    if not isinstance(value, ast.Name):
        return False
    # A list that the function fills with what it reads.
    starts_empty = any(
        isinstance(node, ast.Assign)
        and any(dotted(each) == value.id for each in node.targets)
        and isinstance(node.value, (ast.List, ast.Dict))
        for node in nodes
    )
    return starts_empty and any(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in _GROWS
        and dotted(node.func.value) == value.id
        and any(_reads(each) for each in ast.walk(node))
        for node in nodes
    )


def _reads(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("item", "tolist")
    )


def _apart(case: ProgramCase, helper: Function, outer: Function, frame: Frame) -> str:
    tail, looped = _tail(outer, frame.line)
    call = _call_on(outer, frame.line, helper.name)
    if not tail or call is None:
        return ""
    shown = ast.unparse(call)
    shown = shown if len(shown) <= _MOST_LETTERS else f"{ast.unparse(call.func)}(…)"
    reason = (
        f"What `{helper.name}` makes, and how much of it, depends on values, so no graph holds it."
    )
    name = outer.name
    if not _only_collects(tail, call):
        if looped:
            return ""
        return (
            f"{reason} Mark it with `@torch.compiler.disable`, in the line above `def "
            f"{helper.name}`: `{name}` is then compiled up to {code(shown)} and again after it."
        )
    needed = _made_before(outer, tail)
    if not needed:
        return ""
    loop = "the loop over " if looped else ""
    made = listed(f"`{each}`" for each in needed)
    function = "a function of its own" if looped else f"`{helper.name}`"
    alone = (
        f"put that loop into {function} with `@torch.compiler.disable` above it"
        if looped
        else f"write `@torch.compiler.disable` above `def {helper.name}`"
    )
    return (
        f"{reason} Compile up to there: return {made} from `{outer.name}`, and run {loop}"
        f"{code(shown)} in the caller, after the compiled call. Or {alone}: then "
        f"`{outer.name}` is compiled up to it."
    )


def _tail(outer: Function, line: int) -> tuple[list[ast.stmt], bool]:
    """From the statement that leads to the line to the end of the function, and is it a loop?"""
    body = outer.node.body
    at = next(
        (i for i, each in enumerate(body) if each.lineno <= line <= (each.end_lineno or 0)), None
    )
    if at is None:
        return [], False
    looped = isinstance(body[at], (ast.For, ast.While)) or any(
        isinstance(node, (ast.ListComp, ast.GeneratorExp)) for node in ast.walk(body[at])
    )
    return body[at:], looped


def _call_on(outer: Function, line: int, name: str) -> ast.Call | None:
    for node in outer.own_nodes:
        if (
            isinstance(node, ast.Call)
            and node.lineno <= line <= (node.end_lineno or node.lineno)
            and dotted(node.func).rpartition(".")[2] == name
        ):
            return node
    return None


def _only_collects(tail: list[ast.stmt], call: ast.Call) -> bool:
    """Does nothing that is worth compiling follow? Only what picks from results and returns."""
    allowed = {"append", "extend", "len", "range", "enumerate", "zip", "list", "tuple", "dict"}
    for statement in tail:
        for node in ast.walk(statement):
            if isinstance(node, ast.Call) and node is not call:
                name = dotted(node.func).rpartition(".")[2] or "?"
                inside = any(node is each for each in ast.walk(call))
                if not inside and name not in allowed:
                    return False
            if isinstance(node, (ast.MatMult,)):
                return False
    return True


def _made_before(outer: Function, tail: list[ast.stmt]) -> list[str]:
    """What the tail uses of what the function computed before it."""
    before = [each for each in outer.node.body if each.lineno < tail[0].lineno]
    made: dict[str, bool] = {}
    for statement in before:
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                made[node.id] = made.get(node.id, True) and not _is_empty(statement)
    used: set[str] = set()
    for statement in tail:
        used |= names_in(statement)
    return [name for name, computed in made.items() if computed and name in used]


def _is_empty(statement: ast.stmt) -> bool:
    """A container that the tail fills."""
    value = getattr(statement, "value", None)
    return isinstance(value, (ast.List, ast.Dict)) and not ast.unparse(value).strip("[]{}")


RULE = ProgramRule(
    id="part-in-python",
    order=20,
    applies=_applies,
    words=_words,
)
