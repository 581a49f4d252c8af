"""The pages of the documentation: where each lies, and the commands and files it shows."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from markdown_it import MarkdownIt

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
README = ROOT / "README.md"
_MARKER = re.compile(r"<!-- (not run|run by|ends with): ?(.*?) -->", re.S)
_FILE = re.compile(r"# ([\w/]+\.py)\n")


def pages() -> list[Path]:
    """What users read, the README first."""
    return [README, *sorted(DOCS.rglob("*.md"))]


def page(name: str) -> Path:
    """A page by its name alone: tests need not know which part of the documentation it is in."""
    (found,) = [path for path in pages() if path.name == f"{name}.md"]
    return found


def page_text(name: str) -> str:
    return page(name).read_text(encoding="utf-8")


class CommandBlock(NamedTuple):
    """A fenced block of commands (`sh`), or of commands after `$` and their output (`console`).

    A comment on the line before it may say `not run: WHY`, `run by: FILE` where tests of their own
    run it, or `ends with: STATUS` where the commands end with other than 0.
    """

    page: Path
    line: int
    commands: tuple[str, ...]
    not_run: str | None
    run_by: str | None
    statuses: frozenset[int]

    @property
    def runs_here(self) -> bool:
        return self.not_run is None and self.run_by is None

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def command_blocks(path: Path) -> list[CommandBlock]:
    text = path.read_text(encoding="utf-8")
    found, before = [], ""
    for token in MarkdownIt().parse(text):
        if token.type == "html_block":
            before = token.content
        elif token.type == "fence":
            if token.info in ("sh", "console"):
                found.append(_block(path, token.map[0] + 1, token.info, token.content, before))
            before = ""
        elif token.type.endswith("_open"):
            before = ""
    return found


def _block(path: Path, line: int, kind: str, content: str, before: str) -> CommandBlock:
    markers = dict(_MARKER.findall(before))
    statuses = frozenset(map(int, re.findall(r"\d+", markers.get("ends with", "0"))))
    not_run, run_by = markers.get("not run"), markers.get("run by")
    return CommandBlock(path, line, _commands(kind, content), not_run, run_by, statuses)


def _commands(kind: str, content: str) -> tuple[str, ...]:
    whole = re.sub(r"\\\n\s*", "", content)
    lines = [line.strip() for line in whole.splitlines()]
    if kind == "console":
        return tuple(line[2:] for line in lines if line.startswith("$ "))
    return tuple(line for line in lines if line and not line.startswith("#"))


def shown_files(path: Path) -> dict[str, str]:
    """Programs that a page shows: a Python block that begins with `# name.py` is that file."""
    blocks = re.findall(r"```python\n(.*?)```", path.read_text(encoding="utf-8"), re.S)
    return {named[1]: block for block in blocks if (named := _FILE.match(block))}
