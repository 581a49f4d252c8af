"""The words that users read: none that a PyTorch user would stumble over, none left unexplained.

Looked through are the string constants of the package (docstrings and comments are for developers,
but for those of click commands, which are help texts) and the prose of README and docs.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from docs_pages import pages
from parsed_source import nodes_of

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "compilescope"
DOCS = pages()

BANNED = {
    r"hoped for": "'16 graphs instead of 1'",
    r"\btoll\b": "cost",
    r"\bshut\b": "close, collapse",
    r"held against|holds? \w+ against": "compared with, checked against",
    r"nobody (?:can tell|knows|said|watched|saw)": "unknown, can't be determined",
    r"belongs? into": "belongs in, is needed in",
    r"hangs? on\b": "depends on",
    r"\bmend(?:s|ed|ing)?\b": "fix",
    r"\bdearest\b": "most expensive",
    r"(?<!fu)\bproven\b|\bproves?\b|\bunproven\b": "verified, verifies, unverified",
    r"\bin vain\b": "without result",
    r"\bfor good\b": "permanently",
    r"\blet be\b": "left alone",
    r"as a whole\b": "entirely",
    r"from line (?:\d+|\{[^}]*\}) on\b": "(from line 21)",
    r"\bgoes on\b|\bgo on (?:as|at|in|with)\b": "continues",
    r"\bleft to eager\b": "fell back to eager",
    r"\bbreak sites?\b": "graph break",
    r"\bgave up\b|\bgiven up\b|\bgives up\b": "fell back to eager",
    r"\bno fix fits\b": "no automatic fix",
    r"what (?:it|they|the log) (?:is|are) worth": "what it shows, how complete it is",
    r"whole story": "the full report",
    r"\bkin\b|\btwins?\b": "related",
    r"has no such moment": "say what happens",
    r"nothing was lost": "No graph breaks or recompiles",
    r"\bcut short\b": "truncated, ended early",
    r"\bend(?:s|ed) in order\b": "ended normally",
    r"caught (?:a|the|no) graph|not caught": "captured",
}
"""What must not be read anywhere, and what to say instead."""
DOCUMENTED = {"cut short"}
"""Values in our JSON that docs/reference/json.md promises: they stay as they are."""

EXPLAINED = {
    "fingerprint": ("gate.md", r"fingerprint[^.]*\b(?:same|edits|identif|stable|surviv|recogni)"),
    "baseline": ("gate.md", r"baseline[^.]*\b(?:accept|known|file|commit)"),
    "island": ("adapter.md", r"island[^.]*\b(?:partition|part of|piece|subgraph|run on)"),
    "preflight": ("preflight.md", r"preflight[^.]*\b(?:check|device|graph|before)"),
    "digest": ("json.md", r"digest[^.]*\b(?:JSON|summary|counts?|distinct)"),
}
"""Terms of ours -> the page that explains each, and what the first paragraph that uses it says of
it; a link to that page will do."""


class Text(NamedTuple):
    """Something that a user reads."""

    place: str
    words: str


def _docstrings(nodes: list[ast.AST]) -> set[int]:
    """Constants that stand alone as a statement: no user reads them."""
    return {
        id(statement.value)
        for node in nodes
        for statement in _statements(node)
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    }


def _statements(node: ast.AST) -> list[ast.stmt]:
    body = getattr(node, "body", None)
    return body if isinstance(body, list) else []


def _helps(nodes: list[ast.AST]) -> set[int]:
    """Docstrings of click commands."""
    return {
        id(node.body[0].value)
        for node in nodes
        if isinstance(node, ast.FunctionDef)
        and any(
            "command" in ast.dump(each) or "group" in ast.dump(each) for each in node.decorator_list
        )
        and isinstance(node.body[0], ast.Expr)
    }


def _constants(path: Path) -> Iterator[Text]:
    nodes = nodes_of(path)
    silent = _docstrings(nodes) - _helps(nodes)
    # The example programs and regular expressions of rules are code, not words.
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            words = node.value
            if id(node) in silent or words in DOCUMENTED or _is_code(words):
                continue
            if " " in words:
                yield Text(f"{path.relative_to(ROOT)}:{node.lineno}", words)


def _is_code(text: str) -> bool:
    """A program, as examples of rules and fixes hold them."""
    return bool(re.search(r"^(?:import |from \w+ import |def |class |@torch)", text, flags=re.M))


def source_texts() -> list[Text]:
    skipped = (SOURCE / "knowledge/registry/examples", SOURCE / "change/minify/source_passes")
    paths = [
        path
        for path in sorted(SOURCE.rglob("*.py"))
        if not any(path.is_relative_to(folder) for folder in skipped)
    ]
    return [text for path in paths for text in _constants(path)]


def doc_texts() -> list[Text]:
    """Prose by paragraph: no fenced or indented code, no code spans."""
    found = []
    for path in DOCS:
        fenced = False
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if line.lstrip().startswith("```"):
                fenced = not fenced
            elif not fenced and not line.startswith("    "):
                words = re.sub(r"`[^`]*`", "`…`", line)
                found.append(Text(f"{path.relative_to(ROOT)}:{number}", words))
    return [*found, *lesson_texts()]


def lesson_texts() -> list[Text]:
    """The prose of lessons stands in comments."""
    return [
        Text(f"{path.relative_to(ROOT)}:{number}", re.sub(r"`[^`]*`", "`…`", line))
        for path in sorted((SOURCE / "apps/lessons").glob("*.py"))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if line.startswith("#")
    ]


@pytest.mark.parametrize("kind", ["source", "docs"])
def test_no_banned_words(kind: str) -> None:
    texts = source_texts() if kind == "source" else doc_texts()
    # A name in backticks is code: a JSON value, for one.
    said = [(text.place, re.sub(r"`\S*?`", "`…`", text.words)) for text in texts]
    # All in one search first: few texts hold any of them.
    any_of_them = re.compile("|".join(f"(?:{pattern})" for pattern in BANNED), re.I)
    offenders = [
        f"{place}: {match[0]!r} -> {instead}"
        for place, words in said
        if any_of_them.search(words)
        for pattern, instead in BANNED.items()
        if (match := re.search(pattern, words, flags=re.I)) is not None
    ]
    assert not offenders, f"{len(offenders)} texts:\n" + "\n".join(offenders)


@pytest.mark.parametrize("term", EXPLAINED)
def test_our_terms_are_explained_where_they_first_appear(term: str) -> None:
    """In each document: a reader may open it first."""
    unexplained = []
    home, clause = EXPLAINED[term]
    for path in DOCS:
        paragraphs = re.split(r"\n\s*\n", path.read_text(encoding="utf-8"))
        first = next((p for p in paragraphs if re.search(rf"\b{term}", _prose(p), re.I)), None)
        if first is None or (path.name != home and re.search(rf"\([^)\s]*\b{home}", first)):
            continue
        text = " ".join(first.split())
        if not re.search(clause, text, re.I):
            unexplained.append(f"{path.relative_to(ROOT)}: {text[:120]}")
    assert not unexplained, "\n".join(unexplained)


def _prose(paragraph: str) -> str:
    """Without code, comments, and headings, which are explained by what follows."""
    paragraph = re.sub(r"<!--.*?-->\n?", "", paragraph, flags=re.S)
    lines = [line for line in paragraph.splitlines() if not line.startswith(("#", "    ", "|"))]
    return "" if paragraph.lstrip().startswith("```") else re.sub(r"`[^`]*`", "", "\n".join(lines))
