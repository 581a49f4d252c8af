"""All guards of an earlier compilation that the new one's inputs fail, and the values.

Torch's words name only the first guard that failed, and often not the value. Yet the new
compilation was guarded on the very values that broke the old one: what its own guards and symbols
say of a value is what that value was. So the two sets of guards are held against each other.

Most guards of two such trees are equal to the letter. Only the others are looked at.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from compilescope.base.patterns import late
from compilescope.record.bodies import CacheEntryMiss, FailedGuard, Guard
from compilescope.record.guards import WholeFiles, guard_place, readable
from compilescope.record.python_text import read_literal
from compilescope.record.stack import Frame, innermost_user_frame

_TENSOR = late(
    r"^check_tensor\(.{0,1000}?, (?P<type>[^,()]{1,200}), "
    r"(?P<keys>DispatchKeySet\([^)]{0,400}\)), (?P<dtype>[\w.]+), "
    r"device=(?P<device>[^,]{1,60}), requires_grad=(?P<grad>\w+), "
    r"size=(?P<size>\[[^\]]{0,400}\]), stride=(?P<stride>\[[^\]]{0,400}\])\)",
    re.S,
)
_TYPE = late(r"^___check_type_id\((?P<subject>.+), \d+\), type=<class '(?P<type>[^']+)'>")
_LENGTH = late(r"^len\((?P<subject>.+)\) == (?P<size>\d+)$")
_EMPTY = late(r"^not (?P<subject>\S+)$")
_COMPARE = late(r"^(?P<subject>.+?) (?P<op>==|is) (?P<expected>.+)$", re.S)
_STATE = late(r"___check_global_state\(\) against (\{.*\})", re.S)
_VALUES = frozenset(("EQUALS_MATCH", "TRUE_MATCH", "FALSE_MATCH", "NONE_MATCH", "CONSTANT_MATCH"))
_LENGTHS = ("LENGTH_CHECK", "DICT_LENGTH")
_MOST_FAILED = 50
"""Of one recompile. Chosen: more than people read."""
_SOURCE = late(r"^check_tensor\((.*?), [^,()]+, DispatchKeySet")
_Found = tuple[str, str, str]
"""Subject, what was wanted, what is."""


_LEAF = late(
    r"\+- (TENSOR_MATCH|GLOBAL_STATE|TYPE_MATCH|LENGTH_CHECK|DICT_LENGTH|EQUALS_MATCH|TRUE_MATCH"
    r"|FALSE_MATCH|NONE_MATCH|CONSTANT_MATCH): (.*)"
)
_LONGEST_CHECK = 4000
"""Letters of a guard that is taken apart. Chosen: it bounds the time."""


class GuardLines:
    """The leaves of a guard tree that tell of values, by what they check."""

    def __init__(self, text: str) -> None:
        self.lines: dict[str, tuple[str, str]] = {}
        """Check without its comment -> kind, and the whole of it."""
        for kind, check in _LEAF.findall(text):
            bare = check.partition("  #")[0].rstrip()
            if len(bare) <= _LONGEST_CHECK:
                self.lines[bare] = (kind, check)

    def beside(self, other: GuardLines, files: WholeFiles) -> list[Leaf]:
        """The guards here that the other tree has not."""
        return [
            Leaf(kind, bare, check, files)
            for bare, (kind, check) in self.lines.items()
            if bare not in other.lines
        ]


class Leaf:
    """A guard of such a tree; where it comes from is looked up when it is asked for."""

    __slots__ = ("_check", "_files", "checks", "kind", "source")

    def __init__(self, kind: str, bare: str, check: str, files: WholeFiles) -> None:
        found = _SOURCE.match(bare) if kind == "TENSOR_MATCH" else None
        self.source = found[1] if found else ""
        self.kind = kind
        self.checks = (bare,)
        self._check = check
        self._files = files

    @property
    def stack(self) -> tuple[Frame, ...]:
        place = guard_place(self._check, self._files)
        return (place,) if place is not None else ()


class _Tensor(msgspec.Struct):
    type: str
    dtype: str
    device: str
    grad: str
    size: list[int | None]
    stride: list[int | None]


class GuardFacts(msgspec.Struct):
    """What is known of the values that a compilation was made for."""

    values: dict[str, str] = msgspec.field(default_factory=dict)
    """By source; also `len(source)` and `type(source)`."""
    tensors: dict[str, _Tensor] = msgspec.field(default_factory=dict)
    state: dict[str, object] = msgspec.field(default_factory=dict)


def facts_of(guards: Iterable[Guard | Leaf], symbols: Mapping[str, str]) -> GuardFacts:
    """From a compilation's own guards, and the values of its symbols by source."""
    facts = GuardFacts(values=dict(symbols))
    for guard in guards:
        for check in guard.checks:
            _add_fact(facts, guard, check)
    return facts


