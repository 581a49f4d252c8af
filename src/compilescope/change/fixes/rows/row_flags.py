"""A Python flag that says whether any rows are selected, and everything that hangs on it.

`any_global = mask.any().item()` in an encoder, and `if any_global:` in each of its layers. What
such conditions guard works on the rows that the mask selects, and on none where there are none.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from compilescope.base.patterns import late
from compilescope.change.fixes.branches.layers import makers_of
from compilescope.change.fixes.rows.selections import tells_rows
from compilescope.change.fixes.subject import Subject
from compilescope.change.fixes.values.extraction import read_from
from compilescope.change.fixes.values.kinds import kind_of
from compilescope.change.fixes.values.tensor_sizes import helper_of
from compilescope.change.fixes.values.tensors import bare
from compilescope.knowledge.source.flow import liveness
from compilescope.knowledge.source.flow.purity import operator_of, short
from compilescope.knowledge.source.refusals import NotMeant, Refused
from compilescope.knowledge.source.syntax.bindings import declared_names, parameters_of, receiver_of
from compilescope.knowledge.source.syntax.module import SourceModule
from compilescope.knowledge.source.syntax.snippets import number
from compilescope.knowledge.source.trees import cst, kinds

_MOST_STEPS = 3
"""From a guarded block into helpers. Chosen: a bound for a search that calls may send round."""
_COUNTS = frozenset({"sum", "count_nonzero"})
_COUNT = late(r"len\([^()]+\)|[^()]+\.shape\[0\]|[^()]+\.size\(0\)")
"""How many rows there are of something."""
_NAMES = kinds(lambda: (cst.Name, cst.Attribute))


@dataclass(frozen=True)
class RowFlag:
    """Where a flag is set."""

    assign: cst.Assign
    when_rows: bool
    """What it is where rows are selected."""


def flag_of(subject: Subject) -> RowFlag:
    """The flag that a finding is about: the line that reads it, or a condition that asks for it.
    Raises `NotMeant` where it is about something else."""
    module, node = subject.module, subject.node
    assign = node if isinstance(node, cst.Assign) else module.around(node, cst.Assign)
    if assign is None and isinstance(node, cst.SimpleStatementLine):
        assign = next((each for each in node.body if isinstance(each, cst.Assign)), None)
    if assign is not None:
        asked = asks_for_any(subject, assign.value)
        if asked is not None and _is_whole_value(subject, assign, node):
            return RowFlag(assign, asked)
        raise NotMeant("no flag is read here")
    statement = subject.statement
    test = statement.test if isinstance(statement, cst.If) else None
    names = {
        _last_name(each)
        for each in (module.walk(test) if test is not None else ())
        if isinstance(each, _NAMES)
    }
    found = [
        RowFlag(each, asked)
        for each in module.walk()
        if isinstance(each, cst.Assign)
        and len(each.targets) == 1
        and _last_name(each.targets[0].target) in names
        and (asked := asks_for_any(subject, each.value)) is not None
    ]
    if len(found) != 1:
        raise NotMeant("the condition is no flag that says whether rows are selected")
    return found[0]


def _is_whole_value(subject: Subject, assign: cst.Assign, node: cst.CSTNode) -> bool:
    line = subject.module.statement_of(assign)
    return line is subject.module.statement_of(node) and len(assign.targets) == 1


def _last_name(node: cst.CSTNode) -> str:
    if isinstance(node, cst.Attribute):
        return node.attr.value
    return node.value if isinstance(node, cst.Name) else ""


def asks_for_any(subject: Subject, node: cst.BaseExpression) -> bool | None:
    """True where the value is true if anything is selected, False where it is true if nothing is;
    None where it says something else."""
    module = subject.module
    node = bare(node)  # type: ignore[assignment]
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Not):
        inner = asks_for_any(subject, node.expression)
        return None if inner is None else not inner
    if isinstance(node, cst.Call) and module.calls(node, "builtins.bool") and len(node.args) == 1:
        return asks_for_any(subject, node.args[0].value)
    read = read_from(module, node)
    if read is not None:
        return asks_for_any(subject, read)
    if isinstance(node, cst.Comparison) and len(node.comparisons) == 1:
        only = node.comparisons[0]
        said = tells_rows(only.operator, number(only.comparator))
        return said if said is not None and _is_count(subject, node.left) else None
    if isinstance(node, cst.Call) and operator_of(module, node) == "any":
        given = list(node.args)
        if module.calls(node, "torch.any"):
            given = given[1:]
        return True if not given else None
    return None


def _is_count(subject: Subject, node: cst.BaseExpression) -> bool:
    """Is it zero only where nothing is selected?"""
    module = subject.module
    node = bare(node)  # type: ignore[assignment]
    read = read_from(module, node)
    if read is not None:
        return _is_count(subject, read)
    if isinstance(node, cst.Call) and module.calls(node, "builtins.len"):
        return len(node.args) == 1 and isinstance(node.args[0].value, _NAMES)
    if isinstance(node, cst.Call) and operator_of(module, node) in _COUNTS:
        function = any(each.startswith("torch.") for each in module.meaning(node.func))
        held = node.args[0].value if function and node.args else None
        if held is None and isinstance(node.func, cst.Attribute):
            held = node.func.value
        if held is None or len(node.args) != int(function):
            return False
        return operator_of(module, node) == "count_nonzero" or _are_truths(subject, held)
    code = module.code(node)
    return any(code.endswith(end) for end in (".numel()", ".shape[0]", ".size(0)"))


def _are_truths(subject: Subject, node: cst.BaseExpression) -> bool:
    """Other numbers may add up to zero."""
    node = bare(node)  # type: ignore[assignment]
    if isinstance(node, cst.Comparison):
        return True
    if isinstance(node, cst.Name):
        function = subject.module.function_of(node)
        made = liveness.only_value(subject.module, function, node.value) if function else None
        if isinstance(made, cst.Comparison):
            return True
    return kind_of(subject.at(subject.module, subject.module.statement_of(node)), node).dtype == (
        "bool"
    )


@dataclass
class FlagUses:
    """Follows a flag through a file; raises `Refused` where it is more than a condition."""

    subject: Subject
    flag: RowFlag
    guarded: list[cst.CSTNode] = field(default_factory=list)
    """Blocks that run where the flag says that there are rows."""
    asked_with: dict[str, None] = field(default_factory=dict)
    """Names that conditions ask for beside it: where these are true, its value may be seen."""
    _done: set[tuple[cst.CSTNode, str]] = field(default_factory=set)

    @property
    def module(self) -> SourceModule:
        return self.subject.module

    def follow(self) -> None:
        target = self.flag.assign.targets[0].target
        if isinstance(target, cst.Attribute):
            self._attribute(target)
        elif isinstance(target, cst.Name):
            function = self.module.function_of(target)
            if function is None:
                raise Refused("the flag is set outside of a function")
            self._name(function, target.value)
        else:
            raise NotMeant("no flag is read here")
        if not self.guarded:
            raise NotMeant("no condition asks for the flag")

    def _attribute(self, target: cst.Attribute) -> None:
        """`self.any_global`, `config.any_global`: all reads of that name in the file."""
        name = target.attr.value
        for each in self.module.walk():
            if not isinstance(each, cst.Attribute) or each.attr.value != name or each is target:
                continue
            above = self.module.parent(each)
            if isinstance(above, cst.AssignTarget):
                value = getattr(self.module.parent(above), "value", None)
                if isinstance(value, cst.Name) and value.value in ("None", "False", "True"):
                    continue  # What it is before the first call.
                raise Refused(f"`{self.module.code(each)}` is set in several places")
            self._use(each)

    def _name(self, function: cst.FunctionDef, name: str) -> None:
        if (function, name) in self._done:
            return
        self._done.add((function, name))
        written = (t for each in self.module.walk(function.body) for t in liveness.targets(each))
        times = sum(isinstance(each, cst.Name) and each.value == name for each in written)
        if times != (name not in parameters_of(function)) or name in declared_names(function):
            raise Refused(f"`{name}` is set in several places")
        for read in liveness.reads(self.module, function.body):
            if read.value == name:
                self._use(read)

    def _use(self, read: cst.BaseExpression) -> None:
        module = self.module
        below: cst.CSTNode = read
        beside: list[cst.BaseExpression] = []
        said = self.flag.when_rows
        for above in module.ancestors(read):
            if isinstance(above, cst.UnaryOperation) and isinstance(above.operator, cst.Not):
                said = not said
            elif isinstance(above, cst.BooleanOperation):
                if isinstance(above.operator, cst.And):
                    beside.append(above.right if above.left is below else above.left)
            elif isinstance(above, (cst.If, cst.IfExp)) and above.test is below:
                self._condition(above, said, beside)
                return
            elif isinstance(above, cst.Arg) and below is read:
                self._argument(above, read)
                return
            elif isinstance(above, cst.Assign) and below is read:
                target = above.targets[0].target
                function = module.function_of(above)
                if len(above.targets) == 1 and isinstance(target, cst.Name) and function:
                    self._name(function, target.value)
                    return
                break
            else:
                break
            below = above
        raise Refused(f"the flag is more than a condition in `{self._line(read)}`")

    def _line(self, node: cst.CSTNode) -> str:
        return short(self.module, self.module.statement_of(node)).split("\n")[0]

    def _condition(
        self, branch: cst.If | cst.IfExp, said: bool, beside: list[cst.BaseExpression]
    ) -> None:
        if said or branch.orelse is not None or isinstance(branch, cst.IfExp):
            self.guarded.append(branch.body if said else branch.orelse)  # type: ignore[arg-type]
        else:  # `if not any_picked: return x`
            self.guarded += self.module.following(branch)
        inner: cst.CSTNode = branch
        for above in self.module.ancestors(branch):
            if isinstance(above, cst.If) and above.body is inner:
                beside.append(above.test)
            if isinstance(above, cst.FunctionDef):
                break
            inner = above
        for each in beside:
            if isinstance(each, cst.Name):
                self.asked_with[each.value] = None

    def _argument(self, arg: cst.Arg, read: cst.BaseExpression) -> None:
        module = self.module
        call = module.parent(arg)
        if not isinstance(call, cst.Call) or arg.star:
            raise Refused(f"the flag is more than a condition in `{self._line(read)}`")
        found = list(self._taking(call, arg, _last_name(read)))
        if not found:
            raise Refused(f"it is unknown what `{self._line(call)}` does with the flag")
        for function, name in found:
            self._name(function, name)

    def _taking(
        self, call: cst.Call, arg: cst.Arg, read: str
    ) -> Iterator[tuple[cst.FunctionDef, str]]:
        """Functions of the file that may be given it, and by which name."""
        module = self.module
        functions = [each for each in module.walk() if isinstance(each, cst.FunctionDef)]
        if arg.keyword is None and not any(each.star for each in call.args):
            place = next(i for i, each in enumerate(call.args) if each is arg)
            callees = [*self._callees(call)]
            for callee in callees:
                names = [n for n in parameters_of(callee) if n != receiver_of(module, callee)]
                if place < len(names):
                    yield callee, names[place]
            if callees:
                return
        name = arg.keyword.value if arg.keyword is not None else read
        yield from ((each, name) for each in functions if name in parameters_of(each))

    def _callees(self, call: cst.Call) -> Iterator[cst.FunctionDef]:
        helper = helper_of(self.module, call)
        if helper is not None:
            yield helper
            return
        for home, made in makers_of(self.subject, self.module, call, seen=False):
            named = {each.value for each in home.walk(made) if isinstance(each, cst.Name)}
            for each in self.module.walk():
                if isinstance(each, cst.ClassDef) and each.name.value in named:
                    yield from (
                        method
                        for method in each.body.body
                        if isinstance(method, cst.FunctionDef) and method.name.value == "forward"
                    )

    @property
    def written(self) -> set[str]:
        """Names that hold what is computed from the rows, and what they are written into."""
        found: set[str] = set()
        for block in self.guarded:
            for each in self.module.walk(block):
                for target in liveness.targets(each):
                    held = target.value if isinstance(target, cst.Subscript) else target
                    found.add(self.module.code(held))
        return found

    def sized_views(self) -> Iterator[tuple[cst.Call, cst.BaseExpression]]:
        """`rows.view(len(index), -1)` in what it guards, and `rows`: of no rows, nobody can tell
        what -1 stands for, and it raises."""
        done: set[cst.CSTNode] = set()
        blocks, depth = list(self.guarded), _MOST_STEPS
        while blocks and depth:
            calls = [
                each
                for block in blocks
                for each in self.module.walk(block)
                if isinstance(each, cst.Call) and each not in done
            ]
            done |= set(calls)
            for call in calls:
                held = _viewed_by_rows(self.module, call)
                if held is not None:
                    yield call, held
            helpers = (helper_of(self.module, call) for call in calls)
            blocks = [each.body for each in helpers if each is not None]
            depth -= 1


def _viewed_by_rows(module: SourceModule, call: cst.Call) -> cst.BaseExpression | None:
    func = call.func
    if not isinstance(func, cst.Attribute) or func.attr.value not in ("view", "reshape"):
        return None
    given = [arg.value for arg in call.args if arg.keyword is None and not arg.star]
    if len(given) != 2 or len(call.args) != 2 or number(given[1]) != -1:
        return None
    return func.value if _COUNT.fullmatch(module.code(given[0])) else None
