"""Are the regions of a version what the original's were? On the recorded inputs and on others.

The patched version runs eagerly and compiled; the original eagerly, and compiled only where the
patched one differs, to see whether compiling itself is what makes the difference.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from typing import Any

import msgspec

from compilescope.change.fixes.patch import Allowance
from compilescope.change.repair.trials.baseline import TrialBaseline
from compilescope.change.repair.trials.child.fatal_inputs import read_fatal
from compilescope.change.repair.trials.recorded_runs import ComparedValues, ReplayedRun
from compilescope.change.repair.trials.version import ChangedFile, Changes, Version
from compilescope.change.repair.trials.workbench import Workbench
from compilescope.record.fix_search import FixCheck

_BY_ELEMENT = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE)
"""Comparisons that tensors answer with booleans; `in` and `is` are Python's."""
_ASKING = ("isnan", "isinf", "isfinite", "isposinf", "isneginf")
"""Functions and methods of tensors that give a boolean for each element."""
_REDUCTIONS = ("any", "all")


def compare_values(
    bench: Workbench,
    before: TrialBaseline,
    version: Version,
    changes: Changes,
    allows: frozenset[Allowance],
    *,
    light: bool = False,
    by_anyone: bool = False,
    compiled: bool = True,
) -> ComparedValues:
    """Probe the version, `light` without Inductor, and hold every replay against the original's.
    `by_anyone`: the change is no fix of ours. Without `compiled` it runs eagerly alone: cheap, and
    what differs then differs in any case, but what does not proves nothing."""
    found = ComparedValues()
    found.add(before.replayable)
    if found.is_settled:
        return found
    probed = bench.probe(version, compiled=compiled, like=before.probed, light=light)
    if "exception-type" in allows and before.probed.raising and probed.ended_on_made_up:
        # A check that fails on a GPU ends all work there, and no `raise` of Python's does.
        like = before.probed
        probed = bench.probe(version, compiled=True, like=like, raising=False, light=light)
        found.skipped += before.probed.raising
        found.notes.append("inputs on which the original raises end the process: not compared")
    if probed.timed_out:
        found.unknown(f"replaying its regions took more than {bench.limit_s:g} s")
        return found
    if probed.exit_status < 0:
        asked = read_fatal(probed.folder)
        on = f" on {asked.words}" if asked is not None else ""
        found.unknown(f"replaying its regions{on} was killed by signal {-probed.exit_status}")
        return found
    found.add(
        _judged(bench, before, probed, allows, light=light, by_anyone=by_anyone, compiled=compiled)
    )
    if not found.is_settled:
        checks, notes = check_branches(before, changes, found.skipped)
        found.checks += checks
        found.notes += notes
    return found


def _judged(
    bench: Workbench,
    before: TrialBaseline,
    probed: ReplayedRun,
    allows: frozenset[Allowance],
    *,
    light: bool,
    by_anyone: bool,
    compiled: bool,
) -> ComparedValues:
    asked: dict[str, Any] = {
        "by_anyone": by_anyone,
        "original": before.probed.told,
        "version": probed.told,
        "modes": ["eager", "compiled"] if compiled else ["eager"],
        "compiled": None,
        "again": before.probed_again.told if "probed_again" in vars(before) else None,
        "allows": sorted(allows),
    }
    while True:
        answer = bench.ask("judge_version", asked)
        match answer.get("needs"):
            case "compiled":
                asked["compiled"] = before.compiled(light=light).told
            case "again":
                asked["again"] = before.probed_again.told
            case _:
                return msgspec.convert(answer, ComparedValues)


# Were both sides of the branches taken that a patch replaces? What never ran proves nothing.


def check_branches(
    before: TrialBaseline, changes: Changes, skipped: Collection[list[Any]] = ()
) -> tuple[list[FixCheck], list[str]]:
    """One check, and notes on sides that were not taken but are as they were. What only `skipped`
    inputs took was not compared."""
    covered = _compared(before.probed.record.get("coverage", {}), skipped)
    notes: list[str] = []
    unseen = _unseen_condition(before.probed, changes)
    if unseen:
        return [FixCheck("branches", "unknown", unseen)], notes
    count = 0
    for branch in covered.get("branches", ()):
        change = changes.files.get(branch["file"])
        if change is None or branch["line"] not in change.removed:
            continue
        count += 1
        sides = _written_sides(branch, change)
        if sides == {True, False}:
            continue
        words = _words(branch, sides, change)
        if _is_part_of_known(branch, covered["branches"], change):
            notes.append(f"{words}; the whole condition was both, and its parts are the same")
            continue
        if _is_asked_in_graph(branch, sides, change):
            notes.append(f"{words}; the new check is true exactly where it is false")
            continue
        if _matters(branch, covered["branches"], change):
            return [FixCheck("branches", "unknown", words)], notes
        notes.append(words)
    for words in _unsettled(covered.get("values", ()), changes):
        return [FixCheck("branches", "unknown", words)], notes
    notes += _unreached(covered.get("lines", {}), changes)
    if not count:
        return [FixCheck("branches", "pass", "the patch replaces no branch")], notes
    branches = "1 branch" if count == 1 else f"{count} branches"
    return [FixCheck("branches", "pass", f"both sides of {branches} were taken")], notes