def _add_fact(facts: GuardFacts, guard: Guard | Leaf, check: str) -> None:
    source = guard.source
    if guard.kind == "TENSOR_MATCH":
        tensor = _tensor(check)
        if tensor is not None:
            facts.tensors[source] = tensor
    elif guard.kind == "GLOBAL_STATE":
        facts.state.update(_state(check))
    elif found := _TYPE.match(check):
        facts.values[f"type({found['subject']})"] = found["type"].removeprefix("__main__.")
    elif guard.kind in _LENGTHS:
        length = _length(check)
        if length is not None:
            facts.values[f"len({length[0]})"] = length[1]
    elif guard.kind in _VALUES:
        found = _COMPARE.match(check)
        if found:
            facts.values.setdefault(found["subject"], found["expected"])


def explained(miss: CacheEntryMiss, old: Iterable[Guard | Leaf], new: GuardFacts) -> CacheEntryMiss:
    """The entry with every guard that is known to have failed, in the order of the old ones."""
    found: dict[str, FailedGuard] = {}
    for guard in old:
        for failed in _failures(guard, new):
            found.setdefault(failed.subject, failed)
        if len(found) >= _MOST_FAILED:
            break
    for named in miss.failed:
        # What torch itself named failed for certain; its value may be known from the new guards.
        known = found.get(named.subject)
        if known is None:
            found[named.subject] = _with_value(named, new)
        elif not known.actual and named.actual:
            found[named.subject] = named
    return CacheEntryMiss(miss.compile_id, tuple(found.values()), miss.reason)


def _with_value(failed: FailedGuard, new: GuardFacts) -> FailedGuard:
    if failed.actual:
        return failed
    names = failed.subject.split(", ")
    values = [_value_of(name, new) for name in names]
    if all(value is None for value in values):
        return failed
    actual = ", ".join("?" if value is None else value for value in values)
    return FailedGuard(
        failed.guard, failed.subject, failed.expected, actual, failed.kind, failed.frame
    )


def _value_of(name: str, new: GuardFacts) -> str | None:
    for source, value in new.values.items():
        if readable(source) == name:
            return value
    for source, tensor in new.tensors.items():
        plain = readable(source)
        if name == plain:
            return _described(tensor)
        for numbers, what in ((tensor.size, "size"), (tensor.stride, "stride")):
            for index, number in enumerate(numbers):
                if number is not None and name == f"{plain}.{what}()[{index}]":
                    return str(number)
    return None


def _failures(guard: Guard | Leaf, new: GuardFacts) -> Iterator[FailedGuard]:
    for check in guard.checks:
        relation = " == "
        pairs: Iterable[_Found] = ()
        if guard.kind == "TENSOR_MATCH":
            pairs = _tensor_pairs(guard.source, check, new)
        elif guard.kind == "GLOBAL_STATE":
            pairs = _state_pairs(check, new)
        elif found := _TYPE.match(check):
            relation = " is "
            wanted = found["type"].removeprefix("__main__.")
            pairs = _pair(f"type({found['subject']})", wanted, new)
        elif guard.kind in _LENGTHS:
            length = _length(check)
            pairs = _pair(f"len({length[0]})", length[1], new) if length else ()
        elif guard.kind in _VALUES:
            pairs = _value_pairs(check, new)
            relation = " is " if " is " in check else " == "
        for subject, expected, actual in pairs:
            shown = subject if guard.kind == "GLOBAL_STATE" else readable(subject)
            relation = " is " if subject.startswith("type(") else relation
            frame = innermost_user_frame(guard.stack)
            text = f"{shown}{relation}{expected}"
            yield FailedGuard(text, shown, expected, actual, guard.kind, frame)


