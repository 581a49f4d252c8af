"""The size of a result is passed, where a function reads it from a tensor only because nobody says.

`torch.repeat_interleave(x, counts)` reads how many rows there will be, and a helper such as
`scatter_sum(x, index, dim_size=None)` reads `index.max() + 1`. Where what follows raises for any
other size, that size is known without a look at the values.
"""

from __future__ import annotations

from collections.abc import Iterator

from compilescope.change.fixes.arguments.calls import argument_for
from compilescope.change.fixes.fix import Fix
from compilescope.change.fixes.patch import Patch
from compilescope.change.fixes.subject import Subject
from compilescope.change.fixes.values.constants import only_value
from compilescope.change.fixes.values.kinds import kind_of
from compilescope.change.fixes.values.required_sizes import Size, find_sizes
from compilescope.change.fixes.values.tensors import facts_of, is_static
from compilescope.knowledge.source.flow import operators
from compilescope.knowledge.source.flow.cuts import is_light_value
from compilescope.knowledge.source.flow.purity import operator_of
from compilescope.knowledge.source.refusals import NotMeant, Refused
from compilescope.knowledge.source.syntax.edit import Edit
from compilescope.knowledge.source.syntax.module import SourceModule
from compilescope.knowledge.source.syntax.snippets import number
from compilescope.knowledge.source.trees import cst

_CHECKED = (
    "Repeats that do not add up to `{}` raised an error behind this line; they raise one here, and "
    "on a GPU none at all."
)
_UNREAD = (
    "`{}` is `{}`: where the values come to less, rows of zeros take the place of an error, and "
    "where they come to more, another error is raised."
)
_LOSSES = frozenset({"cross_entropy", "nll_loss"})
"""They raise where the rows of both differ."""
_ADDING = frozenset({"index_add", "index_add_", "index_copy", "index_copy_"})
_ROW_LAYERS = frozenset(
    [
        "Linear",
        "LayerNorm",
        "BatchNorm1d",
        "Dropout",
        "Identity",
        "ReLU",
        "GELU",
        "SiLU",
        "ELU",
        "LeakyReLU",
        "Tanh",
        "Sigmoid",
    ]
)


def _propose(subject: Subject) -> Patch:
    module, node = subject.module, subject.node
    call = node if isinstance(node, cst.Call) else None
    if call is not None and operator_of(module, call) == "repeat_interleave":
        return _for_repeats(subject, call)
    return _for_helper(subject)


# An operator's own argument


def _for_repeats(subject: Subject, call: cst.Call) -> Patch:
    module = subject.module
    if any(arg.keyword is not None and arg.keyword.value == "output_size" for arg in call.args):
        raise Refused("its size is passed already")
    if any(arg.star for arg in call.args) or not _repeats_rows(subject, call):
        raise Refused("it is not the rows that are repeated")
    size = _size_of(subject, call)
    edit = Edit(module)
    edit.replace(call, _with_argument(edit, call, "output_size", size))
    return Patch(
        edit.files(),
        states=_CHECKED.format(size),
        allows=frozenset({"fewer-errors", "exception-type"}),
    )


def _repeats_rows(subject: Subject, call: cst.Call) -> bool:
    plain = [arg.value for arg in call.args if arg.keyword is None]
    named = {arg.keyword.value: arg.value for arg in call.args if arg.keyword is not None}
    method = _is_method(subject.module, call)
    place = 1 if method else 2
    dim = named.get("dim") or (plain[place] if len(plain) > place else None)
    if dim is not None:
        return number(dim) == 0
    if not method and len(plain) == 1 and not named:
        return True  # The numbers of the rows.
    held = call.func.value if method and isinstance(call.func, cst.Attribute) else plain[0]
    return _is_arange(subject, held) or kind_of(subject, held).dims == 1


def _is_arange(subject: Subject, node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.Call) and operator_of(subject.module, node) == "arange"


# A parameter of one's own function


