"""The argument that a failed guard is about (`batch["ids"]` is in `batch`), and changes of it at
all calls of a compiled function.

What is no argument of the call, as a global or a weight, is refused.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, TypeAlias

import msgspec

from compilescope.base.patterns import late
from compilescope.change.fixes.arguments.calls import (
    CallSite,
    call_sites,
    hoisted,
    statement_before,
)
from compilescope.change.fixes.compilation.regions import is_compiled
from compilescope.change.fixes.subject import Subject
from compilescope.knowledge.source.flow.liveness import targets
from compilescope.knowledge.source.refusals import NotMeant, Refused
from compilescope.knowledge.source.syntax.bindings import local_names, receiver_of
from compilescope.knowledge.source.syntax.edit import Edit
from compilescope.knowledge.source.syntax.module import SourceModule
from compilescope.knowledge.source.trees import cst


class CallEdits:
    """The edits of the files in which the function is called."""

    def __init__(self, subject: Subject) -> None:
        self.sites = call_sites(subject)
        self._edits: dict[str, Edit] = {}

    def edit(self, site: CallSite) -> Edit:
        return self.edit_of(site.module)

    def edit_of(self, module: SourceModule) -> Edit:
        """Of a file in which something changes with the calls."""
        return self._edits.setdefault(module.path, Edit(module))

    def covers(self, function: cst.FunctionDef, modules: Iterable[SourceModule]) -> bool:
        """Is each call by the function's name in these files among those that are changed?"""
        sites = {site.call for site in self.sites}
        name = function.name.value
        calls = (node for module in modules for node in module.walk() if isinstance(node, cst.Call))
        return all(
            node in sites or getattr(getattr(node.func, "attr", node.func), "value", "") != name
            for node in calls
        )

    def files(self) -> dict[str, str]:
        texts: dict[str, str] = {}
        for edit in self._edits.values():
            texts.update(edit.files())
        return texts


MarkLine: TypeAlias = "Callable[[str, str], str]"


def dynamic_line(dim: int) -> MarkLine:
    return lambda torch, x: f"{torch}._dynamo.maybe_mark_dynamic({x}, {dim})"


def mark_arguments(subject: Subject, values: Iterable[tuple[str, MarkLine]]) -> dict[str, str]:
    """New texts in which `line(torch, expression)` stands before every call, for each of the
    values, with its argument under a name."""
    edits = CallEdits(subject)
    wanted = list(dict.fromkeys(values))
    done: set[tuple[cst.CSTNode, str]] = set()
    for site in edits.sites:
        edit = edits.edit(site)
        if is_compiled(subject, site.module, site.call):
            raise Refused("the call is in compiled code, where nothing can be marked")
        statement = statement_before(site)
        for text in _marks(subject, edit, site, wanted):
            if _is_there(site, statement, text):
                raise NotMeant("it is already marked")
            if (statement, text) not in done:
                done.add((statement, text))
                edit.put_before(statement, text)
    return edits.files()


def _marks(
    subject: Subject,
    edit: Edit,
    site: CallSite,
    values: list[tuple[str, MarkLine]],
) -> Iterator[str]:
    """The lines for one call, in the order of its arguments."""
    first, mark = values[0]
    asked = _parameters_asked(subject)
    given = [(passed(subject, site, first), first, mark)]
    for value, line in values[1:]:
        with contextlib.suppress(NotMeant):  # A local of the function, which follows the others.
            given.append((passed(subject, site, value), value, line))
    # Some calls leave it out: there is nothing to mark in `step(x, None)`.
    given = [each for each in given if each[0].starred or not _is_literal(each[0].arg.value)]
    given.sort(key=lambda each: site.call.args.index(each[0].arg))
    named: dict[cst.Arg, str] = {}
    for each, value, line in given:
        if each.starred:
            name = each.starred
        else:
            if each.arg not in named:
                wanted = split_name(value)
                named[each.arg] = hoisted(edit, site, each.arg, wanted, earlier=list(named))
            name = named[each.arg]
        test = _test_for(site, each, name, split_name(value) in asked)
        yield _marking(edit, site, name + each.path, line, test)


def _marking(edit: Edit, site: CallSite, value: str, line: MarkLine, test: _Test) -> str:
    """The line; in loops where it is for all items of a list, which may be empty, and under a
    condition where the value may not be there."""
    torch = edit.module_name("torch")
    lines = [f"if {test.whole}:"] if test.whole else []
    name, *items = value.split(_EACH)
    scope = site.module.scope(site.call)
    for level in range(len(items)):
        item = "tensor" + "s" * (len(items) - 1 - level)
        item = edit.module.fresh_name(item) if scope is not None and item in scope else item
        lines.append(f"for {item} in {name}:")
        if test.items and not level:
            lines.append(f"if {item} is not None:")
        name = item
    if test.items and not items:
        lines.append(f"if {name} is not None:")
    return "\n".join("    " * at + each for at, each in enumerate([*lines, line(torch, name)]))


