"""Python arithmetic and tests with a number that changes are done before the graph.

`scale = round(guidance, 1)` and `if guidance == 1.0:` stay where they are called; the rest of the
function is compiled alone, and is given a tensor and a truth: its graphs do not depend on the
number.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from compilescope.change.fixes.arguments.guarded import cause_of, compiled_parameter
from compilescope.change.fixes.arguments.number_uses import NumberUses, is_float_text
from compilescope.change.fixes.compilation.frames import own_statement
from compilescope.change.fixes.fix import Fix
from compilescope.change.fixes.patch import Patch
from compilescope.change.fixes.statements.shell import Shell
from compilescope.change.fixes.subject import Subject
from compilescope.change.fixes.values.constants import check_early
from compilescope.knowledge.source.flow.cuts import Split, split_around
from compilescope.knowledge.source.flow.liveness import only_value, targets
from compilescope.knowledge.source.flow.purity import short
from compilescope.knowledge.source.refusals import NotMeant, Refused
from compilescope.knowledge.source.syntax.bindings import (
    definitions_of,
    is_of_module,
    local_names,
    parameters_of,
    statements_of,
)
from compilescope.knowledge.source.syntax.edit import Edit
from compilescope.knowledge.source.syntax.module import SourceModule
from compilescope.knowledge.source.syntax.snippets import number
from compilescope.knowledge.source.trees import cst, kinds

_MOST_TESTS = 2
"""Of one function. Chosen: each doubles the graphs, and Dynamo makes eight at most."""
_TRUTHS = kinds(lambda: (cst.Comparison, cst.BooleanOperation))
_WHOLE_CALLS = ("builtins.int", "builtins.round", "math.floor", "math.ceil", "math.trunc")
_CALLS = (*_WHOLE_CALLS, "builtins.abs", "builtins.min", "builtins.max", "builtins.float")
_NEVER_RAISING = ("builtins.abs", "builtins.min", "builtins.max", "builtins.float")
_RAISING = kinds(lambda: (cst.Divide, cst.FloorDivide, cst.Modulo, cst.Power))
_WHOLE = kinds(lambda: (cst.Add, cst.Subtract, cst.Multiply, cst.FloorDivide, cst.Modulo))
_CHOOSING = kinds(lambda: (cst.IfExp, cst.BooleanOperation, cst.Lambda, cst.BaseComp))
_WORDS = {
    "Equal": "equals",
    "NotEqual": "differs",
    "LessThan": "below",
    "LessThanEqual": "below",
    "GreaterThan": "above",
    "GreaterThanEqual": "above",
}


def _propose(subject: Subject) -> Patch:
    cause = cause_of(subject)
    if not all(is_float_text(text) for text in (cause.expected, cause.actual)):
        raise NotMeant(f"`{cause.subject}` is not a number")
    module, function, name = compiled_parameter(subject)
    if not isinstance(function, cst.FunctionDef):
        raise NotMeant("a lambda was compiled")
    whole = all(text.lstrip("-").isdigit() for text in (cause.expected, cause.actual))
    found = _OutsideNumbers(module, function, name, whole, NumberUses())
    for read in _reads(subject, found):
        found.add(subject, read)
    if not found.tests and all(each is read for each, read in found.numbers.items()):
        raise NotMeant(f"nothing is computed from `{name}` alone")
    if len(found.tests) > _MOST_TESTS:
        raise Refused("each condition doubles the number of graphs, and there are several")
    what = "what is computed from it is a tensor inside" if found.numbers else "its test is a bool"
    edit = Edit(module)
    Shell(edit, function, found.split(edit.module_name("torch"), found.uses.dtype(subject))).write()
    return Patch(
        edit.files(),
        states=f"`{name}` is read before the graph of `{function.name.value}`; {what}.",
    )


@dataclass
class _OutsideNumbers:
    """What a function computes from the number alone."""

    module: SourceModule
    function: cst.FunctionDef
    name: str
    whole: bool
    """Was it an int each time?"""
    uses: NumberUses
    tests: list[cst.BaseExpression] = field(default_factory=list)
    numbers: dict[cst.BaseExpression, cst.BaseExpression] = field(default_factory=dict)
    """With the first read of the number in it."""

    def add(self, subject: Subject, read: cst.BaseExpression) -> None:
        """The largest expression around the read that depends on nothing else."""
        expression = read
        while (above := _computed_above(self, expression)) is not None:
            expression = above
        if not self._is_always(expression) and self._may_raise(expression):
            raise Refused(
                f"`{short(self.module, expression)}` may raise, and only runs on some paths"
            )
        if isinstance(expression, _TRUTHS) or _is_negation(expression):
            if expression not in self.tests:
                self.tests.append(expression)
        elif expression not in self.numbers:
            self.uses.use(self.module, self.function, expression)
            self.numbers[expression] = read

    def _is_always(self, expression: cst.BaseExpression) -> bool:
        """Does every call of the function evaluate it?"""
        statement = self.module.statement_of(expression)
        body = statements_of(self.function)
        if statement not in body:
            return False
        before = body[: body.index(statement)]
        inner = isinstance(statement, cst.BaseCompoundStatement)
        inner = inner and getattr(statement, "test", None) is not expression
        ends = (cst.Return, cst.Raise, cst.Assert)
        leaves = any(isinstance(n, ends) for each in before for n in self.module.walk(each))
        return not inner and not leaves and not self._is_chosen(expression)

    def _is_chosen(self, expression: cst.BaseExpression) -> bool:
        within = self.module.ancestors(expression)
        return any(isinstance(each, _CHOOSING) for each in within)

    def _may_raise(self, expression: cst.BaseExpression) -> bool:
        for node in self.module.walk(expression):
            if isinstance(node, cst.Call) and not self.module.calls(node, *_NEVER_RAISING):
                digits = self.module.calls(node, "builtins.round") and len(node.args) == 2
                if not digits:
                    return True
            if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, _RAISING):
                divisor = number(node.right)
                if isinstance(node.operator, cst.Power) or not divisor:
                    return True
        return False

    def is_whole(self, node: cst.BaseExpression) -> bool:
        """Does Python give an int for it?"""
        if isinstance(node, cst.BinaryOperation):
            both = self.is_whole(node.left) and self.is_whole(node.right)
            return both and isinstance(node.operator, _WHOLE)
        if isinstance(node, cst.UnaryOperation):
            return self.is_whole(node.expression)
        if isinstance(node, cst.Call):
            if self.module.calls(node, *_WHOLE_CALLS):
                return len(node.args) == 1
            kept = self.module.calls(node, "builtins.abs", "builtins.min", "builtins.max")
            return kept and all(self.is_whole(each.value) for each in node.args)
        return isinstance(node, cst.Integer) or (self.whole and self.is_read(node))

    def is_read(self, node: cst.CSTNode) -> bool:
        return isinstance(node, (cst.Name, cst.Attribute)) and self.module.code(node) == self.name

    def depends_alone(self, node: cst.BaseExpression) -> bool:
        """On the number and constants?"""
        if self.is_read(node) or number(node) is not None:
            return True
        if isinstance(node, cst.UnaryOperation):
            return self.depends_alone(node.expression)
        if isinstance(node, (cst.BinaryOperation, cst.BooleanOperation)):
            return self.depends_alone(node.left) and self.depends_alone(node.right)
        if isinstance(node, cst.Comparison):
            sides = [node.left, *(each.comparator for each in node.comparisons)]
            known = all(type(each.operator).__name__ in _WORDS for each in node.comparisons)
            return known and all(map(self.depends_alone, sides))
        if isinstance(node, cst.Call):
            taken = self.module.calls(node, *_CALLS) or _is_of_math(self.module, node.func)
            plain = all(each.keyword is None and not each.star for each in node.args)
            return taken and plain and all(self.depends_alone(each.value) for each in node.args)
        return _is_of_math(self.module, node) or _is_constant(self.module, node)

    def split(self, torch: str, dtype: str) -> Split:
        """Lines that the numbers get before the core; what is a line of its own moves there."""
        made: dict[str, cst.BaseExpression] = {}
        texts: dict[str, str] = {}
        moved: list[cst.BaseStatement] = []
        for test in self.tests:
            made[self._fresh(self._word(test), made)] = test
        for value in sorted(self.numbers, key=self.is_read):
            statement = self.module.statement_of(value)
            kept = self._named(statement, value)
            if kept:
                moved.append(statement)
            key = kept or (self.name if value.__class__ is cst.Name else "")
            key = key or self._fresh(f"{self._last}_value", made)
            made[key] = value
            given = "" if self.is_whole(value) else dtype.replace("torch", torch)
            texts[key] = f"{torch}.tensor({self.module.code(value)}{given})"
        body = [each for each in statements_of(self.function) if each not in moved]
        split = split_around(self.module, body, [])
        core = {node for each in split.core for node in self.module.walk(each)}
        for key, value in made.items():
            if value not in core and self.module.statement_of(value) not in moved:
                raise NotMeant(f"`{key}` is not part of the compiled work")
        return Split(
            split.before,
            split.core,
            split.after,
            None,
            split.outer_before,
            lifted=made,
            texts=texts,
        )

    def _named(self, statement: cst.BaseStatement, value: cst.BaseExpression) -> str:
        """`scale` of `scale = round(guidance, 1)`, a line of the function's own body."""
        above = self.module.parent(value)
        alone = isinstance(statement, cst.SimpleStatementLine) and len(statement.body) == 1
        own = alone and statement in statements_of(self.function)
        if not own or not isinstance(above, cst.Assign):
            return ""
        target = above.targets[0].target
        if not isinstance(target, cst.Name):
            return ""
        single = only_value(self.module, self.function, target.value) is value
        return target.value if single else ""

    @property
    def _last(self) -> str:
        return self.name.rpartition(".")[2]

    def _word(self, test: cst.BaseExpression) -> str:
        if isinstance(test, cst.Comparison) and len(test.comparisons) == 1:
            return f"{self._last}_{_WORDS[type(test.comparisons[0].operator).__name__]}"
        return f"{self._last}_test"

    def _fresh(self, word: str, taken: dict[str, cst.BaseExpression]) -> str:
        known = local_names(self.function) | set(parameters_of(self.function)) | set(taken)
        free, at = word, 2
        while free in known:
            free, at = f"{word}_{at}", at + 1
        return free


