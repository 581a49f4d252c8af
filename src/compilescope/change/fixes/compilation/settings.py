"""Settings of a compilation that a fix changes, for as little of the program as can be.

Arguments of torch.compile, its stance, and flags of `torch._dynamo.config`.

Where every compilation that a finding is about begins in a function given to `torch.compile`, a
flag holds while that function is called (`torch._dynamo.config.patch`: torch 2.13 compiles, and
compiles again, inside the call, so that is enough). Else it is set once, after the imports of
the main file, and holds for the whole program; the patch states that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from compilescope.change.fixes.compilation.regions import (
    Application,
    Region,
    applications_behind,
    region_of,
)
from compilescope.change.fixes.patch import Allowance, Patch
from compilescope.change.fixes.subject import Subject
from compilescope.knowledge.source.refusals import NotMeant, Refused
from compilescope.knowledge.source.syntax.edit import Edit
from compilescope.knowledge.source.trees import cst


def _no_space() -> cst.AssignEqual:
    return cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))


def set_argument(edit: Edit, region: Region, name: str, value: str) -> None:
    """`torch.compile(f)` with `name=value`; in place of what was given for it."""
    new = edit.expression(value)
    call = region.call
    if call is None:
        assert isinstance(region.node, cst.BaseExpression)
        arg = cst.Arg(new, keyword=cst.Name(name), equal=_no_space())
        edit.replace(region.node, cst.Call(region.node, [arg]))
        return
    if region.argument(name) is None and region.takes_a_bundle:
        raise Refused("torch.compile gets its options from a dict, which may already set it")
    set_keyword(edit, call, name, value)


def set_keyword(
    edit: Edit, call: cst.Call, name: str, value: str, instead: cst.Arg | None = None
) -> None:
    """`f(a)` with `name=value`; in place of what was given for it, or of another argument."""
    new = edit.expression(value)
    if instead is not None:
        edit.replace(instead, instead.with_changes(keyword=cst.Name(name), value=new))
        return
    for known in call.args:
        if known.keyword is not None and known.keyword.value == name:
            edit.replace(known.value, new)
            return
    arg = cst.Arg(new, keyword=cst.Name(name), equal=_no_space())
    edit.replace(call, call.with_changes(args=_with(call, arg)))


def remove_argument(edit: Edit, region: Region, name: str) -> None:
    """`torch.compile(f, mode=m)` of `torch.compile(f, mode=m, dynamic=False)`."""
    call, gone = region.call, region.argument(name)
    assert call is not None and gone is not None
    edit.replace(call, without_arguments(call, [gone]))


def without_arguments(call: cst.Call, gone: Sequence[cst.Arg]) -> cst.Call:
    kept = [arg for arg in call.args if arg not in gone]
    if kept and call.args[-1] in gone:  # The last one keeps what stood before the bracket.
        last = call.args[-1]
        end = {"comma": last.comma, "whitespace_after_arg": last.whitespace_after_arg}
        kept[-1] = kept[-1].with_changes(**end)
    return call.with_changes(args=kept)


def _with(call: cst.Call, arg: cst.Arg) -> list[cst.Arg]:
    """The arguments and one more, in lines as the others are; comments stay with theirs."""
    if not call.args:
        return [arg]
    *first, last = call.args
    gap: cst.BaseParenthesizableWhitespace = cst.SimpleWhitespace(" ")
    if isinstance(call.whitespace_before_args, cst.ParenthesizedWhitespace):
        gap = call.whitespace_before_args.with_changes(first_line=cst.TrailingWhitespace())
    trailing = isinstance(last.comma, cst.Comma)
    end = last.comma.whitespace_after if trailing else last.whitespace_after_arg  # type: ignore[union-attr]
    if isinstance(end, cst.ParenthesizedWhitespace):
        if isinstance(gap, cst.ParenthesizedWhitespace):
            gap = gap.with_changes(first_line=end.first_line)
        end = end.with_changes(first_line=cst.TrailingWhitespace())
    if trailing:
        arg = arg.with_changes(comma=cst.Comma(whitespace_after=end))
    else:
        arg = arg.with_changes(whitespace_after_arg=end)
    last = last.with_changes(
        comma=cst.Comma(whitespace_after=gap), whitespace_after_arg=cst.SimpleWhitespace("")
    )
    return [*first, last, arg]


def main_edit(subject: Subject) -> Edit:
    """For changes of the script. Raises `Refused` for `-c`."""
    if not subject.program.main:
        raise Refused("the program has no file to set it in")
    if not subject.program.is_own(subject.program.main):
        raise Refused("the program is not one of your own files")
    return Edit(subject.program.module(subject.program.main))


def put_setting(edit: Edit, lines: str, package: str = "torch") -> None:
    """Lines after the import of what they need, with a blank one between; those that are there are
    left out. Raises `Refused` where all are."""
    there = {edit.module.code(each).strip() for each in edit.module.walk() if _is_line(each)}
    new = [line for line in lines.splitlines() if line not in there]
    if not new:
        raise NotMeant("it is already set")
    edit.put_setting("\n".join(new), package, apart=True)


_ASKED = "`dynamic=False` was set: graphs are no longer compiled for each size."


def price_of_dynamic(subject: Subject) -> str:
    """What the user could notice of `dynamic=True`. Raises `Refused` where it is unclear what is
    set now."""
    known = region_of(subject).argument("dynamic")
    if known is None:
        return ""
    if not isinstance(known.value, cst.Name):
        raise Refused("it is unclear what `dynamic` is set to")
    return _ASKED if known.value.value == "False" else ""


def with_dynamic(subject: Subject, flags: Mapping[str, bool]) -> dict[str, str]:
    """New texts in which flags hold for the whole program, and what it compiles is dynamic: they
    only let a value vary, and without `dynamic=True` that takes one recompile."""
    main = main_edit(subject)
    config = f"{main.module_name('torch')}._dynamo.config"
    put_setting(main, "\n".join(f"{config}.{flag} = {value}" for flag, value in flags.items()))
    files: dict[str, str] = {}
    region = region_of(subject)
    known = region.argument("dynamic")
    if known is None or region.module.code(known.value) != "True":
        same = region.module.path == main.module.path
        edit = main if same else Edit(region.module)
        set_argument(edit, region, "dynamic", "True")
        files.update({} if same else edit.files())
    files.update(main.files())
    return files


def _is_line(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.SimpleStatementLine)


_PATCHES = ("torch._dynamo.config.patch",)


def with_flag(
    subject: Subject,
    flag: str,
    value: object,
    *,
    edit: Edit | None = None,
    states: str = "",
    allows: frozenset[Allowance] = frozenset(),
) -> Patch:
    """A patch that sets a flag: `with_flag(subject, "capture_scalar_outputs", True)`.

    A `str` is an expression of Python (`"{print}"`); any other value is written as its repr. What
    `edit` has gathered for a file goes into the same patch. Raises `Refused` where the flag is
    set already, or there is no file to set it in.
    """
    return with_flags(subject, {flag: value}, edit=edit, states=states, allows=allows)


def with_flags(
    subject: Subject,
    flags: Mapping[str, object],
    *,
    edit: Edit | None = None,
    states: str = "",
    allows: frozenset[Allowance] = frozenset(),
) -> Patch:
    """Several at once. A flag that is set already is left out; `Refused` where all are."""
    edits = {edit.module.path: edit} if edit is not None else {}
    values = {flag: each if isinstance(each, str) else repr(each) for flag, each in flags.items()}
    places = applications_behind(subject)
    if places:
        for place in places:
            changes = edits.setdefault(place.module.path, Edit(place.module))
            _set_around(changes, place, values)
    else:
        main = main_edit(subject)
        changes = edits.setdefault(main.module.path, main)
        _set_for_all(changes, values)
        names = " and ".join(f"`torch._dynamo.config.{flag}`" for flag in flags)
        states = (
            f"{states} {names} {'apply' if len(flags) > 1 else 'applies'} to the whole program."
        )
    files = {path: text for each in edits.values() for path, text in each.files().items()}
    return Patch(files, states=states.strip(), allows=allows)


_WIDTH = 88
"""Columns of a line. Chosen: what Black and Ruff leave a line by default."""


def _set_around(edit: Edit, place: Application, values: dict[str, str]) -> None:
    known = next(_patches_around(place), None)
    if known is not None:
        edit.replace(known, _with_keywords(edit, known, values))
        return
    keywords = ", ".join(f"{flag}={text}" for flag, text in values.items())
    patch = edit.expression(f"{edit.module_name('torch')}._dynamo.config.patch({keywords})")
    if isinstance(place.node, cst.Call):
        made = cst.Call(func=patch, args=[cst.Arg(place.node)])
        module = place.module
        column = module.position(place.node).start.column
        long = column + len(module.code(made)) > _WIDTH
        edit.replace(place.node, _on_lines_of_its_own(made) if long else made)
        return
    above = cst.Decorator(patch, leading_lines=place.node.leading_lines)
    both = cst.FlattenSentinel([above, place.node.with_changes(leading_lines=())])
    edit.replace(place.node, both)  # type: ignore[arg-type]


def _on_lines_of_its_own(call: cst.Call) -> cst.Call:
    """As formatters break a call with one argument."""
    end = cst.ParenthesizedWhitespace(indent=True)
    begin = end.with_changes(last_line=cst.SimpleWhitespace("    "))
    (argument,) = call.args
    argument = argument.with_changes(whitespace_after_arg=end)
    return call.with_changes(whitespace_before_args=begin, args=[argument])


def _patches_around(place: Application) -> Iterator[cst.Call]:
    """Calls of `config.patch` with keywords that the compiled function is in already."""
    module, node = place.module, place.node
    candidates: list[cst.CSTNode | None] = []
    if isinstance(node, cst.Decorator):
        function = module.parent(node)
        assert isinstance(function, cst.FunctionDef)
        candidates = [each.decorator for each in function.decorators]
    else:
        outer = module.around(node, cst.Call)
        if outer is not None and any(arg.value is node for arg in outer.args):
            candidates = [outer.func]
    for each in candidates:
        if not isinstance(each, cst.Call) or not module.calls(each, *_PATCHES):
            continue
        if each.args and all(arg.keyword is not None for arg in each.args):
            yield each


def _with_keywords(edit: Edit, call: cst.Call, values: dict[str, str]) -> cst.Call:
    args = list(call.args)
    there = {arg.keyword.value: place for place, arg in enumerate(args) if arg.keyword is not None}
    for flag, text in values.items():
        made = edit.expression(f"f({flag}={text})")
        assert isinstance(made, cst.Call)
        if flag not in there:
            args.append(made.args[0])
            continue
        old = args[there[flag]]
        now, wanted = old.value, made.args[0].value
        if isinstance(now, cst.Set) and isinstance(wanted, cst.Set):
            both = _joined(edit, now, wanted)
            args[there[flag]] = old if both is now else old.with_changes(value=both)
    if len(args) == len(call.args) and all(a is b for a, b in zip(args, call.args, strict=True)):
        raise NotMeant(f"{' and '.join(values)} is already set")
    return call.with_changes(args=args)


def _joined(edit: Edit, now: cst.Set, wanted: cst.Set) -> cst.Set:
    codes = {edit.module.code(each.value) for each in now.elements}
    new = [each for each in wanted.elements if edit.module.code(each.value) not in codes]
    if not new:
        return now
    return cst.Set([cst.Element(each.value) for each in (*now.elements, *new)])


def _set_for_all(edit: Edit, values: dict[str, str]) -> None:
    config = f"{edit.module_name('torch')}._dynamo.config"
    lines = [
        f"{config}.{flag} {'|=' if text.startswith('{') else '='} {text}"
        for flag, text in values.items()
    ]
    there = {edit.module.code(each).strip() for each in edit.module.walk() if _is_line(each)}
    lines = [line for line in lines if line not in there]
    if not lines:
        raise NotMeant(f"{' and '.join(values)} is already set")
    edit.put_setting("\n".join(lines), "torch", apart=True)


STATES = "The first call of every compiled function in the program runs eagerly."


def eager_then_compile(subject: Subject) -> Patch:
    """One line in the script. Raises `Refused` where the program has a stance of its own."""
    edit = main_edit(subject)
    for node in edit.module.walk():
        if isinstance(node, cst.Call) and edit.module.calls(node, "torch.compiler.set_stance"):
            raise Refused("the program sets a stance itself")
    put_setting(edit, f'{edit.module_name("torch")}.compiler.set_stance("eager_then_compile")')
    return Patch(edit.files(), states=STATES, allows=frozenset({"prepares-eagerly"}))
