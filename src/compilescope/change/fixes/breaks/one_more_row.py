"""Work on selected rows that no graph can hold where there may be none: in evaluation, with one more.

`if len(idx) > 0: x[idx] = net(x[idx])`, with batch normalisation in the net: torch asks whether its
batch is empty, and the number of rows is only known at run time. One row more than are selected is
never none; what is computed for it is dropped. In training all is as it was.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from compilescope.change.fixes.branches.branch import RULES
from compilescope.change.fixes.compilation.own_files import own_modules
from compilescope.change.fixes.fix import Fix
from compilescope.change.fixes.patch import Patch
from compilescope.change.fixes.rows.apart_rows import check_apart
from compilescope.change.fixes.rows.empty_work import patch_for_no_rows
from compilescope.change.fixes.rows.selections import (
    Selected,
    asks_for_rows,
    check_fits,
    check_seen,
    selection_of,
)
from compilescope.change.fixes.subject import Subject
from compilescope.change.fixes.values.tensors import bare
from compilescope.knowledge.source.flow import liveness
from compilescope.knowledge.source.flow.purity import short
from compilescope.knowledge.source.refusals import NeedsRun, NotMeant, Refused
from compilescope.knowledge.source.syntax.bindings import receiver_of
from compilescope.knowledge.source.syntax.edit import Edit, replaced
from compilescope.knowledge.source.syntax.module import SourceModule
from compilescope.knowledge.source.syntax.snippets import number
from compilescope.knowledge.source.trees import cst, kinds

_NAMES = kinds(lambda: (cst.Name, cst.Attribute))
_LEAVING = kinds(lambda: (cst.Return, cst.Raise, cst.Break, cst.Continue))
_ATOMS = kinds(lambda: (cst.Name, cst.Attribute, cst.Call, cst.Subscript))


def _propose(subject: Subject) -> Patch:
    branches = list(_branches(subject))
    if not branches:
        raise NotMeant("nothing here is skipped where no rows are selected")
    function = subject.function
    if subject.module.class_of(function) is None or not receiver_of(subject.module, function):
        raise Refused("no module says whether it trains")
    if not subject.program.facts.seen and not _is_evaluated(subject):
        raise NeedsRun("it helps in evaluation only, and no line calls `eval()`")
    edit = Edit(subject.module)
    written: set[str] = set()
    for branch in branches:
        work = _RowWork(subject, edit, branch, _selector_of(subject, branch))
        written |= work.rewrite()
    return patch_for_no_rows(subject, edit, written)


def _is_evaluated(subject: Subject) -> bool:
    """Does the program put anything into evaluation mode? A module trains until it is told."""
    return any(
        isinstance(each, cst.Call)
        and isinstance(each.func, cst.Attribute)
        and each.func.attr.value in ("eval", "train", "from_pretrained")
        and (each.func.attr.value != "train" or "False" in module.code(each))
        for module in own_modules(subject.program)
        for each in module.walk()
    )


def _branches(subject: Subject) -> Iterator[cst.If]:
    """The condition that broke; else those of the function that ask for what the line selects."""
    found = [
        each
        for each in subject.module.walk(subject.function.body)
        if isinstance(each, cst.If)
        and each.orelse is None
        and _asked_about(subject, each.test) is not None
    ]
    if subject.statement in found:
        yield subject.statement  # type: ignore[misc]
        return
    names = set(liveness.names_set(subject.module, subject.statement))
    for each in found:
        inside = subject.module.around(subject.node, cst.If) is each
        held = _asked_about(subject, each.test)
        if inside or (held is not None and held[0] in names):
            yield each


def _asked_about(subject: Subject, test: cst.BaseExpression) -> tuple[str, bool] | None:
    """`idx` of `len(idx) > 0`, `mask` of `mask.any()`; and whether it is a mask."""
    module, found = subject.module, set()
    for each in module.walk(test):
        if isinstance(each, _NAMES):
            code = module.code(bare(each))
            if asks_for_rows(subject, test, Selected(indices={code})):
                found.add((code, False))
            if asks_for_rows(subject, test, Selected(masks={code})):
                found.add((code, True))
    return found.pop() if len(found) == 1 else None


@dataclass(frozen=True)
class _Selector:
    """What rows are selected by."""

    code: str
    dims: int
    """Of a mask; 0 for the numbers of the rows."""


def _selector_of(subject: Subject, branch: cst.If) -> _Selector:
    held = _asked_about(subject, branch.test)
    assert held is not None
    code, is_mask = held
    seen = subject.facts(code, subject.module.line(branch))
    if not seen and not is_mask and _is_made_of_numbers(subject, code):
        return _Selector(code, 0)
    if not seen:
        raise NeedsRun(f"the source does not show what `{code}` is")
    kinds_seen = {(fact.kind, fact.dtype, len(fact.shape or ())) for fact in seen}
    if len(kinds_seen) != 1:
        raise Refused(f"`{code}` is not always of one kind")
    kind, dtype, dims = kinds_seen.pop()
    if kind == "tensor" and dtype == "int64" and dims == 1 and not is_mask:
        return _Selector(code, 0)
    if kind == "tensor" and dtype == "bool" and dims and is_mask:
        return _Selector(code, dims)
    raise Refused(f"`{code}` selects no rows")


def _is_made_of_numbers(subject: Subject, code: str) -> bool:
    """`idx = torch.where(mask)[0]`"""
    value = liveness.only_value(subject.module, subject.function, code)
    if value is None:
        return False
    try:
        return selection_of(subject, subject.module.statement_of(value))[1] == [code]
    except NotMeant:
        return False


@dataclass(frozen=True)
class _RowWork:
    """The block under one such condition, and what becomes of it."""

    subject: Subject
    edit: Edit
    branch: cst.If
    selector: _Selector

    @property
    def module(self) -> SourceModule:
        return self.subject.module

    def rewrite(self) -> set[str]:
        """Returns the names of what is written to."""
        module, branch, edit = self.module, self.branch, self.edit
        if not isinstance(branch.body, cst.IndentedBlock):
            raise Refused("the branch stands on one line")
        self._check()
        work = list(branch.body.body)
        writes = [each for statement in work for each in self._writes(statement)]
        if not writes:
            raise Refused("the rows are not written back")
        inside = {id(n) for target, _ in writes for n in module.walk(target)}
        picks = [
            each
            for statement in work
            for each in module.walk(statement)
            if isinstance(each, cst.Subscript) and self._picks(each) and id(each) not in inside
        ]
        if not picks:
            raise Refused("no rows are read")
        for each in picks:
            check_fits(self.subject, each, self.selector.code if self.selector.dims else "")
        torch = edit.module_name("torch")
        rows, numbers = module.fresh_name("rows"), self.selector.code
        owner = receiver_of(module, self.subject.function)
        asked = f"len({module.code(picks[0].value)})"
        if self.selector.dims:
            numbers = module.fresh_name("picked")
            flat = ".flatten()" if self.selector.dims > 1 else ""
            made = f"{numbers} = {self.selector.code}{flat}.nonzero().flatten()"
            edit.put_before(branch, made)
            asked = f"{self.selector.code}.numel()"
        edit.replace(
            branch.test, edit.expression(f"(len({numbers}) if {owner}.training else {asked}) > 0")
        )
        more = f"{torch}.cat([{numbers}, {numbers}.new_zeros(1)])"
        edit.put_before(work[0], f"{rows} = {numbers} if {owner}.training else {more}")
        new: dict[cst.CSTNode, cst.BaseExpression] = {
            each: self._of_rows(each, rows) for each in picks
        }
        new |= self._counted(work, inside, rows)
        self._put(work, writes, new, numbers)
        return {module.code(target.value) for target, _ in writes}

    def _check(self) -> None:
        module, function = self.module, self.subject.function
        for name in liveness.names_set(module, self.branch.body):
            if name == self.selector.code:
                raise Refused(f"`{name}` changes")
            if liveness.is_needed_after(module, function, self.branch, name):
                raise Refused(f"`{name}` is read later")
        work = list(self.branch.body.body)
        for each in module.walk(self.branch.body):
            if isinstance(each, _LEAVING):
                raise Refused(f"it leaves the block: `{short(module, each)}`")
        check_seen(self.subject, work)
        check_apart(self.subject, work)

    def _picks(self, node: cst.Subscript) -> bool:
        """`x[idx]`, `x[idx, 1:]`; of a mask `x[mask]` alone."""
        first = node.slice[0].slice
        if not isinstance(first, cst.Index) or (self.selector.dims and len(node.slice) != 1):
            return False
        return self.module.code(bare(first.value)) == self.selector.code

    def _writes(self, statement: cst.CSTNode) -> Iterator[tuple[cst.Subscript, cst.BaseExpression]]:
        for each in self.module.walk(statement):
            if isinstance(each, cst.Assign) and len(each.targets) == 1:
                target = each.targets[0].target
            elif isinstance(each, cst.AugAssign):
                target = each.target
            else:
                continue
            if isinstance(target, cst.Subscript):
                if not self._picks(target) or not isinstance(target.value, _NAMES):
                    raise Refused(f"it writes to `{short(self.module, target)}`")
                yield target, each.value
            elif not isinstance(target, (cst.Name, cst.Tuple)) or (
                isinstance(each, cst.AugAssign) and not self._is_made_here(target)
            ):
                raise Refused(f"it sets `{short(self.module, target)}`")

    def _is_made_here(self, target: cst.CSTNode) -> bool:
        """Is it a name that the block itself gives to what it computes?"""
        made = (
            named.value
            for each in self.module.walk(self.branch.body)
            if isinstance(each, cst.Assign)
            for named in liveness.targets(each)
            if isinstance(named, cst.Name)
        )
        return isinstance(target, cst.Name) and target.value in made

    def _of_rows(self, pick: cst.Subscript, rows: str) -> cst.Subscript:
        first = pick.slice[0]
        index = cst.SubscriptElement(cst.Index(cst.Name(rows)), comma=first.comma)
        value = pick.value
        if self.selector.dims > 1:
            code = self.module.code(value)
            value = self.edit.expression(f"{code}.flatten(0, {self.selector.dims - 1})")
        return pick.with_changes(value=value, slice=[index, *pick.slice[1:]])

    def _counted(
        self, work: list[cst.BaseStatement], inside: set[int], rows: str
    ) -> dict[cst.CSTNode, cst.BaseExpression]:
        """`len(idx)` is the number of rows that are computed."""
        module, code = self.module, self.selector.code
        forms = {f"len({code})", f"{code}.shape[0]", f"{code}.size(0)", f"{code}.numel()"}
        return {
            each: self.edit.expression(f"len({rows})")
            for statement in work
            for each in module.walk(statement)
            if isinstance(each, (cst.Call, cst.Subscript))
            and not self.selector.dims
            and id(each) not in inside
            and module.code(each) in forms
        }

    def _put(
        self,
        work: list[cst.BaseStatement],
        writes: list[tuple[cst.Subscript, cst.BaseExpression]],
        new: dict[cst.CSTNode, cst.BaseExpression],
        numbers: str,
    ) -> None:
        module, edit = self.module, self.edit
        values = {id(value) for _, value in writes if number(value) is None}
        within = {id(n) for _, value in writes for n in module.walk(value)}
        for _, value in writes:
            if id(value) not in values:
                continue
            changed = replaced(value, new)
            code = module.code(changed)
            code = code if isinstance(value, _ATOMS) and not value.lpar else f"({code})"
            edit.replace(value, edit.expression(f"{code}[: len({numbers})]"))
        for node, made in new.items():
            if id(node) not in within:
                edit.replace(node, made)
        known = {id(n) for node in new for n in module.walk(node)}
        known |= {id(n) for target, _ in writes for n in module.walk(target)}
        for statement in work:
            for read in module.walk(statement):
                if (
                    isinstance(read, _NAMES)
                    and module.code(read) == self.selector.code
                    and id(read) not in known
                ):
                    raise Refused(f"`{self.selector.code}` is used for more than to select rows")


FIX = Fix(
    id="one-more-row",
    title="in evaluation, compute one more row than are selected, and drop it",
    rules=RULES | {"dynamic-shape", "GB0036", "GB0124"},
    order=123,
    kind="source",
    why="The work is done row by row while nothing trains, so one more row changes nothing of the "
    "others, and what is computed for it is dropped. There is always a row then, so that neither "
    "Python nor an operator such as batch normalisation has to ask. In training all is as it was.",
    propose=_propose,
)
