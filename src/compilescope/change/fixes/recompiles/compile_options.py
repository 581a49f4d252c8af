"""Fixes that only set an argument of `torch.compile`, or one of its settings.

For each: what it is for, and when it won't help.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from compilescope.base.patterns import late
from compilescope.change.fixes.arguments.edits import is_computed
from compilescope.change.fixes.arguments.guarded import (
    cause_of,
    check_counted,
    check_may_vary,
    check_no_parameter,
    check_not_needed,
    recompiled_function,
)
from compilescope.change.fixes.compilation.objects import is_of_several
from compilescope.change.fixes.compilation.regions import Region, region_of
from compilescope.change.fixes.compilation.settings import (
    main_edit,
    price_of_dynamic,
    put_setting,
    remove_argument,
    set_argument,
    with_dynamic,
)
from compilescope.change.fixes.fix import Fix
from compilescope.change.fixes.patch import Patch
from compilescope.change.fixes.subject import Subject
from compilescope.knowledge.findings.recompiles import RecompileFinding
from compilescope.knowledge.source.refusals import NeedsRun, NotMeant, Refused
from compilescope.knowledge.source.syntax.edit import Edit
from compilescope.knowledge.source.trees import cst

_ANY_SIZE = ("inductor", "eager", "aot_eager", "aot_eager_decomp_partition")
_ANY_VALUE = ("closure-change", "default-argument", "global-change", "optimizer-setting")
_NO_NUMBERS = {"nan", "inf", "-inf"}
_NUMBER = late(r"-?\d+(\.\d*)?(e[-+]?\d+)?")


def _with_argument(region: Region, name: str, value: str) -> dict[str, str]:
    """The files of a patch that gives `torch.compile` one argument."""
    edit = Edit(region.module)
    set_argument(edit, region, name, value)
    return edit.files()


def _dynamic(subject: Subject) -> Patch:
    cause = cause_of(subject)
    if cause.subject.startswith("G[") and cause.actual.lstrip("-").isdigit():
        raise Refused("an int in a global stays constant, dynamic or not")
    if cause.rule in _ANY_VALUE and not _NUMBER.fullmatch(cause.actual):
        raise NotMeant("only sizes and numbers can be dynamic")
    if cause.rule == "default-argument" and cause.actual.lstrip("-").isdigit():
        raise Refused("an int that is an argument's default stays constant, dynamic or not")
    if _NO_NUMBERS & {cause.expected, cause.actual}:
        raise Refused("NaN and infinity stay constant, dynamic or not")
    value = cause.subject.split(".size()")[0].removeprefix("len(")
    if "(" in value or is_computed(value):
        raise Refused("the value comes from a graph break, which has to be fixed first")
    check_no_parameter(subject)
    region = region_of(subject)
    _check_way_out(subject, region)
    states = price_of_dynamic(subject)
    known = region.argument("dynamic")
    if known is not None and region.module.code(known.value) == "True":
        raise NotMeant("it is already compiled with dynamic=True")
    if not states:
        check_may_vary(subject)
    return Patch(_with_argument(region, "dynamic", "True"), states=states)


def _check_way_out(subject: Subject, region: Region) -> None:
    """Where a line needs a size after all, Dynamo leaves it to eager mode; not everywhere it can."""
    if subject.program.facts.seen:
        return
    whole, backend = region.argument("fullgraph"), region.argument("backend")
    if whole is not None and region.module.code(whole.value) != "False":
        raise NeedsRun("with fullgraph=True, a line that needs a constant size would raise")
    given = region.module.code(backend.value) if backend is not None else "'inductor'"
    if given.strip("'\"") not in _ANY_SIZE:
        raise NeedsRun(f"it is unknown whether `backend={given}` supports dynamic sizes")
    actual = cause_of(subject).actual
    integer = actual.lstrip("-").isdigit()
    if given.strip("'\"") != "eager" and not integer and _NUMBER.fullmatch(actual):
        # torch 2.13: its guard on what AOTAutograd needs of a float computes that in another order,
        # and may fail at once by its last digit.
        raise NeedsRun("a compilation for any float may fail")


DYNAMIC_TRUE = Fix(
    id="dynamic-true",
    title="compile with dynamic=True",
    rules=frozenset(
        f"recompile/{rule}"
        for rule in (
            "broken-size",
            "size-change",
            "int-change",
            "float-change",
            "closure-change",
            "default-argument",
            "global-change",
            "optimizer-setting",
            "equal-sizes",
            "number-condition",
            "shape-condition",
        )
    ),
    order=110,
    kind="config",
    why="All input sizes, ints and floats become variables of the graph. Kernels for any size "
    "can be slower than kernels for one size. The timings show whether they are.",
    propose=_dynamic,
)


def _automatic(subject: Subject) -> Patch:
    cause, region = cause_of(subject), region_of(subject)
    known = region.argument("dynamic")
    if known is None or region.module.code(known.value) != "False":
        raise NotMeant("Dynamo may make sizes variable here already")
    if cause.count < 2:
        raise NotMeant("it was compiled again once, and for a second size that stays")
    check_no_parameter(subject)
    states = price_of_dynamic(subject)
    edit = Edit(region.module)
    remove_argument(edit, region, "dynamic")
    return Patch(edit.files(), states=states)


DYNAMIC_AUTOMATIC = Fix(
    id="dynamic-automatic",
    title="remove dynamic=False",
    rules=frozenset(
        f"recompile/{rule}"
        for rule in ("broken-size", "size-change", "size-zero-one", "equal-sizes")
    ),
    order=112,
    kind="config",
    only_run_tells=True,  # Does a line need the number after all?
    why="Without `dynamic=False`, Dynamo makes a size a variable of the graph once it has seen it "
    "change. What never changes stays a constant, which some lines need.",
    propose=_automatic,
)


_STATES = "Each compiled object has its own graphs: as many as before, not fewer."


_CHANGED_LENGTH = late(r"len\((.+)\)$")
_PASSED = ("kwargs[", "args[")
_CHANGING = ("append", "extend", "insert", "pop", "popleft", "appendleft", "remove", "clear", "add")


def _changes_itself(subject: Subject, name: str) -> bool:
    """Does the compiled function add to what it looks at? Then one object alone recompiles."""
    module, function = recompiled_function(subject)
    methods = (each.func for each in module.walk(function.body) if isinstance(each, cst.Call))
    return any(
        isinstance(each, cst.Attribute)
        and each.attr.value in _CHANGING
        and module.code(each.value) == name
        for each in methods
    )


def _isolated(subject: Subject) -> Patch:
    grown = _CHANGED_LENGTH.match(cause_of(subject).subject)
    if "___stack" in cause_of(subject).subject:
        raise NotMeant("it follows from an earlier graph break")
    if cause_of(subject).subject.removeprefix("type(").startswith(_PASSED):
        raise NotMeant("the caller passes both to one object, which needs both graphs")
    region = region_of(subject)
    if grown is not None and _changes_itself(subject, grown[1]):
        raise Refused(f"the function itself changes the length of `{grown[1]}` in every call")
    if not is_of_several(region, subject.program):
        raise NotMeant("torch.compile is applied once, so there is nothing to isolate")
    if region.argument("isolate_recompiles") is not None:
        raise NotMeant("isolate_recompiles is already set")
    if not subject.program.run.takes("isolate_recompiles"):
        raise NotMeant("torch.compile takes no isolate_recompiles here; a newer torch does")
    return Patch(_with_argument(region, "isolate_recompiles", "True"), states=_STATES)


ISOLATED_RECOMPILES = Fix(
    id="isolated-recompiles",
    title="give each object its own compilations",
    rules=frozenset(
        f"recompile/{rule}"
        for rule in (
            "layer-index",
            "module-number",
            "module-flag",
            "module-class",
            "parameter-size",
            "closure-change",
            "function-change",
            "length-change",
            "none-or-value",
            "attribute-presence",
            "requires-grad-change",
        )
    ),
    order=190,
    kind="config",
    why="All objects of a class share the code of its functions, and so its cache. With "
    "`isolate_recompiles=True` (torch 2.13), each application of torch.compile has its own "
    "cache: none recompiles because of another or uses up its limit.",
    propose=_isolated,
)


def _raised(subject: Subject) -> Patch:
    if subject.recompile is None or not subject.recompile.limit_hit:
        raise NotMeant("the recompile limit was not reached")
    region = region_of(subject)
    if region.argument("recompile_limit") is not None:
        raise NotMeant("recompile_limit is already set")
    local = subject.program.run.takes("recompile_limit")
    of_all = "" if local else " of every compiled function"
    return Patch(
        _with_argument(region, "recompile_limit", "64") if local else _limit_for_all(subject),
        states=f"Up to 64 compilations{of_all} are made, each with its compile time.",
        needs_human="Are there few enough different calls that compiling each one pays off?",
        run_answers=True,
    )


def _limit_for_all(subject: Subject) -> dict[str, str]:
    edit = main_edit(subject)
    put_setting(edit, f"{edit.module_name('torch')}._dynamo.config.recompile_limit = 64")
    return edit.files()


RAISED_LIMIT = Fix(
    id="raised-limit",
    title="raise the recompile limit",
    rules=frozenset({"recompile"}),
    order=230,
    kind="scaffold",
    why="Beyond the limit, calls that match no graph run eagerly. More graphs cost compile "
    "time, and memory for as long as the process runs. Only the author knows how many "
    "there will be.",
    propose=_raised,
)


_FLAG = "allow_unspec_int_on_nn_module"
_FOR_ALL = f"`torch._dynamo.config.{_FLAG}` is True for the whole program."


def _unspecialised(subject: Subject) -> Patch:
    if cause_of(subject).subject.startswith("G["):
        raise NotMeant("the flag does not affect an int in a global")
    check_not_needed(subject)
    check_counted(subject)
    states = f"{_FOR_ALL} {price_of_dynamic(subject)}".strip()
    return Patch(with_dynamic(subject, {_FLAG: True}), states=states)


UNSPECIALISED_INTS = Fix(
    id="unspecialised-ints",
    title="let ints on modules be dynamic",
    rules=frozenset({"recompile/module-number", "recompile/layer-index"}),
    order=120,
    kind="config",
    why="Dynamo treats an int attribute of a module as a constant unless the flag is set. "
    "Where a line needs the number itself (a `range`, an index into a list), it stays "
    "constant.",
    propose=_unspecialised,
)


_PATH = late(r"^[A-Za-z_]\w*(?:\.\w+|\[(?:\d+|'[^',]*')\])*$")
_ROOT = late(r"[A-Za-z_]\w*")


def _dynamic_source(subject: Subject) -> Patch:
    cause = cause_of(subject)
    if not cause.actual.lstrip("-").isdigit():
        raise NotMeant("the setting only takes integers")
    names = [_source_name(cause.subject), *_ints_with(cause)]
    check_not_needed(subject)
    check_counted(subject)
    edit = main_edit(subject)
    torch = edit.module_name("torch")
    # Added to what is there: other numbers may be named by other fixes, or by the environment.
    put_setting(edit, f'{torch}.compiler.config.dynamic_sources += ",{",".join(names)}"')
    where = " and ".join(f"`{name}`" for name in names)
    number = "A number" if len(names) == 1 else "Numbers"
    return Patch(edit.files(), states=f"{number} at {where} may vary in every compiled function.")


def _ints_with(cause: RecompileFinding) -> Iterator[str]:
    """Others that changed with it: left constant, they would make the function compile again."""
    for other in cause.together:
        if other.actual.lstrip("-").isdigit():
            with suppress(NotMeant):
                yield _source_name(other.subject)


def _source_name(guarded: str) -> str:
    """By which name torch's settings know it: `L['n']`, `G['COUNT']`."""
    if guarded.startswith("G[") and "," not in guarded and '"' not in guarded:
        return guarded
    if not _PATH.match(guarded) or guarded.startswith("___"):
        raise NotMeant(f"`{guarded}` has no name that the setting accepts")
    root = _ROOT.match(guarded)
    assert root is not None
    return f"L['{root[0]}']{guarded[root.end() :]}"


DYNAMIC_SOURCES = Fix(
    id="dynamic-sources",
    title="list the number in dynamic_sources",
    rules=frozenset(
        {
            "recompile/int-change",
            "recompile/module-number",
            "recompile/layer-index",
            "recompile/global-change",
        }
    ),
    order=125,
    kind="config",
    why="The setting makes one int a variable of the graph, even in a global or on a module, "
    "where `dynamic=True` keeps it constant.",
    propose=_dynamic_source,
)

FIXES = (
    DYNAMIC_TRUE,
    DYNAMIC_AUTOMATIC,
    ISOLATED_RECOMPILES,
    RAISED_LIMIT,
    UNSPECIALISED_INTS,
    DYNAMIC_SOURCES,
)
