"""The two functions that one becomes: its core, and a shell with all the rest that calls it, values
made before the core included.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from compilescope.change.fixes.compilation.frames import grad_modes, own_statement
from compilescope.change.fixes.patch import Patch
from compilescope.change.fixes.statements.marks import (
    bare,
    compiling,
    leaving,
    name_of_part,
    under,
    without_decorators,
)
from compilescope.change.fixes.subject import Subject
from compilescope.change.fixes.values.constants import check_early
from compilescope.change.fixes.values.extraction import read_from
from compilescope.knowledge.source.flow.cuts import (
    Split,
    check_splittable,
    is_backward,
    is_light,
    is_return,
    split_around,
)
from compilescope.knowledge.source.flow.purity import first, operator_of
from compilescope.knowledge.source.refusals import NotMeant, Refused
from compilescope.knowledge.source.syntax.bindings import (
    bound_names,
    declared_names,
    local_names,
    parameters_of,
    statements_of,
)
from compilescope.knowledge.source.syntax.edit import Edit, replaced
from compilescope.knowledge.source.syntax.snippets import number
from compilescope.knowledge.source.syntax.toplevel import top_statement
from compilescope.knowledge.source.trees import cst

Statements: TypeAlias = "Sequence[cst.BaseStatement]"


@dataclass
class Shell:
    """Writes the two functions that one becomes."""

    edit: Edit
    function: cst.FunctionDef
    split: Split
    checks: Collection[cst.BaseStatement] = ()
    """Statements that raise or do nothing: what is returned after them may be computed before."""

    def write(self, *, early: bool = True) -> None:
        """The function stays, left alone by Dynamo; its core is compiled by itself, and `early`
        computes what is returned at the end as well."""
        moved = compiling(self.edit.module, self.function)
        skip = None if moved else leaving(self.edit, self.function)
        self._write(skip, moved, "", early=early)

    def write_part(self, decorator: str) -> None:
        """The function stays compiled; its core is a function with this decorator."""
        self._write(None, [], decorator, early=False)

    def _write(
        self, skip: cst.Decorator | None, moved: list[cst.Decorator], mark: str, *, early: bool
    ) -> None:
        """`moved`: what compiles the function, and compiles its core from now on."""
        module, split = self.edit.module, self.split
        check_splittable(module, self.function, split)
        # A piece reads nothing of its object.
        method = self._is_method and not mark
        given = self._given(method)
        after, core, returned = self._ends(early=early)
        name = module.fresh_name(name_of_part(self.edit.module, self.function, core))
        callee = f"{parameters_of(self.function)[0]}.{name}" if method else name
        call = f"{callee}({', '.join(given[1:] if method else given)})"
        if returned is None:
            line = f"return {call}"
        elif returned:
            line = f"{', '.join(returned)} = {call}"
        else:
            line = call
        lifted = [f"{key} = {self._made_first(key)}" for key in split.lifted]
        made = [line for text in (*lifted, line) for line in self.edit.statements(text)]
        inner: list[cst.BaseStatement] = [*split.before, *made, *after]
        if split.around is not None:
            block = cst.ensure_type(split.around.body, cst.IndentedBlock)
            inner = [split.around.with_changes(body=block.with_changes(body=inner))]
        inner = [*split.outer_before, *inner, *split.outer_after]
        self._put_core(name, given, core, mark, moved)
        self._put_shell(inner, skip, moved)

    def _made_first(self, name: str) -> str:
        """The code of what is computed before the core."""
        if name in self.split.texts:
            return self.split.texts[name]
        module, value = self.edit.module, self.split.lifted[name]
        code = module.code(value.with_changes(lpar=(), rpar=()))
        is_bool = isinstance(value, cst.UnaryOperation) and isinstance(value.operator, cst.Not)
        is_bool = is_bool or module.calls(value, "builtins.bool")
        return f"bool({code})" if name in self.split.truths and not is_bool else code

    def _put_core(
        self,
        name: str,
        given: list[str],
        core: Statements,
        mark: str,
        moved: list[cst.Decorator],
    ) -> None:
        function, edit = self.function, self.edit
        block = cst.ensure_type(function.body, cst.IndentedBlock)
        text = f"def {name}({', '.join(given)}):\n    pass\n"
        made = cst.ensure_type(
            edit.statements(f"@{mark}\n{text}" if mark else text)[0], cst.FunctionDef
        )
        made = made.with_changes(decorators=[*bare(moved), *made.decorators])
        body = [self._lifted_out(each) for each in core]
        body[0] = body[0].with_changes(leading_lines=_without_blank(body[0]))
        made = made.with_changes(
            body=block.with_changes(body=body, header=cst.TrailingWhitespace())
        )
        place = top_statement(edit.module, function) if mark else function
        edit.put_definition_before(place, [made])

    def _put_shell(
        self, inner: Statements, skip: cst.Decorator | None, moved: list[cst.Decorator]
    ) -> None:
        function, edit = self.function, self.edit
        block = cst.ensure_type(function.body, cst.IndentedBlock)
        modes = grad_modes(edit.module, function) if skip else []
        for mode in reversed(modes):
            inner = under(edit, mode, inner)
        shell = function.with_changes(body=block.with_changes(body=list(inner)))
        kept = [each for each in function.decorators if each not in modes and each not in moved]
        if skip is not None:
            kept.append(skip)
            if not function.decorators:
                # The comments above stay above the decorator.
                shell = shell.with_changes(lines_after_decorators=())
        shell = without_decorators(shell, kept)
        edit.replace(function, shell)

    def _lifted_out(self, statement: cst.BaseStatement) -> cst.BaseStatement:
        lifted = self.split.lifted.items()
        return replaced(statement, {value: cst.Name(key) for key, value in lifted})

    @property
    def _is_method(self) -> bool:
        return self.edit.module.class_of(self.function) is not None

    def _given(self, method: bool) -> list[str]:
        """What the core reads of the function's variables, parameters first."""
        split = self.split
        before = bound_names([*split.outer_before, *split.before]) | set(split.lifted)
        if split.around is not None:
            before |= bound_names(split.around.items)
        read = self._read_in_core() | set(split.lifted)
        known = parameters_of(self.function)
        free = read & (set(known) | before) & (local_names(self.function) | set(split.lifted))
        given = [each for each in known if each in free]
        given += sorted(free - set(known))
        if method and (not given or given[0] != known[0]):
            given.insert(0, known[0])
        return given

    def _read_in_core(self) -> set[str]:
        """Plain names, but for those in what is computed before."""
        module = self.edit.module
        lifted = {id(node) for value in self.split.lifted.values() for node in module.walk(value)}
        nodes = [node for each in self.split.core for node in module.walk(each)]
        names = [node for node in nodes if isinstance(node, cst.Name) and id(node) not in lifted]
        return {name for each in names for name in module.names_in(each)}

    def _ends(
        self, *, early: bool
    ) -> tuple[list[cst.BaseStatement], list[cst.BaseStatement], list[str] | None]:
        """What follows the core, the core with its own return, and the names that it returns;
        None where it ends the function."""
        module, split = self.edit.module, self.split
        after = [*split.after]
        core = [*split.core]
        if is_return(core[-1]) and not after and not split.outer_after:
            return after, core, None
        last = after[-1] if after else None
        if early and last is not None and is_return(last) and not is_light(module, last):
            after[-1] = self._returned_early(core, last)
        later = [*after, *split.outer_after]
        read = {name for each in later for name in module.names_in(each)}
        returned = sorted((bound_names(core) & read) - declared_names(self.function))
        if returned:
            core += self.edit.statements(f"return {', '.join(returned)}")
        return after, core, returned

    def _returned_early(
        self, core: list[cst.BaseStatement], last: cst.BaseStatement
    ) -> cst.BaseStatement:
        """The value that is returned at the end, computed in the core already."""
        line = cst.ensure_type(last, cst.SimpleStatementLine)
        value = cst.ensure_type(line.body[-1], cst.Return).value
        module = self.edit.module
        if len(line.body) != 1 or value is None:
            raise Refused("the function computes something both before and after it")
        names = module.names_in(value)
        attributes = {e.attr.value for e in module.walk(value) if isinstance(e, cst.Attribute)}
        later = [each for each in self.split.after[:-1] if not is_backward(module, each)]
        done = [each for each in later if each not in self.checks]
        if len(done) < len(later) and (
            found := first(module, [value], "effect", "unknown", "random", "raises")
        ):
            raise Refused(found.words.replace("the branch", "what is returned"))
        touched = {name for each in done for name in module.names_in(each)}
        if not names <= bound_names(core) or "grad" in attributes or names & touched:
            raise Refused("what is returned may depend on what runs before it")
        name = module.fresh_name("result")
        core += self.edit.statements(f"{name} = {module.code(value)}")
        made = self.edit.statements(f"return {name}")[0]
        return made.with_changes(leading_lines=line.leading_lines)


