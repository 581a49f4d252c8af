"""What a failed guard is about: the value, its size, all that it was seen to be, and what the
function does with the parameter that it came in.

A fix would make a changing number a symbol of the graph. Lines such as `range(n)` or `layers[n]`
need the number itself, which makes it a constant again; such a fix is refused.
"""

from __future__ import annotations

from collections.abc import Iterator

from compilescope.base.patterns import late
from compilescope.base.texts import whole_number
from compilescope.change.fixes.arguments.edits import function_at
from compilescope.change.fixes.compilation.run_index import index_of
from compilescope.change.fixes.subject import Subject
from compilescope.knowledge.findings.changes import is_number
from compilescope.knowledge.findings.recompiles import RecompileFinding
from compilescope.knowledge.source.flow.aliasing import changes_in_place
from compilescope.knowledge.source.flow.liveness import reads, targets
from compilescope.knowledge.source.flow.purity import short
from compilescope.knowledge.source.refusals import NeedsRun, NotMeant, Refused
from compilescope.knowledge.source.syntax.bindings import parameters_of
from compilescope.knowledge.source.syntax.module import SourceModule
from compilescope.knowledge.source.trees import cst
from compilescope.record.bodies import CacheEntryMiss, Recompile
from compilescope.record.storms import compilation_number, frame_number

_SIZE = ".size()["
_NUMBERED = late(r"\[\d+\]")
_GIVEN = late(r"args\[(\d{1,3})\]")
_WORD = late(r"kwargs\['(\w+)'\]")
_ELSEWHERE = ("G[", "___", "self.", "fn.")
"""What is not passed at the call."""


def cause_of(subject: Subject) -> RecompileFinding:
    """Of the value that failed. Raises `Refused` where the recompile is likely to go with a break:
    after one, the functions of a library are compiled one by one, and share their code."""
    found = subject.recompile
    if found is None:
        raise NotMeant("the guard that failed is unknown")
    if subject.program.digest.sites and not subject.program.is_own(found.compiled.file):
        raise Refused("this recompile may go away once the graph breaks are fixed")
    return found


def check_numbers_alone(subject: Subject) -> None:
    """Raises `Refused` where what explains the recompile is no number: a dtype, a `None`. A number
    that may vary leaves that as it is."""
    led = subject.led_by
    told = {led.expected, led.actual} - {"", "True", "False"} if led is not None else ()
    if led is not None and not all(map(is_number, told)):
        raise Refused(f"`{led.subject}` changes with it, and would still recompile")


def check_no_parameter(subject: Subject) -> None:
    """Raises `Refused` where sizes of parameters change too: those stay constants (torch 2.13)."""
    check_numbers_alone(subject)
    if any(guard.rule == "parameter-size" for guard in subject.guards):
        raise Refused("the size of a parameter changes with it and stays constant")


def size_of(subject: Subject) -> tuple[str, int]:
    """(tensor, dimension). Raises `Refused` where the guard is about something else."""
    text = cause_of(subject).subject
    tensor, _, rest = text.rpartition(_SIZE)
    dimension = whole_number(rest[:-1])
    if not tensor or not rest.endswith("]") or dimension is None or ", " in tensor:
        raise NotMeant(f"`{text}` is not one size of one tensor")
    return tensor, dimension


def counted(subject: Subject) -> str:
    """The list or dict whose length it is, as the code names it: `past` of `len(past)`, `seen.kept`
    of `len(G['seen'].kept) != 1`. Raises `Refused` where the guard is about something else."""
    text = cause_of(subject).subject.partition(" != ")[0]
    if not text.startswith("len(") or not text.endswith(")"):
        raise NotMeant(f"`{text}` is not a length")
    held = text.removeprefix("len(").removesuffix(")")
    if held.startswith("G['"):
        name, _, rest = held.removeprefix("G['").partition("']")
        return name + rest
    return held


