"""The parts that a function falls into when some of its lines must stay outside of any graph: each
becomes a function of its own, which is compiled, and the function that calls them is left alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from compilescope.change.fixes.compilation.frames import grad_modes
from compilescope.change.fixes.statements.marks import (
    bare,
    compiling,
    marked,
    name_of_part,
    under,
    without_decorators,
)
from compilescope.knowledge.source.flow.cuts import is_docstring, is_light, is_return
from compilescope.knowledge.source.refusals import NotMeant, Refused
from compilescope.knowledge.source.syntax.bindings import (
    bound_names,
    declared_names,
    local_names,
    parameters_of,
    receiver_of,
    statements_of,
)
from compilescope.knowledge.source.syntax.edit import Edit
from compilescope.knowledge.source.syntax.module import SourceModule
from compilescope.knowledge.source.trees import cst, kinds

Statements: TypeAlias = "Sequence[cst.BaseStatement]"
_INWARD = kinds(lambda: (cst.If, cst.For, cst.While, cst.With, cst.Else))
_WAITS = kinds(lambda: (cst.Yield, cst.Await))
_NEVER = kinds(
    lambda: (cst.Yield, cst.Await, cst.Global, cst.Nonlocal, cst.Del, cst.Break, cst.Continue)
)
_LATE = kinds(lambda: (cst.FunctionDef, cst.Lambda, cst.GeneratorExp, cst.ClassDef))
"""What may read a variable after it was made."""
_KEEPERS = frozenset({"append", "extend", "add", "update", "insert", "pop", "clear", "setdefault"})
"""Methods that change a container: in a graph each of its lengths would be another case."""
_OUTSIDE = tuple(
    f"torch.nn.utils.rnn.{name}"
    for name in ("pack_padded_sequence", "pad_packed_sequence", "pack_sequence", "unpack_sequence")
)
"""What makes or takes packed sequences, which no graph can hold."""


@dataclass
class _Names:
    """Names that are bound when the program comes by, and those that may be."""

    surely: set[str]
    maybe: set[str] = field(default_factory=set)

    def copy(self) -> _Names:
        return _Names(set(self.surely), set(self.maybe))

    def pass_by(self, statements: Statements) -> None:
        for each in statements:
            self.maybe |= bound_names([each])
            self.surely |= _surely_bound([each])
            self.surely -= _deleted(each)


@dataclass
class FunctionParts:
    """Writes a function anew: what is on `lines` stays in it, all else goes into parts."""

    edit: Edit
    function: cst.FunctionDef
    lines: Collection[int]
    aside: bool = False
    """What is on these lines calls what would break by itself: it goes into a function too, one
    that is not compiled."""
    made: list[cst.BaseStatement] = field(default_factory=list)
    """The new functions."""
    _names: set[str] = field(default_factory=set)
    _moved: list[cst.Decorator] = field(default_factory=list)

    def write(
        self, mark: cst.Decorator | None = None, handed: Sequence[cst.Decorator] = ()
    ) -> None:
        """`mark`: with it Dynamo leaves the function alone; without one, what compiles it, or
        `handed`, is its parts' from now on. Raises `NotMeant` where there is nothing to compile
        beside the lines."""
        own = [] if mark else compiling(self._module, self.function)
        self._moved = [*handed, *own]
        body = statements_of(self.function)
        if any(isinstance(each, _WAITS) for each in self._module.walk(self.function)):
            raise Refused("the function is a generator or async")
        decorators = {self._module.code(each.decorator) for each in self.function.decorators}
        if decorators & {"staticmethod", "classmethod"}:
            raise Refused("it is a method of the class, not of an object")
        start = 1 if body and is_docstring(body[0]) else 0
        new = [*body[:start], *self._block(body[start:], _Names(set(parameters_of(self.function))))]
        if not self.made:
            raise NotMeant("the function computes nothing else")
        modes = grad_modes(self._module, self.function) if mark else []
        for mode in reversed(modes):
            new = under(self.edit, mode, new)
        block = cst.ensure_type(self.function.body, cst.IndentedBlock)
        shell = self.function.with_changes(body=block.with_changes(body=new))
        gone = [*own, *modes]
        kept = [each for each in self.function.decorators if each not in gone]
        shell = without_decorators(shell, kept) if gone else shell
        shell = marked(shell, mark) if mark else shell
        self.edit.put_definition_before(self.function, self.made)
        self.edit.replace(self.function, shell)

    @property
    def _module(self) -> SourceModule:
        return self.edit.module

    def _block(self, body: Statements, names: _Names) -> list[cst.BaseStatement]:
        found: list[cst.BaseStatement] = []
        run: list[cst.BaseStatement] = []
        for statement in body:
            if self._can_move(statement):
                run.append(statement)
                continue
            found += self._part(run, names)
            run = []
            if self.aside and self._is_lost(statement) and self._is_plain(statement):
                found += self._put_aside(statement, names)
            else:
                found.append(self._inward(statement, names.copy()))
            names.pass_by([statement])
        return [*found, *self._part(run, names)]

    def _can_move(self, statement: cst.BaseStatement) -> bool:
        """Is it free of those lines, and of what only its own function can do?"""
        module = self._module
        if self._is_lost(statement):
            return False
        if any(module.calls(node, *_OUTSIDE) for node in module.walk(statement)):
            return False
        return self._is_free(statement) and not _keeps_count(statement)

    def _is_lost(self, statement: cst.BaseStatement) -> bool:
        place = self._module.position(statement)
        return any(place.start.line <= line <= place.end.line for line in self.lines)

    def _is_plain(self, statement: cst.BaseStatement) -> bool:
        return isinstance(statement, cst.SimpleStatementLine) and self._is_free(statement)

    def _is_free(self, statement: cst.BaseStatement) -> bool:
        module = self._module
        for node in module.walk(statement):
            if isinstance(node, _NEVER):
                return False
            if isinstance(node, cst.Return) and not is_return(statement):
                return False
        return not bound_names([statement]) & declared_names(self.function)

    def _put_aside(self, statement: cst.BaseStatement, names: _Names) -> list[cst.BaseStatement]:
        given, returned = self._given([statement], names), self._returned([statement])
        if given is None:
            return [statement]
        mark = f"{self.edit.module_name('torch')}.compiler.disable"
        return self._call([statement], given, _in_order([statement], returned), mark)

    def _inward(self, statement: cst.BaseStatement, names: _Names) -> cst.BaseStatement:
        """What can move of a compound statement that stays."""
        if not isinstance(statement, _INWARD) or not isinstance(statement.body, cst.IndentedBlock):
            return statement
        other = names.copy()
        if isinstance(statement, (cst.For, cst.While)):
            names.maybe |= bound_names([statement])  # What a turn binds, the next one may read.
        if isinstance(statement, cst.For):
            names.surely |= _targets_of(statement)
        elif isinstance(statement, cst.With):
            names.surely |= bound_names(statement.items)
        elif isinstance(statement, (cst.If, cst.While)):
            names.maybe |= bound_names([statement.test])
        body = self._block(statement.body.body, names)
        changed = statement.with_changes(body=statement.body.with_changes(body=body))
        orelse = getattr(statement, "orelse", None)
        if orelse is not None:
            other.maybe |= bound_names([statement])
            changed = changed.with_changes(orelse=self._inward(orelse, other))
        return changed

    def _part(self, run: Statements, names: _Names) -> list[cst.BaseStatement]:
        """A call of a new function in place of statements; those that are no work stay."""
        run = list(run)
        start, end = 0, len(run)
        while start < end and is_light(self._module, run[start]):
            start += 1
        while start < end and is_light(self._module, run[end - 1]):
            end -= 1
        core = run[start:end]
        names.pass_by(run[:start])
        given, returned = self._given(core, names), self._returned(core)
        unsure = returned - _surely_bound(core)
        # What may not be bound can neither be handed over nor back.
        fits = given is not None and unsure <= names.surely and not self._is_shared(core)
        if core and given is not None and fits and self._is_work(core):
            given = [*given, *sorted(unsure - set(given))]
            made = self._call(core, given, _in_order(core, returned))
        else:
            made = core
        names.pass_by(run[start:])
        return [*run[:start], *made, *run[end:]]

    def _is_shared(self, core: Statements) -> bool:
        """Does a function within see a variable change that is bound on the other side?"""
        module = self._module
        inside = {id(node) for each in core for node in module.walk(each)}
        own: set[str] = set()
        others: set[str] = set()
        elsewhere: set[str] = set()
        for node in module.walk(self.function.body):
            if isinstance(node, _LATE):
                (own if id(node) in inside else others).update(module.names_in(node))
            elif isinstance(node, cst.Name) and id(node) not in inside:
                elsewhere.add(node.value)
        changed = bound_names([self.function.body]) & elsewhere
        return bool(bound_names(core) & others or changed & own)

    def _is_work(self, core: Statements) -> bool:
        """A call of something that the object or a parameter holds, which may do anything, or
        several operations: one alone is no graph."""
        module = self._module
        given = set(parameters_of(self.function))
        operations = 0
        for node in (each for statement in core for each in module.walk(statement)):
            if isinstance(node, (cst.BinaryOperation, cst.Call)):
                operations += 1
            if isinstance(node, cst.Call) and _root(node.func) in given:
                return True
        return operations > 1 and not all(is_light(module, each) for each in core)

    def _given(self, core: Statements, names: _Names) -> list[str] | None:
        """Names that it reads of the function's, parameters first; None where one of them may not
        be bound yet."""
        bound: set[str] = set()
        read: set[str] = set()
        for statement in core:
            read |= _read(self._module, statement) - bound
            bound |= _surely_bound([statement])
        own = read & local_names(self.function) & (names.surely | names.maybe)
        own.discard(receiver_of(self._module, self.function))
        if not own <= names.surely:
            return None
        order = parameters_of(self.function)
        return [*(each for each in order if each in own), *sorted(own - set(order))]

    def _returned(self, core: Statements) -> set[str]:
        """Names that it binds and something else reads."""
        module = self._module
        inside = {id(node) for each in core for node in module.walk(each)}
        nodes = (each for each in module.walk(self.function) if isinstance(each, cst.Name))
        elsewhere = {each.value for each in nodes if id(each) not in inside}
        return bound_names(core) & elsewhere

    def _call(
        self, core: Statements, given: list[str], returned: list[str], mark: str = ""
    ) -> list[cst.BaseStatement]:
        module, edit = self._module, self.edit
        receiver = receiver_of(module, self.function)
        body = list(core)
        body[0] = body[0].with_changes(leading_lines=_comments(body[0]))
        if returned and not is_return(core[-1]):
            value = _value_of(body[-1], returned)
            shown = ", ".join(returned) if value is None else module.code(value)
            last = edit.statements(f"return {shown}")
            if value is not None:
                last[0] = last[0].with_changes(leading_lines=_comments(body.pop()))
            body += last
        name = self._fresh_name(name_of_part(module, self.function, body, returned))
        call = f"{receiver}.{name}" if receiver else name
        line = f"{call}({', '.join(given)})"
        if is_return(core[-1]):
            line = f"return {line}"
        elif returned:
            line = f"{', '.join(returned)} = {line}"
        parameters = [receiver, *given] if receiver else given
        head = f"def {name}({', '.join(parameters)}):\n    pass\n"
        text = f"@{mark}\n{head}" if mark else head
        made = cst.ensure_type(edit.statements(text)[0], cst.FunctionDef)
        if not mark:
            made = made.with_changes(decorators=[*bare(self._moved), *made.decorators])
        block = cst.ensure_type(self.function.body, cst.IndentedBlock)
        block = block.with_changes(body=body, header=cst.TrailingWhitespace())
        self.made.append(made.with_changes(body=block))
        return edit.statements(line)

    def _fresh_name(self, wanted: str) -> str:
        name, number = self._module.fresh_name(wanted), 2
        while name in self._names:
            name, number = self._module.fresh_name(f"{wanted}_{number}"), number + 1
        self._names.add(name)
        return name


def _targets_of(loop: cst.For) -> set[str]:
    return bound_names([loop.with_changes(body=cst.IndentedBlock([]), orelse=None)])


def _deleted(statement: cst.BaseStatement) -> set[str]:
    found: set[str] = set()
    nodes: list[cst.CSTNode] = [statement]
    while nodes:
        node = nodes.pop()
        if isinstance(node, cst.Del):
            found |= bound_names([node])
        nodes.extend(node.children)
    return found


def _in_order(core: Statements, names: Collection[str]) -> list[str]:
    """As they are bound, first ones first."""
    found: list[str] = []
    for statement in core:
        found += sorted(bound_names([statement]) & set(names) - set(found))
    return found


def _value_of(statement: cst.BaseStatement, names: Sequence[str]) -> cst.BaseExpression | None:
    """Of `y = f(x)`, where `y` is all that is returned."""
    if not isinstance(statement, cst.SimpleStatementLine) or len(statement.body) != 1:
        return None
    only = statement.body[0]
    if not isinstance(only, cst.Assign) or len(only.targets) != 1:
        return None
    target = only.targets[0].target
    same = isinstance(target, cst.Name) and [target.value] == list(names)
    return only.value if same else None


def _root(node: cst.BaseExpression) -> str:
    while isinstance(node, (cst.Attribute, cst.Subscript)):
        node = node.value
    return node.value if isinstance(node, cst.Name) else ""


def _surely_bound(statements: Statements) -> set[str]:
    """What running them binds, whatever branch is taken."""
    found: set[str] = set()
    for each in statements:
        if isinstance(each, cst.SimpleStatementLine):
            found |= bound_names([each])
        elif isinstance(each, cst.With):
            found |= bound_names(each.items) | _surely_bound(_lines_of(each.body))
        elif isinstance(each, (cst.FunctionDef, cst.ClassDef)):
            found.add(each.name.value)
        elif isinstance(each, cst.If) and isinstance(each.orelse, cst.Else):
            sides = [_surely_bound(_lines_of(part.body)) for part in (each, each.orelse)]
            found |= sides[0] & sides[1]
    return found


def _lines_of(block: cst.BaseSuite) -> Statements:
    return block.body if isinstance(block, cst.IndentedBlock) else ()


def _read(module: SourceModule, statement: cst.BaseStatement) -> set[str]:
    """Names that it reads, or may: of a plain assignment not those that it gives a value."""
    if isinstance(statement, cst.SimpleStatementLine) and len(statement.body) == 1:
        only = statement.body[0]
        if isinstance(only, cst.Assign):
            parts: list[cst.CSTNode] = [only.value]
            parts += [each.target for each in only.targets if not isinstance(each.target, cst.Name)]
            names = {name for part in parts for name in module.names_in(part)}
            plain = all(_is_plain_target(each.target) for each in only.targets)
            return module.names_in(only.value) if plain else names
    return module.names_in(statement)


def _is_plain_target(node: cst.CSTNode) -> bool:
    if isinstance(node, (cst.Tuple, cst.List)):
        return all(_is_plain_target(each.value) for each in node.elements)
    return isinstance(node, cst.Name)


def _keeps_count(statement: cst.BaseStatement) -> bool:
    """`self.calls += 1`, `losses.append(loss)`: a graph would be made for one count alone."""
    if not isinstance(statement, cst.SimpleStatementLine):
        return False
    for part in statement.body:
        call = part.value if isinstance(part, cst.Expr) else None
        method = call.func if isinstance(call, cst.Call) else None
        if isinstance(method, cst.Attribute) and method.attr.value in _KEEPERS:
            return True
        if isinstance(part, cst.AugAssign) and isinstance(part.target, cst.Attribute):
            return isinstance(part.value, (cst.Integer, cst.Float))
    return False


def _comments(statement: cst.BaseStatement) -> list[cst.EmptyLine]:
    lines: Iterator[cst.EmptyLine] = iter(getattr(statement, "leading_lines", ()))
    return [line for line in lines if line.comment is not None]
