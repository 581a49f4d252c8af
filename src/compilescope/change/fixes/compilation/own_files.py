"""The user's own files that belong to a program: what may be changed for good."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from compilescope.change.fixes.subject import Program
from compilescope.knowledge.source.refusals import NotTried, Refused
from compilescope.knowledge.source.syntax.module import SourceModule
from compilescope.knowledge.source.trees import cst
from compilescope.record.python_text import parse_python


def own_modules(program: Program, *patterns: str) -> list[SourceModule]:
    """The user's own files that can be changed, the script first, then what it showed and
    what those import from the same folder; with patterns, those in which one is found: a library
    that lies beside the script takes minutes to parse. Raises `NotTried` where they are more than
    the program lets be parsed."""
    if program.own is None:
        program.keep_own(tuple(_own_files(program)))
    wanted = re.compile("|".join(patterns))
    found: list[SourceModule] = []
    for file in program.own or ():
        try:
            if wanted.search(program.text(file)):
                found.append(program.module(file))
        except NotTried:
            raise  # Some of the files must not pass for all of them.
        except Refused:
            continue
    return found


def _own_files(program: Program) -> list[str]:
    if program.has_too_much_source:
        program.stop("the program has too much source")
    files = list(program.own_files)
    known = set(files)
    for file in files:  # It grows while it is walked.
        try:
            imported = list(_imported_files(file, program))
        except Refused:
            continue
        for each in imported:
            if each not in known:
                known.add(each)
                files.append(each)
    return files


def related_to(first: SourceModule, modules: Sequence[SourceModule]) -> list[SourceModule]:
    """The files that import it, that it imports, and so on: not what only runs the program."""
    words = {module: _imported_words(module) for module in modules}
    found, left = [first], [each for each in modules if each is not first]
    for each in found:  # It grows while it is walked.
        for other in [*left]:
            if _word(other) in words.get(each, ()) or _word(each) in words[other]:
                left.remove(other)
                found.append(other)
    return found


def _word(module: SourceModule) -> str:
    """What an import calls the file."""
    path = Path(module.path)
    return path.parent.name if path.stem == "__init__" else path.stem


def _imported_words(module: SourceModule) -> set[str]:
    """All that stands in its imports: `model`, `cache` and `KV` of `from model.cache import KV`."""
    found: set[str] = set()
    for node in module.walk():
        names: list[cst.CSTNode] = []
        if isinstance(node, (cst.Import, cst.ImportFrom)):
            aliases = node.names if not isinstance(node.names, cst.ImportStar) else ()
            names = [alias.name for alias in aliases]
        if isinstance(node, cst.ImportFrom) and node.module is not None:
            names.append(node.module)
        found.update(part for name in names for part in _dotted(name).split("."))
    return found


def _imported_files(file: str, program: Program) -> Iterator[str]:
    roots = {Path(file).parent, *([Path(program.root)] if program.root else ())}
    for name in dict.fromkeys(_imported_names(program.text(file))):
        for root in roots:
            path = root.joinpath(*name.split("."))
            for found in (path.with_suffix(".py"), path / "__init__.py"):
                if found.is_file() and program.is_own(str(found)):
                    yield str(found)


def _imported_names(text: str) -> Iterator[str]:
    try:
        tree = parse_python(text)
    except SyntaxError:
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module


def _dotted(node: cst.CSTNode) -> str:
    if isinstance(node, cst.Attribute):
        return f"{_dotted(node.value)}.{node.attr.value}"
    return node.value if isinstance(node, cst.Name) else ""
