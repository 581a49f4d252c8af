"""A cache of keys and values that is one position longer at each call."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator

import msgspec

from compilescope.base.patterns import late
from compilescope.knowledge.findings.finding import is_own
from compilescope.knowledge.findings.recompiles import RecompileFinding
from compilescope.knowledge.rules.causes.rule import ProgramCase, ProgramRule
from compilescope.knowledge.rules.programs._names import assigned, code
from compilescope.knowledge.rules.recompiles._subjects import inside, shown, size_of
from compilescope.knowledge.source.outline import dotted, names_in

_ROOT = late(r"^(?:[GL]\['(\w+)'\]|(\w+))")
_JOINS = ("torch.cat", "torch.concat", "torch.concatenate")
_MOST_AT_ONCE = 8
"""By so many positions a cache grows from one call to the next. Chosen: a step of decoding gives
one, of a guess some; more is another input."""


def _applies(case: ProgramCase) -> bool:
    return isinstance(case.finding, RecompileFinding) and not case.passes("transformers")


class _Growth(msgspec.Struct, frozen=True):
    """Where a cache grows."""

    join: ast.Call
    old: ast.expr
    new: ast.expr
    dim: str
    statement: ast.stmt
    file: str


def _words(case: ProgramCase) -> str:
    finding = case.finding
    assert isinstance(finding, RecompileFinding)
    for guard in (finding, *finding.together):
        words = _of_guard(case, guard)
        if words:
            return words
    return ""


def _of_guard(case: ProgramCase, guard: RecompileFinding) -> str:
    part = size_of(guard.subject)
    listed = inside(guard.subject, "len")
    subject = part[0] if part is not None else listed
    if not subject or not _grew(guard, least=0 if listed else 2):
        return ""
    path = shown(subject)
    if listed:
        words = _of_list(case, path)
        if words:
            return words
    found = next(_growths(case, path, part[1] if part is not None else None), None)
    if found is None:
        return ""
    root = path.split("[")[0].split(".keys")[0]
    join, old, new = ast.unparse(found.join), ast.unparse(found.old), ast.unparse(found.new)
    longer = f"`{root}` is longer at each call, so no call has the sizes of the one before."
    if not is_own(found.file):
        asked = case.compile_call
        any_length = (
            assigned(case, asked.node, asked.text(dynamic="True")) if asked is not None else ""
        )
        other = f", or compile for any length: {code(any_length)}" if asked else ""
        return (
            f"{longer} {code(join)} in `{os.path.basename(found.file)}` does it: see whether the "
            f"library has a cache of a fixed length, allocated once for the longest sequence{other}. "
            "What stays is one graph for the first call and one for each further token."
        )
    target = _target(found) or old
    return (
        f"{longer} Allocate it once, with zeros, for the longest sequence, and write by position: "
        f"{code(f'{target} = {old}.index_copy_({found.dim}, position, {new})')} in place of "
        f"{code(join)}, where `position` is a tensor of the positions that `{new}` belongs to, and "
        "give attention a mask that hides what is not written yet. Each further token then has the "
        "same sizes."
    )


def _of_list(case: ProgramCase, path: str) -> str:
    """Of a list of tensors that gets one more in each call, and is joined."""
    name = path.rpartition(".")[2] if path.startswith("self.") or "." in path else path
    for outline in case.outlines:
        names = (path, f"self.{name}", name)
        for function in outline.functions:
            nodes = function.own_nodes
            calls = [each for each in nodes if isinstance(each, ast.Call) and each.args]
            added = [each for each in calls if dotted(each.func) in [f"{n}.append" for n in names]]
            # Along another dimension than the first: a history is put one beside the other.
            joined = [
                each
                for each in calls
                if dotted(each.func) in _JOINS
                and (_dimension(each) or 0) != 0
                and any(dotted(part) in names for part in ast.walk(each.args[0]))
            ]
            if not added or not joined:
                continue
            return (
                f"`{path}` has one more entry at each call, so no call is like the one before. In its "
                "place, allocate a tensor once, with zeros, for the longest sequence, and write by "
                f"position, `index_copy_(dim, position, …)`, instead of {code(added[0])} and "
                f"{code(joined[0])}; hide what is not written yet with a mask."
            )
    return ""


def _grew(guard: RecompileFinding, least: int) -> bool:
    try:
        before, after = int(guard.expected), int(guard.actual)
    except ValueError:
        return False
    return 0 < after - before <= _MOST_AT_ONCE and before >= least


def _target(found: _Growth) -> str:
    if isinstance(found.statement, ast.Assign) and len(found.statement.targets) == 1:
        return ast.unparse(found.statement.targets[0])
    return ""


def _growths(case: ProgramCase, path: str, dim: int | None) -> Iterator[_Growth]:
    """The joins whose result is given to the next call as what is joined to. A file of a library
    is looked at where the line stands in it."""
    files = dict.fromkeys([*case.own_files, case.finding.file])
    for file in files:
        outline = case.sources.outline(file)
        for call, around in outline.calls if outline is not None else ():
            if dotted(call.func) not in _JOINS or around is None or not call.args:
                continue
            parts = call.args[0]
            if not isinstance(parts, (ast.List, ast.Tuple)) or len(parts.elts) != 2:
                continue
            at = _dimension(call)
            if at is None or (dim is not None and 0 <= at != dim):
                continue
            old, new = parts.elts
            nodes = around.own_nodes
            statement = _statement_of(call, nodes)
            if statement is None or not _is_kept(statement, old, nodes, around.all_parameters):
                continue
            if _is_the_same(case, path, old):
                where = str(dim if dim is not None else at)
                yield _Growth(call, old, new, where, statement, file)


def _dimension(call: ast.Call) -> int | None:
    given = [each.value for each in call.keywords if each.arg in ("dim", "axis")] + call.args[1:2]
    if not given:
        return 0
    try:
        found = ast.literal_eval(given[0])
    except ValueError:
        return None
    return found if isinstance(found, int) else None


def _statement_of(call: ast.Call, nodes: list[ast.AST]) -> ast.stmt | None:
    around = [
        n
        for n in nodes
        if isinstance(n, (ast.Assign, ast.Return, ast.Expr))
        and any(each is call for each in ast.walk(n))
    ]
    return around[-1] if around else None


def _is_kept(
    statement: ast.stmt, old: ast.expr, nodes: list[ast.AST], parameters: list[str]
) -> bool:
    """Does the longer one take the place of the shorter? It is stored where that was, or the
    function got that and returns this."""
    text = ast.unparse(old)
    if isinstance(statement, ast.Assign):
        targets = [ast.unparse(each) for each in statement.targets]
        if text in targets and not isinstance(old, ast.Name):
            return True
        got = names_in(old) & {*parameters, *_from_parameters(nodes, parameters)}
        names = {each.id for each in statement.targets if isinstance(each, ast.Name)}
        returned = set().union(*(names_in(n) for n in nodes if isinstance(n, ast.Return)))
        stored = any(
            isinstance(n, ast.Assign)
            and names & names_in(n.value)
            and any(isinstance(t, (ast.Attribute, ast.Subscript)) for t in n.targets)
            for n in nodes
        )
        return bool(got) and (bool(names & returned) or stored)
    return isinstance(statement, ast.Return) and bool(names_in(old) & {*parameters})


def _from_parameters(nodes: list[ast.AST], parameters: list[str]) -> set[str]:
    """`past_k, past_v = past`: names that are taken out of a parameter, unchanged."""
    found: set[str] = set()
    for node in nodes:
        if not (isinstance(node, ast.Assign) and isinstance(node.value, (ast.Name, ast.Subscript))):
            continue
        if names_in(node.value) & {*parameters}:
            found |= set().union(*map(names_in, node.targets))
    return found


def _is_the_same(case: ProgramCase, path: str, old: ast.expr) -> bool:
    """Is what the guard is about what grows? By its attribute, or because the caller passes on
    what the last call returned, or what it holds while hooks write to it."""
    text = ast.unparse(old)
    attribute = text.rpartition(".")[2] if "." in text else ""
    if attribute and path.split("[")[0].endswith(f".{attribute.split('[')[0]}"):
        return True
    match = _ROOT.match(path)
    root = (match[1] or match[2]) if match else ""
    if not root or root == "self":
        return False
    caller = case.caller
    if caller is None:
        return False
    outline = case.sources.outline(caller.file)
    if outline is None:
        return False
    function = case.compiled.function if case.compiled is not None else ""
    for node in ast.walk(outline.tree):
        if not (isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)):
            continue
        if not node.lineno <= caller.line <= (node.end_lineno or node.lineno):
            continue
        passed = {each for argument in node.value.args for each in _paths(argument)}
        passed |= {each for keyword in node.value.keywords for each in _paths(keyword.value)}
        bound = {each for target in node.targets for each in _paths(target)}
        if passed & bound:
            return True
        # Hooks fill the container that is passed: the join writes to an item of one.
        keywords = {k.arg: dotted(k.value) for k in node.value.keywords if k.arg}
        if function and isinstance(old, ast.Subscript) and keywords.get(root):
            return True
    return False


def _paths(node: ast.AST) -> set[str]:
    return {name for each in ast.walk(node) if (name := dotted(each))}


RULE = ProgramRule(
    id="growing-cache",
    order=30,
    applies=_applies,
    words=_words,
)