def _without_blank(statement: cst.BaseStatement) -> list[cst.EmptyLine]:
    lines = getattr(statement, "leading_lines", ())
    return [line for line in lines if line.comment is not None]


DRAWS = ("random.random", "numpy.random.rand", "numpy.random.random")
"""Without arguments, each gives one Python number."""


def passed_as_arguments(
    subject: Subject,
    values: Mapping[str, cst.BaseExpression],
    outside: Sequence[cst.BaseStatement] = (),
    steps: Sequence[cst.BaseStatement] = (),
) -> Patch:
    """The function stays, and makes these values, by the names that they get; all else becomes a
    core that is compiled alone. `steps`: statements that the values need. Raises `Refused` where
    one cannot be made as early as that."""
    module, function = subject.module, subject.function
    body = statements_of(function)
    moved: list[cst.BaseStatement] = list(steps)
    lifted: dict[str, cst.BaseExpression] = {}
    statements: list[cst.BaseStatement] = []
    for name, value in values.items():
        statement = own_statement(subject, value)
        if statement is None:
            raise NotMeant("the line is not a statement in the function's own body")
        before = [each for each in body[: body.index(statement)] if each not in steps]
        check_early(subject, value, before)
        statements.append(statement)
        if _is_all_of(subject, statement, value):
            moved.append(statement)
        else:
            lifted[name] = value
    split = split_around(module, [each for each in body if each not in moved], outside)
    if any(each in split.after or each in split.before for each in statements):
        raise NotMeant("the value is not part of the compiled work")
    edit = Edit(module)
    before = [*split.before, *sorted(moved, key=body.index)]
    tests = (
        key
        for key, value in lifted.items()
        if is_test(subject, value) and not _is_python_bool(subject, value)
    )
    whole = Split(
        before,
        split.core,
        split.after,
        None,
        split.outer_before,
        lifted=lifted,
        truths=frozenset(tests),
    )
    Shell(edit, function, whole).write()
    return Patch(edit.files())


