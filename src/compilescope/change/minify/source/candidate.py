"""What the reducer shrinks when it shrinks a program: its LibCST tree, its text, its size."""

from __future__ import annotations

import ast
import builtins
import functools
import io
import tokenize
import warnings

import libcst as cst

from compilescope.base.errors import ToolError

_NO_CODE = (
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
)


class SourceCandidate:
    """One program. Its text is made when it is asked for."""

    def __init__(self, module: cst.Module) -> None:
        self.module = module

    @functools.cached_property
    def _text(self) -> str:
        return self.module.code

    @functools.cached_property
    def _size(self) -> tuple[int, ...]:
        text = self._text
        lines = sum(1 for line in text.splitlines() if line.strip())
        return (_tokens(text), lines, len(text), int.from_bytes(text.encode(), "big"))

    def text(self) -> str:
        return self._text

    def size(self) -> tuple[int, ...]:
        """Tokens, lines with something on them, characters, and then the text as one number."""
        return self._size


def parse(text: str, name: str = "The program") -> SourceCandidate:
    try:
        # LibCST reads some programs that Python refuses.
        compile(text, name, "exec", dont_inherit=True)
        return SourceCandidate(cst.parse_module(text))
    except (SyntaxError, ValueError) as error:
        raise ToolError(f"{name} is not valid Python: {_first_line(error)}.") from None
    except cst.ParserSyntaxError as error:
        raise ToolError(f"{name} cannot be parsed: {error.message}.") from None
    except RecursionError:
        raise ToolError(f"{name} is nested too deeply to be parsed.") from None


def is_valid(text: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # `0(x)` is odd, and it will fail when it runs.
            compile(text, "<candidate>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def unbound_names(text: str) -> set[str]:
    """Names that are read and that nothing in the program binds: most end it when it gets there."""
    read: set[str] = set()
    bound: set[str] = set(dir(builtins)) | _GIVEN
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Name):
            (read if isinstance(node.ctx, ast.Load) else bound).add(node.id)
        elif isinstance(node, ast.alias):
            if node.name == "*":
                return set()
            bound.add(node.asname or node.name.split(".")[0])
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)):
            bound.add(node.name)
        else:
            # `except E as name`, and the patterns of `match`.
            name = getattr(node, "name", None) or getattr(node, "rest", None)
            bound.update([name] if isinstance(name, str) else [])
    return read - bound


_GIVEN = {"__name__", "__file__", "__doc__", "__builtins__", "__spec__", "__class__", "__package__"}


def _tokens(text: str) -> int:
    count = 0
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            count += token.type not in _NO_CODE
    except (tokenize.TokenError, SyntaxError):
        # It will be refused as invalid; until then it is just long.
        return len(text)
    return count


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