def _computed_above(
    found: _OutsideNumbers, expression: cst.BaseExpression
) -> cst.BaseExpression | None:
    """The next larger expression that depends on the number alone."""
    above = found.module.parent(expression)
    while isinstance(above, (cst.Arg, cst.ComparisonTarget)):
        above = found.module.parent(above)
    if not isinstance(above, cst.BaseExpression) or not found.depends_alone(above):
        return None
    return above


def _reads(subject: Subject, found: _OutsideNumbers) -> Iterator[cst.BaseExpression]:
    """Raises `Refused` where the value may be another one than at the beginning."""
    module, function = found.module, found.function
    is_parameter = found.name in parameters_of(function)
    if not is_parameter and not found.name.startswith(f"{(parameters_of(function) or [''])[0]}."):
        raise NotMeant(f"`{found.name}` is not the function's to read")
    inner = (node for node in module.walk(function.body))
    reads: list[cst.BaseExpression] = []
    for node in inner:
        if any(module.code(each) == found.name for each in targets(node)):
            raise Refused(f"the function sets `{found.name}`")
        if isinstance(node, (cst.Name, cst.Attribute)) and found.is_read(node):
            reads.append(node)
    if not reads:
        raise NotMeant(f"the function does not read `{found.name}` itself")
    for read in reads:
        if not is_parameter:
            own = own_statement(subject, read)
            if own is None:
                raise NotMeant("the line is not a statement in the function's own body")
            body = statements_of(function)
            check_early(subject, read, body[: body.index(own)])
        yield read


def _is_of_math(module: SourceModule, node: cst.CSTNode) -> bool:
    return any(each.startswith("math.") for each in module.meaning(node))


def _is_constant(module: SourceModule, node: cst.BaseExpression) -> bool:
    """A number that the file sets once, at its top."""
    if not isinstance(node, cst.Name) or not is_of_module(module, node):
        return False
    found = definitions_of(module, node)
    line = module.around(found[0], cst.Assign) if len(found) == 1 else None
    return line is not None and number(line.value) is not None


def _is_negation(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Not)


FIX = Fix(
    id="number-outside",
    title="compute with the number before the graph",
    rules=frozenset(
        {
            "recompile/float-change",
            "recompile/int-change",
            "recompile/module-number",
            "recompile/number-condition",
            "recompile/number-needed",
        }
    ),
    order=143,
    kind="source",
    why="What depends on the number and on constants alone is the same when it is computed first. "
    "Dynamo skips the function's own frame (not its callees), and the function that computes is "
    "given tensors for numbers, and the truths of tests: one graph for each truth.",
    propose=_propose,
)
