"""Changes to one file: nodes replaced, lines put around them, imports added; all else stays.

edit = Edit(module)
edit.replace(call, edit.expression("torch.where(a, b, c)"))
edit.put_before(statement, "flag = x > 0")
torch = edit.module_name("torch")      # imports it if the file does not
patch = Patch(edit.files())
"""

from __future__ import annotations

import sys
import textwrap
import warnings
from collections.abc import Mapping, Sequence
from typing import TypeAlias, TypeVar

from compilescope.knowledge.source.refusals import NotMeant, Refused
from compilescope.knowledge.source.syntax.bindings import bound_names
from compilescope.knowledge.source.syntax.comments import comments_above, comments_in
from compilescope.knowledge.source.syntax.module import (
    SourceModule,
    import_of,
    imported,
    is_of_python,
    place_for_import,
    place_for_setting,
)
from compilescope.knowledge.source.trees import cst

N = TypeVar("N", bound="cst.CSTNode")
Statements: TypeAlias = "Sequence[cst.BaseStatement]"


class Edit:
    """Gathers changes, then writes the new text once."""

    def __init__(self, module: SourceModule) -> None:
        self.module = module
        self._replaced: dict[cst.CSTNode, cst.CSTNode | cst.RemovalSentinel] = {}
        self._statements: dict[cst.CSTNode, list[cst.BaseStatement]] = {}
        self._before: dict[cst.CSTNode, list[cst.BaseStatement]] = {}
        self._after: dict[cst.CSTNode, list[cst.BaseStatement]] = {}
        self._definitions: dict[cst.CSTNode, list[cst.BaseStatement]] = {}
        self._imports: dict[str, str] = {}

    # New code, in the file's own manner

    def expression(self, text: str) -> cst.BaseExpression:
        return cst.parse_expression(text, config=self.module.tree.config_for_parsing)

    def statements(self, text: str) -> list[cst.BaseStatement]:
        """Dedented; any number of them."""
        text = textwrap.dedent(text).strip("\n") + "\n"
        parsed = cst.parse_module(text, config=self.module.tree.config_for_parsing)
        made: list[cst.BaseStatement] = list(parsed.body)
        if made and parsed.header:
            # Comments above the first statement belong to it here.
            made[0] = made[0].with_changes(leading_lines=parsed.header)
        return made

    # Changes

    def replace(self, node: cst.CSTNode, new: cst.CSTNode) -> None:
        """One expression, or any other node, by another one. What lies within `node` and has been
        changed too is lost: change the outermost only, or build on `changed`."""
        self._replaced[node] = new

    def remove(self, argument: cst.Arg) -> None:
        """One argument of a call; the comma before it is the caller's to change."""
        self._replaced[argument] = cst.RemovalSentinel.REMOVE

    def replace_statement(self, statement: cst.BaseStatement, new: str | Statements) -> None:
        """A statement by any number of others; its comments above stay."""
        made = self.statements(new) if isinstance(new, str) else list(new)
        leading = getattr(statement, "leading_lines", ())
        if made and leading:
            made[0] = made[0].with_changes(
                leading_lines=[*leading, *getattr(made[0], "leading_lines", ())]
            )
        self._statements[statement] = made

    def remove_statement(self, statement: cst.BaseStatement) -> None:
        """A block that it leaves empty gets `pass`."""
        self._statements[statement] = []

    def move_away(self, statement: cst.BaseStatement) -> None:
        """Like `remove_statement`; if it was the first of its block, the blank line after it goes
        too."""
        body = self.module.block_of(statement).body
        if len(body) > 1 and body[0] is statement:
            following = body[1]
            self.replace(following, following.with_changes(leading_lines=comments_above(following)))
        self.remove_statement(statement)

    def put_before(self, node: cst.CSTNode, new: str | Statements) -> None:
        """Lines before the statement that a node is or lies in. Of `a = 1; b = f(a)` that is one of
        the two: the line is split there."""
        made = self.statements(new) if isinstance(new, str) else list(new)
        self._before.setdefault(self.module.smallest_statement(node), []).extend(made)

    def put_after(self, node: cst.CSTNode, new: str | Statements) -> None:
        made = self.statements(new) if isinstance(new, str) else list(new)
        self._after.setdefault(self.module.smallest_statement(node), []).extend(made)

    def put_definition_before(self, statement: cst.BaseStatement, new: str | Statements) -> None:
        """A function or class of its own above another one: with blank lines between, and the
        comments above the other one stay with it."""
        made = self.statements(new) if isinstance(new, str) else list(new)
        self._definitions.setdefault(statement, []).extend(made)

    def module_name(self, dotted: str) -> str:
        """What to call a module (`torch`, `torch.nn.functional`) in this file; imported at the top
        if it is not yet there."""
        known = self.module.name_of_module(dotted)
        if known is not None:
            return known
        package = dotted.split(".")[0]
        if "." in dotted and self.module.name_of_module(package) == package:
            return dotted if package == "torch" else self._import(dotted)
        return self._import(dotted)

    def _import(self, dotted: str) -> str:
        head = dotted.split(".")[0]
        if not self._means_module(head) and head in bound_names(self.module.tree.body):
            raise Refused(f"the file uses the name {head} for something else")
        self._imports[dotted] = f"import {dotted}"
        return dotted

    def imported_name(self, module: str, name: str) -> str:
        """What to call a class or a function of a module in this file; imported at the top if it is
        not yet there."""
        known = self.module.name_of_module(f"{module}.{name}")
        if known is not None:
            return known
        if name in bound_names(self.module.tree.body):
            raise Refused(f"the file uses the name {name} for something else")
        self._imports[f"{module}.{name}"] = f"from {module} import {name}"
        return name

    def _means_module(self, name: str) -> bool:
        """Somewhere the file imports the module by that name, if only for its type checker."""
        parts = self.module.walk()
        return any((name, name) in imported(each) for each in parts)

    def put_setting(self, line: str, package: str, *, apart: bool = False) -> None:
        """A line that needs a module, after the imports that follow on the import of it, in
        whatever block that stands; with an import of its own where the file has none. `apart`: with
        a blank line above it."""
        made = self.statements(line)
        if apart:
            made[0] = made[0].with_changes(leading_lines=[cst.EmptyLine(indent=False)])
        known = import_of(self.module.tree, package)
        if known is not None:
            self.put_after(known.last_import(), made)
            return
        if package in sys.stdlib_module_names:  # It goes to the others of its group.
            self._imports[package] = f"import {package}"
        else:
            self._imports.pop(package, None)
            made = [*self.statements(f"import {package}"), *made]
        body = self.module.tree.body
        place = place_for_setting(body, package)
        if not body:
            raise Refused("the main file is empty")
        beside = body[place - 1] if place else body[0]
        assert isinstance(beside, cst.BaseStatement)
        put = self.put_after if place else self.put_before
        put(beside, made)

    # The result

    def text(self) -> str:
        tree = self.module.tree.visit(self._rewriter())
        assert isinstance(tree, cst.Module)
        if self._imports:
            tree = _with_imports(tree, self._imports)
        text = self._code(tree)
        try:
            with warnings.catch_warnings():
                # Python warns of what it sees in the text; its author has not written that.
                warnings.simplefilter("ignore")
                compile(text, self.module.path, "exec", dont_inherit=True)
        except (SyntaxError, ValueError) as error:
            raise Refused(f"the change would not be valid Python: {error}") from None
        return text

    def _rewriter(self) -> cst.CSTTransformer:
        from compilescope.knowledge.source.syntax.transformers import Rewriter

        around = (self._before, self._after, self._definitions)
        changed = [node for each in (self._replaced, self._statements, *around) for node in each]
        within = {outer for node in changed for outer in (node, *self.module.ancestors(node))}
        return Rewriter(within, self._replaced, self._statements, *around)

    def _code(self, tree: cst.Module) -> str:
        """As `tree.code`; what is the same in many changes is written out once."""
        if not tree.has_trailing_newline or not tree.body:
            return tree.code
        known = self.module.codes
        own = set(self.module.tree.body)
        parts = [tree.code_for_node(line) for line in tree.header]
        for statement in tree.body:
            if statement not in own:
                parts.append(tree.code_for_node(statement))
                continue
            if statement not in known:
                known[statement] = tree.code_for_node(statement)
            parts.append(known[statement])
        return "".join((*parts, *(tree.code_for_node(line) for line in tree.footer)))

    def files(self) -> dict[str, str]:
        """For a `Patch`. Raises `Refused` where nothing changes."""
        text = self.text()
        if text == self.module.text:
            raise NotMeant("the code is already like this")
        return {self.module.path: text}


