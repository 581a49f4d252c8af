"""The first look at a run, before anything is redacted: it learns what the names are.

Which names are functions, classes and modules, what is imported from well-known packages, which
numbers are sizes of tensors.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Collection
from typing import Any

from compilescope.record.bodies import FailedGuard
from compilescope.record.python_text import LARGEST, parse_python, walk
from compilescope.report.sharing.redaction import vocabulary
from compilescope.report.sharing.redaction.code import Words
from compilescope.report.sharing.redaction.lexer import tokens
from compilescope.report.sharing.redaction.names import Kind, Names
from compilescope.report.sharing.redaction.source import Ends, expression_ends

_DEFINED: dict[str, Kind] = {"class": "C", "def": "f"}
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_IMPORT = re.compile(r"^[ \t]*(?:import|from)[ \t]+[^\n]+", re.M)
_SIZES = re.compile(
    r"(?:size|stride|shape)(?:=[\[(]|\":\[)([^\])]{0,400})[\])]"  # of guards, values, JSON
    # Of a graph's text, "f32[4, 8][8, 1]cpu": a dtype, so that no name of the user's is one.
    r"|\"(?:bf|bits|[bcfiu])\d{1,3}\w{0,10}((?:\[[^\]\"]*\])+)\w*(?::\d+)?\""
)
_STRUCTURAL = re.compile(
    r"dims?|dim\d|axis|size|sizes|stride|padding|dilation|groups|kernel_size|output_padding|start"
    r"|end|step|index|k|n|chunks|sections|split_size|diagonal|offset|reduction|num_\w+|length"
    r"|padding_idx|dtype|layout|memory_format|output_size|normalized_shape|storage_offset|correction"
)
_NAME = re.compile(r"[^\W\d]\w*")
_SIZE = re.compile(r"(?<!\d)\d{1,18}(?!\d)")
_IS_SIZE = re.compile(r"\.(?:size|stride)\(\)\[\d+\]$|\.dim\(\)$")


def collect_sizes(words: Words, text: str) -> None:
    """Sizes and strides of tensors stay as they are: they are the structure of a graph."""
    for match in _SIZES.finditer(text):
        for size in _SIZE.findall(match[1] or match[2] or ""):
            words.numbers.keep(int(size))


def is_structural(argument: str) -> bool:
    """Is a whole number of this name part of a graph's structure? One of a list always is."""
    return not argument or _STRUCTURAL.fullmatch(argument) is not None


def collect_graph(words: Words, value: Any) -> None:
    """The constants that are structure, in a graph's JSON."""
    if isinstance(value, list):
        for item in value:
            collect_graph(words, item)
    elif isinstance(value, dict):
        for name, item in value.items():
            constants = item if name == "constants" and isinstance(item, dict) else {}
            for argument, constant in constants.items():
                listed = constant if isinstance(constant, list) else [constant]
                structural = is_structural(argument) or isinstance(constant, list)
                for number in listed:
                    if structural and type(number) is int:
                        words.numbers.keep(number)
            collect_graph(words, item)


def collect_values(words: Words, failed: FailedGuard) -> None:
    """The same for the values that broke a guard on a size."""
    for subject, value in zip(failed.subject.split(", "), failed.actual.split(", "), strict=False):
        if _IS_SIZE.search(subject):
            for size in _SIZE.findall(f"{value} {failed.expected}"[:40]):
                words.numbers.keep(int(size))
    for value in (failed.expected, failed.actual):
        collect_sizes(words, value)


def collect_library(names: Names, text: str) -> None:
    """The source of a well-known package: every name in it, and every string that is like one."""
    if len(text) > LARGEST:
        return
    for token in tokens(text):
        word = text[token.start : token.end]
        if token.kind == "name" or (token.kind == "fragment" and word.isidentifier()):
            names.public.add(word)


def collect_source(
    names: Names, text: str, own_parts: set[str], lines: Collection[int] = ()
) -> tuple[set[str], Ends]:
    """A file of the user's; the names that it binds otherwise than by an import come back, and
    where the expressions of these lines end.

    `own_parts` are names of files and folders that are the user's too. What is a package in one
    file may be a variable in another: then what follows its dot is the user's. In a file that does
    not parse any name may be bound.
    """
    if len(text) > LARGEST:
        return names_in(text), {}
    whole = _parsed(text)
    if whole is None:
        trees = [_parsed(match[0].strip()) for match in _IMPORT.finditer(text)]
        bound = {text[t.start : t.end] for t in tokens(text) if t.kind == "name"}
        _collect_definitions(names, text)
    else:
        trees, bound = [whole], set()
    nodes = [node for tree in trees if tree is not None for node in walk(tree)]
    for node in nodes:
        if isinstance(node, ast.ImportFrom):
            _collect_from(names, node, own_parts)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                _collect_import(names, alias.name, alias.asname, own_parts)
        elif (name := _bound(node)) is not None:
            bound.add(name)
            if isinstance(node, _DEFINITIONS):
                names.kinds.setdefault(name, "C" if isinstance(node, ast.ClassDef) else "f")
    return bound, expression_ends(nodes, lines) if lines and whole is not None else {}


def names_in(text: str) -> set[str]:
    """Of a file of which nothing is shown: what is not known to be public is replaced."""
    # No list of them: such a file has millions of words, most of them the same.
    return {match[0] for match in _NAME.finditer(text)}


def _collect_definitions(names: Names, text: str) -> None:
    """Of a file that does not parse."""
    if not any(word in text for word in _DEFINED):
        return
    before = ""
    for token in tokens(text):
        if token.kind != "name":
            before = before if token.kind == "space" else ""
            continue
        word = text[token.start : token.end]
        if before in _DEFINED:
            names.kinds.setdefault(word, _DEFINED[before])
        before = word


def _bound(node: ast.AST) -> str | None:
    """The name that this binds, but for imports."""
    if isinstance(node, ast.Name):
        return node.id if isinstance(node.ctx, ast.Store) else None
    if isinstance(node, ast.arg):
        return node.arg
    if isinstance(node, _DEFINITIONS):
        return node.name
    return None


def _parsed(text: str) -> ast.AST | None:
    try:
        return parse_python(text)
    except SyntaxError:
        return None


def _is_public(root: str, own_parts: set[str]) -> bool:
    """A file of the user's may have a public name, and is not public for that."""
    if root in vocabulary.roots():
        return True
    return vocabulary.is_public_package(root) and root not in own_parts


def _collect_import(names: Names, name: str, alias: str | None, own_parts: set[str]) -> None:
    root = name.split(".", 1)[0]
    if not _is_public(root, own_parts):
        for part in name.split("."):
            names.kinds.setdefault(part, "m")
        return
    names.public.add(root)
    (names.roots if _is_listed(root) else names.modules).update((root, alias or root))


def _collect_from(names: Names, node: ast.ImportFrom, own_parts: set[str]) -> None:
    module = node.module or ""
    root = module.split(".", 1)[0]
    if node.level or not _is_public(root, own_parts):
        for part in filter(None, module.split(".")):
            names.kinds.setdefault(part, "m")
        return
    _collect_import(names, root, None, own_parts)
    listed = _is_listed(root)
    for alias in node.names:
        if listed and alias.name not in vocabulary.dotted():
            continue  # In the list of all that is public, or not the module's own.
        names.public.add(alias.name)
        (names.roots if listed else names.modules).add(alias.asname or alias.name)


def _is_listed(root: str) -> bool:
    """All of its public names are known; of Python's own modules nothing else counts as public."""
    return root in vocabulary.roots() or root in sys.stdlib_module_names
