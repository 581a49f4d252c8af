"""Work on selected rows that is skipped where none are: run it always, on no rows if need be.

`if mask.any(): out[mask] = expert(x[mask])` and `for i in hit.nonzero(): ...` of a mixture of
experts. Python has to know what is selected for both; the work itself does not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from compilescope.change.fixes.branches.branch import RULES
from compilescope.change.fixes.branches.effects import parts_of
from compilescope.change.fixes.branches.layers import holds_layers
from compilescope.change.fixes.fix import Fix
from compilescope.change.fixes.patch import Patch
from compilescope.change.fixes.rows.empty_work import check_empty_work, patch_for_no_rows
from compilescope.change.fixes.rows.hits import Hit, method_called, read_hit
from compilescope.change.fixes.rows.selections import Selected, asks_for_rows, selection_of
from compilescope.change.fixes.subject import Subject
from compilescope.change.fixes.values.tensors import bare, is_static
from compilescope.knowledge.source.flow import liveness
from compilescope.knowledge.source.flow.aliasing import changes_in_place
from compilescope.knowledge.source.flow.purity import short
from compilescope.knowledge.source.refusals import NotMeant, Refused
from compilescope.knowledge.source.syntax.comments import with_comments
from compilescope.knowledge.source.syntax.edit import Edit
from compilescope.knowledge.source.syntax.module import SourceModule
from compilescope.knowledge.source.trees import cst


def _propose(subject: Subject) -> Patch:
    work = _Rewrite(subject, Edit(subject.module))
    reasons: list[Refused] = []
    for node in list(subject.module.walk(subject.function.body)):
        try:
            if isinstance(node, cst.For):
                work.loop(node)
            elif isinstance(node, cst.If):
                work.guard(node)
        except NotMeant:
            continue
        except Refused as refused:
            reasons.append(refused)
    if reasons:
        raise reasons[0]  # What is left of them would break as before.
    if not any(subject.statement is each for each in work.concerned):
        raise NotMeant("nothing here is skipped where no rows are selected")
    return patch_for_no_rows(subject, work.edit, work.written)


@dataclass
class _Rewrite:
    """What is changed in one function."""

    subject: Subject
    edit: Edit
    concerned: list[cst.CSTNode] = field(default_factory=list)
    """Statements that the change is about."""
    written: set[str] = field(default_factory=set)

    @property
    def module(self) -> SourceModule:
        return self.subject.module

    def guard(self, branch: cst.If) -> None:
        """`if mask.any(): ...`, or `if not mask.any(): continue` before the rest of a loop."""
        selected = self._selected_before(branch)
        asked = asks_for_rows(self.subject, branch.test, selected)
        block = self.module.parent(branch)
        if asked is None or branch.orelse is not None or not isinstance(block, cst.IndentedBlock):
            raise NotMeant("it does not ask whether rows are selected")
        if asked:
            made = [each for each in branch.body.body if isinstance(each, cst.BaseStatement)]
            if len(made) != len(branch.body.body):
                raise Refused("the branch stands on one line")
            self._check(made, selected)
            self.edit.replace_statement(branch, with_comments(self.module, branch, made))
            self.concerned += [branch, *made]
            return
        skips = [*parts_of(branch.body)]
        loop = self.module.parent(block)
        if len(skips) != 1 or not isinstance(skips[0], cst.Continue):
            raise NotMeant("it does more than skip the rest of a loop")
        if not isinstance(loop, cst.For):
            raise NotMeant("it is not directly inside a `for`")
        rest = self.module.following(branch)
        self._check(rest, selected)
        self.edit.remove_statement(branch)
        self.concerned += [branch, *rest]

    def _check(self, work: list[cst.BaseStatement], selected: Selected) -> None:
        check_empty_work(self.subject, work, selected)
        for statement in work:
            for node in self.module.walk(statement):
                if isinstance(node, cst.AssignTarget) and isinstance(node.target, cst.Subscript):
                    self.written.add(self.module.code(node.target.value))
                elif isinstance(node, cst.Attribute) and node.attr.value.endswith("_"):
                    self.written.add(self.module.code(node.value))

    def _selected_before(self, branch: cst.If) -> Selected:
        """What the statements before it, on the way that every run takes, select."""
        found = Selected()
        line = self.module.line(branch)
        for statement in self._before(branch):
            self._add(found, statement, line)
        for node in self.module.walk(branch.test):
            named = isinstance(node, (cst.Name, cst.Attribute))
            if named and self._is_mask(self.module.code(node), line):
                found.masks.add(self.module.code(node))
            if isinstance(node, cst.Attribute) and isinstance(node.value, cst.Comparison):
                found.masks.add(self.module.code(bare(node.value)))
        self.concerned_by(found, branch)
        return found

    def concerned_by(self, selected: Selected, branch: cst.If) -> None:
        """A mask or an index that is changed meanwhile selects something else."""
        names = {name.split(".")[0] for name in selected.all if name.isidentifier()}
        for node in self.module.walk(self.subject.function.body):
            if isinstance(node, cst.CSTNode):
                for target in liveness.targets(node):
                    is_name = isinstance(target, cst.Name) and target.value in names
                    if is_name and self._is_within(node, branch):
                        raise NotMeant("what is selected changes")
        for _, name in changes_in_place(self.module, self.subject.function.body):
            if name in names:
                raise NotMeant("what is selected changes")

    def _is_within(self, node: cst.CSTNode, above: cst.CSTNode) -> bool:
        return any(each is above for each in self.module.ancestors(node))

    def _before(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """Statements of its block and those around it, up to the function."""
        above = self.module.parent(node)
        while above is not None and node is not self.subject.function:
            if isinstance(above, cst.IndentedBlock):
                for each in above.body:
                    if each is node:
                        break
                    yield each
            node, above = above, self.module.parent(above)

    def _add(self, found: Selected, statement: cst.CSTNode, line: int) -> None:
        try:
            _, names = selection_of(self.subject, statement)
        except NotMeant:
            pass
        else:
            if all(self._is_set_once(name) for name in names):
                found.indices |= set(names)
                self.concerned.append(statement)
            return
        for part in statement.body if isinstance(statement, cst.SimpleStatementLine) else ():
            target = part.targets[0].target if isinstance(part, cst.Assign) else None
            if not isinstance(target, cst.Name) or not self._is_set_once(target.value):
                continue
            assert isinstance(part, cst.Assign)
            if self._is_mask(target.value, line) or isinstance(part.value, cst.Comparison):
                found.masks.add(target.value)
                self.concerned.append(statement)
            elif isinstance(part.value, cst.Subscript) and len(part.value.slice) == 1:
                index = getattr(part.value.slice[0].slice, "value", None)
                if index is not None and self.module.code(bare(index)) in found.all:
                    found.rows.add(target.value)
                    self.concerned.append(statement)

    def _is_set_once(self, name: str) -> bool:
        return self._set_names.count(name) == 1

    @cached_property
    def _set_names(self) -> list[str]:
        every = [t for n in self.module.walk(self.subject.function) for t in liveness.targets(n)]
        return [each.value for each in every if isinstance(each, cst.Name)]

    def _is_mask(self, name: str, line: int) -> bool:
        seen = self.subject.facts(name, line)
        return bool(seen) and all(
            f.kind == "tensor" and f.dtype == "bool" and f.shape for f in seen
        )

    def loop(self, loop: cst.For) -> None:
        """`for i in hit.nonzero(): ...` of those that anything is selected for: of all."""
        hit = read_hit(self.subject, loop, self.edit)
        if loop.orelse is not None or not isinstance(loop.body, cst.IndentedBlock):
            raise NotMeant("the loop has an `else`")
        assert isinstance(loop.target, cst.Name)
        turn = _Turn(self.subject, self.edit, loop.target.value, hit)
        work: list[cst.BaseStatement] = []
        selected = Selected()
        for statement in loop.body.body:
            if turn.unpacks(statement):
                self.edit.remove_statement(statement)
            elif turn.skips_one(statement):
                continue
            elif turn.selects(statement, selected):
                self.concerned.append(statement)
            else:
                work.append(statement)
        selected.masks |= turn.masks_within(work)
        if not selected.all:
            raise NotMeant("nothing is selected in the loop")
        for name in (loop.target.value, *liveness.names_set(self.module, loop.body)):
            if liveness.is_read_later(self.module, self.subject.function, loop, name):
                raise Refused(f"`{name}` is read later and shows what was selected last")
        self._check(work, selected)
        for statement in loop.body.body:
            turn.rename(statement)
        self.edit.replace(loop.iter, self.edit.expression(f"range({hit.turns})"))
        self.concerned += [loop, *loop.body.body, *hit.made_by]
        for statement in hit.made_by:
            self.edit.remove_statement(statement)


@dataclass(frozen=True)
class _Turn:
    """One turn of such a loop, in which the variable is a Python number from now on."""

    subject: Subject
    edit: Edit
    name: str
    hit: Hit

    def unpacks(self, statement: cst.CSTNode) -> bool:
        """`i = i[0]`, `i = i.item()`: what it is from now on anyway."""
        code = self.subject.module.code(statement).strip()
        rows = self.hit.kind == "row"
        return code in {f"{self.name} = {self.name}.item()", f"{self.name} = int({self.name})"} or (
            rows and code in {f"{self.name} = {self.name}[0]"}
        )

    def skips_one(self, statement: cst.CSTNode) -> bool:
        """`if i == n: continue`, of a number that Python knows."""
        if not isinstance(statement, cst.If) or statement.orelse is not None:
            return False
        test, parts = bare(statement.test), [*parts_of(statement.body)]
        if not isinstance(test, cst.Comparison) or len(test.comparisons) != 1:
            return False
        plain = isinstance(test.comparisons[0].operator, (cst.Equal, cst.GreaterThanEqual))
        known = is_static(self.subject, test.comparisons[0].comparator)
        skips = len(parts) == 1 and isinstance(parts[0], cst.Continue)
        return plain and known and skips and self.subject.module.code(test.left) == self.name

    def selects(self, statement: cst.CSTNode, selected: Selected) -> bool:
        """`k, rows = torch.where(mask[i])` of the same mask; `mask = chosen == i`."""
        module = self.subject.module
        part = _only_part(statement)
        if self.hit.chosen and isinstance(part, cst.Assign) and len(part.targets) == 1:
            target = part.targets[0].target
            if isinstance(target, cst.Name) and module.code(bare(part.value)) in self._forms():
                selected.masks.add(target.value)
                return True
        try:
            source, names = selection_of(self.subject, statement)
        except NotMeant:
            return False
        if module.code(bare(source)) not in self._forms() | selected.masks:
            raise Refused(f"`{short(module, source)}` may be another selection")
        selected.indices |= set(names)
        return True

    def masks_within(self, work: list[cst.BaseStatement]) -> set[str]:
        """Code of masks that have no name: `out[chosen == i] = ...`."""
        if not self.hit.chosen:
            return set()
        module = self.subject.module
        found = {
            module.code(bare(node))
            for statement in work
            for node in module.walk(statement)
            if isinstance(node, cst.Comparison)
        }
        return found & self._forms()

    def _forms(self) -> set[str]:
        return self.hit.selections(self.name, unpacked=self._is_unpacked())

    def _is_unpacked(self) -> bool:
        module = self.subject.module
        return any(
            isinstance(each, cst.SimpleStatementLine) and self.unpacks(each)
            for each in module.walk(self.subject.function)
        )

    def rename(self, statement: cst.CSTNode) -> None:
        """Uses of the variable, as a Python number has them."""
        module = self.subject.module
        if self.hit.kind == "int" or (
            isinstance(statement, cst.SimpleStatementLine) and self.unpacks(statement)
        ):
            return
        rows = self.hit.kind == "row" and not self._is_unpacked()
        for read in list(liveness.reads(module, statement)):
            if read.value != self.name:
                continue
            above = module.parent(read)
            if isinstance(above, (cst.Comparison, cst.ComparisonTarget)) and not rows:
                continue
            if self.hit.chosen and self._is_made_number(above, read):
                continue
            held = module.around(read, cst.Subscript)
            if not isinstance(above, cst.Index) or held is None or len(held.slice) != 1:
                raise Refused(f"`{short(module, above or read)}` needs a tensor")
            if not rows or holds_layers(self.subject, held.value):
                continue
            method = module.parent(held)
            call = module.parent(method) if method is not None else None
            called = method_called(call) if call is not None else None
            if called is None or called[0] is not held or called[1] != "squeeze(0)":
                raise Refused(f"`{short(module, held)}` has one dimension more than by a number")
            assert call is not None
            self.edit.replace(call, held)

    def _is_made_number(self, above: cst.CSTNode | None, read: cst.Name) -> bool:
        """`i.item()`, which becomes `i`, or `int(i)`, which is right of a number too."""
        module = self.subject.module
        outer = module.parent(above) if above is not None else None
        if isinstance(above, cst.Arg) and isinstance(outer, cst.Call):
            return module.calls(outer, "builtins.int") and len(outer.args) == 1
        called = method_called(outer) if outer is not None else None
        if called is None or called[0] is not read or called[1] != "item()":
            return False
        assert outer is not None
        self.edit.replace(outer, read)
        return True


def _only_part(statement: cst.CSTNode) -> cst.CSTNode | None:
    line = statement.body if isinstance(statement, cst.SimpleStatementLine) else ()
    return line[0] if len(line) == 1 else None


FIX = Fix(
    id="run-when-empty",
    title="run it also where no rows are selected, and capture their number",
    rules=RULES | {"dynamic-shape", "GB0036", "GB0124"},
    order=119,
    kind="source",
    why="The work is done row by row, so of no rows it makes none: it writes nothing, and its "
    "gradients are zero. With `capture_dynamic_output_shape_ops`, Dynamo keeps the number of "
    "rows as a symbol.",
    propose=_propose,
)
