"""Which names a function reads and sets, before and after a statement.

Cautious: a read that may come later counts as one, a name that may not be set counts as not set.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

from compilescope.knowledge.source.syntax.module import SourceModule
from compilescope.knowledge.source.trees import cst, kinds

_LOOPS = kinds(lambda: (cst.For, cst.While))
_INNER = kinds(lambda: (cst.FunctionDef, cst.Lambda, cst.ClassDef))


def targets(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """What a statement assigns to: names, attributes, subscripts; of tuples, their parts."""
    field = _target_fields().get(type(node))
    if field is None:
        return
    found = getattr(node, field)
    for each in [part.target for part in found] if field == "targets" else [found]:
        yield from _flat(each)


@cache
def _target_fields() -> dict[type[cst.CSTNode], str]:
    """Where each kind of node keeps them. Looked up by class: every node of a file comes here, and
    `isinstance` of libcst's abstract classes is slow."""
    one = (cst.AugAssign, cst.AnnAssign, cst.For, cst.CompFor, cst.NamedExpr, cst.Del)
    return {cst.Assign: "targets", cst.AsName: "name", **dict.fromkeys(one, "target")}


def _flat(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    if isinstance(node, (cst.Tuple, cst.List)):
        for element in node.elements:
            yield from _flat(element.value)
    else:
        yield node


def names_set(module: SourceModule, node: cst.CSTNode) -> list[str]:
    """Plain names that are assigned within, in order; not those of functions within."""
    found: dict[str, None] = {}
    for each in _own(module, node):
        for target in targets(each):
            if isinstance(target, cst.Name):
                found[target.value] = None
        if isinstance(each, (cst.FunctionDef, cst.ClassDef)):
            found[each.name.value] = None
    return list(found)


def names_read(module: SourceModule, node: cst.CSTNode) -> set[str]:
    """Plain names that are read within, also by functions within."""
    return {each.value for each in reads(module, node)}


def reads(module: SourceModule, node: cst.CSTNode) -> Iterator[cst.Name]:
    written = {
        id(target)
        for each in module.walk(node)
        if not isinstance(each, cst.AugAssign)
        for target in targets(each)
    }
    for each in module.walk(node):
        if isinstance(each, cst.Name) and id(each) not in written and module.names_in(each):
            yield each


def _own(module: SourceModule, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """A node and what lies within, without the bodies of functions and classes."""
    stack = [node]
    while stack:
        current = stack.pop()
        yield current
        if current is node or not isinstance(current, _INNER):
            stack.extend(module.reversed_children(current))


def is_read_later(
    module: SourceModule, function: cst.FunctionDef, statement: cst.CSTNode, name: str
) -> bool:
    """After the statement, or in the next turn of a loop around it, or by an inner function."""
    end = module.position(statement).end
    inside = {id(each) for each in module.walk(statement)}
    loop = module.around(statement, *_LOOPS)
    for each in reads(module, function.body):
        if each.value != name or id(each) in inside:
            continue
        start = module.position(each).start
        if (start.line, start.column) >= (end.line, end.column):
            return True
        if loop is not None and _is_within(module, each, loop):
            return True
        if module.function_of(each) is not function:
            return True
    return False


def is_needed_after(
    module: SourceModule, function: cst.FunctionDef, statement: cst.BaseStatement, name: str
) -> bool:
    """As `is_read_later`, but what other branches read does not count, nor what is set anew."""
    if any(
        each.value == name and module.function_of(each) is not function
        for each in reads(module, function.body)
    ):
        return True
    here: cst.CSTNode = statement
    while here is not function:
        if isinstance(here, _LOOPS) and is_read_later(module, function, statement, name):
            return True
        if isinstance(here, cst.BaseStatement) and isinstance(
            module.parent(here), (cst.IndentedBlock, cst.Module)
        ):
            for each in module.following(here):
                if name in names_read(module, each):
                    return True
                if _surely_sets(module, each, name):
                    return False
        above = module.parent(here)
        if above is None:
            return False
        here = above
    return False


def _is_within(module: SourceModule, node: cst.CSTNode, above: cst.CSTNode) -> bool:
    return any(each is above for each in module.ancestors(node))


def parameters(function: cst.FunctionDef) -> list[str]:
    every = function.params
    found = [p.name.value for p in (*every.posonly_params, *every.params, *every.kwonly_params)]
    for star in (every.star_arg, every.star_kwarg):
        if isinstance(star, cst.Param):
            found.append(star.name.value)
    return found


def is_set_before(
    module: SourceModule, function: cst.FunctionDef, statement: cst.CSTNode, name: str
) -> bool:
    """A parameter, or set on every way to the statement."""
    if name in parameters(function):
        return True
    current: cst.CSTNode = statement
    for above in module.ancestors(statement):
        if isinstance(above, cst.IndentedBlock):
            for each in above.body:
                if each is current:
                    break
                if _surely_sets(module, each, name):
                    return True
        elif name in _names_of_header(module, above):
            return True
        if above is function:
            return False
        current = above if isinstance(above, cst.BaseStatement) else current
    return False


def needs_value(module: SourceModule, block: Sequence[cst.CSTNode], name: str) -> bool:
    """A block that sets the name may read it before, or may leave it as it was."""
    for node in block:
        if name in names_read(module, node):
            return name in {each for other in block for each in names_set(module, other)}
        if isinstance(node, cst.BaseSmallStatement):
            if name in names_set(module, node):
                return False
        elif _surely_sets(module, node, name):
            return False
        elif name in names_set(module, node):
            return True
    return False


def _names_of_header(module: SourceModule, statement: cst.CSTNode) -> list[str]:
    """What `for x in ...:` and `with ... as x:` set before their body."""
    if isinstance(statement, cst.With):
        return [name for item in statement.items for name in names_set(module, item)]
    if isinstance(statement, cst.For):
        return [each.value for each in targets(statement) if isinstance(each, cst.Name)]
    return []


def next_statement(module: SourceModule, statement: cst.BaseStatement) -> cst.BaseStatement | None:
    """The one that runs when a statement has: after the last of a branch, that after the `if`.
    None at the end of a function, a loop, a `try` or a `with`."""
    while True:
        later = module.following(statement)
        if later:
            return later[0]
        block = module.parent(statement)
        above = module.parent(block) if isinstance(block, cst.IndentedBlock) else None
        while isinstance(above, cst.Else) or (
            isinstance(above, cst.If) and isinstance(module.parent(above), cst.If)
        ):
            above = module.parent(above)
        if not isinstance(above, cst.If):
            return None
        statement = above


def only_value(
    module: SourceModule, function: cst.FunctionDef, name: str
) -> cst.BaseExpression | None:
    """The expression that a local name is set to, where there is but one."""
    if name in parameters(function):
        return None
    found: list[cst.BaseExpression | None] = []
    for each in _own(module, function):
        if any(isinstance(t, cst.Name) and t.value == name for t in targets(each)):
            plain = isinstance(each, cst.Assign) and isinstance(each.targets[0].target, cst.Name)
            found.append(each.value if plain else None)  # type: ignore[attr-defined]
    return found[0] if len(found) == 1 else None


def value_before(module: SourceModule, node: cst.Name) -> cst.BaseExpression | None:
    """What a name was set to last, on the way that every run takes to where it is read; None where
    it depends, or where it came in with the call."""
    statement: cst.CSTNode = module.statement_of(node)
    while not isinstance(statement, (cst.FunctionDef, cst.For, cst.While)):
        block = module.parent(statement)
        if block is None:
            return None
        if isinstance(block, (cst.IndentedBlock, cst.Module)):
            before = list(block.body)[: _place(block.body, statement)]
            setting = [each for each in before if node.value in names_set(module, each)]
            if setting:
                return _plainly_set(setting[-1])
        statement = block
    return None


def _place(body: Sequence[cst.CSTNode], statement: cst.CSTNode) -> int:
    return next((at for at, each in enumerate(body) if each is statement), 0)


def _plainly_set(statement: cst.CSTNode) -> cst.BaseExpression | None:
    """The value of a statement that is nothing but `name = value`."""
    if not isinstance(statement, cst.SimpleStatementLine) or len(statement.body) != 1:
        return None
    part = statement.body[0]
    if not isinstance(part, cst.Assign) or len(part.targets) != 1:
        return None
    return part.value if isinstance(part.targets[0].target, cst.Name) else None


def _surely_sets(module: SourceModule, statement: cst.CSTNode, name: str) -> bool:
    if isinstance(statement, cst.SimpleStatementLine):
        if any(isinstance(part, cst.Del) for part in statement.body):
            return False
        return name in names_set(module, statement)
    if isinstance(statement, cst.With):
        return any(_surely_sets(module, each, name) for each in statement.body.body)
    if isinstance(statement, cst.If):
        both = [statement.body, statement.orelse]
        return all(
            block is not None
            and (
                _surely_sets(module, block, name)
                if isinstance(block, cst.If)
                else _block_sets(module, block, name)
            )
            for block in both
        )
    return isinstance(statement, (cst.FunctionDef, cst.ClassDef)) and statement.name.value == name


def _block_sets(module: SourceModule, block: cst.CSTNode, name: str) -> bool:
    body = block.body if isinstance(block, cst.Else) else block
    inside = getattr(body, "body", ())
    return any(_surely_sets(module, each, name) for each in inside) or _leaves(inside)


def _leaves(body: object) -> bool:
    """It ends with a `return` or a `raise`: what comes after is not reached from it."""
    last = body[-1] if body else None  # type: ignore[index]
    if not isinstance(last, cst.SimpleStatementLine) or not last.body:
        return False
    return isinstance(last.body[-1], (cst.Return, cst.Raise, cst.Continue, cst.Break))


def declared_elsewhere(module: SourceModule, function: cst.FunctionDef) -> set[str]:
    """Names that the function declares `global` or `nonlocal`."""
    found: set[str] = set()
    for each in _own(module, function):
        if isinstance(each, (cst.Global, cst.Nonlocal)):
            found |= {item.name.value for item in each.names}
    return found
