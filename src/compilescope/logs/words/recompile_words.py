"""Torch's own words for why an earlier compilation did not fit, read into the record's fields.

They name the first guard that failed. TORCH_TRACE and TORCH_LOGS have the same words.
"""

from __future__ import annotations

import re

from compilescope.base.patterns import late
from compilescope.record.bodies import CacheEntryMiss, FailedGuard
from compilescope.record.guards import WholeFiles, guard_place, readable, without_comment

_ENTRY = late(r"^\s*(?:- )?(?P<id>\[?!?\d+/\d+(?:_\d+)?(?:/\d+)?\]?): (?P<words>.*)\Z", re.S)
_TENSOR = late(
    r"^tensor '(?P<name>.{1,400}?)' (?P<what>size|stride|rank|dtype|requires_grad"
    r"|dispatch key set|device|Tensor device)[\w ]{0,40}?mismatch(?: at index (?P<index>\d{1,9}))?"
    r"\. [Ee]xpected (?P<expected>.{1,400}?)"
    r"(?:, (?:actual|but got) (?P<actual>.{1,400}?))?\.?\s{0,9}$",
    re.S,
)
_DEVICE = late(
    r"^tensor '(?P<name>.{1,400}?)' Tensor device index mismatch\. "
    r"Expected device index to be (?P<expected>\S+), got (?P<actual>\S+)"
)
_NO_TENSOR = late(
    r"^expected type of '(?P<name>.+?)' to be a tensor type, (?:' )?but found (?P<actual>\S+)"
)
_TYPE = late(r"^___check_type_id\((?P<subject>.+), \d+\), type=<class '(?P<type>[^']+)'>")
_IDENTITY = late(r"^___check_obj_id\((?P<subject>.+), \d+\)")
_STATE = late(r"^GLOBAL_STATE changed: (?P<names>.*\S)\s*$")
_NO_ACCESS = late(r"^\w+GuardAccessor: (?P<why>.+) on (?P<subject>\S+)$")
_LENGTH = late(r"^len\((?P<what>.+)\) (?P<op>==|!=) (?P<size>\d+)$")
_EMPTY = late(r"^not (?P<what>[\w.\[\]']+)$")
_GONE = late(r"^Cache line invalidated because (?P<what>.+) got deallocated", re.S)
_COMPARE = late(r"^(?P<subject>[^=<>!]+?) (?P<op>==|is) (?P<expected>.+)$", re.S)
_OPERAND = late(r"\b[A-Za-z_]\w*(?:\.\w+|\[[^\]]{0,200}\]|\(\))*")
_DTYPES = {
    "Float": "float32", "Double": "float64", "Half": "float16", "BFloat16": "bfloat16",
    "Int": "int32", "Long": "int64", "Short": "int16", "Char": "int8", "Byte": "uint8",
    "Bool": "bool", "ComplexFloat": "complex64", "ComplexDouble": "complex128",
    "ComplexHalf": "complex32", "Float8_e4m3fn": "float8_e4m3fn", "Float8_e5m2": "float8_e5m2",
}  # fmt: skip
"""C++ says it otherwise than Python."""
_SUBJECTS = {"BACKEND_MATCH": "the backend", "Duplicate": "aliasing of arguments"}


def read_reason(text: str, files: WholeFiles | None = None) -> CacheEntryMiss | None:
    """One line of `recompile_reasons`, with the lines that belong to it."""
    found = _ENTRY.match(text)
    if found is None:
        return None
    words = found["words"].partition("\nUser stack trace:")[0].rstrip("\n")
    failed = read_failed(words, files)
    return CacheEntryMiss(found["id"], (failed,) if failed else (), words.split("\n", 1)[0])


def read_failed(words: str, files: WholeFiles | None = None) -> FailedGuard | None:
    """The guard that these words name. The value is left empty where they do not tell it."""
    first = words.split("\n", 1)[0]
    text = readable(without_comment(first))
    if not text:
        return None
    place = guard_place(first, files or WholeFiles())
    guard, subject, expected, actual, kind = _fields(text)
    return FailedGuard(guard, subject, expected, actual, kind, place)