def _pair(subject: str, expected: str, new: GuardFacts) -> Iterator[_Found]:
    actual = new.values.get(subject)
    if actual is not None and not _same(expected, actual):
        yield subject, expected, actual


def _value_pairs(check: str, new: GuardFacts) -> Iterator[_Found]:
    found = _COMPARE.match(check)
    if found is None:
        return
    subject, expected = found["subject"], found["expected"]
    if subject in new.values:
        yield from _pair(subject, expected, new)
    elif subject in new.tensors:
        yield subject, expected, _described(new.tensors[subject])


def _tensor_pairs(source: str, check: str, new: GuardFacts) -> Iterator[_Found]:
    old, now = _tensor(check), new.tensors.get(source)
    if old is None:
        return
    if now is None:
        kind = new.values.get(f"type({source})") or ("None" if source in new.values else None)
        if new.values.get(source) == "None":
            kind = "NoneType"
        if kind:
            yield f"type({source})", old.type, kind
        return
    for subject, wanted, actual in (
        (f"type({source})", old.type, now.type),
        (f"{source}.dtype", old.dtype, now.dtype),
        (f"{source}.device.index", old.device, now.device),
        (f"{source}.requires_grad", old.grad, now.grad),
    ):
        if wanted != actual:
            yield subject, wanted, actual
    if len(old.size) != len(now.size):
        yield f"{source}.dim()", str(len(old.size)), str(len(now.size))
        return
    sizes = list(_numbers_differ(f"{source}.size()", old.size, now.size, new))
    yield from sizes
    # A stride follows from the sizes unless the layout changed; then it says something new.
    if not sizes:
        yield from _numbers_differ(f"{source}.stride()", old.stride, now.stride, new)


def _numbers_differ(
    subject: str, old: list[int | None], now: list[int | None], new: GuardFacts
) -> Iterator[_Found]:
    for index, (want, have) in enumerate(zip(old, now, strict=False)):
        name = f"{subject}[{index}]"
        actual = str(have) if have is not None else new.values.get(name)
        if want is not None and actual is not None and actual != str(want):
            yield name, str(want), actual


def _state_pairs(check: str, new: GuardFacts) -> Iterator[_Found]:
    for name, wanted in sorted(_state(check).items()):
        if name in new.state and new.state[name] != wanted:
            yield name, str(wanted), str(new.state[name])


def _state(check: str) -> dict[str, object]:
    found = _STATE.search(check)
    if found is None:
        return {}
    import json

    try:
        state = json.loads(found[1])
    except (ValueError, RecursionError):
        return {}
    return state if isinstance(state, dict) else {}


def _tensor(check: str) -> _Tensor | None:
    found = _TENSOR.match(check)
    if found is None:
        return None
    return _Tensor(
        found["type"], found["dtype"], found["device"], found["grad"],
        _numbers(found["size"]), _numbers(found["stride"]),
    )  # fmt: skip


def _numbers(text: str) -> list[int | None]:
    try:
        return [item if isinstance(item, int) else None for item in read_literal(text)]
    except (ValueError, TypeError):
        return []


def _length(check: str) -> tuple[str, str] | None:
    found = _LENGTH.match(check)
    if found:
        return found["subject"], found["size"]
    found = _EMPTY.match(check)
    return (found["subject"], "0") if found else None


def _described(tensor: _Tensor) -> str:
    sizes = ", ".join("?" if size is None else str(size) for size in tensor.size)
    sizes += "," if len(tensor.size) == 1 else ""
    return f"Tensor(shape=({sizes}), dtype={tensor.dtype})"


def _same(wanted: str, actual: str) -> bool:
    if wanted == actual:
        return True
    try:
        return bool(float(wanted) == float(actual))
    except ValueError:
        return False
