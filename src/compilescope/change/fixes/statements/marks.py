"""How the functions that one becomes are marked and named: left alone by Dynamo, or compiled."""

from __future__ import annotations

from collections.abc import Sequence

from compilescope.change.fixes.compilation.regions import is_compile
from compilescope.knowledge.source.flow.cuts import is_docstring
from compilescope.knowledge.source.syntax.edit import Edit
from compilescope.knowledge.source.syntax.module import SourceModule
from compilescope.knowledge.source.trees import cst

# With these Dynamo leaves a frame alone, but not what it calls. `torch.compile(f)` looks through
# the public decorator of a function (torch 2.11 to 2.15), not through that of a method.
_PUBLIC = "compiler.disable(recursive=False)"
_PRIVATE = "_dynamo.decorators.skip"
_WHY_PRIVATE = "# left to Python, but not what it calls; no public decorator does this"
_SHORTEST, _MOST_NAMES = 3, 3
"""Letters of a name that says something, and names that one of a function can be made of. Chosen:
`x` and `h2` say nothing, and more names than these are a sentence."""


def compiling(module: SourceModule, function: cst.FunctionDef) -> list[cst.Decorator]:
    """The decorators with which a function is compiled. Its parts can have them instead."""
    return [each for each in function.decorators if is_compile(module, each.decorator)]


def bare(decorators: Sequence[cst.Decorator]) -> list[cst.Decorator]:
    """Without the comments above them."""
    return [each.with_changes(leading_lines=()) for each in decorators]


def without_decorators(function: cst.FunctionDef, kept: Sequence[cst.Decorator]) -> cst.FunctionDef:
    """With these alone; comments above the others stay."""
    gone = [each for each in function.decorators if each not in kept]
    lines = [line for each in gone for line in each.leading_lines if line.comment is not None]
    return function.with_changes(decorators=kept, leading_lines=[*function.leading_lines, *lines])


def leaving(edit: Edit, function: cst.FunctionDef, *, outermost: bool = True) -> cst.Decorator:
    """With it Dynamo leaves the function alone, not what it calls. `outermost`: it may be what
    torch.compile is given."""
    torch = edit.module_name("torch")
    if not outermost or edit.module.class_of(function) is not None:
        return cst.Decorator(edit.expression(f"{torch}.{_PUBLIC}"))
    # A private name says why it is there.
    comment = cst.EmptyLine(indent=True, comment=cst.Comment(_WHY_PRIVATE))
    return cst.Decorator(edit.expression(f"{torch}.{_PRIVATE}"), leading_lines=[comment])


def marked(function: cst.FunctionDef, decorator: cst.Decorator) -> cst.FunctionDef:
    """With one more decorator, nearest to it."""
    made = function.with_changes(decorators=[*function.decorators, decorator])
    if function.decorators:
        return made
    # The comments above stay above the decorator.
    return made.with_changes(lines_after_decorators=())


def under(
    edit: Edit, mode: cst.Decorator, inner: Sequence[cst.BaseStatement]
) -> list[cst.BaseStatement]:
    """A grad mode entered by a `with`: as a decorator it is a frame of its own, which Dynamo
    would compile together with what it is around."""
    shown = edit.module.code(mode.decorator)
    shown = shown if isinstance(mode.decorator, cst.Call) else f"{shown}()"
    start = 1 if inner and is_docstring(inner[0]) else 0
    entered = cst.ensure_type(edit.statements(f"with {shown}:\n    pass\n")[0], cst.With)
    block = cst.ensure_type(entered.body, cst.IndentedBlock)
    block = block.with_changes(body=list(inner[start:]))
    return [*inner[:start], entered.with_changes(body=block)]


def leave_alone(edit: Edit, function: cst.FunctionDef) -> None:
    """With all that it calls: Dynamo would compile it by itself."""
    mark = cst.Decorator(edit.expression(f"{edit.module_name('torch')}.compiler.disable"))
    edit.replace(function, marked(function, mark))


def name_of_part(
    module: SourceModule,
    function: cst.FunctionDef,
    body: Sequence[cst.BaseStatement],
    results: Sequence[str] = (),
) -> str:
    """After what it returns, `results` where they have names: `_loss_and_logits`; where that says
    nothing, after the function and what is called last. A method's has the function's name in any
    case, since classes further up may use the shorter one."""
    own = function.name.value.lstrip("_")
    if results and len(results) <= _MOST_NAMES and all(map(_says_something, results)):
        return _joined(module, function, results)
    last = body[-1]
    parts = last.body if isinstance(last, cst.SimpleStatementLine) else ()
    end = parts[-1] if parts else None
    value = getattr(end, "value", None)
    called = _called(value)  # Of `return f(x)`, and of `f(x)` alone.
    if not isinstance(end, cst.Return) or value is None:
        return f"_{own}_{called or 'steps'}"
    several = isinstance(value, cst.Tuple)
    values = [each.value for each in value.elements] if several else [value]
    names = [each.value.strip("_") for each in values if isinstance(each, cst.Name)]
    if len(names) == len(values) <= _MOST_NAMES and all(map(_says_something, names)):
        return _joined(module, function, names)
    if called and len(body) == 1:
        return f"_{own}_{called}"
    return f"_{own}_results" if several else f"_{own}_result"


def _joined(module: SourceModule, function: cst.FunctionDef, names: Sequence[str]) -> str:
    held = "_and_".join(each.strip("_") for each in names)
    own = function.name.value.lstrip("_")
    return f"_{own}_{held}" if module.class_of(function) is not None else f"_{held}"


def _called(value: cst.BaseExpression | None) -> str:
    """`stem` of `self.stem(x)`; empty where that says nothing."""
    func = value.func if isinstance(value, cst.Call) else None
    named = func.attr if isinstance(func, cst.Attribute) else func
    name = named.value.strip("_") if isinstance(named, cst.Name) else ""
    return name if _says_something(name) else ""


def _says_something(name: str) -> bool:
    made_up = name.rstrip("_0123456789") in ("value", "result")
    return len(name) >= _SHORTEST and not made_up
