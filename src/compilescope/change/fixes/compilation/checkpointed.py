"""Functions under `torch.utils.checkpoint`: what they set outside of themselves."""

from __future__ import annotations

from collections.abc import Iterator

from compilescope.change.fixes.subject import Subject
from compilescope.knowledge.source.refusals import NotMeant, Refused
from compilescope.knowledge.source.syntax.module import SourceModule
from compilescope.knowledge.source.trees import cst
from compilescope.record.stack import Frame

_GROWING = frozenset(
    {
        *("add", "append", "appendleft", "clear", "discard", "extend", "insert"),
        *("pop", "popitem", "popleft", "remove", "update"),
    }
)
"""Methods of lists, sets, dicts and deques that do something else when called twice."""
_CHECKPOINT = "torch.utils.checkpoint.checkpoint"
_COLLECTIONS = tuple(f"builtins.{name}" for name in ("dict", "list", "set"))


def check_set_once(subject: Subject) -> None:
    """Raise `NotMeant` where nothing is checkpointed, and `Refused` where setting something once
    may give another value than setting it in the backward pass again, as eager mode does."""
    functions = _checkpointed(subject)
    for function in functions:
        found = function.changes_again() or next(
            (
                node
                for name, node in function.sets()
                for other in functions
                if other.reads(name, before=node if other is function else None)
            ),
            None,
        )
        if found is not None:
            text = function.module.code(found).strip().partition("\n")[0]
            raise Refused(
                f"eager mode runs `{text}` again in the backward pass, which may change the value"
            )


def _checkpointed(subject: Subject) -> list[_Function]:
    """Return the functions that run under the checkpoint, down to the line of the finding."""
    found = {}
    for event in subject.program.run.events_with(subject.finding.because):
        frames = [each for each in event.stack if each.origin in ("user", "library")]
        calls = [at for at, frame in enumerate(frames[:-1]) if _calls_checkpoint(subject, frame)]
        if not calls:
            raise NotMeant("it is not under activation checkpointing")
        for frame in frames[calls[0] + 1 :]:
            module = subject.program.module(frame.file)
            statement = module.statement_at(frame.line)
            function = module.function_of(statement) if statement is not None else None
            if function is None:
                raise Refused("what is checkpointed is not all in functions")
            found[frame.file, module.line(function)] = _Function(module, function)
    if not found:
        raise NotMeant("it is not known where it happens")
    return list(found.values())


def _calls_checkpoint(subject: Subject, frame: Frame) -> bool:
    """Libraries keep `checkpoint` under names such as `self._gradient_checkpointing_func`."""
    module = subject.program.module(frame.file)
    statement = module.statement_at(frame.line)
    return statement is not None and any(
        isinstance(node, cst.Call)
        and (module.calls(node, _CHECKPOINT) or "checkpoint" in module.code(node.func))
        for node in module.walk(statement)
    )


class _Function:
    """A function that runs a second time in the backward pass."""

    def __init__(self, module: SourceModule, function: cst.FunctionDef) -> None:
        self.module = module
        self._nodes = list(module.walk(function.body))
        self._declared = {
            item.name.value
            for node in self._nodes
            if isinstance(node, (cst.Global, cst.Nonlocal))
            for item in node.names
        }
        assigned = [node for node in self._nodes if isinstance(node, cst.Assign)]
        self._set = [(each, node) for node in assigned for each in _targets(node)]
        self._new = _new_collections(module, self._set)

    def changes_again(self) -> cst.CSTNode | None:
        """Return what changes a value that outlives the call each time it runs; None without."""
        for node in self._nodes:
            if isinstance(node, (cst.AugAssign, cst.Del)) and self._outlives(node.target):
                return node
            if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
                owner = node.func.value
                new = isinstance(owner, cst.Name) and owner.value in self._new
                if node.func.attr.value in _GROWING and not new:
                    return node
        return None

    def sets(self) -> Iterator[tuple[str, cst.Assign]]:
        """Yield the last names of what it sets outside of itself, each with its statement."""
        for target, node in self._set:
            if self._outlives(target):
                yield _last_name(target), node

    def reads(self, name: str, before: cst.CSTNode | None) -> bool:
        """Return True if it reads `name`, anywhere or no later than in the statement `before`."""
        last = self.module.position(before).end.line if before is not None else None
        own = {id(_base(target)) for target, _ in self._set}
        return any(
            isinstance(node, (cst.Name, cst.Attribute))
            and id(node) not in own
            and _last_name(node) == name
            and not self._is_attribute_name(node)
            and (last is None or self.module.line(node) <= last)
            for node in self._nodes
        )

    def _is_attribute_name(self, node: cst.CSTNode) -> bool:
        """The `b` of `a.b`, which is a name of its own in the tree, is not a read."""
        parent = self.module.parent(node)
        return isinstance(parent, cst.Attribute) and parent.attr is node

    def _outlives(self, target: cst.CSTNode) -> bool:
        if isinstance(target, cst.Name):
            return target.value in self._declared
        base = _base(target)
        return not (isinstance(base, cst.Name) and base.value in self._new)


def _targets(node: cst.Assign) -> Iterator[cst.BaseExpression]:
    for each in node.targets:
        if isinstance(each.target, (cst.Tuple, cst.List)):
            yield from (element.value for element in each.target.elements)
        else:
            yield each.target


def _new_collections(
    module: SourceModule, assigned: list[tuple[cst.BaseExpression, cst.Assign]]
) -> set[str]:
    """Return the local names that only ever get a list, dict or set made right there."""
    made: dict[str, bool] = {}
    for target, node in assigned:
        if isinstance(target, cst.Name):
            new = isinstance(
                node.value, (cst.List, cst.Dict, cst.Set, cst.ListComp, cst.DictComp, cst.SetComp)
            ) or module.calls(node.value, *_COLLECTIONS)
            made[target.value] = made.get(target.value, True) and new
    return {name for name, new in made.items() if new}


def _base(target: cst.CSTNode) -> cst.CSTNode:
    """Return `self.log` of `self.log["loss"]`, and all else as it is."""
    while isinstance(target, cst.Subscript):
        target = target.value
    return target


def _last_name(node: cst.CSTNode) -> str:
    """Return `log` of `self.log["loss"]`; empty where it has none."""
    base = _base(node)
    if isinstance(base, cst.Attribute):
        return base.attr.value
    return base.value if isinstance(base, cst.Name) else ""