def _fields(text: str) -> tuple[str, str, str, str, str]:
    tensor = _tensor(text)
    if tensor is not None:
        return tensor
    if found := _TYPE.match(text):
        subject = f"type({found['subject']})"
        expected = found["type"].removeprefix("__main__.")
        return f"{subject} is {expected}", subject, expected, "", "TYPE_MATCH"
    if found := _IDENTITY.match(text):
        same = "the same object"
        return f"{found['subject']} is {same}", found["subject"], same, "", "ID_MATCH"
    if found := _STATE.match(text):
        name = found["names"].split(" ")[0].strip(",")
        return f"{name} unchanged", name, "", "changed", "GLOBAL_STATE"
    if found := _GONE.match(text):
        return text, "the guarded object", "alive", "gone", "WEAKREF"
    if found := _NO_ACCESS.match(text):
        what = found["subject"]
        return f"{what} exists", what, "present", found["why"], "ACCESSOR"
    if found := _EMPTY.match(text):
        subject = f"len({found['what']})"
        return f"{subject} == 0", subject, "0", "", "LENGTH_CHECK"
    if found := _LENGTH.match(text):
        # From a walk through the tree it reads `!=`: that is what was found, not what was wanted.
        subject, size = f"len({found['what']})", found["size"]
        kind = "LENGTH_CHECK" if found["op"] == "==" else "LENGTH"
        return f"{subject} == {size}", subject, size, "", kind
    first = text.split(" ", 1)[0]
    if first in _SUBJECTS:
        return text, _SUBJECTS[first], "", "", "OTHER"
    return _condition(text)


def _condition(text: str) -> tuple[str, str, str, str, str]:
    found = _COMPARE.match(text)
    if found is not None and _is_constant(found["expected"]):
        kind = "NONE_MATCH" if found["expected"] == "None" else "EQUALS_MATCH"
        kind = {"True": "TRUE_MATCH", "False": "FALSE_MATCH"}.get(found["expected"], kind)
        return text, found["subject"], found["expected"], "", kind
    if " is " in text:
        return text, text, "True", "False", "SHAPE"
    names = [name for name in dict.fromkeys(_OPERAND.findall(text)) if not name.startswith("math.")]
    if any(sign in text for sign in ("==", "!=", "<", ">")) and names:
        return text, ", ".join(names), text, "", "SHAPE"
    return text, text.split(":", 1)[0], "", "", "OTHER"


def _is_constant(text: str) -> bool:
    return text in ("None", "True", "False") or text[:1] in "'\"-(0123456789" or "torch." in text


def _tensor(text: str) -> tuple[str, str, str, str, str] | None:
    other = _NO_TENSOR.match(text)
    if other:
        subject, expected = f"type({other['name']})", "Tensor"
        return f"{subject} is {expected}", subject, expected, other["actual"], "TENSOR_MATCH"
    device = _DEVICE.match(text)
    if device:
        subject = f"{device['name']}.device.index"
        expected, actual = device["expected"], device["actual"].rstrip(".")
        return f"{subject} == {expected}", subject, expected, actual, "TENSOR_MATCH"
    found = _TENSOR.match(text)
    if found is None:
        return None
    name, what = found["name"], found["what"]
    expected, actual = found["expected"], found["actual"] or ""
    if what in ("size", "stride"):
        subject = f"{name}.{what}()[{found['index']}]"
    elif what == "rank":
        subject = f"{name}.dim()"
    elif what == "dtype":
        subject = f"{name}.dtype"
        expected, actual = _dtype(expected), _dtype(actual)
    elif what == "requires_grad":
        subject = f"{name}.requires_grad"
        wanted = expected.rpartition("=")[2] in ("1", "True", "true")
        expected, actual = str(wanted), str(not wanted)
    elif what == "dispatch key set":
        return _dispatch_keys(name, expected, actual)
    else:
        subject = f"{name}.device"
    return f"{subject} == {expected}", subject, expected, actual, "TENSOR_MATCH"


def _dispatch_keys(name: str, expected: str, actual: str) -> tuple[str, str, str, str, str]:
    wanted, found = (
        set(re.findall(r"\w+", keys)) - {"DispatchKeySet"} for keys in (expected, actual)
    )
    gone, new = ", ".join(sorted(wanted - found)) or "-", ", ".join(sorted(found - wanted)) or "-"
    subject = f"dispatch keys of {name}"
    return subject, subject, gone, new, "TENSOR_MATCH"


def _dtype(name: str) -> str:
    return f"torch.{_DTYPES.get(name, name.lower())}" if name else ""