def _unseen_condition(probed: ReplayedRun, changes: Changes) -> str:
    """A condition that a patch replaces and that may be in a region which was not replayed."""
    if not probed.collective:
        return ""
    seen = {
        (each["file"], each["line"])
        for each in probed.record.get("coverage", {}).get("branches", ())
    }
    for file, change in changes.files.items():
        for line in _conditions(change.old_text):
            if line in change.removed and (file, line) not in seen:
                source = change.old_text.splitlines()[line - 1].strip()
                return f"the condition on line {line} ({source}) could not be tried both ways"
    return ""


def _conditions(text: str) -> Iterator[int]:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        if isinstance(node, (ast.If, ast.While, ast.IfExp, ast.BoolOp, ast.Assert, ast.Match)):
            yield node.lineno


def _compared(covered: dict[str, Any], skipped: Collection[list[Any]]) -> dict[str, Any]:
    if not skipped or not covered:
        return covered
    left = {
        kind: [
            {**each, "sides": sorted({s for s, asked in each["takers"] if asked not in skipped})}
            for each in covered[kind]
        ]
        for kind in ("branches", "values")
    }
    return {**covered, **left}


def _unreached(lines: dict[str, list[int]], changes: Changes) -> Iterator[str]:
    """Lines that the patch replaces and that no replay came by."""
    for file, change in changes.files.items():
        reached = set(lines.get(file, ()))
        for start, end, statements in _functions(change.old_text):
            if not reached.intersection(range(start + 1, end + 1)):
                continue
            for line in sorted(statements & change.removed - reached):
                yield f"line {line} never ran in a replay"


def _functions(text: str) -> Iterator[tuple[int, int, set[int]]]:
    """First line, last line, and the lines at which its statements begin."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            parts = [inner for part in node.body for inner in ast.walk(part)]
            lines = {part.lineno for part in parts if isinstance(part, ast.stmt) and _runs(part)}
            yield node.lineno, node.end_lineno or node.lineno, lines


def _runs(node: ast.stmt) -> bool:
    """Does it leave a mark when it runs?"""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return False
    return not isinstance(node, (ast.Global, ast.Nonlocal, ast.Pass))


def _unsettled(values: Collection[dict[str, Any]], changes: Changes) -> Iterator[str]:
    """Names that a patch sets once and for all, where what they were set to was not seen to be
    true and false: whatever hangs on them goes one way."""
    for file, change in changes.files.items():
        new = dict(_assigned(change.new_text, change.added))
        for line in sorted(change.removed):
            for name, value in _assigned(change.old_text, {line}):
                if not _is_truth(new.get(name)) or _is_truth(value):
                    continue
                seen = [e for e in values if e["file"] == file and e["line"] == line]
                sides = {side for each in seen for side in each["sides"]}
                if sides != {True, False}:
                    source = change.old_text.splitlines()[line - 1].strip()
                    words = f"was never {'false' if True in sides else 'true'}"
                    yield f"`{name}` on line {line} ({source}) {words if sides else 'was not seen'}"


def _is_truth(value: ast.expr | None) -> bool:
    """`True`, or `not shown or mask.any().item()`, which asks only where a name is true."""
    if isinstance(value, ast.BoolOp):
        first = value.values[0]
        return isinstance(first, ast.UnaryOp if isinstance(value.op, ast.Or) else ast.Name)
    return isinstance(value, ast.Constant) and type(value.value) is bool


def _assigned(text: str, lines: Collection[int]) -> Iterator[tuple[str, ast.expr]]:
    """What assignments on these lines set, and to what."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and node.lineno in lines:
            yield from ((ast.unparse(target), node.value) for target in node.targets)


def _written_sides(branch: dict[str, Any], change: ChangedFile) -> set[bool]:
    """What the condition was as it is written: Python asks `x` for `not x`."""
    try:
        statement = next(_statements(ast.parse(change.old_text), branch["line"]), None)
    except (SyntaxError, ValueError):
        statement = None
    if statement is None:
        return set(branch["sides"])
    leaf, negated = _leaf(statement.test, branch)
    return {side != negated for side in _leaf_sides(leaf, branch)}


