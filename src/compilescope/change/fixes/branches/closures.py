"""Statements as the body of a local function for `torch.cond`: what goes in, what comes out.

Such a function may read whatever is around it, but sets only its own names, changes nothing, and
gives back new tensors only: one that it was given must be copied first.

Layers that only one side calls are part of the graph too: in training those of the side that was
not taken get a gradient of zeros, where they had none, and an optimizer with momentum or weight
decay moves them. Layers that keep count of what they see cannot be part of a side at all.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from compilescope.change.fixes.branches.effects import check_not_the_argument
from compilescope.change.fixes.compilation.own_files import own_modules
from compilescope.change.fixes.subject import Subject
from compilescope.change.fixes.values.graph_values import graph_values
from compilescope.change.fixes.values.kinds import check_alike, check_like
from compilescope.change.fixes.values.tensors import is_static
from compilescope.knowledge.source.flow import liveness
from compilescope.knowledge.source.flow.aliasing import (
    changes_in_place,
    check_unchanged,
    is_fresh,
    is_fresh_local,
    is_shared,
)
from compilescope.knowledge.source.flow.purity import first, short
from compilescope.knowledge.source.refusals import NeedsRun, NotMeant, Refused
from compilescope.knowledge.source.syntax.bindings import is_receiver
from compilescope.knowledge.source.syntax.module import SourceModule
from compilescope.knowledge.source.trees import cst, kinds


def with_blank_lines(
    first: cst.BaseStatement, *others: cst.BaseStatement
) -> list[cst.BaseStatement]:
    """Functions and what calls them, as a formatter leaves them."""
    blank = [cst.EmptyLine(indent=False)]
    return [first, *(each.with_changes(leading_lines=blank) for each in others)]


def local_function(
    name: str,
    parameters: Sequence[str],
    body: Sequence[cst.CSTNode],
    last: cst.BaseStatement,
) -> cst.FunctionDef:
    """`body` may be the statements of a block, or those of one line."""
    from compilescope.knowledge.source.syntax.transformers import Unaugmented

    lines: list[cst.BaseStatement] = []
    for node in body:
        if isinstance(node, cst.BaseSmallStatement):
            bare = node.with_changes(semicolon=cst.MaybeSentinel.DEFAULT)
            node = cst.SimpleStatementLine([bare])
        changed = node.visit(Unaugmented())
        assert isinstance(changed, (cst.SimpleStatementLine, cst.BaseCompoundStatement))
        if not _is_pass(changed):
            lines.append(changed)
    return cst.FunctionDef(
        name=cst.Name(name),
        params=cst.Parameters([cst.Param(cst.Name(each)) for each in parameters]),
        body=cst.IndentedBlock([*lines, last]),
        leading_lines=(),
    )


def _is_pass(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.SimpleStatementLine) and all(
        isinstance(part, cst.Pass) for part in node.body
    )


_KEEPING = ("BatchNorm", "InstanceNorm", "SyncBatchNorm")


def check_strides(subject: Subject, sides: Iterable[Iterable[cst.CSTNode]]) -> None:
    """Raises `Refused` where a side computes with a tensor whose order of strides one operator
    keeps and another does not: `torch.cond` raises where the sides differ in it (torch 2.13)."""
    module = subject.module
    for node in (node for side in sides for node in side):
        for name in sorted(liveness.names_read(module, node)):
            if any(fact.permuted for fact in subject.facts(name)):
                raise Refused(f"`{name}` is not contiguous, and `torch.cond` needs equal strides")


def check_layers(subject: Subject, sides: Sequence[Sequence[cst.CSTNode]]) -> None:
    """Raises `Refused` where a layer of one side makes the graph do something else."""
    called = [_called(subject.module, side) for side in sides]
    every: set[str] = set().union(*called)
    common = {name for name in every if all(name in each for each in called)}
    for name in sorted(every):
        made = _made_by(subject.module, name)
        if any(word in made for word in _KEEPING):
            raise Refused(f"the branch calls `{name}`, which keeps running statistics")
    if subject.program.facts.seen or common == every:
        return
    if graph_values(subject.program.run).computes_grad and _trains(subject):
        alone = sorted(every - common)
        raise NeedsRun(
            f"in training, `{alone[0]}` would get zero gradients instead of none when the side "
            "is not taken"
        )


def _called(module: SourceModule, nodes: Sequence[cst.CSTNode]) -> set[str]:
    """`self.head` of `self.head(x)`, and parameters that are read: `self.weight`."""
    return {
        module.code(each)
        for node in nodes
        for each in module.walk(node)
        if isinstance(each, cst.Attribute) and is_receiver(module, each.value)
    }


def _made_by(module: SourceModule, name: str) -> str:
    """The code of all that the file assigns to an attribute of that name."""
    return " ".join(
        module.code(each.value)
        for each in module.walk()
        if isinstance(each, cst.Assign)
        and any(module.code(target.target) == name for target in each.targets)
    )


def _trains(subject: Subject) -> bool:
    """Somewhere the program asks for gradients."""
    return any(
        isinstance(node, cst.Attribute) and node.attr.value in ("backward", "grad")
        for module in own_modules(subject.program)
        for node in module.walk()
    )


_FORBIDDEN = kinds(
    lambda: (
        cst.Return,
        cst.Break,
        cst.Continue,
        cst.Raise,
        cst.Assert,
        cst.Del,
        cst.Global,
        cst.Nonlocal,
        cst.Yield,
        cst.Await,
        cst.Import,
        cst.ImportFrom,
        cst.Try,
        cst.While,
    )
)


@dataclass
class Closures:
    """Makes local functions of the branches of one `if`, or of the body of one loop."""

    subject: Subject
    function: cst.FunctionDef
    whole: cst.CSTNode
    counters: Collection[str] = ()
    """Python numbers that are carried as tensors."""

    @property
    def module(self) -> SourceModule:
        return self.subject.module

    def check(self, nodes: Sequence[cst.CSTNode], *, returns: bool = False) -> None:
        """Raises `Refused` for what must not be done inside."""
        module = self.module
        found = first(module, list(nodes), "effect", "by-value")
        if found is not None and not found.words.endswith("in place"):
            raise Refused(found.words)
        for node in nodes:
            for each in module.walk(node):
                last = isinstance(each, cst.Return) and returns
                if isinstance(each, _FORBIDDEN) and not last:
                    raise Refused(f"the branch contains `{short(module, each)}`")
                if isinstance(each, cst.Expr) and isinstance(each.value, cst.Call):
                    raise Refused(
                        f"the branch calls {short(module, each.value.func)}() and ignores its "
                        "result"
                    )
                if isinstance(each, cst.Call) and module.calls(each, "builtins.super"):
                    raise Refused(
                        "a branch calls super(), which does not work in a separate function"
                    )
                self._check_targets(each)
            for where, name in changes_in_place(module, node):
                if not self._is_own(where, name, nodes):
                    raise Refused(f"a branch changes a tensor in place: `{short(module, where)}`")

    def _is_own(self, where: cst.CSTNode, name: str, block: Sequence[cst.CSTNode]) -> bool:
        """`y *= 2` on a tensor that the function made itself can be `y = y * 2`."""
        if not isinstance(where, cst.AugAssign) or not isinstance(where.target, cst.Name):
            return False
        made = [
            is_fresh(self.module, each.value)
            for node in block
            for each in self.module.walk(node)
            if isinstance(each, cst.Assign)
            and any(isinstance(t, cst.Name) and t.value == name for t in liveness.targets(each))
        ]
        shared = is_shared(self.module, self.function, name)
        inside = bool(made) and all(made) and not shared
        return name in self.counters or inside or is_fresh_local(self.module, self.function, name)

    def _check_targets(self, node: cst.CSTNode) -> None:
        for target in liveness.targets(node):
            if isinstance(target, (cst.Attribute, cst.Subscript)):
                shown = short(self.module, target)
                raise Refused(f"a branch sets `{shown}`, which is visible from outside")
            elsewhere = liveness.declared_elsewhere(self.module, self.function)
            if isinstance(target, cst.Name) and target.value in elsewhere:
                raise Refused(f"`{target.value}` belongs to another scope")

    def given(self, blocks: Sequence[Sequence[cst.CSTNode]]) -> list[str]:
        """Names that a block sets, and reads before: they come in as parameters, since a function
        cannot read a name of the outside and set it too."""
        return self._tensors(
            name
            for name in self._set_in(blocks)
            if any(liveness.needs_value(self.module, block, name) for block in blocks)
        )

    def carried(self, block: Sequence[cst.CSTNode]) -> list[str]:
        """Names that go from one turn of a loop to the next, or out of it."""
        return self._tensors(
            name
            for name in self._set_in([block])
            if liveness.needs_value(self.module, block, name)
            or liveness.is_read_later(self.module, self.function, self.whole, name)
            or name in liveness.names_read(self.module, self.whole.test)  # type: ignore[attr-defined]
        )

    def _set_in(self, blocks: Sequence[Sequence[cst.CSTNode]]) -> list[str]:
        names: dict[str, None] = {}
        for block in blocks:
            for node in block:
                names.update(dict.fromkeys(liveness.names_set(self.module, node)))
        return [name for name in names if self._was_set(name)]

    def _tensors(self, names: Iterable[str]) -> list[str]:
        found = list(names)
        for name in found:
            seen = self.subject.facts(name, self.module.line(self.whole))
            python = any(fact.kind not in ("tensor", "parameter") for fact in seen)
            if python and name not in self.counters:
                raise Refused(f"`{name}` does not hold a tensor before")
        return found

    def _was_set(self, name: str) -> bool:
        if liveness.is_set_before(self.module, self.function, self.whole, name):
            return True
        return bool(self.subject.facts(name, self.module.line(self.whole)))

    def results(self, blocks: Sequence[Sequence[cst.CSTNode]]) -> list[str]:
        """Names that a block sets and that are read later. Raises `Refused` where one of them has
        no value on another side."""
        names: dict[str, None] = {}
        for block in blocks:
            for node in block:
                for name in liveness.names_set(self.module, node):
                    names[name] = None
        read = [
            name
            for name in names
            if liveness.is_read_later(self.module, self.function, self.whole, name)
        ]
        for name in read:
            for block in blocks:
                sets = any(name in liveness.names_set(self.module, node) for node in block)
                if not sets and not self._was_set(name):
                    raise Refused(f"`{name}` is set on one side only")
            check_unchanged(self.module, self.function, self.whole, (), [name])
        if not read:
            raise NotMeant("nothing the branches set is read later")
        return read

    def check_sides(self, blocks: Sequence[Sequence[cst.CSTNode]], results: Sequence[str]) -> None:
        """`torch.cond` raises where the sides give different things."""
        check_layers(self.subject, blocks)
        check_strides(self.subject, blocks)
        for name in results:
            values = [self._last_value(block, name) for block in blocks]
            set_here = [value for value in values if value is not None]
            for other in set_here[1:]:
                check_alike(self.subject, set_here[0], other)
            if len(set_here) < len(values):
                check_not_the_argument(self.subject, name)
                before = self.subject.facts(name, self.module.line(self.whole))
                for value in set_here if before else ():
                    check_like(self.subject, before, value)

    def _last_value(self, block: Sequence[cst.CSTNode], name: str) -> cst.BaseExpression | None:
        found: cst.BaseExpression | None = None
        for node in block:
            for each in self.module.walk(node):
                if isinstance(each, cst.Assign) and any(
                    isinstance(t, cst.Name) and t.value == name for t in liveness.targets(each)
                ):
                    found = each.value
        return found

    def check_returned(self, one: cst.BaseExpression, other: cst.BaseExpression) -> None:
        """Likewise for what two sides return."""
        if isinstance(one, cst.Tuple) and isinstance(other, cst.Tuple):
            if len(one.elements) != len(other.elements):
                raise Refused("the sides do not return tuples of the same length")
            for a, b in zip(one.elements, other.elements, strict=True):
                check_alike(self.subject, a.value, b.value)
        elif isinstance(one, cst.Tuple) != isinstance(other, cst.Tuple):
            raise Refused("one side returns a tuple and the other does not")
        else:
            check_alike(self.subject, one, other)
            for side in (one, other):
                check_not_the_argument(self.subject, self.module.code(side))

    def handed_out(self, block: Sequence[cst.CSTNode], names: Sequence[str]) -> str:
        """The code of what a block gives back for these names."""
        made = [self._copied(block, name) for name in names]
        return made[0] if len(made) == 1 else ", ".join(made)

    def _copied(self, block: Sequence[cst.CSTNode], name: str) -> str:
        value: cst.CSTNode | None = None
        for node in block:
            for each in self.module.walk(node):
                if any(isinstance(t, cst.Name) and t.value == name for t in liveness.targets(each)):
                    plain = isinstance(each, (cst.Assign, cst.AnnAssign))
                    value = each.value if plain else each  # type: ignore[attr-defined]
                    if isinstance(each, cst.AugAssign):
                        return name
        if name in self.counters:
            return name
        if value is not None and is_static(self.subject, value):
            raise Refused(f"`{name}` is set to a Python value, not a tensor")
        if isinstance(value, (cst.List, cst.Tuple, cst.Dict, cst.ListComp)):
            raise Refused(f"`{name}` is set to several tensors, not to one")
        if value is not None:
            check_unchanged(self.module, self.function, self.whole, [value])
        fresh = value is not None and is_fresh(self.module, value)
        return name if fresh else f"{name}.clone()"

    def returned(self, value: cst.BaseExpression) -> str:
        """The code of a returned value, its tensors new."""
        if isinstance(value, cst.Tuple):
            inside = ", ".join(self.returned(element.value) for element in value.elements)
            return f"({inside},)" if len(value.elements) == 1 else inside
        code = self.module.code(value)
        if isinstance(value, (cst.Integer, cst.Float, cst.SimpleString)) or code == "None":
            raise Refused(f"one side returns `{code}`, not a tensor")
        if is_fresh(self.module, value):
            return code
        if isinstance(value, (cst.Name, cst.Attribute, cst.Subscript)):
            if isinstance(value, cst.Name):
                made = liveness.only_value(self.module, self.function, value.value)
                if made is not None and is_fresh(self.module, made) and self._is_inner(made):
                    return code
            return f"{code}.clone()"
        return code

    def _is_inner(self, value: cst.CSTNode) -> bool:
        """Made after the branch began."""
        start = self.module.position(self.whole).start
        place = self.module.position(value).start
        return (place.line, place.column) >= (start.line, start.column)
