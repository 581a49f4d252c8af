"""What fixes write: the words of code that their examples' `good` has and `bad` lacks.

A remedy of a rule is for a person, where every fix refuses: it must not say what a fix would write.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from functools import cache

from compilescope.change.fixes.catalogue import all_fixes

_CODE = re.compile(r"`([^`]+)`")
_WORD = re.compile(r"\w+")


def _words_of(program: str) -> set[str]:
    """Attributes, keywords with their constants and names that are called."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(program)):
        if isinstance(node, ast.Attribute):
            found.add(node.attr)
        elif isinstance(node, ast.keyword) and isinstance(node.value, ast.Constant):
            found.add(f"{node.arg}={node.value.value!r}")
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            found.add(f"{node.func.id}(")
        elif isinstance(node, ast.ImportFrom):
            found |= {name.name for name in node.names}
    return found


@cache
def _written_by(fix_id: str) -> frozenset[str]:
    [fix] = [fix for fix in all_fixes() if fix.id == fix_id]
    added = (
        _words_of(each.good) - _words_of(each.bad) - _defined(each.bad) for each in fix.examples
    )
    return frozenset().union(*added)


def _defined(program: str) -> set[str]:
    return {node.name for node in ast.walk(ast.parse(program)) if isinstance(node, ast.FunctionDef)}


def answering(keys: Iterable[str]) -> list[str]:
    """The ids of the fixes for a finding that has one of these keys (see `Subject.keys`)."""
    return [fix.id for fix in all_fixes() if fix.rules & set(keys)]


def said_by_a_fix(text: str, keys: Iterable[str], program: str) -> set[str]:
    """`fix: word` for each word in the code of `text` that a fix for these keys would write.

    What the user's own program has is the user's word, not the fix's.
    """
    code = " ".join(_CODE.findall(text))
    spoken = set(_WORD.findall(code)) | set(re.findall(r"\w+=\w+", code))
    spoken |= {f"{name}(" for name in re.findall(r"(?<![.\w])(\w+)\(", code)}
    # Torch's own names are known without backticks, too.
    spoken |= set(re.findall(r"\w+_\w+|\w+=(?:True|False)", text))
    own = _words_of(program) | set(_WORD.findall(program))
    return {
        f"{fix}: {word}" for fix in answering(keys) for word in (_written_by(fix) & spoken) - own
    }
