"""Which graph breaks a torch raises: the `gb_type` of every call in Dynamo's source.

Read as text with `ast`, never imported. A type that only exists at run time cannot be told; one
whose words stand anywhere in the source counts as raised.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from functools import cached_property, lru_cache

import msgspec

_MARK = "gb_type"


class BreakSite(msgspec.Struct, frozen=True):
    """A place that raises a graph break."""

    file: str
    line: int
    gb_type: str
    """With `{placeholders}` where it has parts known at run time only."""


class RaisedBreaks(msgspec.Struct, frozen=True, dict=True):
    """What the source of a torch says."""

    calls: tuple[BreakSite, ...]
    untold: tuple[BreakSite, ...]
    """Calls whose type is only known at run time; `gb_type` is the expression."""
    texts: frozenset[str]
    """Every string in the files that raise any, joined where its author broke it."""
    unread: tuple[str, ...] = ()
    """Files that are not valid Python here."""

    def raises(self, gb_type: str) -> bool:
        """Is there a call for it, or do its words stand in the source at all?"""
        if _fold(gb_type) in self.texts:
            return True
        pattern = _pattern(gb_type)
        return pattern is not None and any(pattern.fullmatch(text) for text in self.texts)

    def places(self, gb_type: str) -> tuple[BreakSite, ...]:
        """The calls for it."""
        exact = self._by_type.get(_fold(gb_type), ())
        return tuple(exact) or tuple(c for c in self._open if same_type(c.gb_type, gb_type))

    @cached_property
    def _by_type(self) -> dict[str, list[BreakSite]]:
        found: dict[str, list[BreakSite]] = {}
        for call in self.calls:
            found.setdefault(_fold(call.gb_type), []).append(call)
        return found

    @cached_property
    def _open(self) -> list[BreakSite]:
        return [call for call in self.calls if "{" in call.gb_type]


def raised_types(sources: Iterable[tuple[str, str]]) -> RaisedBreaks:
    """From the names and texts of Dynamo's files."""
    calls: list[BreakSite] = []
    untold: list[BreakSite] = []
    texts: set[str] = set()
    unread: list[str] = []
    for name, text in sources:
        if _MARK not in text:
            continue  # Reading the syntax of all of Dynamo takes seconds.
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            unread.append(name)
            continue
        for node in _telling(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                texts.add(_fold(node.value))
            elif isinstance(node, ast.JoinedStr):
                texts.add(_fold(_joined(node)))
            elif isinstance(node, ast.Call):
                for keyword in node.keywords:
                    if keyword.arg == _MARK:
                        told, rest = _types_of(keyword.value)
                        calls += [BreakSite(name, node.lineno, text) for text in told]
                        untold += [BreakSite(name, node.lineno, text) for text in rest]
    # In the order of the source, whatever the order of the visit.
    calls.sort(key=lambda call: (call.file, call.line))
    untold.sort(key=lambda call: (call.file, call.line))
    return RaisedBreaks(tuple(calls), tuple(untold), frozenset(texts), tuple(unread))


_Telling = ast.Constant | ast.JoinedStr | ast.Call


def _telling(tree: ast.AST) -> Iterator[_Telling]:
    """The strings and calls of a file. `ast.walk` would visit names and contexts as well, which
    are most of it, and take three times as long."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, _Telling):
            yield node
        for name in node._fields:
            value = getattr(node, name, None)
            if isinstance(value, list):
                waiting += [each for each in value if isinstance(each, ast.AST)]
            elif isinstance(value, ast.AST) and not isinstance(value, _SILENT):
                waiting.append(value)


_SILENT = (ast.Name, ast.expr_context, ast.operator, ast.cmpop, ast.boolop, ast.unaryop)


def _types_of(node: ast.expr) -> tuple[list[str], list[str]]:
    """The types that an expression can be, and what of it cannot be told."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [node.value.strip()], []
    if isinstance(node, ast.JoinedStr):
        return [_joined(node)], []
    if isinstance(node, ast.IfExp):
        first, second = _types_of(node.body), _types_of(node.orelse)
        return first[0] + second[0], first[1] + second[1]
    return [], [ast.unparse(node)]


def _joined(node: ast.JoinedStr) -> str:
    parts = []
    for value in node.values:
        if isinstance(value, ast.Constant):
            parts.append(str(value.value))
        elif isinstance(value, ast.FormattedValue):
            parts.append("{" + ast.unparse(value.value) + "}")
    return "".join(parts).strip()


def _fold(text: str) -> str:
    return " ".join(text.split())


@lru_cache(maxsize=4096)
def _pattern(gb_type: str) -> re.Pattern[str] | None:
    parts = re.split(r"\{[^{}]*\}", _fold(gb_type))
    if len(parts) == 1 or not "".join(parts).strip():
        return None
    return re.compile(".+".join(map(re.escape, parts)))


def same_type(one: str, other: str) -> bool:
    """Are two types the same but for their parts known at run time?"""
    if _fold(one) == _fold(other):
        return True
    for left, right in ((one, other), (other, one)):
        pattern = _pattern(left)
        if pattern is not None and pattern.fullmatch(_fold(right)):
            return True
    return False
