"""Redacts the record itself: every event, by the table of policies, and the artifacts it names.

A run is walked twice, the first time to learn its names and numbers.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast, get_args

import msgspec

from compilescope.record.artifacts import KINDS, Artifacts, artifact_name
from compilescope.record.bodies import CompileFailed, FailedGuard, Guard, Unknown
from compilescope.record.cache_key import KeyParts
from compilescope.record.event import Event
from compilescope.record.graph import Call, Graph, KernelOrigins, Origins
from compilescope.record.guards import decode_guards
from compilescope.record.stack import CodeRef, Frame
from compilescope.report.sharing.redaction.code import Words
from compilescope.report.sharing.redaction.files import Files, redact_path
from compilescope.report.sharing.redaction.name_survey import is_structural
from compilescope.report.sharing.redaction.names import Context
from compilescope.report.sharing.redaction.policies import POLICIES, Policy
from compilescope.report.sharing.redaction.prose import Prose

S = TypeVar("S", bound=msgspec.Struct)

_PHRASES = re.compile(
    r"dispatch keys of |the same object|aliasing of arguments|the backend|the guarded object"
    r"|torch function modes|default device|global state|<function |<code of | object>|\(shape="
    r"|\.\.\. \d+ in all|getattr failed on source |KeyError on | got deallocated"
)
_COMMENT = re.compile(r"(\s{2,80}# )")
_LINE = re.compile(
    r"(?P<file>[^\n]+?)(?P<line>:\d+ in )(?P<function>[^\s(]+|<\w+>)(?P<rest>.*)", re.S
)
_OPTION = re.compile(r"(--?)([^=]+)(=?)(.*)", re.S)
_VERSION = re.compile(r"\d[\w.]*(?:\+(?:cpu|cu\d+|rocm[\d.]+|xpu|git[0-9a-f]+)(?!\w))?")
_LIKE_CODE = frozenset(("code", "guard", "torchs-guard", "reason", "argument", "test"))
_TORCHS_KINDS = ("OTHER", "WEAKREF", "ACCESSOR")
_WITHOUT_TEXT = frozenset((int, float, bool, type(None)))
_OUR_VALUES = frozenset(("alive", "gone", "present", "changed", "another", "unchanged"))


_encoder = msgspec.json.Encoder()
_STRUCTS: dict[str, type[msgspec.Struct]] = {
    "artifact-graph": Graph,
    "artifact-origins": Origins,
    "artifact-kernels": KernelOrigins,
    "artifact-key": KeyParts,
}
_NOTHING = "{}"


@functools.cache
def fields_beyond(kind: type[msgspec.Struct], leaves: frozenset[type]) -> tuple[str, ...]:
    """The fields of such a struct that may hold anything but these."""
    types = {each.name: each.type for each in msgspec.structs.fields(kind)}
    return tuple(name for name, each in types.items() if not _is_made_of(each, leaves))


def _is_made_of(kind: Any, leaves: frozenset[type]) -> bool:
    inner = [each for each in get_args(kind) if each is not Ellipsis]
    return all(_is_made_of(each, leaves) for each in inner) if inner else kind in leaves


class Records:
    """Every struct of the record, redacted."""

    def __init__(self, words: Words, files: Files, prose: Prose, texts: Texts) -> None:
        self._words = words
        self._files = files
        self._prose = prose
        self._texts = texts
        self._done: dict[tuple[str, str], str] = {}
        self.kept: set[str] = {
            name for each in (Frame, CodeRef, Event, FailedGuard) for name in each.__struct_fields__
        }
        """Texts that stay to the letter."""
        self._ways: dict[Policy, Callable[[str], str]] = {
            "code": words.code,
            "guard": self._guard,
            "torchs-guard": self._torchs_guard,
            "title": prose.title,
            "sentences": prose.sentences,
            "context": prose.debug_context,
            "message": prose.message,
            "generated": prose.generated,
            "reason": self._reason,
            "argument": self._argument,
            "test": self._test,
            "key": lambda text: words.names.replace(text, "key", "key"),
            "path": lambda text: redact_path(words.names, text),
            "version": _version,
            "dropped": lambda text: "",
        }
        self._own_ways: dict[type[msgspec.Struct], Callable[[Any], msgspec.Struct]] = {
            Frame: files.frame,
            CodeRef: files.code_ref,
            FailedGuard: self._failed_guard,
            Call: self._call,
        }
        self._plans: dict[type[msgspec.Struct], list[tuple[str, Policy]]] = {}

    def event(self, event: Event) -> Event:
        body = event.body
        # Nobody knows what a kind of another version holds: that there was one is all that stays.
        new = Unknown({"kind": "Redacted"}) if isinstance(body, Unknown) else self.struct(body)
        test = event.test and self.text(event.test, "test")
        stack = tuple(map(self._files.frame, event.stack))
        self.kept.add(event.id)
        self.kept.add(event.compile_id or "")
        return msgspec.structs.replace(event, body=new, test=test, stack=stack)

    def struct(self, struct: S) -> S:
        """The same struct with other words."""
        kind = type(struct)
        plan = self._plans.get(kind) or self._plan(kind)
        own = self._own_ways.get(kind)
        if own is not None:
            return cast(S, own(struct))
        if isinstance(struct, CompileFailed) and struct.gb_type:
            plan = [(name, "sentences" if name == "message" else policy) for name, policy in plan]
        changes: dict[str, Any] = {}
        for field, policy in plan:
            old = getattr(struct, field)
            if not old or type(old) in _WITHOUT_TEXT:
                continue
            new = self.text(old, policy) if type(old) is str else self._value(old, policy)
            if new is not old:
                changes[field] = new
        return msgspec.structs.replace(struct, **changes) if changes else struct

    def _plan(self, kind: type[msgspec.Struct]) -> list[tuple[str, Policy]]:
        """Every field of such a struct that may hold a text, and its policy."""
        plan = self._plans.get(kind)
        if plan is None:
            self.kept.update((kind.__name__, *kind.__struct_fields__))
            policies = POLICIES.get(kind.__name__, {})
            fields = fields_beyond(kind, _WITHOUT_TEXT)
            plan = self._plans[kind] = [(each, policies.get(each, "code")) for each in fields]
        return plan

    def _value(self, value: Any, policy: Policy) -> Any:
        kind = type(value)
        if kind in _WITHOUT_TEXT:
            return value
        if isinstance(value, str):
            return self.text(value, policy)
        if isinstance(value, msgspec.Struct):
            return self.struct(value)
        if isinstance(value, tuple):
            return tuple(self._value(item, policy) for item in value)
        if isinstance(value, dict):
            return {self._value(k, policy): self._value(v, policy) for k, v in value.items()}
        return value

    def text(self, text: str, policy: Policy) -> str:
        """A text of the record, by its policy."""
        if policy == "keep" or not text:
            self.kept.add(text)
            return text
        key = (policy, text)
        new = self._done.get(key)
        if new is None:
            new = self._done[key] = self._redacted(text, policy)
        return new

    def _redacted(self, text: str, policy: Policy) -> str:
        if policy.startswith("artifact-"):
            return self._texts.redacted(text, policy, self)
        if policy in _LIKE_CODE and self._words.is_beyond(text):
            return self._words.whole(text)
        return self._ways[policy](text)

    def _torchs_guard(self, text: str) -> str:
        return self._guard(text, "quoted")

    def _guard(self, text: str, context: Context = "code") -> str:
        """A condition. Our own words and torch's about it stay."""
        if text.startswith("___check_global_state()"):
            self.kept.add(text)
            return text
        out: list[str] = []
        at = 0
        for match in (*_PHRASES.finditer(text), None):
            part = text[at : match.start() if match else len(text)]
            out.append(self._words.code(part, context))
            if match:
                self.kept.add(match[0])
                out.append(match[0])
                at = match.end()
        return "".join(out)

    def _failed_guard(self, failed: FailedGuard) -> FailedGuard:
        self.kept.add(failed.kind)
        if failed.kind == "GLOBAL_STATE":
            self.kept |= {failed.guard, failed.subject, failed.expected, failed.actual}
            return failed
        policy: Policy = "torchs-guard" if failed.kind in _TORCHS_KINDS else "guard"

        def value(text: str) -> str:
            return self.text(text, "keep" if text in _OUR_VALUES else policy)

        return msgspec.structs.replace(
            failed,
            guard=self.text(failed.guard, policy),
            subject=self.text(failed.subject, policy),
            expected=value(failed.expected),
            actual=value(failed.actual),
            frame=failed.frame and self._files.frame(failed.frame),
        )

    def _call(self, call: Call) -> Call:
        """An operator's call. Torch's operators have torch's names for their arguments."""
        own = call.op.startswith(("aten.", "prims."))
        constants = {
            name if own else self.text(name, "generated"): self._constant(name, value)
            for name, value in call.constants.items()
        }
        self.kept.update(constants if own else ())
        return msgspec.structs.replace(
            call,
            op=self.text(call.op, "generated"),
            inputs=self._value(call.inputs, "generated"),
            outputs=self._value(call.outputs, "generated"),
            constants=constants,
        )

    def _constant(self, name: str, value: Any) -> Any:
        """Dimensions, strides and the like are the structure of a graph; factors are the user's."""
        if isinstance(value, str):
            return self.text(value, "generated")
        if isinstance(value, (list, tuple)):
            return [self._constant("" if type(item) is int else name, item) for item in value]
        if type(value) is int and is_structural(name):
            return value
        if type(value) in (int, float) and math.isfinite(value):
            new = self._words.numbers.redact(repr(abs(value)))
            return type(value)(new) if value >= 0 else -type(value)(new)
        return value if value is None or isinstance(value, (bool, float)) else None

    def guards(self, guards: list[Guard]) -> list[Guard]:
        done: dict[Guard, Guard] = {}
        for guard in guards:
            if guard not in done:
                done[guard] = self.struct(guard)
        return [done[guard] for guard in guards]

    def _reason(self, text: str) -> str:
        """`n == 0.5    # return x + n  # model.py:41 in forward (HINT: ...)`"""
        first, *parts = _COMMENT.split(text)
        out = [self._torchs_guard(first)]
        for part in parts:
            match = _LINE.fullmatch(part)
            if _COMMENT.fullmatch(part):
                out.append(part)
            elif match is not None:
                file = redact_path(self._words.names, match["file"])
                function = self._words.function(match["function"])
                rest = self._prose.sentences(match["rest"])
                out.append(f"{file}{match['line']}{function}{rest}")
            else:
                out.append(self._words.code(part))
        return "".join(out)

    def _argument(self, text: str) -> str:
        """A word of a command line: a path, an option, or something of the user's."""
        option = _OPTION.fullmatch(text)
        if option is not None:
            dash, name, equals, value = option.groups()
            new = name if len(name) == 1 else self._words.names.replace(name, "v", "option")
            return f"{dash}{new}{equals}{self._argument(value) if value else ''}"
        if "/" in text or "\\" in text or text.endswith(".py"):
            path, colons, node = text.partition("::")
            return redact_path(self._words.names, path) + colons + self._node(node)
        return self._words.string(text)

    def _test(self, text: str) -> str:
        path, colons, node = text.partition("::")
        return redact_path(self._words.names, path) + colons + self._node(node)

    def _node(self, node: str) -> str:
        """`TestModel::test_forward[cpu-3]`"""
        names, bracket, parameter = node.partition("[")
        new = "::".join(self._words.string(name) for name in names.split("::")) if names else ""
        if not bracket:
            return new
        inside = self._words.names.replace(parameter.removesuffix("]"), "text", "text")
        return f"{new}[{inside}]"


