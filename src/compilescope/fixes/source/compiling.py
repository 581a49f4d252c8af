"""Settings of a compilation: torch.compile's own arguments, and one line for the whole program."""

from __future__ import annotations

import libcst as cst

from compilescope.fixes.patch import NotMeant, Refused
from compilescope.fixes.source.editing import Edit
from compilescope.fixes.source.regions import Region
from compilescope.fixes.subject import Subject

_NO_SPACE = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))


def set_argument(edit: Edit, region: Region, name: str, value: str) -> None:
    """`torch.compile(f)` with `name=value`; in place of what was given for it."""
    new = edit.expression(value)
    call = region.call
    if call is None:
        assert isinstance(region.node, cst.BaseExpression)
        arg = cst.Arg(new, keyword=cst.Name(name), equal=_NO_SPACE)
        edit.replace(region.node, cst.Call(region.node, [arg]))
        return
    known = region.argument(name)
    if known is not None:
        edit.replace(known.value, new)
        return
    if region.takes_a_bundle:
        raise Refused("torch.compile gets its options from a dict, which may already set it")
    arg = cst.Arg(new, keyword=cst.Name(name), equal=_NO_SPACE)
    edit.replace(call, call.with_changes(args=_with(call, arg)))


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


def put_setting(edit: Edit, line: str, package: str = "torch") -> None:
    """One line after the import of what it needs, with a blank one between."""
    if any(edit.module.code(each).strip() == line for each in edit.module.walk() if _is_line(each)):
        raise NotMeant("it is already set")
    edit.put_setting(line, package, apart=True)


def _is_line(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.SimpleStatementLine)
