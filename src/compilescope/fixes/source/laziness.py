"""Code that runs in the first call only: behind a test for what it will have made by then."""

from __future__ import annotations

import re

import libcst as cst

from compilescope.fixes.patch import NotMeant, Refused
from compilescope.fixes.source.module import SourceModule
from compilescope.fixes.source.switches import leaves, stack_places
from compilescope.fixes.subject import Subject

_WORDS = re.compile(
    r"(?:^|_)(?:init|initiali[sz]ed|installed|built|ready|first|once|warned|cached|prepared|set_?up|"
    r"loaded|seen|done|started|registered|called|logged|printed)(?:_|$)"
)


def runs_once(subject: Subject) -> str:
    """The test that stands before it somewhere on the way from the user's call, as code.
    Raises `Refused` where nothing says that it happens in the first call only."""
    for file, line in stack_places(subject):
        try:
            module = subject.program.module(file)
        except Refused:
            continue
        found = _test_before(module, line)
        if found is not None:
            return module.code(found)
    raise NotMeant("nothing shows that it happens in the first call only")


def _test_before(module: SourceModule, line: int) -> cst.BaseExpression | None:
    """Of the `if` around a line, or of an earlier one that returns."""
    statement = module.statement_at(line)
    if statement is None:
        return None
    current: cst.CSTNode = statement
    for above in (statement, *module.ancestors(statement)):
        if isinstance(above, cst.If) and above is not statement and _is_lazy(module, above.test):
            return above.test
        if isinstance(above, cst.IndentedBlock):
            tests: list[cst.BaseExpression] = []
            for earlier in above.body:
                if earlier is current:
                    break
                if isinstance(earlier, cst.If) and leaves(earlier):
                    tests.append(earlier.test)
            lazy = [test for test in tests if _is_lazy(module, test)]
            if lazy:
                return lazy[0]
        if isinstance(above, (cst.FunctionDef, cst.Lambda)):
            return None
        current = above
    return None


def _is_lazy(module: SourceModule, test: cst.BaseExpression) -> bool:
    for node in module.walk(test):
        if isinstance(node, cst.Call) and module.calls(
            node, "builtins.hasattr", "builtins.getattr"
        ):
            return True
        if isinstance(node, cst.ComparisonTarget):
            if isinstance(node.operator, (cst.In, cst.NotIn)):
                return True
            if isinstance(node.operator, (cst.Is, cst.IsNot)) and _is_attribute_test(module, node):
                return True
        name = node.attr.value if isinstance(node, cst.Attribute) else getattr(node, "value", "")
        if isinstance(node, (cst.Attribute, cst.Name)) and _WORDS.search(str(name)):
            return True
    return False


def _is_attribute_test(module: SourceModule, target: cst.ComparisonTarget) -> bool:
    """`self.cache is None`; an argument that may be None is another matter."""
    above = module.parent(target)
    return (
        isinstance(above, cst.Comparison)
        and isinstance(above.left, cst.Attribute)
        and module.code(target.comparator) == "None"
    )