class Texts:
    """From the name of an artifact to the name of the redacted one.

    Names are hashes of what they stand for, so they change.
    """

    def __init__(
        self,
        old: Artifacts,
        new: Artifacts | None,
        files: Files,
        prose: Prose,
        public: set[str],
        known: Mapping[str, str],
    ) -> None:
        """`new`: None where texts are only read in order to learn their words. `public` are the
        sources of well-known packages: they stay. `known` are texts that were read already, by
        name."""
        self._old = old
        self._new = new
        self._files = files
        self._prose = prose
        self._public = public
        self._known = known
        self._done: dict[tuple[str, str], str] = {}

    def redacted(self, name: str, policy: Policy, records: Records) -> str:
        key = (name, policy)
        if key not in self._done:
            self._done[key] = self._put(name, policy, records)
        return self._done[key]

    def _put(self, name: str, policy: Policy, records: Records) -> str:
        text = self._known.get(name)
        text = self._old.get(name) if text is None else text
        kind = name.rpartition(".")[2]
        kind = kind if kind in KINDS else "txt"  # Another may be a word of the user's.
        if text is None:
            # The name alone would tell what the missing text was, to who can guess it.
            return artifact_name(f"missing {len(self._done)}", kind)
        if self._new is None and policy == "artifact-source" and name not in self._public:
            self._files.learn(text)
            return name
        text = self._text(text, name, policy, records)
        return self._new.put(text, kind) if self._new is not None else name

    def _text(self, text: str, name: str, policy: Policy, records: Records) -> str:
        if policy == "artifact-source":
            if name in self._public:
                self._files.kept.add(text)
                return text
            return self._files.whole(text)
        if policy == "artifact-generated":
            return self._prose.generated(text)
        try:
            if policy == "artifact-guards":
                return _encoder.encode(records.guards(decode_guards(text))).decode()
            struct = msgspec.json.decode(text, type=_STRUCTS[policy])
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return _NOTHING
        return _encoder.encode(records.struct(struct)).decode()


def _version(text: str) -> str:
    """A version without the label of a local build, but for those that PyTorch gives."""
    match = _VERSION.match(text)
    return match[0] if match else ""