def _with_imports(tree: cst.Module, imports: Mapping[str, str]) -> cst.Module:
    """After the imports at the top; else after the docstring and `__future__`."""
    body = list(tree.body)
    for dotted, line in imports.items():
        place = place_for_import(body, dotted.split(".")[0])
        made = cst.parse_statement(line, config=tree.config_for_parsing)
        after = body[place] if place < len(body) else None
        if isinstance(after, cst.SimpleStatementLine) and _begins_imports(
            made, body[:place], after
        ):
            # The first of Python's own library: the others are a group of their own.
            made = made.with_changes(leading_lines=after.leading_lines)
            body[place] = after.with_changes(leading_lines=[cst.EmptyLine(indent=False)])
        # What stands above the first statement (a shebang, a licence) stays on top.
        body.insert(place, made)
    return tree.with_changes(body=body)


def _begins_imports(
    made: cst.CSTNode, above: Sequence[cst.CSTNode], after: cst.SimpleStatementLine
) -> bool:
    if not _imports_of_python(made) or any(map(_imports_of_python, above)):
        return False
    first = after.body[0]
    return isinstance(first, (cst.Import, cst.ImportFrom)) and not is_of_python(first)


def _imports_of_python(line: cst.CSTNode) -> bool:
    if not isinstance(line, cst.SimpleStatementLine) or not line.body:
        return False
    first = line.body[0]
    package = first.module if isinstance(first, cst.ImportFrom) else None
    future = isinstance(package, cst.Name) and package.value == "__future__"
    return is_of_python(first) and not future


def replace_expression(edit: Edit, old: cst.BaseExpression, new: cst.BaseExpression) -> None:
    """One expression by another; comments within the old one go above its statement."""
    module = edit.module
    kept = {each.value for each in comments_in(module, new)}
    lost = [each for each in comments_in(module, old) if each.value not in kept]
    statement = module.statement_of(old)
    if not lost or not isinstance(statement, cst.SimpleStatementLine):
        edit.replace(old, new)
        return
    module.block_of(statement)
    made = statement.deep_replace(old, new)
    assert isinstance(made, cst.SimpleStatementLine)
    lines = [cst.EmptyLine(indent=True, comment=each) for each in lost]
    edit.replace_statement(statement, [made.with_changes(leading_lines=lines)])


def replaced(node: N, new: Mapping[cst.CSTNode, cst.BaseExpression]) -> N:
    """Parts are those of the tree itself; of two that lie in each other the outer one counts."""
    from compilescope.knowledge.source.syntax.transformers import Replacing

    made = node.visit(Replacing(new))
    assert isinstance(made, cst.CSTNode)
    return made
