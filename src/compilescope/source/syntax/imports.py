"""Where a file imports a module, and where a line goes that needs it.

A program may set variables of the environment before it imports torch, or import it inside `try`,
`if` or under `if __name__ == "__main__"`. A line that needs torch goes right after that import,
and a new import of torch never goes above what stood before the first one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from compilescope.source.trees import cst, kinds

Bound = tuple[str, str]
"""(module, local name)."""
_TRIES = kinds(lambda: (cst.Try, cst.TryStar))


def imported(part: cst.CSTNode) -> Iterator[Bound]:
    """What one import binds."""
    if isinstance(part, cst.Import):
        for alias in part.names:
            dotted = dotted_name(alias.name)
            if alias.asname is not None:
                yield dotted, dotted_name(alias.asname.name)
            elif "." not in dotted:
                yield dotted, dotted
            else:
                yield dotted.split(".")[0], dotted.split(".")[0]
                yield dotted, dotted
    elif isinstance(part, cst.ImportFrom) and not isinstance(part.names, cst.ImportStar):
        if part.module is None or part.relative:
            return
        for alias in part.names:
            name = dotted_name(alias.name)
            local = dotted_name(alias.asname.name) if alias.asname is not None else name
            yield f"{dotted_name(part.module)}.{name}", local


def dotted_name(node: cst.CSTNode) -> str:
    if isinstance(node, cst.Attribute):
        return f"{dotted_name(node.value)}.{node.attr.value}"
    return node.value if isinstance(node, cst.Name) else ""


def is_import(statement: cst.CSTNode) -> bool:
    """A line that only imports."""
    return isinstance(statement, cst.SimpleStatementLine) and all(
        isinstance(part, (cst.Import, cst.ImportFrom)) for part in statement.body
    )


class Import:
    """Where the module itself, not one of its functions, imports something."""

    def __init__(self, name: str, line: cst.BaseStatement, block: Sequence[cst.CSTNode]) -> None:
        self.name = name
        """What the file calls it."""
        self.line = line
        """The statement after which the name is bound: the import, or the `try` around it."""
        self.block = block
        """The statements among which that one stands."""

    def last_import(self) -> cst.BaseStatement:
        """The last of the imports that follow directly."""
        found = self.line
        rest = iter(self.block)
        for each in rest:
            if each is self.line:
                break
        for each in rest:
            if not is_import(each):
                break
            assert isinstance(each, cst.BaseStatement)
            found = each
        return found


def import_of(tree: cst.Module, dotted: str) -> Import | None:
    """The first one, in the order in which the file runs; at the top level before all others."""
    found = [each for each in _imports(tree.body) if each[0] == dotted]
    found.sort(key=lambda each: each[1].block is not tree.body)
    return found[0][1] if found else None


def _imports(body: Sequence[cst.CSTNode]) -> Iterator[tuple[str, Import]]:
    for statement in body:
        if isinstance(statement, cst.SimpleStatementLine):
            for part in statement.body:
                for module, name in imported(part):
                    yield module, Import(name, statement, body)
        elif isinstance(statement, _TRIES):
            for module, found in _imports(statement.body.body):
                yield module, Import(found.name, statement, body)
        elif isinstance(statement, (cst.With, cst.If)) and not _is_for_types(statement):
            everywhere = _on_every_side(statement)
            for module, found in _imports(statement.body.body):
                if (module, found.name) in everywhere:
                    found = Import(found.name, statement, body)
                yield module, found


def _on_every_side(block: cst.With | cst.If) -> set[Bound]:
    """What is imported whichever side of an `if` runs."""
    if isinstance(block, cst.With) or block.orelse is None:
        return set()
    here = {(module, found.name) for module, found in _imports(block.body.body)}
    if isinstance(block.orelse, cst.If):
        other = {(module, found.name) for module, found in _imports([block.orelse])}
        return here & other if _ends_with_else(block.orelse) else set()
    return here & {(module, found.name) for module, found in _imports(block.orelse.body.body)}


def _ends_with_else(block: cst.If) -> bool:
    while isinstance(block.orelse, cst.If):
        block = block.orelse
    return block.orelse is not None


def _is_for_types(block: cst.With | cst.If) -> bool:
    """`if TYPE_CHECKING:`, which never runs."""
    if isinstance(block, cst.With):
        return False
    return dotted_name(block.test).split(".")[-1] == "TYPE_CHECKING"


def place_for_import(body: Sequence[cst.CSTNode], package: str) -> int:
    """How many statements of a file stay above a new import: after the first from the same
    package, wherever that is, else after the last one before any definition or block."""
    for number, statement in enumerate(body):
        if isinstance(statement, cst.SimpleStatementLine) and any(
            _package(part) == package for part in statement.body
        ):
            return number + 1
    last = 0
    for number, statement in enumerate(body):
        if not isinstance(statement, cst.SimpleStatementLine):
            break
        first = statement.body[0] if statement.body else None
        if isinstance(first, (cst.Import, cst.ImportFrom)):
            last = number + 1
        elif number == 0 and _is_text(first):
            last = 1
    return last


def place_for_setting(body: Sequence[cst.CSTNode], package: str) -> int:
    """Likewise for a line that needs the new import: below the imports that follow, and below
    what prepares them, such as `os.environ["X"] = "1"`."""
    place = place_for_import(body, package)
    for number, statement in enumerate(body[place:], place):
        if not is_import(statement) and not _prepares(statement):
            break
        place = number + 1
    return place


def _prepares(statement: cst.CSTNode) -> bool:
    """It sets something of Python's own: a variable of the environment, the path, a filter."""
    if isinstance(statement, cst.If) and statement.orelse is None:
        return all(map(_prepares, statement.body.body))
    if not isinstance(statement, cst.SimpleStatementLine) or len(statement.body) != 1:
        return False
    part = statement.body[0]
    node: cst.CSTNode | None = None
    if isinstance(part, cst.Expr) and isinstance(part.value, cst.Call):
        node = part.value.func
    elif isinstance(part, cst.Assign):
        node = part.targets[0].target
    while isinstance(node, (cst.Attribute, cst.Subscript)):
        node = node.value
    return isinstance(node, cst.Name) and node.value in ("os", "sys", "warnings", "logging")


def _package(part: cst.CSTNode) -> str:
    if isinstance(part, cst.ImportFrom):
        return dotted_name(part.module).split(".")[0] if part.module and not part.relative else ""
    return next((module.split(".")[0] for module, _ in imported(part)), "")


def _is_text(part: cst.CSTNode | None) -> bool:
    return isinstance(part, cst.Expr) and isinstance(
        part.value, (cst.SimpleString, cst.ConcatenatedString)
    )
