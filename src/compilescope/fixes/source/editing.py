"""Changes to one file: nodes replaced, lines put around them, imports added; all else stays.

edit = Edit(module)
edit.replace(call, edit.expression("torch.where(a, b, c)"))
edit.put_before(statement, "flag = x > 0")
torch = edit.module_name("torch")      # imports it if the file does not
patch = Patch(edit.files())
"""

from __future__ import annotations

import ast
import itertools
import textwrap
from collections.abc import Sequence

import libcst as cst

from compilescope.fixes.patch import NotMeant, Refused
from compilescope.fixes.source.bindings import bound_names
from compilescope.fixes.source.imports import (
    import_of,
    imported,
    place_for_import,
    place_for_setting,
)
from compilescope.fixes.source.module import SourceModule

Statements = Sequence[cst.BaseStatement]


class Edit:
    """Gathers changes, then writes the new text once."""

    def __init__(self, module: SourceModule) -> None:
        self.module = module
        self._replaced: dict[cst.CSTNode, cst.CSTNode] = {}
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
            self.replace(following, following.with_changes(leading_lines=_comments(following)))
        self.remove_statement(statement)

    def put_before(self, statement: cst.BaseStatement, new: str | Statements) -> None:
        made = self.statements(new) if isinstance(new, str) else list(new)
        self._before.setdefault(statement, []).extend(made)

    def put_after(self, statement: cst.BaseStatement, new: str | Statements) -> None:
        made = self.statements(new) if isinstance(new, str) else list(new)
        self._after.setdefault(statement, []).extend(made)

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
        rewriter = _Rewriter(self)
        tree = self.module.tree.visit(rewriter)
        assert isinstance(tree, cst.Module)
        if self._imports:
            tree = _with_imports(tree, list(self._imports.values()))
        text = tree.code
        try:
            compile(text, self.module.path, "exec", dont_inherit=True)
        except (SyntaxError, ValueError) as error:
            raise Refused(f"the change would not be valid Python: {error}") from None
        return text

    def files(self) -> dict[str, str]:
        """For a `Patch`. Raises `Refused` where nothing changes."""
        text = self.text()
        if text == self.module.text:
            raise NotMeant("the code is already like this")
        return {self.module.path: text}


class _Rewriter(cst.CSTTransformer):
    def __init__(self, edit: Edit) -> None:
        super().__init__()
        self._replaced = edit._replaced
        self._statements = edit._statements
        self._before = edit._before
        self._after = edit._after
        self._definitions = edit._definitions

    def on_leave(self, original_node, updated_node):  # type: ignore[no-untyped-def]
        updated = super().on_leave(original_node, updated_node)
        if original_node in self._replaced:
            return self._replaced[original_node]
        if isinstance(original_node, (cst.IndentedBlock, cst.Module)):
            assert isinstance(updated, cst.CSTNode)
            return self._block(original_node, updated)
        return updated

    def _block(self, original: cst.IndentedBlock | cst.Module, updated: cst.CSTNode) -> cst.CSTNode:
        new = list(getattr(updated, "body", ()))
        top = isinstance(original, cst.Module)
        changed = [
            self._defined(old, self._around(old, now), 2 if top else 1)
            for old, now in zip(original.body, new, strict=True)
        ]
        if all(len(each) == 1 and each[0] is now for each, now in zip(changed, new, strict=True)):
            return updated
        body = [statement for each in changed for statement in each]
        if not body and isinstance(updated, cst.IndentedBlock):
            body = [cst.SimpleStatementLine([cst.Pass()])]
        return updated.with_changes(body=body)

    def _around(self, old: cst.CSTNode, now: cst.CSTNode) -> list[cst.CSTNode]:
        middle: list[cst.CSTNode] = list(self._statements.get(old, [now]))
        before = list(self._before.get(old, ()))
        if before and middle:
            # The comments above a statement stay above what is put before it.
            first = middle[0]
            leading = getattr(first, "leading_lines", ())
            if leading:
                own = getattr(before[0], "leading_lines", ())
                before[0] = before[0].with_changes(leading_lines=[*leading, *own])
                middle[0] = first.with_changes(leading_lines=())
        return [*before, *middle, *self._after.get(old, ())]

    def _defined(self, old: cst.CSTNode, now: list[cst.CSTNode], blank: int) -> list[cst.CSTNode]:
        made = self._definitions.get(old)
        if not made:
            return now
        leading = list(getattr(now[0], "leading_lines", ())) if now else []
        above = list(itertools.takewhile(lambda line: line.comment is None, leading))
        gap = [cst.EmptyLine(indent=False)] * blank
        defined: list[cst.CSTNode] = [
            each.with_changes(leading_lines=[*(gap if number else above), *_comments(each)])
            for number, each in enumerate(made)
        ]
        rest = [now[0].with_changes(leading_lines=[*gap, *leading[len(above) :]])] if now else []
        return [*defined, *rest, *now[1:]]


def _comments(statement: cst.CSTNode) -> list[cst.EmptyLine]:
    """Those above it, without the blank lines."""
    lines = getattr(statement, "leading_lines", ())
    return list(itertools.dropwhile(lambda line: line.comment is None, lines))


def _with_imports(tree: cst.Module, lines: list[str]) -> cst.Module:
    """After the imports at the top; else after the docstring and `__future__`."""
    body = list(tree.body)
    for line in lines:
        place = place_for_import(body, line.removeprefix("import ").split(".")[0])
        # What stands above the first statement (a shebang, a licence) stays on top.
        body.insert(place, cst.parse_statement(line, config=tree.config_for_parsing))
    return tree.with_changes(body=body)


def head_end(text: str) -> int:
    """How many lines the docstring and the `__future__` imports of a file take."""
    last = 0
    for node in ast.parse(text).body:
        docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
        if not (docstring and last == 0) and not future:
            break
        last = node.end_lineno or node.lineno
    return last