def is_test(subject: Subject, value: cst.CSTNode) -> bool:
    """Is it all of the condition of an `if`, or of a conditional expression?"""
    above = subject.module.parent(value)
    return isinstance(above, (cst.If, cst.IfExp)) and above.test is value


def _is_python_bool(subject: Subject, value: cst.BaseExpression) -> bool:
    """`torch.allclose(a, b)`, `not t`, `t.item() > 1`: what Python has read already."""
    module = subject.module
    if isinstance(value, cst.UnaryOperation):
        return isinstance(value.operator, cst.Not)
    if isinstance(value, cst.BooleanOperation):
        return _is_python_bool(subject, value.left) and _is_python_bool(subject, value.right)
    if isinstance(value, cst.Comparison):
        sides = [value.left, *(each.comparator for each in value.comparisons)]
        return all(
            number(side) is not None
            or (isinstance(side, cst.Call) and read_from(module, side))
            or module.calls(side, *DRAWS)
            for side in sides
        )
    if not isinstance(value, cst.Call):
        return False
    asked = operator_of(module, value) in ("allclose", "equal")
    return asked or module.calls(value, "builtins.bool")


def _is_all_of(subject: Subject, statement: cst.BaseStatement, value: cst.BaseExpression) -> bool:
    """`name = value`, and the name is bound nowhere else: the statement moves as it is."""
    if not isinstance(statement, cst.SimpleStatementLine) or len(statement.body) != 1:
        return False
    only = statement.body[0]
    if not isinstance(only, cst.Assign) or only.value is not value or len(only.targets) != 1:
        return False
    rest = [each for each in subject.function.body.body if each is not statement]
    names = bound_names([statement])
    return isinstance(only.targets[0].target, cst.Name) and not names & (
        bound_names(rest) | set(parameters_of(subject.function))
    )
