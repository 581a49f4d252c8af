"""A call that gives the same for the same constants, made once when the code is compiled."""

from __future__ import annotations

from compilescope.change.fixes.fix import Fix
from compilescope.change.fixes.patch import Patch
from compilescope.change.fixes.subject import Subject
from compilescope.change.fixes.values.constants import check_constant, is_pure
from compilescope.knowledge.source.refusals import NotMeant, Refused
from compilescope.knowledge.source.syntax.bindings import local_names
from compilescope.knowledge.source.syntax.edit import Edit
from compilescope.knowledge.source.syntax.toplevel import top_statement
from compilescope.knowledge.source.trees import cst


def _propose(subject: Subject) -> Patch:
    module = subject.module
    call = _outermost(subject)
    for node in module.walk(call):
        if isinstance(node, cst.Arg):
            if node.star:
                raise Refused("its arguments cannot be determined")
            if not (isinstance(node.value, cst.Call) and is_pure(module, node.value)):
                check_constant(subject, node.value)
    _check_unshared(subject, call)
    edit = Edit(module)
    names = _variables(subject, call)
    name = module.fresh_name(f"_{_word(call)}_once")
    torch = edit.module_name("torch")
    text = f"""
        @{torch}.compiler.assume_constant_result
        def {name}({", ".join(names)}):
            return {module.code(call)}
    """
    edit.put_definition_before(top_statement(module, subject.function), text)
    edit.replace(call, edit.expression(f"{name}({', '.join(names)})"))
    return Patch(edit.files())


def _outermost(subject: Subject) -> cst.Call:
    """The largest pure call around what Dynamo stopped at: `md5(name).hexdigest()` as one."""
    module = subject.module
    inside = [each for each in module.walk(subject.node) if isinstance(each, cst.Call)]
    found = next((each for each in inside if is_pure(module, each)), None)
    if found is None:
        raise NotMeant("the call is not known to return the same result for the same arguments")
    for above in module.ancestors(found):
        if isinstance(above, cst.BaseStatement):
            break
        if isinstance(above, cst.Call) and is_pure(module, above):
            found = above
    return found


def _check_unshared(subject: Subject, call: cst.Call) -> None:
    """Raises `Refused` where the result can be changed, and might be: it would be one for all."""
    module = subject.module
    if not any(module.calls(each, *_MUTABLE) for each in module.walk(call)):
        return
    above = module.parent(call)
    if isinstance(above, cst.Subscript) or module.calls(call, *_FIXED):
        return
    if isinstance(above, cst.Arg) and module.calls(module.parent(above) or call, "builtins.len"):
        return
    if isinstance(above, cst.Assign) and all(isinstance(t.target, cst.Name) for t in above.targets):
        names = {t.target.value for t in above.targets if isinstance(t.target, cst.Name)}
        uses = [
            each
            for each in module.walk(subject.function.body)
            if isinstance(each, cst.Name)
            and each.value in names
            and not isinstance(module.parent(each), cst.AssignTarget)
        ]
        if all(_only_looks(subject, each) for each in uses):
            return
    raise Refused("the result may be changed later, and all calls would share it")


def _only_looks(subject: Subject, name: cst.Name) -> bool:
    module = subject.module
    above = module.parent(name)
    if isinstance(above, cst.Subscript) and above.value is name:
        holder = module.parent(above)
        return not isinstance(holder, (cst.AssignTarget, cst.AugAssign, cst.Del))
    if isinstance(above, cst.Attribute):
        return above.attr.value in ("get", "items", "keys", "values", "most_common")
    return isinstance(above, cst.Arg) and module.calls(module.parent(above) or name, "builtins.len")


_MUTABLE = ("json.loads", "collections.Counter", "heapq.nlargest", "heapq.nsmallest", "shlex.split")
_FIXED = ("json.dumps", "pickle.dumps")


def _variables(subject: Subject, call: cst.Call) -> list[str]:
    """Names of the function's own that the call is made with."""
    local = local_names(subject.function)
    read = [each.value for each in subject.module.walk(call) if isinstance(each, cst.Name)]
    return list(dict.fromkeys(name for name in read if name in local))


def _word(call: cst.Call) -> str:
    func = call.func
    return (
        func.attr.value if isinstance(func, cst.Attribute) else str(getattr(func, "value", "call"))
    )


FIX = Fix(
    id="pure-call-once",
    title="evaluate the constant call when the code is compiled",
    rules=frozenset({"outside-call", "GB0299", "GB0134"}),
    order=50,
    kind="source",
    why="The function is known to depend only on its arguments, and these are constants: "
    "strings and numbers that Dynamo guards on, or literals. So it always returns the same "
    "result.",
    propose=_propose,
)