def _leaf(test: ast.expr, branch: dict[str, Any]) -> tuple[ast.expr, bool]:
    """The part of a condition that the branch is about, and whether it stands under a `not`."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner, negated = _leaf(test.operand, branch)
        return inner, not negated
    if isinstance(test, ast.BoolOp) and branch["column"] is not None:
        place = (branch["line"], branch["column"])
        part = next((each for each in test.values if _holds(each, place)), None)
        return _leaf(part, branch) if part is not None else (test, False)
    return test, False


def _leaf_sides(leaf: ast.expr, branch: dict[str, Any]) -> set[bool]:
    """What this part was: Python asks whether `x` is None for `x is not None`."""
    turned = (
        branch.get("by_none", False)
        and isinstance(leaf, ast.Compare)
        and isinstance(leaf.ops[0], ast.IsNot)
    )
    return {side != turned for side in branch["sides"]}


def _words(branch: dict[str, Any], sides: set[bool], change: ChangedFile) -> str:
    lines = change.old_text.splitlines()
    line = branch["line"]
    source = lines[line - 1].strip() if 0 < line <= len(lines) else ""
    if not sides:
        return f"the branch on line {line} ({source}) was never reached"
    never = "false" if True in sides else "true"
    return f"the condition on line {line} ({source}) was never {never}"


def _matters(branch: dict[str, Any], branches: list[dict[str, Any]], change: ChangedFile) -> bool:
    """A side that the patch leaves alone need not be taken, if no tensor decides on it."""
    if branch["by_tensor"]:
        return True
    try:
        tree = ast.parse(change.old_text)
    except (SyntaxError, ValueError):
        return True
    statement = next(_statements(tree, branch["line"]), None)
    if statement is None:
        return not _is_asserted_still(tree, branch, change)
    taken = _whole_sides(statement.test, branch, branches, change)
    blocks = [statement.body] if True not in taken else []
    blocks += [statement.orelse] if False not in taken else []
    for block in blocks:
        for inner in block:
            end = inner.end_lineno or inner.lineno
            if any(line in change.removed for line in range(inner.lineno, end + 1)):
                return True
    return False


def _whole_sides(
    test: ast.expr, branch: dict[str, Any], branches: list[dict[str, Any]], change: ChangedFile
) -> set[bool]:
    """What the whole condition was."""
    if branch["column"] is None:
        return _written_sides(branch, change)
    return _outcomes(test, _seen_in(test, branch["file"], branches))


def _seen_in(
    test: ast.expr, file: str, branches: list[dict[str, Any]]
) -> dict[tuple[int, int], set[bool]]:
    """What each part of a condition was, by where it stands."""
    return {
        (each["line"], each["column"]): _leaf_sides(_leaf(test, each)[0], each)
        for each in branches
        if each["file"] == file and each["column"] is not None
    }


def _is_part_of_known(
    branch: dict[str, Any], branches: list[dict[str, Any]], change: ChangedFile
) -> bool:
    """A part of a condition that was true and false as a whole, where the patch joins the same
    parts by `|` or `&`: which of them made it so changes nothing."""
    try:
        old, new = ast.parse(change.old_text), ast.parse(change.new_text)
    except (SyntaxError, ValueError):
        return False
    statement = next(_statements(old, branch["line"]), None)
    if statement is None or branch["column"] is None:
        return False
    seen = _seen_in(statement.test, branch["file"], branches)
    joined = _joined_around(statement.test, (branch["line"], branch["column"]))
    if joined is None or _outcomes(statement.test, seen) != {True, False}:
        return False
    wanted = [ast.dump(part) for part in joined.values]
    operator = ast.BitOr if isinstance(joined.op, ast.Or) else ast.BitAnd
    return any(
        [ast.dump(part) for part in _operands(node, operator)] == wanted
        for node in ast.walk(new)
        if isinstance(node, ast.BinOp) and node.lineno in change.added
    )


def _joined_around(test: ast.expr, place: tuple[int, int]) -> ast.BoolOp | None:
    """The innermost `and` or `or` that has a part there."""
    found = None
    for node in ast.walk(test):
        if isinstance(node, ast.BoolOp) and any(_holds(part, place) for part in node.values):
            found = node  # Walked from the outside inwards.
    return found


def _holds(node: ast.expr, place: tuple[int, int]) -> bool:
    end = (node.end_lineno or node.lineno, node.end_col_offset or node.col_offset)
    return (node.lineno, node.col_offset) <= place < end


def _outcomes(test: ast.expr, seen: dict[tuple[int, int], set[bool]]) -> set[bool]:
    """What the condition was as a whole: its last part is asked only if those before it have not
    decided."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return {not side for side in _outcomes(test.operand, seen)}
    if not isinstance(test, ast.BoolOp):
        return {side for place, sides in seen.items() if _holds(test, place) for side in sides}
    decides = isinstance(test.op, ast.Or)
    parts = [_outcomes(part, seen) for part in test.values]
    whole = {decides} if any(decides in part for part in parts) else set()
    return whole | ({not decides} & parts[-1])


