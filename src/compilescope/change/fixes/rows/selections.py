"""Rows that a mask or their numbers select: what code says of them, and asks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from compilescope.change.fixes.subject import Subject
from compilescope.change.fixes.values.tensors import bare
from compilescope.knowledge.source.flow import liveness
from compilescope.knowledge.source.flow.purity import short
from compilescope.knowledge.source.refusals import NeedsRun, NotMeant, Refused
from compilescope.knowledge.source.syntax.module import SourceModule
from compilescope.knowledge.source.syntax.snippets import number
from compilescope.knowledge.source.trees import cst


@dataclass
class Selected:
    """Names of a block of code, and what they hold."""

    masks: set[str] = field(default_factory=set)
    """Code of a bool for each row."""
    indices: set[str] = field(default_factory=set)
    """Code of the numbers of the rows that are selected."""
    rows: set[str] = field(default_factory=set)
    """Code of what is computed from those rows alone."""

    @property
    def all(self) -> set[str]:
        return self.masks | self.indices


def check_seen(subject: Subject, work: Sequence[cst.CSTNode]) -> None:
    """What does not fit together raises for no rows too; what has run for some, does fit."""
    facts = subject.program.facts
    lines = [subject.module.line(statement) for statement in work]
    if facts.seen and not any(facts.reached(subject.file, line) for line in lines):
        raise Refused("no row was ever seen to be selected")


def check_fits(subject: Subject, node: cst.Subscript, mask: str) -> None:
    """Raises `Refused` where rows may be picked by a mask of another size, or from a number."""
    module, facts = subject.module, subject.program.facts
    held, line = module.code(bare(node.value)), module.line(node)
    wrong = Refused(f"`{short(module, node)}` may raise where nothing is selected")
    sizes = {fact.shape for fact in subject.facts(held, line)}
    masks = {fact.shape for fact in subject.facts(mask, line)} if mask else {(0,)}
    if not sizes or not masks or None in sizes | masks:
        if not facts.seen:
            raise NeedsRun(f"the source does not show the size of `{short(module, node)}`")
        return
    if () in sizes:
        raise wrong
    if not mask:
        return
    pairs = facts.together(subject.file, line, held, mask) or {
        (one, other) for one in sizes for other in masks if one is not None and other is not None
    }
    if any(one[: len(other)] != other for one, other in pairs):
        raise wrong


def check_private(subject: Subject, work: Sequence[cst.CSTNode], names: set[str]) -> None:
    """What the work sets, nobody else may read: it was not always set."""
    module = subject.module
    inside = {id(each) for statement in work for each in module.walk(statement)}
    for each in liveness.reads(module, subject.function):
        if each.value in names and id(each) not in inside:
            raise Refused(f"`{each.value}` is read elsewhere too")
    for name in sorted(names):
        for statement in work:
            if name in liveness.names_read(module, statement):
                raise Refused(f"`{name}` may be left from before")
            if name in liveness.names_set(module, statement):
                break


def asks_for_rows(subject: Subject, test: cst.BaseExpression, selected: Selected) -> bool | None:
    """True where it is true if rows are selected, False where it is true if none are; None where
    it asks for something else."""
    module = subject.module
    test = bare(test)  # type: ignore[assignment]
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        inner = asks_for_rows(subject, test.expression, selected)
        return None if inner is None else not inner
    if isinstance(test, cst.Comparison) and len(test.comparisons) == 1:
        if not _counts(module, test.left, selected):
            return None
        only = test.comparisons[0]
        return tells_rows(only.operator, number(only.comparator))
    return True if _counts(module, test, selected) or _any(module, test, selected) else None


def tells_rows(sign: cst.CSTNode, limit: object) -> bool | None:
    """Of a number of rows that is compared: True for `> 0`, False for `== 0`, else None."""
    if (isinstance(sign, (cst.GreaterThan, cst.NotEqual)) and limit == 0) or (
        isinstance(sign, cst.GreaterThanEqual) and limit == 1
    ):
        return True
    if (isinstance(sign, cst.Equal) and limit == 0) or (
        isinstance(sign, cst.LessThan) and limit == 1
    ):
        return False
    return None


def _counts(module: SourceModule, node: cst.BaseExpression, selected: Selected) -> bool:
    """Is it how many rows are selected, or zero only if none are?"""
    code = module.code(bare(node))
    rows = selected.indices | selected.rows
    lengths = {
        form.format(each)
        for each in rows
        for form in ("len({})", "{}.numel()", "{}.shape[0]", "{}.size(0)", "{}.nelement()")
    }
    # Of rows with no columns there are no elements, whatever is selected.
    lengths -= {f"{each}.{name}()" for each in selected.rows for name in ("numel", "nelement")}
    sums = {
        form.format(each) + read
        for each in selected.masks
        for form in ("{}.sum()", "torch.sum({})", "{}.count_nonzero()", "torch.count_nonzero({})")
        for read in ("", ".item()")
    }
    return code in lengths | sums


def _any(module: SourceModule, node: cst.BaseExpression, selected: Selected) -> bool:
    code = module.code(bare(node))
    asked = {form.format(each) for each in selected.masks for form in ("{}.any()", "torch.any({})")}
    return code in {f"{each}{read}" for each in asked for read in ("", ".item()")} or code in {
        f"bool({each})" for each in asked
    }


def selection_of(subject: Subject, statement: cst.CSTNode) -> tuple[cst.BaseExpression, list[str]]:
    """Of `rows, places = torch.where(mask)`: what is selected from, and the names of the numbers.
    Raises `NotMeant` for another statement."""
    line = statement.body if isinstance(statement, cst.SimpleStatementLine) else ()
    part = line[0] if len(line) == 1 else None
    if isinstance(part, cst.Assign) and len(part.targets) == 1:
        target, value = part.targets[0].target, part.value
        if isinstance(target, cst.Name) and isinstance(value, cst.Subscript):
            value, whole = value.value, subject.module.code(value).endswith("[0]")
            found = _selected_from(subject.module, value) if whole else None
            if found is not None:
                return found, [target.value]
        found = _selected_from(subject.module, value)
        if found is not None and isinstance(target, (cst.Tuple, cst.List)):
            names = [e.value.value for e in target.elements if isinstance(e.value, cst.Name)]
            if len(names) == len(target.elements):
                return found, names
    raise NotMeant("no rows are selected here")


def _selected_from(module: SourceModule, node: cst.BaseExpression) -> cst.BaseExpression | None:
    """`mask` of `torch.where(mask)` and `mask.nonzero(as_tuple=True)`, which give a tuple."""
    if not isinstance(node, cst.Call):
        return None
    as_tuple = any(
        arg.keyword is not None
        and arg.keyword.value == "as_tuple"
        and module.code(arg.value) == "True"
        for arg in node.args
    )
    if module.calls(node, "torch.where") and len(node.args) == 1:
        return node.args[0].value
    if module.calls(node, "torch.nonzero") and as_tuple and len(node.args) == 2:
        return node.args[0].value
    func = node.func
    if isinstance(func, cst.Attribute) and func.attr.value == "nonzero":
        return func.value if as_tuple and len(node.args) == 1 else None
    return None