def sizes_with(subject: Subject, dim: int) -> list[str]:
    """The tensor whose size it is, and the others whose size in the same dimension changed with
    it: marked alone, one would be a constant again where the code needs both to be equal."""
    cause = cause_of(subject)
    change = (cause.expected, cause.actual)
    found = [size_of(subject)[0]]
    for other in subject.guards:
        tensor, ends, rest = other.subject.rpartition(_SIZE)
        if ends and rest == f"{dim}]" and (other.expected, other.actual) == change:
            found.append(tensor)
    kept = [each for each in dict.fromkeys(found) if each == found[0] or _is_argument(each)]
    return list(dict.fromkeys(_of_all_items(subject, each) for each in kept))


def _of_all_items(subject: Subject, tensor: str) -> str:
    """`cache[*][*]` for `cache[0][0]`, where the sizes of other items changed with it, or the list
    was empty in some calls."""
    root, indices, rest = tensor.partition("[")
    pattern = _NUMBERED.sub("[*]", indices + rest)
    if pattern not in ("[*]", "[*][*]"):
        return tensor
    changed = {
        name.rpartition(_SIZE)[0]
        for guard in subject.guards
        for name in (guard.subject, *guard.also)
    }
    several = any(
        each != tensor and _NUMBERED.sub("[*]", each) == root + pattern for each in changed
    )
    lengths = [each for each in subject.guards if each.subject == f"len({root})"]
    empty = any("0" in (each.expected, each.actual) for each in lengths)
    return root + pattern if several or empty else tensor


def _is_argument(tensor: str) -> bool:
    return not tensor.startswith(_ELSEWHERE) and "(" not in tensor and ", " not in tensor


def check_may_vary(subject: Subject) -> None:
    """Raises `Refused` where the value became a constant again although Dynamo had seen it change:
    from the second compilation on it lets such values vary by itself, and what it then made a
    constant all the same would be one under `dynamic=True` too."""
    cause = cause_of(subject)
    changed: dict[str, int] = {}
    """By Dynamo's number of the code: the compilation for which the value was first another."""
    for event in subject.program.run.events_with(cause.because):
        body = event.body
        if not isinstance(body, Recompile):
            continue
        failing = [
            compilation_number(each)
            for entry in body.entries
            if any(failed.subject == cause.subject for failed in entry.failed)
            for each in (entry.compile_id, *((entry.newest,) if _is_first(cause, entry) else ()))
        ]
        code = frame_number(event.compile_id)
        if failing and code not in changed:
            changed[code] = compilation_number(event.compile_id)
        elif failing and max(failing) >= changed[code]:
            raise Refused(f"Dynamo keeps `{cause.subject}` constant even after it changed")


def _is_first(cause: RecompileFinding, entry: CacheEntryMiss) -> bool:
    """Of the entries that are folded into one, the first failed guard alone is known."""
    return entry.folded > 0 and entry.failed[0].subject == cause.subject


def other_sizes(subject: Subject) -> Iterator[tuple[str, int, set[int]]]:
    """(tensor, dimension, numbers seen) of the other sizes of arguments that failed with it."""
    cause = cause_of(subject)
    for other in subject.guards:
        tensor, ends, rest = other.subject.rpartition(_SIZE)
        dimension = whole_number(rest[:-1])
        if not ends or dimension is None or not _is_argument(tensor):
            continue
        if other.subject != cause.subject:
            yield tensor, dimension, numbers_seen(subject, other)


def numbers_seen(subject: Subject, cause: RecompileFinding | None = None) -> set[int]:
    """Every whole number that failed the guard or that it was made for."""
    cause = cause or cause_of(subject)
    place = cause.compiled
    seen = index_of(subject.program.run).values_seen(place.file, place.line)
    return {
        int(text)
        for text in seen.get(cause.subject, ())
        if whole_number(text.removeprefix("-")) is not None
    }


def recompiled_function(subject: Subject) -> tuple[SourceModule, cst.FunctionDef | cst.Lambda]:
    """Raises `Refused` where its source is not at hand."""
    frame = subject.frame
    if frame is None:
        raise Refused("the recompiled function is unknown")
    module = subject.program.module(frame.file)
    function = function_at(module, frame.line, frame.function)
    if function is None:
        raise Refused(f"the source of `{frame.function}` is not where it was")
    return module, function


