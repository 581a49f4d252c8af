"""A field of a library's config, or an argument of the call, with which the line is not reached."""

from __future__ import annotations

from pathlib import Path

from compilescope.fixes.compilation.frames import is_frame_of
from compilescope.fixes.compilation.own_files import own_modules
from compilescope.fixes.compilation.switches import Switch, stack_places, switches_of
from compilescope.fixes.fix import Fix
from compilescope.fixes.patch import Patch
from compilescope.fixes.subject import Subject
from compilescope.model.bodies import GraphBreak
from compilescope.source.refusals import NotMeant, Refused
from compilescope.source.syntax.edit import Edit
from compilescope.source.syntax.module import SourceModule
from compilescope.source.trees import cst


def _no_space() -> cst.AssignEqual:
    return cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))


def _propose(subject: Subject) -> Patch:
    entering = ""
    for switch in switches_of(subject):
        places = _configs(subject, switch) if switch.of_config else _calls(subject)
        if not switch.of_config and any(_enters(subject, *each) for each in places):
            entering = entering or switch.name
            continue
        edits: dict[str, Edit] = {}
        for module, call in places:
            edit = edits.setdefault(module.path, Edit(module))
            if not _set(edit, call, switch):
                edits.clear()
                break
        if edits:
            files = {file: text for each in edits.values() for file, text in each.files().items()}
            return Patch(files, states=_states(switch))
    if entering:
        # Neither its inputs nor its results are those of the original: nothing can be compared.
        raise Refused(
            f"`{entering}` is an argument of the compiled call: with another, nothing can be compared",
            instead=f"If you need nothing of what `{entering}` is for, pass it to the call.",
        )
    raise NotMeant("no config field or call argument makes the program skip it")


def _enters(subject: Subject, module: SourceModule, call: cst.Call) -> bool:
    """Is it the call of what is compiled, and not one inside of it?"""
    line, run = module.line(call), subject.program.run
    compiled = {body.frame for _, body in run.of(GraphBreak) if body.frame is not None}
    for event in run.events_with(subject.finding.because):
        for frame in event.stack:
            if any(is_frame_of(frame, each) for each in compiled):
                break
            if (frame.file, frame.line) == (module.path, line):
                return True
    return False


def _states(switch: Switch) -> str:
    return f"`{switch.name}` is {switch.value}: what it controls is skipped."


def _configs(subject: Subject, switch: Switch) -> list[tuple[SourceModule, cst.Call]]:
    """Calls in the user's files that make a config of the library, or of the file itself."""
    package = _package(switch.file)
    found: list[tuple[SourceModule, cst.Call]] = []
    for module in own_modules(subject.program):
        for node in module.walk():
            if not isinstance(node, cst.Call) or not isinstance(
                node.func, (cst.Name, cst.Attribute)
            ):
                continue
            named = module.code(node.func).split(".")[-1]
            if not named.endswith(("Config", "Configuration")):
                continue
            meanings = module.meaning(node.func)
            if not package or any(each.split(".")[0] == package for each in meanings):
                found.append((module, node))
    return found


def _package(file: str) -> str:
    """`transformers` of `.../site-packages/transformers/models/x.py`; empty for own files."""
    parts = Path(file).parts
    for name in ("site-packages", "dist-packages"):
        if name in parts:
            return parts[parts.index(name) + 1].removesuffix(".py")
    return ""


def _calls(subject: Subject) -> list[tuple[SourceModule, cst.Call]]:
    """The call in the user's own file that led there."""
    for file, line in stack_places(subject)[1:]:
        if subject.program.is_own(file) and file != subject.file:
            module = subject.program.module(file)
            found = [
                node
                for node in module.walk()
                if isinstance(node, cst.Call)
                and module.line(node) == line
                and not any(each.startswith("builtins.") for each in module.meaning(node.func))
            ]
            return [(module, found[0])] if len(found) == 1 else []
    return []


def _set(edit: Edit, call: cst.Call, switch: Switch) -> bool:
    """Gives the keyword its value; False where it has it, or cannot get it."""
    if any(each.star for each in call.args):
        return False
    value = cst.Name(str(switch.value))
    for each in call.args:
        if each.keyword is not None and each.keyword.value == switch.name:
            if edit.module.code(each.value) == value.value:
                return False
            edit.replace(each.value, value)
            return True
    made = cst.Arg(value, keyword=cst.Name(switch.name), equal=_no_space())
    edit.replace(call, call.with_changes(args=[*_separated(call), made]))
    return True


def _separated(call: cst.Call) -> list[cst.Arg]:
    if not call.args:
        return []
    *first, last = call.args
    gap: cst.BaseParenthesizableWhitespace = cst.SimpleWhitespace(" ")
    if isinstance(call.whitespace_before_args, cst.ParenthesizedWhitespace):
        gap = call.whitespace_before_args
    comma = cst.Comma(whitespace_after=gap)
    return [*first, last.with_changes(comma=comma, whitespace_after_arg=cst.SimpleWhitespace(""))]


FIX = Fix(
    id="config-field",
    title="set the config field that skips this line",
    rules=frozenset(
        f"category/{each}"
        for each in (
            "data-dependent-branch",
            "data-dependent-operator",
            "dynamic-shape-operator",
            "validation-guard",
            "scalar-extraction",
            "skipped-function",
            "logging",
            "unsupported-builtin",
            "context-manager",
            "mutation",
        )
    ),
    order=170,
    kind="caller",
    only_run_tells=True,
    why="The library checks this flag before it reaches the line. Verification shows whether "
    "anything the program uses depends on it: outputs, printed text, gradients.",
    propose=_propose,
)
