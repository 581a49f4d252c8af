"""Work on selected rows that does nothing where none are selected.

`out[mask] = layer(x[mask])` writes nothing where the mask is all false: every step of it computes
row by row, so of no rows it makes no rows, raises nothing, and leaves gradients of zero. A test
whether any are selected only saves time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from compilescope.change.fixes.branches.layers import check_unhooked, class_of_layer, makers_of
from compilescope.change.fixes.compilation.settings import with_flags
from compilescope.change.fixes.patch import Patch
from compilescope.change.fixes.rows.selections import (
    Selected,
    asks_for_rows,
    check_fits,
    check_private,
    check_seen,
)
from compilescope.change.fixes.subject import Subject
from compilescope.change.fixes.values.kinds import check_accepted, kind_of
from compilescope.change.fixes.values.tensors import bare, facts_of, is_static
from compilescope.knowledge.source.flow import operators
from compilescope.knowledge.source.flow.aliasing import runs_without_grad
from compilescope.knowledge.source.flow.purity import operator_of, remarks, short
from compilescope.knowledge.source.refusals import NeedsRun, NotMeant, Refused
from compilescope.knowledge.source.syntax.bindings import parameters_of, receiver_of, statements_of
from compilescope.knowledge.source.syntax.edit import Edit
from compilescope.knowledge.source.syntax.module import SourceModule
from compilescope.knowledge.source.syntax.snippets import number
from compilescope.knowledge.source.trees import cst, kinds

_ZEROS = (
    "Where no row is selected, the result requires a gradient, and what the rows are computed with "
    "gets a gradient of zeros, where it had none."
)
_NUMBERS = {"capture_scalar_outputs": True}
_ROWS = {"capture_dynamic_output_shape_ops": True}
_OVER_THE_LAST = frozenset({"softmax", "log_softmax", "chunk", "split", "unsqueeze", "squeeze"})
"""With -1 for their dimension, row by row."""
_BY_WEIGHTS = frozenset({"linear", "matmul", "mm"})
_ARITHMETIC = kinds(lambda: (cst.Add, cst.Subtract, cst.Multiply, cst.Divide, cst.Power))
_NAMES = kinds(lambda: (cst.Name, cst.Attribute))
LAYERS_BY_ROW = frozenset(
    {"Identity", "Linear", "LayerNorm", "RMSNorm", "ReLU", "ReLU6", "LeakyReLU", "PReLU", "ELU"}
    | {"SELU", "CELU", "GELU", "SiLU", "Mish", "Sigmoid", "Tanh", "Tanhshrink", "Softplus"}
    | {"Softshrink", "Softsign", "LogSigmoid", "Hardtanh", "Hardsigmoid", "Hardswish"}
    | {"Hardshrink"}
)
"""Layers of torch that compute row by row, draw nothing and keep nothing."""
_ACTIVATIONS = ("ACT2FN",)
"""Tables of activations in libraries (transformers), all of which are elementwise."""
_HOLDING = ("torch.nn.ModuleList", "torch.nn.Sequential")
_MOST_STEPS = 5
"""From a layer into those that it is made of. Chosen: beyond, nobody can tell."""
_WRITING = frozenset({"index_add_", "index_copy_"})


def check_empty_work(subject: Subject, work: Sequence[cst.CSTNode], selected: Selected) -> None:
    """Raises `Refused` unless the statements do nothing where no row is selected."""
    checker = _Checker(subject, subject.module, replace(selected, rows=set(selected.rows)))
    check_seen(subject, work)
    for statement in work:
        checker.statement(statement)
    check_private(subject, work, checker.set)


def patch_for_no_rows(
    subject: Subject, edit: Edit, written: Collection[str], *, numbers: bool = False, told: str = ""
) -> Patch:
    """The edit, after which work runs on no rows too, with the flag that keeps their number a
    symbol; with that for `numbers` of other tensors as well. Gradients come back through what is
    `written`."""
    states = f"{_ZEROS if _is_graded(subject, written) else ''} {told}".strip()
    try:
        return with_flags(
            subject, {**_NUMBERS, **_ROWS} if numbers else _ROWS, edit=edit, states=states
        )
    except NotMeant:  # They are set.
        return Patch(edit.files(), states=states)


def _is_graded(subject: Subject, written: Collection[str]) -> bool:
    """May a gradient come back through what is written? False where a run has shown it all."""
    if runs_without_grad(subject.module, subject.statement):
        return False
    lines = subject.program.facts.seen.get(subject.file, {})
    seen = [fact for names in lines.values() for name in written for fact in names.get(name, ())]
    return not seen or any(fact.requires_grad for fact in seen)


class _Checker:
    def __init__(self, subject: Subject, module: SourceModule, selected: Selected) -> None:
        self.subject = subject
        self.module = module
        self.selected = selected
        self.set: set[str] = set()
        self.depth = _MOST_STEPS
        self.own = True
        """Is it the function that the finding is in, so that what was seen tells something?"""

    def statement(self, statement: cst.CSTNode) -> None:
        if isinstance(statement, cst.If) and self.own:
            asked = asks_for_rows(self.subject, statement.test, self.selected)
            if asked is True and statement.orelse is None:
                for each in statement.body.body:
                    self.statement(each)
                return
        if not isinstance(statement, cst.SimpleStatementLine):
            raise Refused(f"it does more than compute rows: `{self._head(statement)}`")
        for part in statement.body:
            self._part(part)

    def _head(self, node: cst.CSTNode) -> str:
        return short(self.module, node).split("\n")[0]

    def _part(self, part: cst.BaseSmallStatement) -> None:
        if isinstance(part, cst.Pass) or (
            isinstance(part, cst.Expr) and isinstance(part.value, cst.SimpleString)
        ):
            return
        if isinstance(part, cst.Assign) and len(part.targets) == 1:
            self._assigned(part.targets[0].target, part.value)
        elif isinstance(part, cst.AugAssign):
            held = self._store(part.target)
            self._check_value(held, part.value)
        elif isinstance(part, cst.Expr) and self._is_write(part.value):
            assert isinstance(part.value, cst.Call)
            assert isinstance(part.value.func, cst.Attribute)
            self._check_value(part.value.func.value, part.value.args[2].value)
        else:
            raise Refused(f"it does more than compute rows: `{self._head(part)}`")

    def _assigned(self, target: cst.BaseExpression, value: cst.BaseExpression) -> None:
        if isinstance(target, cst.Subscript):
            self._check_value(self._store(target), value)
            return
        named = [target] if isinstance(target, cst.Name) else []
        if isinstance(target, (cst.Tuple, cst.List)):
            named = [each.value for each in target.elements if isinstance(each.value, cst.Name)]
            if len(named) != len(target.elements):
                raise Refused(f"it sets `{self._head(target)}`")
        if not named:
            raise Refused(f"it sets `{self._head(target)}`, which is visible from outside")
        rows = self.is_rows(value)
        if self.own:
            check_accepted(self.subject.at(self.module, value), value)
        for name in named:
            self.set.add(name.value)
            (self.selected.rows.add if rows else self.selected.rows.discard)(name.value)
            self.selected.masks.discard(name.value)
            self.selected.indices.discard(name.value)

    def _store(self, target: cst.BaseExpression) -> cst.BaseExpression:
        """`out` of `out[mask]`, which is written at the selected rows only."""
        if not isinstance(target, cst.Subscript) or not isinstance(target.value, _NAMES):
            raise Refused(f"it writes to `{self._head(target)}`")
        if not self._picks(target) or self._code(target.value) in self.selected.rows:
            raise Refused(f"it writes to `{self._head(target)}`, whatever is selected")
        self._check_fits(target)
        return target.value

    def _check_value(self, held: cst.BaseExpression, node: cst.BaseExpression) -> None:
        """What is written: torch refuses another dtype even where there is nothing to write."""
        here = self.subject.at(self.module, held) if self.own else self.subject
        wanted, made = (kind_of(here, each).dtype for each in (held, node))
        if wanted is None and not self.subject.program.facts.seen:
            raise NeedsRun(f"the source does not show the dtype of `{self._head(held)}`")
        # What is computed of floats is taken to be floats of one kind: it has run, with some rows.
        same = made == wanted or (made is None and "float" in (wanted or "float"))
        if not same and number(node) is None:
            raise Refused(f"`{self._head(node)}` has another dtype than `{self._head(held)}`")
        check_accepted(here, node)
        if not self.is_rows(node) and not self._is_number(node):
            raise Refused(f"`{self._head(node)}` may not fit to no rows")

    def _is_write(self, node: cst.BaseExpression) -> bool:
        """`out.index_add_(0, rows, values)`."""
        if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute):
            return False
        plain = len(node.args) == 3 and all(not arg.star and not arg.keyword for arg in node.args)
        if node.func.attr.value not in _WRITING or not plain:
            return False
        held = self._code(node.func.value)
        return (
            isinstance(node.func.value, _NAMES)
            and held not in self.selected.rows
            and number(node.args[0].value) == 0
            and self._code(node.args[1].value) in self.selected.indices
        )

    def _code(self, node: cst.CSTNode) -> str:
        return self.module.code(bare(node))

    def is_rows(self, node: cst.BaseExpression) -> bool:
        """Is it computed from the selected rows, row by row? Raises `Refused` for what might show
        where there are none."""
        code = self._code(node)
        if code in self.selected.rows or code in self.selected.indices:
            return True
        if not self._names_rows(node):
            self._check_quiet(node)
            return False
        if isinstance(node, cst.Subscript):
            return self._subscript(node)
        if isinstance(node, cst.BinaryOperation):
            return self._operation(node)
        if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Minus):
            return self.is_rows(node.expression)
        if isinstance(node, cst.Call):
            return self._call(node)
        raise Refused(f"of no rows, `{self._head(node)}` may be anything")

    def _names_rows(self, node: cst.CSTNode) -> bool:
        known = self.selected.all | self.selected.rows
        return any(
            isinstance(each, _NAMES) and self._code(each) in known
            for each in self.module.walk(node)
        ) or any(self._code(each) in self.selected.masks for each in self._indices(node))

    def _indices(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        for each in self.module.walk(node):
            if isinstance(each, cst.Index):
                yield each.value

    def _check_quiet(self, node: cst.BaseExpression) -> None:
        """It was not evaluated where nothing is selected; now it is."""
        for found in remarks(self.module, node):
            if found.concern in ("steep", "costly"):
                continue
            if found.concern == "raises" and self._is_static_pick(found.subscript):
                continue
            raise Refused(found.words)

    def _is_static_pick(self, node: cst.Subscript | None) -> bool:
        """`self.experts[i]`: there or not, whatever the numbers are."""
        return node is not None and all(
            isinstance(each.slice, cst.Slice) or isinstance(each.slice.value, _STATIC)  # type: ignore[attr-defined]
            for each in node.slice
        )

    def _picks(self, node: cst.Subscript) -> bool:
        """Does one of its indices select rows, and do the others only say where?"""
        found = False
        for each in node.slice:
            if isinstance(each.slice, cst.Slice):
                continue
            assert isinstance(each.slice, cst.Index)
            value = each.slice.value
            if self._code(value) in self.selected.all:
                found = True
            elif not self._is_place(value):
                return False
        return found

    def _check_fits(self, node: cst.Subscript) -> None:
        """Raises `Refused` where what rows are picked from has no such rows: `x[mask]` raises for
        a mask of another size also if nothing is selected."""
        if not self.own:
            return
        index = getattr(node.slice[0].slice, "value", None)
        code = self._code(index) if index is not None else ""
        check_fits(self.subject, node, code if code in self.selected.masks else "")

    def _is_place(self, node: cst.BaseExpression) -> bool:
        if isinstance(node, (cst.Integer, cst.Ellipsis)):
            return True
        return isinstance(node, cst.Name) and node.value == "None"

    def _subscript(self, node: cst.Subscript) -> bool:
        if not self._names_rows(node.value):
            if self._picks(node):
                self._check_quiet(node.value)
                self._check_fits(node)
                return True
        elif self.is_rows(node.value):
            first = node.slice[0].slice
            whole = isinstance(first, cst.Slice) and not (first.lower or first.upper or first.step)
            rest = [each.slice for each in node.slice[1:] if isinstance(each.slice, cst.Index)]
            if (whole or _is_dots(first)) and all(self._is_place(each.value) for each in rest):
                return True
        raise Refused(f"of no rows, `{self._head(node)}` may raise")

    def _operation(self, node: cst.BinaryOperation) -> bool:
        left, right = (self.is_rows(each) for each in (node.left, node.right))
        if isinstance(node.operator, cst.MatrixMultiply):
            if left and not right:
                return True
        elif isinstance(node.operator, _ARITHMETIC):
            for rows, side in ((left, node.left), (right, node.right)):
                if not rows and not self._is_number(side):
                    raise Refused(f"`{self._head(side)}` may not fit to no rows")
            return True
        raise Refused(f"of no rows, `{self._head(node)}` may be anything")

    def _is_number(self, node: cst.BaseExpression) -> bool:
        if number(node) is not None:
            return True
        if not self.own:
            return False
        seen = facts_of(self.subject, node)
        one = bool(seen) and all(f.kind == "tensor" and f.shape == () for f in seen)
        return one or is_static(self.subject, node)

    def _call(self, call: cst.Call) -> bool:
        if any(arg.star for arg in call.args):
            raise Refused(f"it is unknown what `{self._head(call)}` is given")
        name = operator_of(self.module, call)
        if name is None:
            return self._layer(call)
        given = [arg.value for arg in call.args if arg.keyword is None]
        named = {arg.keyword.value: arg.value for arg in call.args if arg.keyword is not None}
        if isinstance(call.func, cst.Attribute) and not _is_function(self.module, call):
            given.insert(0, call.func.value)
        if not given or not self.is_rows(given[0]):
            raise Refused(f"of no rows, `{self._head(call)}` may be anything")
        rest = [*given[1:], *named.values()]
        if name in _BY_WEIGHTS and len(given) > 1:
            if not any(self.is_rows(each) for each in rest):
                return True
        elif name in operators.ROW_BY_ROW:
            if all(self._is_setting(each) for each in rest):
                return True
        elif name in _OVER_THE_LAST:
            if self._last_dimension(name, rest, named):
                return True
        elif name in ("view", "reshape") and self._is_table(given[1:]):
            return True
        raise Refused(f"of no rows, `{self._head(call)}` may be anything")

    def _is_table(self, sizes: list[cst.BaseExpression]) -> bool:
        """(-1, d): of no rows it is (0, d), for every d but 0."""
        return len(sizes) == 2 and number(sizes[0]) == -1 and self._is_number(sizes[1])

    def _is_setting(self, node: cst.BaseExpression) -> bool:
        """A number, a dtype, or other rows."""
        if self._names_rows(node):
            return self.is_rows(node)
        if isinstance(node, cst.Attribute):
            dtype = any(each.startswith("torch.") for each in self.module.meaning(node))
            if dtype or node.attr.value in ("dtype", "device"):
                return True
        return self._is_number(node) or isinstance(node, cst.SimpleString)

    def _last_dimension(
        self, name: str, rest: list[cst.BaseExpression], named: dict[str, cst.BaseExpression]
    ) -> bool:
        """Is it told to work along the last dimension? A single `squeeze()` may drop the rows."""
        dim = named.get("dim")
        if dim is None and rest and (name in ("unsqueeze", "squeeze", "softmax") or len(rest) > 1):
            dim = rest[-1]
        return dim is not None and number(dim) == -1 and not any(map(self._names_rows, rest))

    def _layer(self, call: cst.Call) -> bool:
        if len(call.args) != 1 or not self.is_rows(call.args[0].value):
            raise Refused(f"it is unknown what `{self._head(call)}` does with no rows")
        check_unhooked(self.subject, call)
        made = makers_of(self.subject, self.module, call, seen=self.own)
        if not made:
            raise Refused(f"it calls `{self._head(call)}`, and it is unknown what layer that is")
        for home, expression in made:
            self._check_layer(home, expression)
        return True

    def _check_layer(self, module: SourceModule, made: cst.BaseExpression) -> None:
        if isinstance(made, (cst.List, cst.Tuple)):
            for element in made.elements:
                self._check_layer(module, element.value)
        elif isinstance(made, (cst.ListComp, cst.GeneratorExp)):
            self._check_layer(module, made.elt)
        elif isinstance(made, cst.Call) and module.calls(made, *_HOLDING):
            for arg in made.args:
                self._check_layer(module, arg.value)
        elif isinstance(made, cst.Call):
            self._check_made(module, made)
        elif not isinstance(made, cst.Subscript) or module.code(made.value) not in _ACTIVATIONS:
            raise Refused(f"it is unknown what `{short(module, made)}` is")

    def _check_made(self, module: SourceModule, made: cst.Call) -> None:
        for meaning in module.meaning(made.func):
            package, _, name = meaning.rpartition(".")
            if package == "torch.nn":
                in_place = any(arg.keyword and arg.keyword.value == "inplace" for arg in made.args)
                if name in LAYERS_BY_ROW and not in_place:
                    return
                shown = short(module, made)
                raise Refused(f"a layer with `{shown}` may do more than compute row by row")
        self._check_class(module, made)

    def _check_class(self, module: SourceModule, made: cst.Call) -> None:
        found = class_of_layer(self.subject, module, made)
        if found is None or self.depth == 0:
            raise Refused(f"it is unknown what `{short(module, made.func)}` does with no rows")
        home, forward = found
        names = [each for each in parameters_of(forward) if each != receiver_of(home, forward)]
        inner = _Checker(self.subject, home, Selected(rows=set(names[:1])))
        inner.depth, inner.own = self.depth - 1, False
        if len(names) != 1:
            raise Refused(f"`{short(module, made.func)}` takes more than rows")
        for statement in statements_of(forward):
            inner.returned(statement)

    def returned(self, statement: cst.CSTNode) -> None:
        """A statement of a layer's `forward`."""
        if isinstance(statement, cst.SimpleStatementLine):
            last = statement.body[-1]
            if isinstance(last, cst.Return) and len(statement.body) == 1:
                if last.value is None or not self.is_rows(last.value):
                    raise Refused(f"a layer's `{self._head(last)}` is not of its rows")
                return
        self.statement(statement)


_STATIC = kinds(lambda: (cst.Name, cst.Integer, cst.Ellipsis))


def _is_dots(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.Index) and isinstance(node.value, cst.Ellipsis)


def _is_function(module: SourceModule, call: cst.Call) -> bool:
    """`torch.sin(x)`, not `x.sin()`."""
    func = call.func
    held = func.value if isinstance(func, cst.Attribute) else func
    torch = any(each.startswith("torch.") for each in module.meaning(func))
    return torch and isinstance(held, _NAMES)
