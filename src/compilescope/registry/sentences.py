"""PyTorch's table holds text cut out of its source; this makes sentences of it again.

The table is made by a script that copies arguments of `unimplemented(...)` as they stand: hints
arrive in the pieces in which they were typed, and an explanation may be the name of a variable.
What only exists at run time is left out or shown as `<placeholder>`, never invented.
"""

from __future__ import annotations

import ast

from compilescope.patterns import late

_EAGER_HINT = "Your code may result in an error"
_CALL_OF_ONE = late(r"(?:str|repr|typestr|fqn)\(([\w.]+)\)")
_TYPE_NAME = late(
    r"(?:type\(([\w.]+)\)(?:\.__name__)?|([\w.]+)\.(?:python_type(?:_name)?\(\)(?:\.__name__)?))"
)
_METHOD_OF_NAME = late(r"([\w.]+)\.(?:debug_repr|as_python_constant|get_name|get_function)\(\)")
_PLAIN = late(r"[\w.]+(?:\(\)|\[\d+\]|\([\w.]+\))?")


def clean_explanation(raw: str) -> str:
    """The explanation as prose; empty where the table holds only the code that makes one."""
    text = raw.strip()
    parts = _strings_of_expression(text)
    if parts is not None:
        text = "".join(parts)
    return _tidy(_with_placeholders(text))


def clean_context(raw: str) -> str:
    """The debug context, in which most values are only known at run time."""
    text = raw.strip()
    if _strings_of_expression(text) == []:
        return f"<{_readable(text)}>"
    return _tidy(_with_placeholders(text))


def join_hints(pieces: list[str]) -> tuple[str, ...]:
    """Whole hints: a piece that does not end its sentence goes on in the next one."""
    hints: list[str] = []
    goes_on = False
    for piece in pieces:
        text = _tidy(_with_placeholders(piece))
        if not text:
            continue
        # A hint that began with a small letter would be the rest of the one before.
        if hints and (goes_on or piece[0].isspace() or text[0].islower()):
            bullet = text.startswith("* ")
            joint = ", " if bullet and not hints[-1].endswith(":") else " "
            hints[-1] += joint + text.removeprefix("* ")
        else:
            hints.append(text)
        # Pieces of one string end in the blank that separates them. This one hint ends in a
        # blank too, although it is whole (seen in torch 2.11 to 2.15).
        goes_on = piece[-1:].isspace() and not piece.startswith(_EAGER_HINT)
    return tuple(dict.fromkeys(hints))


def is_code(name: str) -> bool:
    """Is it the name of a variable where a graph-break type should stand?"""
    return name.isidentifier() and (name.startswith("_") or name in ("gb_type", "msg"))


def _strings_of_expression(text: str) -> list[str] | None:
    """The string literals in a Python expression; None for anything that is prose.

    "tensor.is_inference() is not supported" is valid Python as well, so only the forms count that
    a script can have copied: names, calls, literals and their sums.
    """
    try:
        node = ast.parse(f"({text})", mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    if not isinstance(node, ast.Name | ast.Call | ast.BinOp | ast.Constant | ast.JoinedStr):
        return None
    return list(_literals(node))


def _literals(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Constant):
        return [node.value] if isinstance(node.value, str) else []
    if isinstance(node, ast.FormattedValue):
        return ["{" + ast.unparse(node.value) + "}"]
    return [text for child in ast.iter_child_nodes(node) for text in _literals(child)]


def _with_placeholders(text: str) -> str:
    """`{self.value}` becomes `<value>`; braces may nest."""
    out: list[str] = []
    start = 0
    while True:
        opening = text.find("{", start)
        closing = _closing_brace(text, opening)
        if opening < 0 or closing < 0:
            return "".join(out) + text[start:]
        out.append(text[start:opening])
        inside = text[opening + 1 : closing]
        if text[max(opening - 2, 0) : opening] in ("f'", 'f"'):
            out.append(text[opening : closing + 1])  # An f-string that the hint itself shows.
        elif text[max(opening - 1, 0) : opening] == "<" and text[closing + 1 : closing + 2] == ">":
            out.append(_readable(inside))
        else:
            out.append(f"<{_readable(inside)}>")
        start = closing + 1


def _closing_brace(text: str, opening: int) -> int:
    depth = 0
    for at in range(opening, len(text)) if opening >= 0 else ():
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if depth == 0:
            return at
    return -1


def _readable(expression: str) -> str:
    """A short name for what a placeholder stands for."""
    name = expression.removesuffix("!r").removesuffix("=").strip()
    name = _CALL_OF_ONE.sub(r"\1", name)
    if found := _TYPE_NAME.fullmatch(name):
        return f"type of {_short(found[1] or found[2])}"
    if found := _METHOD_OF_NAME.fullmatch(name):
        return _short(found[1])
    return _short(name) if _PLAIN.fullmatch(name) else "..."


def _short(name: str) -> str:
    short = name.removeprefix("self.").removesuffix(".__name__")
    return {"self": "value", "": "value"}.get(short, short)


def _tidy(text: str) -> str:
    return " ".join(text.split())
