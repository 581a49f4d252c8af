"""Calls that depend on their arguments alone, and expressions that cannot change."""

from __future__ import annotations

import libcst as cst

from compilescope.fixes.patch import Refused
from compilescope.fixes.source.bindings import definitions_of, is_of_module, local_names
from compilescope.fixes.source.module import SourceModule
from compilescope.fixes.subject import Subject

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
_LITERALS = (cst.Integer, cst.Float, cst.SimpleString, cst.ConcatenatedString)
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
)


_READING = frozenset({"get", "items", "keys", "values", "copy", "index", "count"} | _PURE_METHODS)
