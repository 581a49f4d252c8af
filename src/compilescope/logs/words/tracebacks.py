"""Tracebacks as Python prints them, with the columns that its carets tell.

Torch's stacks have the column where an expression begins, and where it ends only on a line of its
own: Python then draws carets up to the end of the line (torch 2.13).
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterable, Sequence

import msgspec

from compilescope.base.patterns import late
from compilescope.logs.source_files import line_here
from compilescope.record.python_text import parse_python
from compilescope.record.stack import Frame, origin_of, plain_function_name

_LONGEST = 2000
"""Letters of an expression that is parsed. Chosen: it bounds the time."""
_BODY = "\n    pass"


@functools.lru_cache(maxsize=1024)
def expression_end(source: str, column: int, *, call: bool = True) -> int | None:
    """The end of the widest call that begins at `column` of a line, or else of the widest
    expression; None where the line does not stand for itself. `call`: it is known to be one."""
    if len(source) > _LONGEST or not source.isascii():
        return None
    text = source.strip()
    lead = len(source) - len(source.lstrip())
    tree, shift = _parsed(text)
    if tree is None:
        return None
    at = column - lead + shift
    ends: dict[bool, int] = {}
    for node in ast.walk(tree):
        if isinstance(node, (ast.expr, ast.Assert)) and node.lineno == 1 and node.col_offset == at:
            is_call = call and isinstance(node, ast.Call)
            ends[is_call] = max(ends.get(is_call, 0), node.end_col_offset or 0)
    end = ends.get(True) or ends.get(False)
    return end - shift + lead if end else None


@functools.lru_cache(maxsize=1024)
def only_call(source: str) -> tuple[int, int] | None:
    """Where the call lies that a line consists of, if no other in it could be meant."""
    if len(source) > _LONGEST or not source.isascii():
        return None
    tree, _ = _parsed(source.strip())
    body: list[ast.stmt] = getattr(tree, "body", [])
    if len(body) != 1 or not isinstance(body[0], ast.Expr):
        return None
    call = body[0].value
    if not isinstance(call, ast.Call) or sum(isinstance(n, ast.Call) for n in ast.walk(call)) != 1:
        return None
    lead = len(source) - len(source.lstrip())
    return lead, lead + (call.end_col_offset or 0)


def _parsed(text: str) -> tuple[ast.AST | None, int]:
    """The line as a tree: alone, or as the head of a block."""
    for before, after in (("", ""), ("", _BODY), ("if 1: pass\n", _BODY), ("try: pass\n", _BODY)):
        try:
            tree = parse_python(before + text + after)
        except SyntaxError:
            continue
        if before:
            tree = ast.increment_lineno(tree, -1)
        return tree, 0
    return None, 0


_FILE = late(r'^\s*File "(?P<file>[^"\n]*)", line (?P<line>\d{1,9})(?:, in (?P<name>.+))?$')
_CARETS = late(r"^\s*[~^][~^\s]*$")
_MOST_FRAMES = 64
"""The innermost. Chosen: a deeper stack is a recursion or a framework's."""


def read_traceback(
    lines: Iterable[str], *, columns: bool = False, gaps: bool = False, call: bool = True
) -> list[Frame]:
    """The frames of a traceback, outermost first; it ends at the first line that is none of it.

    With `gaps` it may come in parts, with other lines between them. Python 3.10 knows no columns;
    later ones draw none where they would span the whole line: with `columns` it is known to be
    such a one. `call`: what the innermost frame was doing is a call.
    """
    groups: list[list[str]] = []
    open_group = False
    for line in lines:
        if _FILE.match(line):
            groups.append([line])
            open_group = True
        elif open_group and line.startswith("    ") and line.strip():
            groups[-1].append(line)
        elif groups and not gaps:
            break
        else:
            open_group = False
    columns = columns or any(_CARETS.match(line) for group in groups for line in group[1:])
    shown = groups[-_MOST_FRAMES:]
    return [_frame(group, columns, call or group is not shown[-1]) for group in shown]


def _frame(group: list[str], has_columns: bool, call: bool) -> Frame:
    found = _FILE.match(group[0])
    assert found is not None  # Groups begin with such a line.
    file, line, name = found["file"], int(found["line"]), (found["name"] or "").strip()
    source = group[1].strip() if len(group) > 1 and not _CARETS.match(group[1]) else ""
    column: int | None = None
    end: int | None = None
    if source and has_columns:
        lead = len(group[1]) - len(group[1].lstrip())
        carets = group[2] if len(group) > 2 and _CARETS.match(group[2]) else ""
        column, end = 0, len(source)
        if carets:
            column = max(len(carets) - len(carets.lstrip()) - lead, 0)
            end = min(len(carets.rstrip()) - lead, len(source))
        if end >= len(source):
            # Dynamo's own frames know no last line, so Python draws on to the end of the line.
            end = expression_end(source, column, call=call)
    elif source:
        # Whoever draws no carets: a line that is one call and nothing else can mean no other.
        column, end = only_call(source) or (None, None)
    return make_frame(file, line, name, source, column, end)


@functools.lru_cache(maxsize=8192)
def make_frame(
    file: str,
    line: int,
    name: str,
    source: str = "",
    column: int | None = None,
    end: int | None = None,
) -> Frame:
    """A frame as capture writes it. Logs show a line without its indentation: where the same line
    lies here, that one is taken, and columns count from its true beginning."""
    source = source.strip()
    here = line_here(file, line).rstrip("\r\n") if source else ""
    if source and here.strip() == source:
        lead = len(here) - len(here.lstrip())
        source = here
        column = None if column is None else column + lead
        end = None if end is None else end + lead
    if end is not None and column is not None and end <= column:
        end = None
    return Frame(file, line, plain_function_name(name), column, end, source, origin_of(file))


def without_false_column(frame: Frame) -> Frame:
    """The frame of a call. No carets stand for the whole line, from its beginning, or for a torch
    that knows no columns (2.11, 2.12): it is one of those if no call begins there."""
    lead = len(frame.source) - len(frame.source.lstrip())
    if frame.column != lead or _call_may_begin(frame.source.strip()):
        return frame
    return msgspec.structs.replace(frame, column=None, end_column=None)


@functools.lru_cache(maxsize=1024)
def _call_may_begin(text: str) -> bool:
    """Also where the line does not stand for itself."""
    tree = _parsed(text)[0] if len(text) <= _LONGEST else None
    if tree is None:
        return True
    # What Python compiles to a call.
    comprehensions = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
    calls = (ast.Call, ast.Assert, ast.ClassDef, *comprehensions)
    return any(
        node.lineno == 1 and node.col_offset == 0
        for node in ast.walk(tree)
        if isinstance(node, calls)
    )


def user_part(frames: Sequence[Frame]) -> list[Frame]:
    """Without what capture leaves out: torch's own callers, and what started the program.

    The innermost frames stay, whoever wrote them: that is where it happened.
    """
    first = next((n for n, frame in enumerate(frames) if frame.origin == "user"), 0)
    last = max((n for n, f in enumerate(frames) if f.origin in ("user", "library")), default=-1)
    kept: list[Frame] = []
    for number, frame in enumerate(frames[first:], first):
        if number <= last and frame.origin in ("torch", "generated", "stdlib"):
            continue
        kept.append(frame)
    return kept
