"""Runs whose every text would steer a terminal, a page, a document or a script if any let it.

Made by looking at the types of the record, so a new field is attacked on the day it is added.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any, get_args

import msgspec
from markdown_it import MarkdownIt
from msgspec import inspect

import samples
from builders import ROOT, event
from compilescope.base.texts import visible
from compilescope.record import bodies
from compilescope.record.artifacts import MemoryArtifacts
from compilescope.record.bodies import Body, Guard
from compilescope.record.event import Event
from compilescope.record.graph import Graph, KernelOrigins, Origins, encode_graph, encode_origins
from compilescope.record.header import RunHeader
from compilescope.record.run import Run
from compilescope.report.sharing.redaction.policies import POLICIES

CONTROLS = (
    "\x1b]0;title\x07\x1b]8;;http://evil.example\x1b\\\x1b[8m\x9b2J\r\x08\x7f\x00\x85\u2028\u2029"
    "\u202e\u2066\u200f\u061c\u200b\u2060\ufeff\xad\U000e0041"
)
MARKUP = (
    "\n# heading\n\n## heading\n![i](http://evil.example/i)[l](http://evil.example)"
    "<http://evil.example><b onclick=x></script><script>x</script></title></textarea>--><!--"
    "[bold]b[/bold][link=http://evil.example]x[/link]`a`` ```\n```\n~~~\n|c|\\|d|\n- item\n1. one\n"
    "===\n---\n    code\n\t&lt;i&gt;&#x1b; ::error::x%0A \"'\"\"\"'''\n::warning::y\n> q\n[r]: http://evil"
)
HALF = "\udce9\ud800"
"""Half characters: no JSON line of an event can hold them, a header and a file's name can."""
_SGR = re.compile(r"\x1b\[[0-9;]*m|\x1b\]8;[^\x1b]*\x1b\\")
_AWAY = re.compile(r"\s*(?:[\w+.-]+:)?[/\\]{2}[^/]*evil|\s*(?:javascript|data|vbscript):", re.I)
_PATHS = {"file", "cwd", "root"}


_KINDS: tuple[type, ...] = get_args(Body)
_BENCH = (bodies.Benchmark, bodies.Machine)
_LOGGED = tuple(k for k in _KINDS if k.__module__.endswith((".logged", ".traced")))
_CAPTURED = tuple(k for k in _KINDS if k not in (*_BENCH, *_LOGGED, bodies.JobEnded))
GROUPS: dict[str, tuple[type, ...]] = {
    "captured": _CAPTURED,
    "logged": (*_CAPTURED, *_LOGGED),
    "bench": (*_CAPTURED, *_BENCH),
    "sweep": (bodies.JobEnded,),
    "odd": _KINDS,
}
"""A benchmark, a sweep and a log are each reported in their own way. In `odd`, even ids and kinds
are hostile."""


class Makers:
    """Values of the record's types, each text with a number of its own."""

    def __init__(self, *, sane_keys: bool) -> None:
        self._numbers = itertools.count()
        self._sane_keys = sane_keys
        """Ids and kinds are as they should be: what depends on them is drawn too."""
        self.artifacts = MemoryArtifacts()
        self._open: list[type] = []
        """What is being made: a graph may hold graphs, and one of those is enough."""

    def text(self, extra: str = "") -> str:
        number = next(self._numbers)
        # Markdown writes a bar behind a backslash in another way than all else.
        markup = MARKUP if number % 2 else MARKUP.replace("\\|", "|")
        return f"Q{number}Q{CONTROLS}{extra}{markup}"

    def struct(self, kind: type) -> Any:
        policies = POLICIES.get(kind.__name__, {})
        values = {}
        self._open.append(kind)
        for field in msgspec.structs.fields(kind):
            policy = policies.get(field.name, "")
            values[field.name] = self._field(field.name, field.type, policy)
        self._open.pop()
        return kind(**values)

    def _field(self, name: str, hint: Any, policy: str) -> Any:
        if policy.startswith("artifact"):
            return self._artifact(policy)
        if name in _PATHS:
            return f"{ROOT}/{self.text()}.py"
        if self._sane_keys and name == "compile_id":
            return "0/0"
        if self._sane_keys and name == "gb_id":
            return "GB0170"
        if self._sane_keys and name == "origin":
            return "user"
        return self._value(inspect.type_info(hint))

    def _value(self, info: inspect.Type) -> Any:
        if isinstance(info, inspect.UnionType):
            return self._value(next(t for t in info.types if not isinstance(t, inspect.NoneType)))
        if isinstance(info, inspect.StructType):
            return self.struct(info.cls)
        if isinstance(info, inspect.LiteralType):
            return info.values[next(self._numbers) % len(info.values)]
        if isinstance(info, inspect.VarTupleType | inspect.ListType):
            item = info.item_type
            again = isinstance(item, inspect.StructType) and item.cls in self._open
            made = [] if again else [self._value(item)]
            return tuple(made) if isinstance(info, inspect.VarTupleType) else made
        if isinstance(info, inspect.TupleType):
            return tuple(map(self._value, info.item_types))
        if isinstance(info, inspect.DictType):
            value = info.value_type
            again = isinstance(value, inspect.StructType) and value.cls in self._open
            return {} if again else {self._value(info.key_type): self._value(value)}
        plain = {inspect.StrType: self.text, inspect.AnyType: self.text, inspect.RawType: self.text}
        if type(info) in plain:
            return plain[type(info)]()
        numbers: dict[type, Any] = {inspect.IntType: 3, inspect.FloatType: 0.5}
        return numbers.get(type(info), True)

    def _artifact(self, policy: str) -> str:
        if policy == "artifact-guards":
            text = msgspec.json.encode([self.struct(Guard)]).decode()
        elif policy == "artifact-graph":
            text = encode_graph(self.struct(Graph))
        elif policy in ("artifact-origins", "artifact-kernels"):
            kind = Origins if policy == "artifact-origins" else KernelOrigins
            text = encode_origins(self.struct(kind))
        else:
            text = f"def f(x):\n    return x  # {self.text(HALF)}\n{self.text(HALF)}\n"
        return self.artifacts.put(text, "py")