def _for_helper(subject: Subject) -> Patch:
    module, statement = subject.module, subject.statement
    name = _read_where_none(module, statement)
    function = subject.function
    defaults = {each.name.value: each.default for each in function.params.params}
    defaults |= {each.name.value: each.default for each in function.params.kwonly_params}
    if not _is_none(defaults.get(name)):
        raise NotMeant("it sets no parameter that is None unless it is given")
    edits: dict[str, Edit] = {}
    sizes: list[str] = []
    for where, call in _calls(subject, function, name):
        size = _size_of(subject.at(where, call), call)
        edit = edits.setdefault(where.path, Edit(where))
        edit.replace(call, _with_argument(edit, call, name, size))
        sizes.append(size)
    if not edits:
        raise NotMeant("no call of the function is known")
    files = {path: text for edit in edits.values() for path, text in edit.files().items()}
    return Patch(
        files,
        states=_UNREAD.format(name, sizes[0]),
        allows=frozenset({"fewer-errors", "exception-type"}),
    )


def _read_where_none(module: SourceModule, statement: cst.BaseStatement) -> str:
    """The name that the line sets, if it is None."""
    part = statement.body[0] if isinstance(statement, cst.SimpleStatementLine) else None
    target = part.targets[0].target if isinstance(part, cst.Assign) else None
    if not isinstance(part, cst.Assign) or not isinstance(target, cst.Name):
        raise NotMeant("it sets no name")
    branch = module.parent(module.block_of(statement))
    if isinstance(part.value, cst.IfExp):
        test = part.value.test
    elif isinstance(branch, cst.If) and len(branch.body.body) == 1 and branch.orelse is None:
        test = branch.test
    else:
        raise NotMeant("it does not ask whether a size was given")
    if module.code(test) not in (f"{target.value} is None", f"{target.value} is not None"):
        raise NotMeant("it does not ask whether a size was given")
    return target.value


def _is_none(node: cst.BaseExpression | None) -> bool:
    return isinstance(node, cst.Name) and node.value == "None"


def _calls(
    subject: Subject, function: cst.FunctionDef, name: str
) -> Iterator[tuple[SourceModule, cst.Call]]:
    """Those that came to the line."""
    program = subject.program
    found: list[tuple[str, int]] = []
    for event in program.run.events_with(subject.finding.because):
        if len(event.stack) > 1:
            frame = event.stack[-2]
            found.append((frame.file, frame.line))
    for file, line in dict.fromkeys(found):
        if not program.is_own(file):
            raise Refused("it is called in an installed package")
        module = program.module(file)
        calls = [
            each
            for each in module.walk()
            if isinstance(each, cst.Call)
            and _last_name(each.func) == function.name.value
            and module.line(each) <= line <= module.position(each).end.line
            and argument_for(module, function, each, name) is None
        ]
        if len(calls) != 1 or any(arg.star for arg in calls[0].args):
            raise Refused(f"it is unknown which call on line {line} comes here")
        yield module, calls[0]


def _last_name(node: cst.BaseExpression) -> str:
    node = node.attr if isinstance(node, cst.Attribute) else node
    return node.value if isinstance(node, cst.Name) else ""


# What size


def _size_of(subject: Subject, call: cst.Call) -> str:
    found = next(find_sizes(subject, call, _rows_asked_by, _with_as_many_rows), None)
    if found is None:
        raise Refused("nothing that follows says how many rows there must be")
    return f"{subject.module.code(found.of)}{found.which}"


def _with_argument(edit: Edit, call: cst.Call, name: str, size: str) -> cst.Call:
    given = cst.Arg(
        edit.expression(size),
        keyword=cst.Name(name),
        equal=cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace("")),
    )
    comma = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
    args = list(call.args)
    if args and not isinstance(args[-1].comma, cst.Comma):
        args[-1] = args[-1].with_changes(comma=comma)
    return call.with_changes(args=[*args, given])


def _with_as_many_rows(subject: Subject, node: cst.BaseExpression) -> cst.BaseExpression:
    """All of `head(node.float()).squeeze(-1)`, and of `table[node]`."""
    while (around := _around(subject, node)) is not None:
        node = around
    return node


