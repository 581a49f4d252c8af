"""Expressions that give the same value elsewhere, and names that are set in one place only.

Calls that depend on their arguments alone, expressions that cannot change, pieces that are nothing
but functions of torch, and what may be evaluated when its function begins.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from compilescope.change.fixes.branches.layers import calls_of_layers
from compilescope.change.fixes.subject import Subject
from compilescope.knowledge.source.flow.purity import short
from compilescope.knowledge.source.refusals import Refused
from compilescope.knowledge.source.syntax.bindings import (
    bound_names,
    definitions_of,
    is_of_module,
    is_receiver,
    local_names,
    parameters_of,
)
from compilescope.knowledge.source.syntax.module import SourceModule
from compilescope.knowledge.source.trees import cst, kinds

_PURE = frozenset(
    {
        *(f"hashlib.{name}" for name in ("md5", "sha1", "sha224", "sha256", "sha384", "sha512")),
        *(f"hashlib.{name}" for name in ("blake2b", "blake2s", "sha3_256", "new")),
        *(f"zlib.{name}" for name in ("crc32", "adler32", "compress", "decompress")),
        *(f"json.{name}" for name in ("dumps", "loads")),
        *(f"pickle.{name}" for name in ("dumps",)),
        *(
            f"base64.{name}"
            for name in ("b64encode", "b64decode", "b32encode", "urlsafe_b64encode")
        ),
        *(f"bisect.{name}" for name in ("bisect", "bisect_left", "bisect_right")),
        *(f"heapq.{name}" for name in ("nlargest", "nsmallest")),
        *(
            f"statistics.{name}"
            for name in ("mean", "median", "stdev", "pstdev", "variance", "mode")
        ),
        *(f"struct.{name}" for name in ("pack", "unpack", "calcsize")),
        *(f"binascii.{name}" for name in ("hexlify", "unhexlify", "crc32")),
        *(f"fnmatch.{name}" for name in ("fnmatch", "fnmatchcase", "translate")),
        *(f"difflib.{name}" for name in ("get_close_matches",)),
        *(f"shlex.{name}" for name in ("split", "quote", "join")),
        *(f"html.{name}" for name in ("escape", "unescape")),
        *(f"urllib.parse.{name}" for name in ("urlparse", "quote", "unquote", "urlencode")),
        *(f"unicodedata.{name}" for name in ("normalize", "name", "category")),
        *(f"ast.{name}" for name in ("literal_eval",)),
        *(f"uuid.{name}" for name in ("uuid3", "uuid5", "UUID")),
        *(f"colorsys.{name}" for name in ("rgb_to_hsv", "hsv_to_rgb", "rgb_to_hls", "hls_to_rgb")),
        *(f"inspect.{name}" for name in ("getsource", "getdoc", "getfile", "signature")),
        *(f"datetime.{name}" for name in ("timedelta", "datetime.strptime", "date.fromisoformat")),
        "decimal.Decimal",
        "fractions.Fraction",
        "string.Template",
        "collections.Counter",
        "textwrap.dedent",
        "textwrap.fill",
        "math.prod",
    }
)
_PURE_PACKAGES = ("scipy.special.", "scipy.constants.")
_PURE_METHODS = frozenset(
    {"hexdigest", "digest", "encode", "decode", "most_common", "substitute", "safe_substitute"}
    | {
        "total_seconds",
        "isoformat",
        "strip",
        "lower",
        "upper",
        "split",
        "join",
        "replace",
        "format",
    }
)
_LITERALS = kinds(lambda: (cst.Integer, cst.Float, cst.SimpleString, cst.ConcatenatedString))
_FLAGS = ("True", "False", "None")


def is_pure(module: SourceModule, call: cst.Call) -> bool:
    """Does it give the same for the same arguments, and do nothing else?"""
    meanings = module.meaning(call.func)
    if meanings & _PURE or any(name.startswith(_PURE_PACKAGES) for name in meanings):
        return True
    func = call.func
    if not isinstance(func, cst.Attribute) or func.attr.value not in _PURE_METHODS:
        return False
    if isinstance(func.value, cst.Call):
        return is_pure(module, func.value)
    return isinstance(func.value, _LITERALS)


def check_constant(subject: Subject, value: cst.BaseExpression) -> None:
    """Raises `Refused` unless the value is a literal, text or a number that Dynamo guards, or a
    variable of the module that nothing in its file changes."""
    module = subject.module
    if isinstance(value, _LITERALS):
        return
    if isinstance(value, (cst.Tuple, cst.List)):
        for element in value.elements:
            check_constant(subject, element.value)
    elif isinstance(value, cst.Name):
        _check_name(subject, value)
    elif isinstance(value, cst.Call):
        func = value.func
        method = isinstance(func, cst.Attribute) and func.attr.value in _PURE_METHODS
        if not method and not is_pure(module, value):
            raise Refused(f"`{module.code(value)}` is not known to be a constant")
        if isinstance(func, cst.Attribute) and method:
            check_constant(subject, func.value)
        for arg in value.args:
            check_constant(subject, arg.value)
    elif isinstance(value, (cst.UnaryOperation, cst.BinaryOperation)):
        parts = (
            [value.expression]
            if isinstance(value, cst.UnaryOperation)
            else [value.left, value.right]
        )
        for each in parts:
            check_constant(subject, each)
    else:
        raise Refused(f"`{module.code(value)}` is not known to be a constant")


def _check_name(subject: Subject, name: cst.Name) -> None:
    module = subject.module
    if name.value in _FLAGS:
        return
    if name.value in local_names(subject.function):
        seen = subject.facts(name.value)
        if seen and not all(fact.kind in ("text", "number", "none") for fact in seen):
            raise Refused(f"`{name.value}` is neither a string nor a number")
        return
    if not is_of_module(module, name):
        raise Refused(f"`{name.value}` is a variable of another function")
    found = definitions_of(module, name)
    if len(found) != 1 or _is_changed(module, name.value):
        raise Refused(f"`{name.value}` can change while the program runs")


def _is_changed(module: SourceModule, name: str) -> bool:
    """Does anything in the file do more with it than to read it, or hand it to who knows whom?"""
    for node in module.walk():
        if isinstance(node, cst.Global) and any(item.name.value == name for item in node.names):
            return True
        if not isinstance(node, cst.Name) or node.value != name:
            continue
        above = module.parent(node)
        if isinstance(above, cst.Attribute) and above.value is node:
            holder = module.parent(above)
            if not (isinstance(holder, cst.Call) and above.attr.value in _READING):
                return True
        elif isinstance(above, cst.Subscript) and above.value is node:
            holder = module.parent(above)
            if isinstance(holder, (cst.AssignTarget, cst.AugAssign, cst.Del)):
                return True
        elif isinstance(above, cst.AugAssign) or (
            isinstance(above, cst.Arg) and not _is_kept(module, above, node)
        ):
            return True
    return False


def _is_kept(module: SourceModule, arg: cst.Arg, name: cst.Name) -> bool:
    """Can whoever is handed it not change it?"""
    call = module.parent(arg)
    if isinstance(call, cst.Call) and (
        is_pure(module, call) or module.meaning(call.func) & _LOOKING
    ):
        return True
    values = [module.parent(module.parent(each) or each) for each in definitions_of(module, name)]
    return all(
        isinstance(each, cst.Assign) and isinstance(each.value, _LITERALS) for each in values
    )


_LOOKING = frozenset(
    f"builtins.{name}"
    for name in ("len", "str", "repr", "print", "isinstance", "sorted", "list", "dict")
) | {"numpy.digitize", "numpy.searchsorted"}


_READING = frozenset({"get", "items", "keys", "values", "copy", "index", "count"} | _PURE_METHODS)


_FORBIDDEN = kinds(
    lambda: (
        cst.With,
        cst.Try,
        cst.While,
        cst.Yield,
        cst.Await,
        cst.Global,
        cst.Nonlocal,
        cst.Raise,
    )
)
_BUILTINS = frozenset(
    f"builtins.{name}"
    for name in (
        "len",
        "int",
        "float",
        "bool",
        "range",
        "sum",
        "max",
        "min",
        "abs",
        "zip",
        "tuple",
        "list",
    )
)
_NOT_PURE = ("torch.save", "torch.load", "torch.manual_seed", "torch.set_", "torch.distributed")
_RANDOM = ("rand", "randn", "randint", "randperm", "bernoulli", "multinomial", "normal", "dropout")


def check_pure(subject: Subject, statement: cst.BaseStatement) -> None:
    """Raises `Refused` for whatever a graph could not stand for: an effect, a random number, a
    change of what it is given."""
    module = subject.module
    for node in module.walk(statement):
        if isinstance(node, _FORBIDDEN):
            raise Refused("the code does more than compute")
        if isinstance(node, (cst.AssignTarget, cst.AugAssign)) and not isinstance(
            node.target, (cst.Name, cst.Tuple)
        ):
            raise Refused("the code changes its inputs")
        if (
            isinstance(node, cst.AugAssign)
            and isinstance(node.target, cst.Name)
            and node.target.value in parameters_of(subject.function)
        ):
            raise Refused("the code changes its inputs")
        if isinstance(node, cst.Call):
            _check_call(subject, node)


def _check_call(subject: Subject, call: cst.Call) -> None:
    module = subject.module
    shown = module.code(call.func)
    meanings = module.meaning(call.func)
    word = shown.split(".")[-1]
    if word in _RANDOM or (word.endswith("_") and not word.endswith("__")):
        raise Refused(f"`{shown}` draws random numbers or changes a tensor in place")
    if any(name.startswith(_NOT_PURE) for name in meanings):
        raise Refused(f"`{shown}` may do more than compute")
    if meanings & _BUILTINS or is_pure(module, call):
        return
    if any(name.startswith(("torch.", "math.")) for name in meanings):
        return
    root: cst.BaseExpression = call.func
    while isinstance(root, (cst.Attribute, cst.Call, cst.Subscript)):
        root = root.func if isinstance(root, cst.Call) else root.value
    if isinstance(root, (cst.BinaryOperation, cst.UnaryOperation)):
        return
    known = _is_local_value(subject, root)
    if isinstance(call.func, cst.Attribute) and known:
        return
    raise Refused(f"`{shown}` may do more than compute")


_IN_PLACE = ("inplace", "out")
_SOMETIMES = kinds(
    lambda: (
        cst.If,
        cst.IfExp,
        cst.BooleanOperation,
        cst.For,
        cst.While,
        cst.Try,
        cst.With,
        cst.Lambda,
        cst.ListComp,
        cst.SetComp,
        cst.DictComp,
        cst.GeneratorExp,
        cst.Match,
        cst.Assert,
    )
)
_READING_CALLS = frozenset(
    {
        "torch.is_inference_mode_enabled",
        "torch.get_num_threads",
        "torch.get_default_dtype",
        "os.getcwd",
        "os.getpid",
        "os.cpu_count",
        "os.path.exists",
        "os.path.isfile",
        "os.path.isdir",
        "threading.get_ident",
        "threading.current_thread",
        "socket.gethostname",
        "sys.getsizeof",
        "inspect.getsource",
        "platform.node",
        "platform.system",
    }
)
_QUIET_TYPES = (
    "torch.",
    "math.",
    "builtins.len",
    "builtins.int",
    "builtins.float",
    "builtins.range",
)


def check_early(
    subject: Subject, value: cst.BaseExpression, before: Sequence[cst.BaseStatement]
) -> None:
    """Raises `Refused` where `value` could be another one, or have another effect, if it were
    evaluated ahead of these statements."""
    module, function = subject.module, subject.function
    for above in module.ancestors(value):
        if above is function.body:
            break
        if _is_begun_with(module, above, value):
            continue
        if isinstance(above, _SOMETIMES):
            raise Refused("it is only evaluated on some paths through the function")
    names = module.names_in(value)
    changed = bound_names(before)
    for name in sorted(names & changed & local_names(function)):
        raise Refused(f"it needs `{name}`, which the function computes first")
    if _is_reading(module, value) and not _stores(module, before):
        return
    for each in before:
        for node in module.walk(each):
            if isinstance(node, (cst.Return, cst.Raise, cst.Assert)):
                raise Refused(f"the function may end before it: `{short(module, node)}`")
            if isinstance(node, cst.Call) and not _only_computes(subject, node):
                raise Refused(f"`{module.code(node)}` runs first and could affect it")
    if _stores(module, before):
        raise Refused("the function stores something first, which could affect it")


def _is_begun_with(module: SourceModule, above: cst.CSTNode, value: cst.BaseExpression) -> bool:
    """Is it evaluated whenever the statement is, whichever way that goes then: a test, or what a
    loop goes through? The test of an `elif` has an `if` above it."""
    if isinstance(above, (cst.If, cst.IfExp)):
        return above.test is value
    return isinstance(above, cst.For) and value in list(module.walk(above.iter))


def _is_reading(module: SourceModule, value: cst.BaseExpression) -> bool:
    """Does it only look something up?"""
    if isinstance(value, cst.Attribute):
        return True
    if not isinstance(value, cst.Call):
        return False
    if module.meaning(value.func) & _READING_CALLS:
        return True
    func = value.func
    return isinstance(func, cst.Attribute) and func.attr.value in ("get", "is_inference")


def _stores(module: SourceModule, before: Sequence[cst.BaseStatement]) -> bool:
    """Is an attribute or an element set?"""
    for each in before:
        for node in module.walk(each):
            if isinstance(
                node, (cst.AssignTarget, cst.AnnAssign, cst.AugAssign)
            ) and not isinstance(node.target, (cst.Name, cst.Tuple)):
                return True
    return False


def _only_computes(subject: Subject, call: cst.Call) -> bool:
    """Neither a quiet function nor a layer that only computes changes what it is given."""
    if _is_quiet(subject, call):
        return True
    try:
        return call in calls_of_layers(subject, call)
    except Refused:
        return False


def _is_quiet(subject: Subject, call: cst.Call) -> bool:
    """A function of torch, or a method of a local tensor that changes nothing."""
    meanings = subject.module.meaning(call.func)
    if any(name.startswith(_QUIET_TYPES) for name in meanings):
        return not _ends_in_place(call)
    func = call.func
    if not isinstance(func, cst.Attribute) or _ends_in_place(call):
        return False
    root = func.value
    while isinstance(root, (cst.Attribute, cst.Call, cst.Subscript)):
        root = root.func if isinstance(root, cst.Call) else root.value
    if isinstance(root, (cst.BinaryOperation, cst.UnaryOperation)):
        return True
    return _is_local_value(subject, root)


def _is_local_value(subject: Subject, node: cst.CSTNode) -> bool:
    """A variable of the function, but for the object that it is a method of."""
    if not isinstance(node, cst.Name) or is_receiver(subject.module, node):
        return False
    return node.value in local_names(subject.function)


def _ends_in_place(call: cst.Call) -> bool:
    """`x.add_(1)`, `F.relu(x, inplace=True)`, `torch.add(x, 1, out=x)`."""
    if any(arg.keyword is not None and arg.keyword.value in _IN_PLACE for arg in call.args):
        return True
    name = call.func.attr.value if isinstance(call.func, cst.Attribute) else ""
    return name.endswith("_") and not name.endswith("__")


def only_value(subject: Subject, node: cst.BaseExpression) -> cst.BaseExpression:
    """The expression that a name, or `self.x`, always stands for. Raises `Refused` where there are
    several, or none in this file."""
    module = subject.module
    shown = module.code(node)
    if isinstance(node, cst.Name):
        values = [_value_of(module, each) for each in definitions_of(module, node)]
    elif isinstance(node, cst.Attribute) and is_receiver(module, node.value):
        values = list(_set_in_class(subject, node.attr.value))
    else:
        raise Refused(f"it is unknown where `{shown}` is set")
    if len(values) != 1 or values[0] is None:
        raise Refused(f"`{shown}` is not set in exactly one place in this file")
    return values[0]


def _value_of(module: SourceModule, node: cst.CSTNode) -> cst.BaseExpression | None:
    """Of `x = value`: not of a parameter, a loop's variable or a part of a tuple."""
    above = module.parent(node)
    if isinstance(above, cst.AssignTarget) and above.target is node:
        assign = module.parent(above)
        return assign.value if isinstance(assign, cst.Assign) else None
    if isinstance(above, cst.AnnAssign) and above.target is node:
        return above.value
    return None


def _set_in_class(subject: Subject, name: str) -> Iterator[cst.BaseExpression | None]:
    module = subject.module
    made = module.class_of(subject.function)
    if made is None:
        raise Refused("the function is not a method of a class in this file")
    if any(_sets_from_outside(module, each, name, made) for each in module.walk()):
        yield None
    for node in module.walk(made):
        if isinstance(node, (cst.AssignTarget, cst.AnnAssign, cst.AugAssign)):
            target = node.target
            if isinstance(target, cst.Attribute) and target.attr.value == name:
                yield _value_of(module, target)


def _sets_from_outside(
    module: SourceModule, node: cst.CSTNode, name: str, made: cst.ClassDef
) -> bool:
    """`model.quiet = ...` somewhere else in the file."""
    if not isinstance(node, (cst.AssignTarget, cst.AnnAssign, cst.AugAssign)):
        return False
    target = node.target
    if not isinstance(target, cst.Attribute) or target.attr.value != name:
        return False
    return made not in module.ancestors(node)
