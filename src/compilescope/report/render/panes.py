"""Code at several stages, side by side. Lines that share a number light up together."""

from __future__ import annotations

from collections.abc import Callable

from compilescope.report.blocks import CodeLine, Pane, Panes


def draw_panes(block: Panes, clean: Callable[[str], str]) -> str:
    panes = "".join(_pane(pane, clean) for pane in block.panes)
    return f'<div class="panes" tabindex="0" style="--panes:{len(block.panes)}">{panes}</div>'


def _pane(pane: Pane, clean: Callable[[str], str]) -> str:
    note = f' <span class="dim">{clean(pane.note)}</span>' if pane.note else ""
    lines = "".join(_line(line, clean) for line in pane.lines)
    return (
        f'<section class="pane"><h6>{clean(pane.title)}{note}</h6>'
        f'<pre class="lines" tabindex="0"><code>{lines}</code></pre></section>'
    )


def _line(line: CodeLine, clean: Callable[[str], str]) -> str:
    kin = f' data-k="{" ".join(map(str, line.kin))}"' if line.kin else ""
    number = f"<i>{line.number}</i>" if line.number is not None else ""
    return f"<span{kin}>{number}{clean(line.text) or ' '}</span>"
