"""Styles that follow a notebook's theme, which need not be that of the reader's system."""

from __future__ import annotations

import re
from collections.abc import Iterator

_DARK_MEDIA = re.compile(r"@media \(prefers-color-scheme: dark\) \{")
_ROOT = re.compile(r"\.cscope(?![\w-])")
_LIGHT = '[data-jp-theme-light="true"], .vscode-light, .vscode-high-contrast-light, [theme="light"]'
_DARK = '[data-jp-theme-light="false"], .vscode-dark, .vscode-high-contrast, [theme="dark"]'
"""How JupyterLab, VS Code and Colab mark the page that they draw."""


def following_the_notebook(css: str) -> str:
    """Dark where the notebook is; where it does not say, where the system is."""
    return "".join(_pieces(css))


def _pieces(css: str) -> Iterator[str]:
    done = 0
    for found in _DARK_MEDIA.finditer(css):
        end = _closing(css, found.end())
        rules = css[found.end() : end]
        yield css[done : found.end()]
        yield _ROOT.sub(f".cscope:not(:is({_LIGHT}) *)", rules)
        yield "}\n" + _ROOT.sub(f":is({_DARK}) .cscope", rules).strip()
        done = end + 1
    yield css[done:]


def _closing(css: str, start: int) -> int:
    """Where the brace that opens before `start` is closed."""
    depth = 1
    for at in range(start, len(css)):
        depth += {"{": 1, "}": -1}.get(css[at], 0)
        if not depth:
            return at
    return len(css)