class _Test(NamedTuple):
    """What to ask before a value is marked."""

    whole: str = ""
    """Of the argument: `cache is not None`."""
    items: bool = False
    """Each of its items may be None."""


def _test_for(site: CallSite, given: Passed, name: str, asked: bool) -> _Test:
    """Some calls may pass None, or an empty dict, for what others pass a tensor in. `asked`: the
    function asks whether the parameter is None."""
    argument = given.arg.value
    if given.starred or not isinstance(argument, (cst.Name, cst.Attribute, cst.Subscript)):
        return _Test()
    values = list(_values_of(site.module, argument))
    items = bool(given.path) and any(_holds_none(site.module, each) for each in values)
    if given.path.startswith("['") and any(_is_empty_dict(site.module, each) for each in values):
        return _Test(name, items)
    unknown = not isinstance(argument, cst.Name) or not values
    if any(_is_none(each) for each in values) or (asked and unknown):
        return _Test(f"{name} is not None", items)
    return _Test("", items)


def _values_of(module: SourceModule, node: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    """What is assigned to the name in its function, or to the attribute in its file."""
    code, function = module.code(node), module.function_of(node)
    own = isinstance(node, cst.Name) and function is not None and code in local_names(function)
    for each in module.walk(function.body if own and function is not None else None):
        assigned = each.value if isinstance(each, (cst.Assign, cst.AnnAssign)) else None
        if assigned is not None and any(module.code(one) == code for one in targets(each)):
            yield assigned
        if isinstance(each, cst.Assign) and isinstance(each.value, (cst.Tuple, cst.List)):
            for target in each.targets:
                if isinstance(target.target, (cst.Tuple, cst.List)):
                    pairs = zip(target.target.elements, each.value.elements, strict=False)
                    yield from (
                        value.value for one, value in pairs if module.code(one.value) == code
                    )
    if own and function is not None:
        for param in (*function.params.params, *function.params.kwonly_params):
            if param.name.value == code and param.default is not None:
                yield param.default


def _parameters_asked(subject: Subject) -> set[str]:
    """Those that the compiled function compares with None, or has None for a default."""
    frame = subject.frame
    assert frame is not None
    module = subject.program.module(frame.file)
    function = function_at(module, frame.line, frame.function)
    if not isinstance(function, cst.FunctionDef):
        return set()
    params = (*function.params.params, *function.params.kwonly_params)
    found = {each.name.value for each in params if each.default and _is_none(each.default)}
    for node in module.walk(function.body):
        left = node.left if isinstance(node, cst.Comparison) else None
        if isinstance(left, cst.Name) and any(_is_none(e.comparator) for e in node.comparisons):  # type: ignore[attr-defined]
            found.add(left.value)
    return found


def _is_none(node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.Name) and node.value == "None"


def _holds_none(module: SourceModule, node: cst.BaseExpression) -> bool:
    """`[None] * n`, `{"k": None}`."""
    kinds = (cst.Element, cst.DictElement)
    comps = (cst.ListComp, cst.DictComp)
    for each in module.walk(node):
        value = each.value if isinstance(each, kinds) else None
        value = (
            getattr(each, "elt", getattr(each, "value", None)) if isinstance(each, comps) else value
        )
        if value is not None and _is_none(value):
            return True
    return False


def _is_empty_dict(module: SourceModule, node: cst.BaseExpression) -> bool:
    made = module.calls(node, "builtins.dict") and not getattr(node, "args", ())
    return made or (isinstance(node, cst.Dict) and not node.elements)


def _is_literal(node: cst.BaseExpression) -> bool:
    named = isinstance(node, cst.Name) and node.value in ("None", "True", "False")
    return named or isinstance(node, (cst.BaseNumber, cst.BaseString))


def split_name(value: str) -> str:
    """What to call the argument, if it needs a name."""
    if value.startswith("kwargs['"):
        return value.removeprefix("kwargs['").split("'")[0]
    name = split_subject(value)[0]
    return "first" if name == "args" else name


def _is_there(site: CallSite, statement: cst.CSTNode, text: str) -> bool:
    block = site.module.block_of(site.module.statement_of(statement))
    above = [each for each in block.body if site.module.line(each) < site.module.line(statement)]
    return any(site.module.code(each).strip() == text for each in above)


def wrap_argument(
    subject: Subject,
    value: str,
    wrap: Callable[[CallSite, str], str],
    edits: CallEdits | None = None,
) -> dict[str, str]:
    """New texts in which every call passes `wrap(site, argument)` for an argument; what it leaves
    as it is stays. `edits`: with those, made already."""
    edits = edits or CallEdits(subject)
    changed = False
    for site in edits.sites:
        given = passed(subject, site, value)
        if not given.is_whole:
            raise Refused(f"`{value}` is part of an argument")
        now = site.module.code(given.arg.value)
        new = wrap(site, now)
        if new != now:
            edit = edits.edit(site)
            new = new.replace("torch.", f"{edit.module_name('torch')}.", 1)
            edit.replace(given.arg.value, edit.expression(new))
            changed = True
    if not changed:
        raise NotMeant("every call already passes it this way")
    return edits.files()


def operand(text: str) -> str:
    """Code that a dot can follow: `(a + b)`, `x`."""
    tree = cst.parse_expression(text)
    simple = (cst.Name, cst.Attribute, cst.Subscript, cst.Call)
    return text if isinstance(tree, simple) or tree.lpar else f"({text})"


_EACH = "[*]"
"""In a value's name: each of the items there."""
_ROOT = late(r"[A-Za-z_]\w*")
_KEYWORD = late(r"^kwargs\['(\w+)'\]")
_POSITION = late(r"^args\[(\d{1,9})\]")
_COMPUTED = late(r"\[(?!-?\d+\]|\*\]|['\"])")
"""`x[mask]`, `x[1:]`. What a call passes is guarded with a constant there."""
_STORED = late(r"\.(?:_modules|_parameters|_buffers)\['")


class Passed(msgspec.Struct, frozen=True):
    """What a call passes for the value that a guard is about."""

    arg: cst.Arg
    path: str
    """From the argument to the value: `['mask']` where the argument is a dict; often empty."""
    starred: str = ""
    """The item of a `*args` or `**kwargs` argument that it is, as code; empty otherwise."""

    @property
    def is_whole(self) -> bool:
        """The argument itself is the value, so that it can be replaced."""
        return not self.path and not self.starred


def is_computed(value: str) -> bool:
    """Did the function itself make it, before a graph break?"""
    return _COMPUTED.search(value) is not None


def split_subject(value: str) -> tuple[str, str]:
    """(name, rest): `batch['a'][0]` is `batch` and `['a'][0]`. Raises `Refused` for what is no
    local of the function: a global, an attribute of a module, what an earlier break left."""
    elsewhere = value.startswith(("G[", "___", "self.", "fn.")) or _STORED.search(value)
    if elsewhere or is_computed(value):
        raise NotMeant(f"`{value}` is not passed to the compiled function at the call")
    root = _ROOT.match(value)
    if root is None:
        raise NotMeant(f"`{value}` is not an argument")
    return root[0], value[root.end() :]


def passed(subject: Subject, site: CallSite, value: str) -> Passed:
    """The argument behind a guard's value, such as `x` or `batch['ids']`."""
    keyword, position = _KEYWORD.match(value), _POSITION.match(value)
    if keyword is not None:
        return _given(site, keyword[1], None, value[keyword.end() :])
    if position is not None:
        return _given(site, "", int(position[1]), value[position.end() :])
    name, path = split_subject(value)
    return _given(site, name, _place_of(subject, name), path)


def _place_of(subject: Subject, name: str) -> int | None:
    """The position of a parameter in the call; None where it can only be a keyword."""
    frame = subject.frame
    assert frame is not None
    module = subject.program.module(frame.file)
    function = function_at(module, frame.line, frame.function)
    if isinstance(function, cst.FunctionDef):
        names = [
            each.name.value for each in (*function.params.posonly_params, *function.params.params)
        ]
        keywords = [each.name.value for each in function.params.kwonly_params]
        if receiver_of(module, function):
            names = names[1:]
        if name in names:
            return names.index(name)
        if name in keywords:
            return None
    elif isinstance(function, cst.Lambda):
        names = [each.name.value for each in function.params.params]
        if name in names:
            return names.index(name)
        if any(each.name.value == name for each in function.params.kwonly_params):
            return None
    raise NotMeant(f"`{name}` is not a parameter of {frame.function}")


def function_at(module: SourceModule, line: int, name: str) -> cst.FunctionDef | cst.Lambda | None:
    """The function whose code begins on a line: at its first decorator, where it has one."""
    for node in module.walk():
        if isinstance(node, cst.FunctionDef) and node.name.value == name:
            first = [module.line(each) for each in node.decorators]
            if line in (module.line(node), *first, module.line(node.name)):
                return node
        elif isinstance(node, cst.Lambda) and name == "<lambda>" and module.line(node) == line:
            return node
    return None


def _given(site: CallSite, name: str, place: int | None, path: str) -> Passed:
    positional = [each for each in site.call.args if each.keyword is None and each.star != "**"]
    for each in site.call.args:
        if each.keyword is not None and each.keyword.value == name:
            return Passed(each, path)
    if place is not None:
        for number, each in enumerate(positional[: place + 1]):
            if each.star:
                inner = f"{site.module.code(each.value)}[{place - number}]"
                return Passed(each, path, inner)
        if place < len(positional):
            return Passed(positional[place], path)
    bundles = [each for each in site.call.args if each.star == "**"]
    if len(bundles) == 1 and name:
        return Passed(bundles[0], path, f'{site.module.code(bundles[0].value)}["{name}"]')
    raise Refused(f"the call does not pass `{name or place}`")
