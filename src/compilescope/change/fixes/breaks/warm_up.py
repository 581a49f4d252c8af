"""One eager call ahead of the first compiled one, for what happens in the first call only."""

from __future__ import annotations

from compilescope.base.patterns import late
from compilescope.change.fixes.compilation.regions import is_compiled
from compilescope.change.fixes.compilation.switches import FIRST_CALL_CATEGORIES, runs_once
from compilescope.change.fixes.fix import Fix
from compilescope.change.fixes.patch import Patch
from compilescope.change.fixes.statements.outputs import output_of
from compilescope.change.fixes.subject import Subject
from compilescope.knowledge.source.flow.cuts import is_light_value
from compilescope.knowledge.source.flow.liveness import names_read, names_set
from compilescope.knowledge.source.refusals import NeedsRun, NotMeant, Refused
from compilescope.knowledge.source.syntax.bindings import definitions_of
from compilescope.knowledge.source.syntax.edit import Edit
from compilescope.knowledge.source.syntax.module import SourceModule
from compilescope.knowledge.source.trees import cst

_ONCE = late(r"\bis None\b|\bhasattr\(|\bnot in\b|\bnot self\.|\bnot _?[A-Za-z]+$")
_STATES = "The compiled code is called once more, eagerly, before its first call."


def _propose(subject: Subject) -> Patch:
    if not _happens_once(subject):
        runs_once(subject)
    main = subject.program.main
    if not main:
        raise Refused("the program has no file to add a call to")
    module = subject.program.module(main)
    call = _first_call(module)
    for arg in call.args:
        if not is_light_value(module, arg.value):
            raise Refused(f"`{module.code(arg.value)}` would be computed twice")
    if is_compiled(subject, module, call):
        raise Refused("the call is itself in compiled code")
    if not subject.program.facts.seen and _does_more(subject):
        raise NeedsRun("an extra call may do more than compute, and do it twice")
    line = _before_loops(module, call)
    edit = Edit(module)
    torch = edit.module_name("torch")
    text = f'with {torch}.compiler.set_stance("force_eager"):\n    {module.code(call)}\n'
    above = module.block_of(line).body
    before = above[: list(above).index(line)]
    if any(module.code(each).strip() == text.strip() for each in before):
        raise NotMeant("it is already called eagerly first")
    edit.put_before(call if isinstance(line, cst.SimpleStatementLine) else line, text)
    allows = frozenset({"other-random-numbers", "prepares-eagerly"})
    return Patch(edit.files(), states=_STATES, allows=allows)


def _before_loops(module: SourceModule, call: cst.Call) -> cst.BaseStatement:
    """The statement to make the extra call before: that of the call, or the loop around it."""
    line = module.statement_of(call)
    if not isinstance(line, cst.SimpleStatementLine):
        raise Refused("the first call is part of a larger statement")
    between: list[cst.CSTNode] = []
    loop = None
    for above in module.ancestors(line):
        if isinstance(above, (cst.FunctionDef, cst.ClassDef, cst.Lambda)):
            break
        between.append(above)
        if isinstance(above, (cst.For, cst.While)):
            loop = above
    if loop is None:
        return line
    changed = sorted(names_read(module, call) & set(names_set(module, loop)))
    if changed:
        raise Refused(
            f"the loop around the compiled call gives it another `{changed[0]}` each time"
        )
    for above in between[: between.index(loop)]:
        if isinstance(above, (cst.With, cst.If, cst.Try)):
            raise Refused("what is around the compiled call in its loop may decide what it does")
    return loop


def _does_more(subject: Subject) -> bool:
    """The function around it counts, writes or draws."""
    module, function = subject.module, subject.function
    for node in module.walk(function.body):
        if isinstance(node, cst.AugAssign) and not isinstance(node.target, cst.Name):
            return True
        if output_of(module, node) is not None:
            return True
    return any(word in module.text for word in ("Dropout", "BatchNorm", "dropout("))


def _happens_once(subject: Subject) -> bool:
    """Is it behind a test for something that is not there yet, or the making of a cached value?"""
    module = subject.module
    if "cached_property" in module.text and isinstance(subject.node, cst.Attribute):
        return True
    for above in module.ancestors(subject.node):
        if isinstance(above, cst.If) and _ONCE.search(module.code(above.test)):
            return True
        if isinstance(above, (cst.FunctionDef, cst.ClassDef)):
            return False
    return False


def _first_call(module: SourceModule) -> cst.Call:
    """The first call, in the file, of the one thing that it compiles."""
    compiled: set[str] = set()
    for node in module.walk():
        if isinstance(node, cst.Assign) and module.calls(node.value, "torch.compile"):
            compiled |= {
                each.target.value for each in node.targets if isinstance(each.target, cst.Name)
            }
        elif isinstance(node, cst.FunctionDef) and any(
            module.meaning(_head(each.decorator)) & {"torch.compile"} for each in node.decorators
        ):
            compiled.add(node.name.value)
        elif isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
            # model.compile()
            owner, method = node.func.value, node.func.attr.value
            if (
                method == "compile"
                and isinstance(owner, cst.Name)
                and not _is_module(module, owner)
            ):
                compiled.add(owner.value)
    if len(compiled) != 1:
        raise Refused("it is unclear which name in the file is the compiled code")
    for node in module.walk():
        if (
            isinstance(node, cst.Call)
            and isinstance(node.func, cst.Name)
            and node.func.value in compiled
        ):
            return node
    raise Refused("the main file does not call the compiled code by its name")


def _is_module(module: SourceModule, name: cst.Name) -> bool:
    return any(
        isinstance(each, (cst.Import, cst.ImportFrom)) for each in definitions_of(module, name)
    )


def _head(decorator: cst.BaseExpression) -> cst.BaseExpression:
    return decorator.func if isinstance(decorator, cst.Call) else decorator


FIX = Fix(
    id="warm-up",
    title="make one eager call before the first compiled one",
    rules=frozenset(
        {"context-manager", "GB0264", "GB0228", "GB0119", "outside-call", "file-access"}
        | FIRST_CALL_CATEGORIES
    ),
    order=135,
    kind="caller",
    why="What the first call creates and keeps (a lazy parameter, a cached property, a table "
    "read from a file) exists by the time the code is compiled.",
    propose=_propose,
)