def hostile_run(group: str) -> Run:
    """Every kind of body of the group, and a header, with hostile text in every field."""
    sane_keys = group != "odd"
    makers = Makers(sane_keys=sane_keys)
    started = makers.struct(bodies.ProcessStarted)
    made: list[Event] = [event(msgspec.structs.replace(started, torch="2.13.0"), number=0)]
    for number, kind in enumerate(GROUPS[group], 1):
        stack = (makers.struct(bodies.Frame), makers.struct(bodies.Frame))
        if sane_keys:
            stack = tuple(msgspec.structs.replace(each, line=8) for each in stack)
        test = makers.text()
        compile_id = "0/0" if sane_keys else makers.text()
        body = makers.struct(kind)
        made.append(event(body, number=number, stack=stack, compile_id=compile_id, test=test))
    made.append(event(bodies.ProcessEnded(), number=10**9))
    header = RunHeader(
        run=f"abc123-{group}",
        tool=makers.text(HALF),
        # Without backticks: a span would be fenced by three, and they would make a block of it.
        command=("python", (CONTROLS + HALF + MARKUP).replace("\\|", "|").replace("`", "")),
        cwd=makers.text(HALF),
        root=ROOT,
        host=makers.text(HALF),
        main_pid=100,
        exit_status=1,
    )
    return samples.with_artifacts(Run(header, made, MemoryArtifacts()), makers.artifacts)


def steering(text: str) -> set[str]:
    """What in a text is no text."""
    return {c for c in text if c not in "\n\t" and visible(c) != c}


def without_colours(text: str) -> str:
    """Less what our own renderer writes; hostile sequences have been spelled out before it."""
    return _SGR.sub("", text)


def live_markdown(text: str) -> list[str]:
    """What a reader of markdown would draw that the text of a record began."""
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    found = []
    for token in parser.parse(text):
        if token.type == "html_block":
            allowed = r"\s*(<details><summary>[^<>]*</summary>|</details>)\s*"
            found += [] if re.fullmatch(allowed, token.content) else [token.content]
        if token.type == "inline":
            found += _live_inline(token.children or [])
            found += [token.content] if token.content.startswith(("heading", "::", "item")) else []
    return found


def _live_inline(tokens: list[Any]) -> Iterator[str]:
    for token in tokens:
        if token.type == "image" or "evil" in str(token.attrs):
            yield str(token)
        if token.type == "html_inline" and token.content not in ("<code>", "</code>"):
            yield token.content


class _Elements(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.scripts = 0
        self.live: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.scripts += tag == "script"
        for name, value in attrs:
            leads = name in ("href", "src", "action") and _AWAY.match(value or "")
            if name.startswith("on") or leads:
                self.live.append(f"{tag} {name}={value}")
        if tag in ("img", "iframe", "object", "base", "meta") and "evil" in str(attrs):
            self.live.append(tag)

    def handle_comment(self, data: str) -> None:
        self.live.append(data)


def live_html(text: str) -> list[str]:
    """Elements and attributes that the text of a record began."""
    parser = _Elements()
    parser.feed(text)
    parser.close()
    return [*parser.live, *(["more scripts than the page's own"] if parser.scripts > 1 else [])]
