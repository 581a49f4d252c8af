"""Templates as Python, written by tools/write_templates.py: change a template, not this."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from compilescope.report.render.template_output import concat, join, loops, printed


def _blocks_alone(v: dict[str, Any]) -> str:
    out: list[str] = []
    out += ('<div class="cscope small alone"><style>', printed(v['style']), '</style>\n<div class="part">\n', printed(v['draw'](v['blocks'])), '\n</div>\n</div>',)
    return "".join(out)

def _documents(v: dict[str, Any]) -> str:
    out: list[str] = []
    def tools() -> Any:
        out: list[str] = []
        out += ('<div class="tools" hidden>\n<input type="search" id="find" placeholder="Search causes, files, code  ( / )" aria-label="Search">\n<output id="found" aria-live="polite"></output>\n<button type="button" id="open">Expand all</button>\n<button type="button" id="close">Collapse all</button>\n',)
        if v['filters']:
            out += ('<details class="filters"><summary>Filter</summary><div class="chips">\n',)
            for group, tags in v['filters']:
                out += ('<span class="group" role="group" aria-label="', printed(group), '"><span class="dim">', printed(group), '</span>\n',)
                for tag, name, number in tags: out += ('<button type="button" class="chip" data-tag="', printed(tag), '" aria-pressed="false">', printed(name), ' <span class="dim">', printed(number), '</span></button>\n',)
                out += ('</span>\n',)
            out += ('</div></details>',)
        out += ('</div>\n',)
        return Markup("".join(out))

    for document, program, prefix in v['documents']:
        record = document.record
        if v['headed']:
            out += ('<header class="run">\n<h1>', printed(program), '</h1>\n<p class="about">\n',)
            if record.ended: out += ('<span class="ended ', printed(record.ended_style), '">', printed(record.ended), '</span>',)
            if record.torch: out += ('<span>torch ', printed(record.torch), '</span>',)
            for device in record.devices: out += ('<span>', printed(device), '</span>',)
            name2 = (concat('run ', record.run) if record.run else document.title)
            if (name2 != program): out += ('<span class="dim">', printed(name2), '</span>',)
            out += ('</p>\n</header>',)
        out += ('\n',)
        for loop, part in loops(document.parts):
            if ((v['searched'] and (loop.index0 == 1)) and (prefix in ('', 'r0-',))): out += (printed(tools()),)
            out += ('<section class="part ', printed(part.id), '" id="', printed(prefix), printed(part.id), '">\n',)
            if part.title:
                out += ('<h2>', printed(part.title),)
                if part.note: out += (' <span class="dim note">', printed(part.note), '</span>',)
                out += ('</h2>',)
            else: out += ('<h2 class="unseen">', printed(part.id.capitalize()), '</h2>',)
            out += (printed(v['draw'](part.blocks, prefix)), '\n</section>\n',)
    return "".join(out)

def _fragment(v: dict[str, Any]) -> str:
    out: list[str] = []
    out += ('<div class="cscope small"><style>', printed(v['style']), '</style>\n<div class="title"><b>compilescope</b> <span>', printed(v['document'].title.replace('compilescope ', '')),)
    if v['document'].subtitle: out += (' · ', printed(v['document'].subtitle),)
    out += ('</span></div>\n',)
    if v['document'].record.ended: out += ('<p class="', printed(v['document'].record.ended_style), '">', printed(v['document'].record.ended), '</p>',)
    for loop, part in loops(v['document'].parts):
        if part.title:
            out += ('<details class="part ', printed(part.id), '"',)
            if (loop.index <= 2): out += (' open',)
            out += ('>\n<summary>', printed(part.title),)
            if v['amount'](part): out += (' <span class="dim">', printed(v['amount'](part)), '</span>',)
            if part.note: out += (' <span class="dim note">', printed(part.note), '</span>',)
            out += ('</summary>\n', printed(v['draw'](part.blocks, v['prefix'])), '\n</details>\n',)
        else: out += ('<div class="part ', printed(part.id), '">\n', printed(v['draw'](part.blocks, v['prefix'])), '\n</div>\n',)
    out += ('</div>',)
    return "".join(out)

def _page(v: dict[str, Any]) -> str:
    out: list[str] = []
    out += ('<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n<meta http-equiv="Content-Security-Policy" content="', printed(v['policy']), '">\n<meta name="viewport" content="width=device-width, initial-scale=1">\n<meta name="color-scheme" content="light dark">\n<title>', printed(v['title']), ' · compilescope</title>\n<style>', printed(v['style']), '</style></head>\n<body class="cscope"><a class="skip" href="#main">Skip to the report</a>\n<nav aria-label="Sections"><div class="brand"><i aria-hidden="true"></i>compilescope</div>\n', printed(v['sections']), '\n</nav>\n<main id="main">\n', printed(v['main']), '\n</main>\n', printed(v['packed']), '\n<script>', printed(v['script']), '</script></body></html>',)
    return "".join(out)

def _sections(v: dict[str, Any]) -> str:
    out: list[str] = []
    for document, program, prefix in v['documents']:
        if prefix: out += ('<div class="of">', printed(program), '</div>',)
        out += ('<ul>\n',)
        for part in document.parts:
            out += ('<li><a href="#', printed(prefix), printed(part.id), '">', printed((part.title or part.id.capitalize())),)
            if (v['amount'](part) and part.title): out += (' <span class="dim">', printed(v['amount'](part)), '</span>',)
            out += ('</a></li>\n',)
        out += ('</ul>\n',)
    return "".join(out)

DRAWN = {
    "blocks_alone": _blocks_alone,
    "documents": _documents,
    "fragment": _fragment,
    "page": _page,
    "sections": _sections,
}
"""What draws each template, by name."""