def _around(subject: Subject, node: cst.BaseExpression) -> cst.BaseExpression | None:
    module = subject.module
    above = module.parent(node)
    if isinstance(above, cst.Attribute) and above.value is node:
        call = module.parent(above)
        if isinstance(call, cst.Call) and call.func is above and _keeps_rows(subject, call):
            return call
        return None
    if isinstance(above, cst.BinaryOperation):
        other = above.right if above.left is node else above.left
        plain = isinstance(above.operator, (cst.Add, cst.Subtract, cst.Multiply, cst.Divide))
        return above if plain and is_static(subject, other) else None
    if isinstance(above, cst.Arg) and above.keyword is None:
        call = module.parent(above)
        if isinstance(call, cst.Call) and call.args[0] is above and len(call.args) == 1:
            known = _is_row_layer(subject, call.func) or _keeps_rows(subject, call)
            return call if known else None
        return None
    if isinstance(above, cst.Index) and kind_of(subject, node).dtype in ("int64", "int32"):
        picked = module.parent(module.parent(above) or above)
        alone = isinstance(picked, cst.Subscript) and len(picked.slice) == 1
        return picked if alone and isinstance(picked, cst.Subscript) else None
    return None


def _is_row_layer(subject: Subject, func: cst.BaseExpression) -> bool:
    """One of torch's, which gives a row for each that it gets."""
    seen = facts_of(subject, func)
    if seen:
        return all(
            each.type.startswith("torch.nn.") and each.type.rpartition(".")[2] in _ROW_LAYERS
            for each in seen
        )
    try:
        made = only_value(subject, func)
    except Refused:
        return False
    names = [f"torch.nn.{each}" for each in _ROW_LAYERS]
    return isinstance(made, cst.Call) and subject.module.calls(made, *names)


def _is_method(module: SourceModule, call: cst.Call) -> bool:
    """Of a tensor, and not torch's function."""
    named = any(operators.plain_name(each) for each in module.meaning(call.func))
    return isinstance(call.func, cst.Attribute) and not named


def _keeps_rows(subject: Subject, call: cst.Call) -> bool:
    name = operator_of(subject.module, call)
    if name in ("squeeze", "unsqueeze"):
        dims = [number(arg.value) for arg in call.args]
        return dims == [-1] or dims == [1]
    given = call.args if _is_method(subject.module, call) else call.args[1:]
    return name in operators.ROW_BY_ROW and all(is_static(subject, arg.value) for arg in given)


def _rows_asked_by(subject: Subject, node: cst.BaseExpression) -> Iterator[Size]:
    """By the operator that it is given to."""
    module = subject.module
    above = module.parent(node)
    if isinstance(above, cst.Element):
        call = module.parent(module.parent(module.parent(above) or above) or above)
        if isinstance(call, cst.Call):
            yield from _beside(subject, call, above)
    elif isinstance(above, cst.Arg) and above.keyword is None:
        call = module.parent(above)
        if isinstance(call, cst.Call) and not any(arg.star for arg in call.args):
            place = list(call.args).index(above)
            for each in _others_rows(subject, call, place):
                if is_light_value(module, each):
                    yield Size(each, ".shape[0]")


def _others_rows(subject: Subject, call: cst.Call, place: int) -> Iterator[cst.BaseExpression]:
    """What has as many rows as the argument at a place."""
    name, values = operator_of(subject.module, call), [arg.value for arg in call.args]
    if name in _LOSSES and place < 2 <= len(values):
        yield values[1 - place]
    method = _is_method(subject.module, call)
    if name in _ADDING and method and len(values) == 3 and place and number(values[0]) == 0:
        yield values[3 - place]


def _beside(subject: Subject, call: cst.Call, element: cst.Element) -> Iterator[Size]:
    """Tensors that are joined along another dimension have as many rows."""
    module = subject.module
    if operator_of(module, call) not in ("cat", "concat"):
        return
    dims = [arg.value for arg in call.args[1:]]
    parts = call.args[0].value
    if len(dims) != 1 or not isinstance(parts, (cst.List, cst.Tuple)):
        return
    for each in parts.elements:
        value = each.value
        if each is element or not is_light_value(module, value):
            continue
        dim, known = number(dims[0]), kind_of(subject, value).dims
        if (isinstance(dim, int) and dim > 0) or (dim == -1 and (known or 0) > 1):
            yield Size(value, ".shape[0]")


FIX = Fix(
    id="size-given",
    title="pass the size instead of reading it",
    rules=frozenset({"dynamic-shape", "GB0036", "GB0124", "scalar-extraction"}),
    order=105,
    kind="source",
    why="What follows raises unless the result has as many rows as a tensor of the program. So that "
    "is what was read from the values in every call that returned.",
    propose=_propose,
    observable=True,
)