def _operands(node: ast.expr, operator: type[ast.operator]) -> list[ast.expr]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, operator):
        return [*_operands(node.left, operator), *_operands(node.right, operator)]
    return [node]


def _is_asked_in_graph(branch: dict[str, Any], sides: set[bool], change: ChangedFile) -> bool:
    """A check that only raises, and never did, whose place `torch._assert_async` of the opposite
    took: nothing but the two conditions could differ, and these can be read."""
    try:
        old, new = ast.parse(change.old_text), ast.parse(change.new_text)
    except (SyntaxError, ValueError):
        return False
    wanted = _held(old, branch, sides) if branch["by_tensor"] else None
    if wanted is None:
        return False
    asked = [
        ast.dump(node.args[0])
        for node in ast.walk(new)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "_assert_async"
        and len(node.args) == 2
        and node.lineno in change.added
    ]
    return ast.dump(wanted) in asked


def _held(old: ast.AST, branch: dict[str, Any], sides: set[bool]) -> ast.expr | None:
    """What was true whenever the check was come to: the opposite of what its `if` asks, or what its
    `assert` does."""
    statement = next(_statements(old, branch["line"]), None)
    if statement is None:
        asserts = (each for each in ast.walk(old) if isinstance(each, ast.Assert))
        test = next((each.test for each in asserts if each.test.lineno == branch["line"]), None)
        # Python asks `x` for `not x` here too.
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            return _opposite(test.operand) if sides == {False} else None
        return test if sides == {True} and not isinstance(test, ast.BoolOp) else None
    if not isinstance(statement, ast.If) or statement.orelse or sides != {False}:
        return None
    only_raises = [type(each) for each in statement.body] == [ast.Raise]
    return _opposite(statement.test) if only_raises else None


def _opposite(test: ast.expr) -> ast.expr | None:
    """What is true exactly where the test is false, also for NaN: `x` for `not x`, `~(a > b)` for
    `a > b`. Of other tests `~` is the opposite only if they are of booleans."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return test.operand
    return ast.UnaryOp(ast.Invert(), test) if _is_boolean(test) else None


def _is_boolean(node: ast.expr) -> bool:
    """Of tensors, is it a boolean one whatever they hold? `x > 1`, `torch.isnan(x).any()`"""
    if isinstance(node, ast.Compare):
        return len(node.ops) == 1 and isinstance(node.ops[0], _BY_ELEMENT)
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, ast.Invert) and _is_boolean(node.operand)
    if isinstance(node, ast.BinOp):
        joins = isinstance(node.op, (ast.BitAnd, ast.BitOr))
        return joins and _is_boolean(node.left) and _is_boolean(node.right)
    func = node.func if isinstance(node, ast.Call) else None
    if not isinstance(node, ast.Call) or not isinstance(func, ast.Attribute):
        return False
    if func.attr in _REDUCTIONS:  # Of bytes they give bytes, and `~1` is no zero.
        return any(map(_is_boolean, (func.value, *node.args[:1])))
    of_torch = isinstance(func.value, ast.Name) and func.value.id == "torch"
    return func.attr in _ASKING and (of_torch or not node.args)


def _is_asserted_still(tree: ast.AST, branch: dict[str, Any], change: ChangedFile) -> bool:
    """A part of an `assert` which the new text has as one of its own, with the same words."""
    new = ast.parse(change.new_text)
    kept = {
        (ast.dump(node.test), _message(node))
        for node in ast.walk(new)
        if isinstance(node, ast.Assert) and node.lineno in change.added
    }
    for node in ast.walk(tree):
        if not isinstance(node, ast.Assert) or branch["column"] is None:
            continue
        test = node.test
        is_all = isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And)
        for part in test.values if is_all else [test]:  # type: ignore[attr-defined]
            end = (part.end_lineno or part.lineno, part.end_col_offset or part.col_offset)
            if (part.lineno, part.col_offset) <= (branch["line"], branch["column"]) < end:
                return (ast.dump(part), _message(node)) in kept
    return False


def _message(node: ast.Assert) -> str:
    return ast.dump(node.msg) if node.msg is not None else ""


def _statements(tree: ast.AST, line: int) -> Iterator[ast.If | ast.While]:
    """The `if` or `while` whose condition lies in this line."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.If, ast.While)):
            end = node.test.end_lineno or node.test.lineno
            if node.lineno <= line <= end:
                yield node
