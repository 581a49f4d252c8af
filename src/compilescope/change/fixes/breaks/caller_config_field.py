"""A field of a library's config, or an argument of the call, with which the line is not reached."""

from __future__ import annotations

import itertools
from functools import cache
from pathlib import Path

from compilescope.change.fixes.compilation.frames import is_frame_of
from compilescope.change.fixes.compilation.own_files import own_modules
from compilescope.change.fixes.compilation.results import check_only_given, fields_read
from compilescope.change.fixes.compilation.switches import Switch, stack_places, switches_of
from compilescope.change.fixes.fix import Fix
from compilescope.change.fixes.patch import Patch, reading
from compilescope.change.fixes.subject import Subject
from compilescope.knowledge.source.refusals import NotMeant, NotTried, Refused
from compilescope.knowledge.source.syntax.edit import Edit
from compilescope.knowledge.source.syntax.module import SourceModule
from compilescope.knowledge.source.trees import cst
from compilescope.record.bodies import GraphBreak


def _no_space() -> cst.AssignEqual:
    return cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))


def _propose(subject: Subject) -> Patch:
    refused: Refused | None = None
    for switch in switches_of(subject):
        try:
            patch = _switched(subject, switch)
        except NotTried:
            raise
        except Refused as reason:
            if refused is None or (reason.instead and not refused.instead):
                refused = reason
            continue
        if patch is not None:
            return patch
    raise refused or NotMeant("no config field or call argument makes the program skip it")


def _switched(subject: Subject, switch: Switch) -> Patch | None:
    """The program with this flag set; None where there is no place to set it."""
    if switch.is_nature:
        raise Refused(f"with another `{switch.name}` it would be another model")
    places = _configs(subject, switch) if switch.of_config else _calls(subject, switch)
    entering = not switch.of_config and any(_enters(subject, *each) for each in places)
    if entering:
        places = _configs(subject, switch) if switch.by_default else []
        if not places:
            # Neither its inputs nor its results are the original's: nothing can be compared.
            raise Refused(
                f"`{switch.name}` is an argument of the compiled call: with another, nothing can "
                "be compared",
                instead=f"If you need nothing of what `{switch.name}` is for, pass it to the call.",
            )
    try:
        read = _read(subject, places)
    except Refused as reason:
        if entering:  # What the model is told to leave out is missing in what it returns.
            raise Refused(
                f"without `{switch.name}` the model may return less, and {reason}",
                instead=f"If you need nothing of what `{switch.name}` is for, set it in the config.",
            ) from reason
        read = frozenset()
    edits: dict[str, Edit] = {}
    for module, call in places:
        edit = edits.setdefault(module.path, Edit(module))
        if not _set(edit, call, switch):
            return None
    if not edits:
        return None
    files = {file: text for each in edits.values() for file, text in each.files().items()}
    return Patch(files, states=_states(switch, read), allows=reading(read))


def _read(subject: Subject, configs: list[tuple[SourceModule, cst.Call]]) -> frozenset[str]:
    """Fields that the program reads of what the compiled code returns. Raises `Refused` where that
    cannot be seen, or where the config is used for more than to make a model."""
    for module, call in configs:
        check_only_given(module, call)
    entrances, own = _entrances(subject), own_modules(subject.program)
    found = [
        (module, call)
        for module in own
        for call in module.walk()
        if isinstance(call, cst.Call)
        and isinstance(call.func, cst.Name)
        and (module.path, module.line(call)) in entrances
        and not _is_known(module, call)
    ]
    if not found:
        raise Refused("the call of the compiled code was not found")
    return frozenset().union(*(fields_read(own, *each) for each in found))


def _enters(subject: Subject, module: SourceModule, call: cst.Call) -> bool:
    """Is it the call of what is compiled, and not one inside of it?"""
    return (module.path, module.line(call)) in _entrances(subject)


def _entrances(subject: Subject) -> set[tuple[str, int]]:
    """(file, line) of the program's own calls of the compiled code, on the recorded stacks."""
    run, program = subject.program.run, subject.program
    compiled = {body.frame for _, body in run.of(GraphBreak) if body.frame is not None}
    found: set[tuple[str, int]] = set()
    for event in run.events_with(subject.finding.because):
        outside = itertools.takewhile(
            lambda frame: not any(is_frame_of(frame, each) for each in compiled), event.stack
        )
        own = [frame for frame in outside if program.is_own(frame.file)]
        found |= {(frame.file, frame.line) for frame in own[-1:]}
    return found


def _states(switch: Switch, read: frozenset[str]) -> str:
    words = f"`{switch.name}` is {switch.value}: what it controls is skipped."
    if not read:
        return words
    shown = ", ".join(f"`{each}`" for each in sorted(read))
    return f"{words} Of its results, the program reads {shown} alone."


def _configs(subject: Subject, switch: Switch) -> list[tuple[SourceModule, cst.Call]]:
    """Calls in the user's files that make a config of the library, or of the file itself."""
    package, root = _package(switch.file), _root(switch.file)
    found: list[tuple[SourceModule, cst.Call]] = []
    for module in own_modules(subject.program):
        if package and _root(module.path) == root:
            continue
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
    """`transformers` of `.../site-packages/transformers/models/x.py`, or of a package that lies
    elsewhere; empty for a file by itself."""
    parts = Path(file).parts
    for name in ("site-packages", "dist-packages"):
        if name in parts:
            return parts[parts.index(name) + 1].removesuffix(".py")
    root = _root(file)
    return Path(root).name if root != file else ""


@cache
def _root(file: str) -> str:
    """The folder of the outermost package around it; the file where there is none."""
    root = Path(file)
    while (root.parent / "__init__.py").is_file():
        root = root.parent
    return str(root)


def _calls(subject: Subject, switch: Switch) -> list[tuple[SourceModule, cst.Call]]:
    """The call in the user's own file that led there: of the function that has the flag, or from
    outside of its package."""
    inside = {_root(subject.file), _root(switch.file)}
    for file, line in stack_places(subject)[1:]:
        if not subject.program.is_own(file) or file == subject.file:
            continue
        module = subject.program.module(file)
        found = [
            node
            for node in module.walk()
            if isinstance(node, cst.Call)
            and module.line(node) == line
            and not _is_known(module, node)
        ]
        named = [module.code(each.func).split(".")[-1] for each in found]
        if _root(file) not in inside or switch.function in named:
            return [(module, found[0])] if len(found) == 1 else []
    return []


def _is_known(module: SourceModule, call: cst.Call) -> bool:
    """Of Python or torch: `print(model(torch.ones(3)))` is a call of the model."""
    return any(each.startswith(("builtins.", "torch.")) for each in module.meaning(call.func))


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
    edit.replace(call, call.with_changes(args=_with(call, made)))
    return True


def _with(call: cst.Call, made: cst.Arg) -> list[cst.Arg]:
    """The arguments and one more, as they are laid out: a comma at the end stays there."""
    if not call.args:
        return [made]
    *first, last = call.args
    gap: cst.BaseParenthesizableWhitespace = cst.SimpleWhitespace(" ")
    if isinstance(call.whitespace_before_args, cst.ParenthesizedWhitespace):
        gap = call.whitespace_before_args
    ended = made.with_changes(comma=last.comma, whitespace_after_arg=last.whitespace_after_arg)
    comma, no_space = cst.Comma(whitespace_after=gap), cst.SimpleWhitespace("")
    return [*first, last.with_changes(comma=comma, whitespace_after_arg=no_space), ended]


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
