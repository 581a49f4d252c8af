"""A user's script with what is known to help written into it, and a list of what is left.

Only what can be done without running the program is done: flags of Dynamo's, and prints and log
calls kept for eager runs. Nothing of it could be verified on the device, and the script says so.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path, PurePath

from compilescope.errors import ToolError
from compilescope.rules.sites import Site

_FLAG = re.compile(r"`(torch\._dynamo\.config\.\w+ = True)`")
_EAGER_ONLY = ("print-call", "logging-call")
_HEADER = """\
# Made by compilescope from {name} and the log of a run of it.
# Not verified here: run it on the device and read its log again.
#
{done}
#
{left}

import torch as _torch
import torch._dynamo.config

{flags}
# ---- {name} from here on
"""


@dataclass(frozen=True)
class FixedScript:
    """What was done, and what was not."""

    text: str
    done: tuple[str, ...]
    left: tuple[str, ...]


def fixed_script(script: Path, sites: list[Site]) -> FixedScript:
    """`script` with what helps against `sites`."""
    try:
        text = script.read_text(encoding="utf-8")
        ast.parse(text)
    except OSError as error:
        raise ToolError(f"Cannot read {script}: {error.strerror}.") from None
    except (SyntaxError, ValueError) as error:
        raise ToolError(f"{script} is not Python that can be read: {error}.") from None
    done: list[str] = []
    left: list[str] = []
    flags: dict[str, None] = {}
    lines = text.splitlines(keepends=True)
    for site in sorted(sites, key=lambda each: -each.line):
        at = f"{PurePath(site.file).name}:{site.line} {site.gb_id or ''}".rstrip()
        flag = _flag(site)
        if _is_here(site, script, lines) and site.rule in _EAGER_ONLY and _guarded(lines, site):
            done.append(f"{at}: kept for eager runs, silent while compiled")
        elif flag is not None:
            flags[flag] = None
            done.append(f"{at}: {flag}")
        else:
            remedy = next((each.text for each in site.remedy), "no remedy is known")
            left.append(f"{at}: {' '.join(remedy.split())}")
    header = _HEADER.format(
        name=script.name,
        done=_comments("Done, one a break:", done),
        left=_comments("Left to do by hand:", left),
        flags="".join(f"{flag}\n" for flag in flags),
    )
    return FixedScript(_joined(header, "".join(lines)), tuple(done), tuple(left))


def _flag(site: Site) -> str | None:
    for remedy in site.remedy:
        found = _FLAG.search(remedy.text) if remedy.kind == "config" else None
        if found is not None:
            return found.group(1)
    return None


def _is_here(site: Site, script: Path, lines: list[str]) -> bool:
    """The log's file under another path: the name and the very line must agree."""
    if PurePath(site.file).name != script.name or not 0 < site.line <= len(lines):
        return False
    return not site.source or lines[site.line - 1].strip() == site.source.strip()


def _guarded(lines: list[str], site: Site) -> bool:
    """Put the statement at the site under a test of its own; False where it shares its lines."""
    tree = ast.parse("".join(lines))
    for node in ast.walk(tree):
        if not isinstance(node, ast.Expr) or node.lineno > site.line:
            continue
        last = node.end_lineno or node.lineno
        if last < site.line or not isinstance(node.value, ast.Call):
            continue
        first_text, last_text = lines[node.lineno - 1], lines[last - 1]
        indent = first_text[: len(first_text) - len(first_text.lstrip())]
        rest = last_text.encode()[node.end_col_offset or 0 :].decode().split("#")[0].strip()
        if node.col_offset != len(indent.encode()) or rest or last != node.lineno:
            return False
        lines[node.lineno - 1] = (
            f"{indent}if not _torch.compiler.is_compiling():\n{indent}    {first_text.lstrip()}"
        )
        return True
    return False


def _comments(title: str, items: list[str]) -> str:
    return "\n".join([f"# {title}", *(f"# - {item}" for item in items or ["nothing"])])


def _joined(header: str, text: str) -> str:
    """A module's `__future__` imports must stay first."""
    tree = ast.parse(text)
    last = 0
    for node in tree.body:
        docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
        if not (docstring and last == 0) and not future:
            break
        last = node.end_lineno or node.lineno
    lines = text.splitlines(keepends=True)
    return "".join(lines[:last]) + header + "".join(lines[last:])
