"""A list of tensors that is longer in each call, and that the program only joins: it is kept joined,
as a list with one tensor whose size varies.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from compilescope.base.patterns import late
from compilescope.change.fixes.arguments.calls import is_plain
from compilescope.change.fixes.arguments.guarded import cause_of
from compilescope.change.fixes.compilation.own_files import own_modules
from compilescope.change.fixes.fix import Fix
from compilescope.change.fixes.patch import Patch, joining
from compilescope.change.fixes.subject import Subject
from compilescope.change.fixes.values.grown_lists import GrownList, grown_list
from compilescope.change.fixes.values.list_uses import Growth, Join, growth_of
from compilescope.knowledge.findings.recompiles import RecompileFinding
from compilescope.knowledge.source.flow.aliasing import check_unchanged, runs_without_grad
from compilescope.knowledge.source.flow.purity import short
from compilescope.knowledge.source.refusals import NotMeant, Refused
from compilescope.knowledge.source.syntax.edit import Edit
from compilescope.knowledge.source.syntax.module import SourceModule
from compilescope.knowledge.source.trees import cst

_WORD = late(r"[A-Za-z_]\w*")
_RULE = "length-change"


def _propose(subject: Subject) -> Patch:
    cause = cause_of(subject)
    if cause.count < 2:
        raise Refused(
            "it had two lengths only, and a tensor of two sizes is compiled twice as well"
        )
    modules = own_modules(subject.program)
    words = _words(cause)
    lengths = [cause, *_lengths(subject)]
    near = {each.function for each in lengths} | {word for e in lengths for word in _words(e)}
    lists, refusals = _lists(modules, near)
    meant = next((found for word in words if (found := [e for e in lists if word in e.names])), [])
    if not meant:
        known = (refusals[each] for each in (*words, cause.function) if each in refusals)
        raise next(known, NotMeant("it is no list that is added to and joined"))
    places = {each.module.function_of(each.statement) for one in meant for each in one.growths}
    others = {word for each in lengths for word in _words(each)[:1]}
    taken = [
        each
        for each in lists
        if each in meant
        or each.names & others
        or any(growth.module.function_of(growth.statement) in places for growth in each.growths)
    ]
    return Patch(_joined(taken), allows=joining({each.dim for each in taken}))


def _words(cause: RecompileFinding) -> list[str]:
    """`ks`, then `_modules` and so on, of `len(self._modules['layers']._modules['0'].ks)`."""
    return _WORD.findall(cause.subject.partition(" != ")[0])[::-1]


def _lengths(subject: Subject) -> Iterator[RecompileFinding]:
    for frame in subject.program.digest.recompiles:
        yield from (each for each in frame.guards if each.rule == _RULE)


def _lists(
    modules: list[SourceModule], near: Collection[str]
) -> tuple[list[GrownList], dict[str, Refused]]:
    """Those that can be kept joined, and by a name of the others why they cannot. `near`: names
    of lists, and of functions that add to them; others are not looked at."""
    found: list[GrownList] = []
    refusals: dict[str, Refused] = {}
    known: set[cst.CSTNode] = set()
    for module in modules:
        for node in module.walk():
            growth = growth_of(module, node)
            if growth is None or growth.statement in known:
                continue
            function = module.function_of(growth.statement)
            names = {*_WORD.findall(module.code(growth.held))}
            names |= {function.name.value} if function is not None else set()
            if not names.intersection(near):
                continue
            try:
                one = grown_list(modules, growth)
                for each in one.growths:
                    _check(each, one.joins)
            except Refused as refused:
                refusals.update({name: refusals.get(name, refused) for name in names})
                continue
            known |= {each.statement for each in one.growths}
            found.append(one)
    return found, refusals


def _check(growth: Growth, joins: Sequence[Join]) -> None:
    """Raises `Refused` where a copy of the tensor is not as good as the tensor."""
    module, function = growth.module, growth.module.function_of(growth.statement)
    if not is_plain(growth.held):
        raise Refused(f"`{short(module, growth.held)}` would be computed more than once")
    around = _around(module, growth.statement)
    if any(_around(each.module, each.call) != around for each in joins):
        raise Refused("it is added to and joined in different `with` blocks")
    if function is None:
        return
    check_unchanged(module, function, growth.statement, [growth.value])
    for each in module.walk(function.body):
        if isinstance(each, cst.Name) and module.code(growth.value) == each.value:
            above = module.parent(each)
            whole = module.parent(above) if isinstance(above, cst.Element) else each
            if isinstance(module.parent(whole) if whole is not None else None, cst.Return):
                raise Refused(f"`{each.value}` is returned too, and may be changed in place then")


def _around(module: SourceModule, node: cst.CSTNode) -> tuple[bool, list[str]]:
    """Whether gradients are off there, and what else is around it in its function."""
    found = []
    for above in module.ancestors(node):
        if isinstance(above, cst.FunctionDef):
            break
        if isinstance(above, cst.With):
            found += [module.code(each.item) for each in above.items]
    return runs_without_grad(module, node), found


def _joined(lists: list[GrownList]) -> dict[str, str]:
    edits: dict[str, Edit] = {}
    explained: set[cst.CSTNode | None] = set()
    for each in lists:
        for growth in dict.fromkeys(each.growths):
            module, place = growth.module, growth.module.function_of(growth.statement)
            edit = edits.setdefault(module.path, Edit(module))
            held, value = module.code(growth.held), module.code(growth.value)
            text = f"{held}[:] = [{_join(edit, each, f'(*{held}, {value})')}]"
            if place not in explained:
                text = f"# kept joined: for each length of the list there would be a graph\n{text}"
                explained.add(place)
            made = edit.statements(text)[0]
            assert isinstance(made, cst.SimpleStatementLine)
            kept = growth.statement.with_changes(
                body=[made.body[0].with_changes(semicolon=growth.statement.body[0].semicolon)],
                leading_lines=made.leading_lines,
            )
            edit.replace_statement(growth.statement, [kept])
    return {path: text for edit in edits.values() for path, text in edit.files().items()}


def _join(edit: Edit, one: GrownList, tensors: str) -> str:
    """The call, as the file itself writes it."""
    module = edit.module
    own = next((each.call for each in one.joins if each.module is module), None)
    if own is None:
        return f"{edit.module_name('torch')}.cat({tensors}, dim={one.dim})"
    rest = [arg for arg in own.args if arg.keyword is None or arg.keyword.value != "tensors"]
    rest = rest[1:] if len(rest) == len(own.args) else rest
    bare = [module.code(arg.with_changes(comma=cst.MaybeSentinel.DEFAULT)) for arg in rest]
    return f"{module.code(own.func)}({', '.join([tensors, *bare])})"


FIX = Fix(
    id="join-as-it-grows",
    title="keep the list joined",
    rules=frozenset({"recompile/length-change"}),
    order=82,
    kind="source",
    only_run_tells=True,  # One compilation for a second size may stay: is that fewer?
    why="Nothing but `torch.cat` sees what the list holds, and joined in parts or at once its tensors "
    "give the same. One tensor whose size varies takes one graph, a list takes one for each length.",
    propose=_propose,
)