def compiled_parameter(
    subject: Subject,
) -> tuple[SourceModule, cst.FunctionDef | cst.Lambda, str]:
    """The function that the user compiled, and its parameter that the guard is about: under
    `@torch.no_grad()` Dynamo compiles a wrapper of torch's, where `args[2]` is the third."""
    value = cause_of(subject).subject
    if subject.frame is None or not subject.frame.is_call:
        return *recompiled_function(subject), value
    function = subject.function
    names = parameters_of(function)
    given, word = _GIVEN.fullmatch(value), _WORD.fullmatch(value)
    if given is not None and int(given[1]) < len(names):
        value = names[int(given[1])]
    elif word is not None:
        value = word[1]
    if not function.decorators or value not in names or subject.module.class_of(function):
        raise Refused(f"what was compiled is not the function around `{function.name.value}`")
    return subject.module, function, value


def check_only_read(subject: Subject, value: str) -> None:
    """Raises `Refused` where the function changes it in place: its caller would not see that of a
    copy."""
    module, function = recompiled_function(subject)
    name = value.split(".")[0].split("[")[0]
    for where, changed in changes_in_place(module, function.body):
        if changed == name:
            raise Refused(f"the function changes it in place: `{short(module, where)}`")
    if subject.program.facts.seen:
        return
    for call in _handed_on(module, function, name):
        raise NeedsRun(f"`{short(module, call)}` may change it in place")


def _handed_on(
    module: SourceModule, function: cst.FunctionDef | cst.Lambda, name: str
) -> Iterator[cst.Call]:
    """To a function of the file's own that has in-place changes in it."""
    for read in uses_of(module, function, name):
        arg = module.parent(read)
        call = module.parent(arg) if isinstance(arg, cst.Arg) else None
        if not isinstance(call, cst.Call) or not isinstance(call.func, cst.Name):
            continue
        for node in module.tree.body:
            named = isinstance(node, cst.FunctionDef) and node.name.value == call.func.value
            if named and any(True for _ in changes_in_place(module, node)):
                yield call


def uses_of(
    module: SourceModule, function: cst.FunctionDef | cst.Lambda, name: str
) -> list[cst.Name]:
    """Where the function reads it."""
    return [each for each in reads(module, function.body) if each.value == name]


_NEEDING = ("builtins.range", "builtins.str", "builtins.format", "builtins.divmod")


def check_not_needed(subject: Subject) -> None:
    """Raises `Refused` where the function counts to it or picks a layer by it."""
    check_numbers_alone(subject)
    guarded = cause_of(subject).subject
    name = guarded.split("'")[1] if guarded.startswith("G['") else guarded
    module, function = recompiled_function(subject)
    for node in module.walk(function.body):
        if isinstance(node, (cst.Name, cst.Attribute)) and module.code(node) == name:
            where = _needs(module, node)
            if where is not None:
                raise Refused(f"`{short(module, where)}` needs the number itself")


def check_counted(subject: Subject) -> None:
    """A counter takes one compilation for all; what is set to a size or the like is compared with
    it again, and each way through may be compiled."""
    name = cause_of(subject).subject
    module, function = recompiled_function(subject)
    for node in () if subject.program.facts.seen else module.walk(function.body):
        if not isinstance(node, cst.Assign) or isinstance(node.value, cst.Integer):
            continue
        sets = any(module.code(each) == name for each in targets(node))
        if sets and name not in module.code(node.value):
            raise NeedsRun(f"`{short(module, node)}` may set it to a size")


def _needs(module: SourceModule, node: cst.CSTNode) -> cst.CSTNode | None:
    for above in module.ancestors(node):
        if isinstance(above, cst.Index):
            return _picks(module, above)
        if isinstance(above, cst.Call):
            return above if module.means(above.func, *_NEEDING) else None
        if isinstance(above, cst.FormattedStringExpression):
            return module.parent(above)
        if isinstance(above, cst.BaseStatement):
            return None
    return None


def _picks(module: SourceModule, index: cst.Index) -> cst.CSTNode | None:
    """`layers[n]`; `x[:, n]` is a tensor's own."""
    element = module.parent(index)
    whole = module.parent(element) if element is not None else None
    if isinstance(whole, cst.Subscript) and len(whole.slice) == 1:
        return whole
    return None
