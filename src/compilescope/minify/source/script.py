"""The script that is handed out: the small program, and a main part that judges it by torch alone.

It listens to what torch itself logs about graph breaks or recompiles, and to the error that
fullgraph=True makes of a break; of a crash, it looks at how the program ends. Exit status 1 while
the cause is there, 0 once it is gone, 2 when something else went wrong.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass

from compilescope.minify.source.causes import Cause, lasting_guard
from compilescope.minify.source.crash_script import crash_check

_WIDTH = 88
_LOGS = {
    "break": ("graph_breaks", ("symbolic_convert", "convert_frame")),
    "recompile": ("recompiles", ("guards",)),
}
_CHECK = """
if __name__ == "__main__":
    said = []
    listener = logging.Handler()
    listener.emit = lambda record: said.append(record.getMessage())
    torch._logging.set_logs({artifact}=True)
    for name in {loggers}:
        logging.getLogger(name).addHandler(listener)
    failure = None
    try:
{acts}
    except Exception as error:
        failure = error
        said.append(str(error))
    signs = {words}
    shown = any(all(sign in text for sign in signs) for text in said)
    if failure is not None and not shown:
        print(f"Something else went wrong: {{type(failure).__name__}}: {{failure}}")
        sys.exit(2)
    print("The {thing} is present." if shown else "The {thing} is fixed.")
    sys.exit(1 if shown else 0)
"""
_VARIABLES = ("said", "listener", "failure", "shown", "name", "signs")


@dataclass(frozen=True)
class Story:
    """What the head of the script tells."""

    found_in: str
    """Where the user's program shows it: `train.py:41, in forward`."""
    torch: str
    lines_before: int
    needs: tuple[str, ...] = ()
    """Own modules that it still imports."""


def finished_script(text: str, cause: Cause, story: Story, *, guarded: bool) -> str:
    """`guarded`: all of the program in the main part, not only its last statements."""
    body = ast.parse(text).body
    form = _form(cause)
    imports = dict.fromkeys([*form.imports, "import sys", "import torch"])
    future = [ast.unparse(each) for each in body if _is_future(each)]
    body = [each for each in body if not _is_future(each)]
    split = 0 if guarded else _first_act(body)
    imports.update(dict.fromkeys(ast.unparse(each) for each in body[:split] if _is_import(each)))
    before = [each for each in body[:split] if not _is_import(each)]
    program = "\n".join([*future, *imports]) + "\n" + _laid_out(before, after_imports=True)
    gap = "\n" if before and isinstance(before[-1], _BLOCKS) else ""
    names = {node.id for each in body for node in ast.walk(each) if isinstance(node, ast.Name)}
    main = _check(form, body[split:], names)
    return f'"""{_head(cause, story)}"""\n\n{program}{gap}{main}'


def tidy(text: str) -> str:
    """Formatted anew, with the usual empty lines; comments go."""
    return _laid_out(ast.parse(text).body).lstrip("\n")


def _laid_out(body: list[ast.stmt], *, after_imports: bool = False) -> str:
    before: ast.stmt | None = ast.Import([]) if after_imports else None
    parts: list[str] = []
    for statement in body:
        parts.append(_gap(before, statement) + ast.unparse(statement) + "\n")
        before = statement
    return "".join(parts)


_BLOCKS = (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)


def _gap(before: ast.stmt | None, statement: ast.stmt) -> str:
    if isinstance(statement, _BLOCKS) or isinstance(before, _BLOCKS):
        return "\n\n"
    return "\n" if _is_import(before) and not _is_import(statement) else ""


def _first_act(body: list[ast.stmt]) -> int:
    """Where the last run of statements begins that neither define nor import anything."""
    kinds = (*_BLOCKS, ast.Import, ast.ImportFrom)
    return max((n for n, each in enumerate(body, 1) if isinstance(each, kinds)), default=0)


def _is_import(statement: ast.stmt | None) -> bool:
    return isinstance(statement, (ast.Import, ast.ImportFrom))


def _is_future(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.ImportFrom) and statement.module == "__future__"


@dataclass(frozen=True)
class _Form:
    """A main part to fill in."""

    text: str
    imports: tuple[str, ...]
    values: Mapping[str, str]
    """For its places; `{acts}` is the program's."""
    definitions: str = ""
    variables: tuple[str, ...] = _VARIABLES


def _form(cause: Cause) -> _Form:
    if cause.kind == "crash":
        check = crash_check(cause)
        return _Form(check.text, check.imports, check.values, check.definitions, check.variables)
    artifact, modules = _LOGS[cause.kind]
    values = {
        "artifact": artifact,
        "loggers": _listed([f"torch._dynamo.{name}.__{artifact}" for name in modules]),
        "words": _listed(words_of(cause)),
        "thing": "graph break" if cause.kind == "break" else "recompile",
    }
    return _Form(_CHECK, ("import logging",), values)


def _check(form: _Form, acts: list[ast.stmt], theirs: set[str]) -> str:
    """With names of its own for its variables."""
    text, definitions = form.text, form.definitions
    for name in form.variables:
        new = name
        while new in theirs:
            new += "_"
        text, definitions = (
            re.sub(rf"(?<!{{)\b{name}\b", new, each) for each in (text, definitions)
        )
    body = textwrap.indent(_laid_out(acts).strip() or "pass", " " * 8)
    return (f"\n\n{definitions}\n" if definitions else "") + text.format(acts=body, **form.values)


def _listed(texts: list[str] | tuple[str, ...]) -> str:
    """A list on one line if there is room, else with one text a line."""
    words = [_quoted(text) for text in texts]
    short = f"[{', '.join(words)}]"
    if len(short) <= _WIDTH - 20:
        return short
    return "[" + "".join(f"\n        {word}," for word in words) + "\n    ]"


def _quoted(text: str) -> str:
    plain = text.isprintable() and not set(text) & {"\\", '"'}
    return f'"{text}"' if plain else repr(text)


def words_of(cause: Cause) -> tuple[str, ...]:
    """What torch's own report of it says, whatever the program around it."""
    if cause.kind == "break":
        return tuple(dict.fromkeys(filter(None, (cause.what, cause.reason))))
    return ("Recompiling function", *filter(None, [lasting_guard(cause.logged)]))


def _head(cause: Cause, story: Story) -> str:
    what = f"Graph break: {cause.what}" if cause.kind == "break" else cause.title
    named = f" ({cause.gb_id})" if cause.gb_id else ""
    why = f"The guard {cause.guard} fails" if cause.kind == "recompile" else cause.reason
    why += "`" * (why.count("`") % 2)
    origin = f"Minified from {story.lines_before} lines; found in {story.found_in}"
    paragraphs = [
        f"{what}{named}.",
        f"{why.rstrip('.')}. {origin}, with torch {story.torch}.".removeprefix(". "),
        "Exit status: 1 while it is present, 0 once it is fixed, 2 if something else goes wrong.",
    ]
    if story.needs:
        paragraphs.append(f"It needs these modules of the author: {', '.join(story.needs)}.")
    text = "\n\n".join(textwrap.fill(each, _WIDTH) for each in paragraphs)
    return text.replace("\\", "\\\\").replace('"""', "'''") + "\n"
