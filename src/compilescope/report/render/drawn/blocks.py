"""Templates as Python, written by tools/write_templates.py: change a template, not this."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from compilescope.report.render.template_output import concat, join, loops, printed


def _blocks_curves(v: dict[str, Any]) -> str:
    out: list[str] = []
    out += ('<figure class="curves">\n<figcaption>', printed(v['block'].title), '</figcaption>\n<p class="ends dim"><span>', printed(v['highest']), '</span></p>\n<div class="plot">\n<svg viewBox="0 0 ', printed(v['width']), ' ', printed(v['height']), '" preserveAspectRatio="none" role="img" aria-label="', printed(v['block'].title), ': ', printed(v['summary']), '">\n',)
    for each in v['lines']: out += ('<polyline class="k', printed(each.shade), '" points="', printed(each.line), '"/>\n',)
    out += ('</svg>\n',)
    for each2 in v['lines']:
        if each2.dot: out += ('<i class="k', printed(each2.shade), '" style="left:', printed(each2.x), '%;top:', printed(each2.y), '%" title="', printed(each2.curve.label), '"></i>\n',)
    out += ('</div>\n<p class="ends dim"><span>', printed(v['lowest']), '</span><span>', printed(v['latest']), '</span></p>\n<ul>\n',)
    for each3 in v['lines']:
        out += ('<li><b class="k', printed(each3.shade), '"></b><span>',)
        if each3.is_linked: out += ('<a href="', printed(each3.curve.url), '">', printed(each3.curve.label), '</a>',)
        else: out += (printed(each3.curve.label),)
        out += (' <span class="dim">', printed(each3.summary), '</span></span></li>\n',)
    out += ('</ul>\n</figure>',)
    return "".join(out)

def _blocks_diff(v: dict[str, Any]) -> str:
    out: list[str] = []
    out += ('<pre class="diff" tabindex="0"><code>',)
    for kind, line in v['lines']: out += ('<span class="', printed(kind), '">', printed(line), '\n</span>',)
    out += ('</code></pre>',)
    return "".join(out)

def _blocks_excerpt(v: dict[str, Any]) -> str:
    out: list[str] = []
    out += ('<pre class="code" tabindex="0"><code>', printed(v['line']), '</code></pre>',)
    return "".join(out)

def _blocks_facts(v: dict[str, Any]) -> str:
    out: list[str] = []
    out += ('<dl>',)
    for label, value in v['block'].rows: out += ('<div><dt>', printed(label), '</dt><dd>', printed(v['spans'](value, v['prefix'])), '</dd></div>',)
    out += ('</dl>',)
    return "".join(out)

def _blocks_figures(v: dict[str, Any]) -> str:
    out: list[str] = []
    out += ('<dl class="figures">\n',)
    for figure in v['block'].figures:
        out += ('<div class="', printed(figure.style), '"><dt>', printed(figure.label), '</dt>\n<dd>',)
        if figure.target: out += ('<a href="#', printed(v['prefix']), printed(figure.target), '">', printed(figure.value), '</a>',)
        else: out += (printed(figure.value),)
        out += ('</dd>\n',)
        if figure.note: out += ('<dd class="about">', printed(figure.note), '</dd>',)
        out += ('</div>\n',)
    out += ('</dl>',)
    return "".join(out)

def _blocks_fold(v: dict[str, Any]) -> str:
    out: list[str] = []
    out += ('<details><summary>', printed(v['spans'](v['block'].summary, v['prefix'], 'unlinked')), '</summary>', printed(v['draw'](v['block'].blocks, v['prefix'])), '</details>',)
    return "".join(out)

def _blocks_heading(v: dict[str, Any]) -> str:
    out: list[str] = []
    out += ('<h3 class="sub">', printed(v['block'].text),)
    if v['block'].note: out += (' <span class="dim note">', printed(v['block'].note), '</span>',)
    out += ('</h3>',)
    return "".join(out)

def _blocks_heatmap(v: dict[str, Any]) -> str:
    out: list[str] = []
    out += ('<figure class="heatmap"><svg viewBox="0 0 ', printed(v['width']), ' ', printed(v['height']), '" width="', printed(v['width']), '" height="', printed(v['height']), '" role="img" aria-label="', printed(v['legend']), '">\n<rect class="ground" width="', printed(v['width']), '" height="', printed(v['height']), '"/>\n',)
    for level, x, y, w, h in v['cells']: out += ('<rect class="l', printed(level), '" x="', printed(x), '" y="', printed(y), '" width="', printed(w), '" height="', printed(h), '"/>',)
    out += ('</svg><figcaption class="dim">', printed(v['legend']), '</figcaption></figure>',)
    return "".join(out)

def _blocks_item(v: dict[str, Any]) -> str:
    out: list[str] = []
    out += ('<article class="item"',)
    if v['block'].anchor: out += (' id="', printed(v['prefix']), printed(v['block'].anchor), '"',)
    if v['block'].tags: out += (' data-tags="', printed(join(v['block'].tags, ' ')), '"',)
    out += ('>\n',)
    for anchor in v['block'].also: out += ('<span class="anchor" id="', printed(v['prefix']), printed(anchor), '"></span>',)
    out += ('<header><span class="number">', printed(v['block'].number), '</span><span class="left">', printed(v['spans'](v['block'].left, v['prefix'])), '</span><span class="right">', printed(v['spans'](v['block'].right, v['prefix'])), '</span></header>\n<div class="body">', printed(v['draw'](v['block'].blocks, v['prefix'])), '</div></article>',)
    return "".join(out)

def _blocks_listing(v: dict[str, Any]) -> str:
    out: list[str] = []
    out += ('<pre class="lines" tabindex="0"><code>',)
    for number, here, text in v['lines']:
        out += ('<span',)
        if here: out += (' class="here"',)
        out += ('><i>', printed(number), '</i>', printed((text or ' ')), '</span>',)
    out += ('</code></pre>',)
    return "".join(out)

def _blocks_matrix(v: dict[str, Any]) -> str:
    out: list[str] = []
    def linked(text: Any, url: Any, name: Any = '') -> Any:
        out: list[str] = []
        if url:
            out += ('<a href="', printed(url), '"',)
            if name: out += (' aria-label="', printed(name), '"',)
            out += ('>', printed(text), '</a>',)
        else: out += (printed(text),)
        return Markup("".join(out))

    out += ('<div class="matrix" tabindex="0" role="group" aria-label="', printed(v['block'].corner), ' by ', printed(len(v['block'].columns)), ' causes"><table>\n<thead>\n<tr><th scope="col">', printed(v['block'].corner), '</th>',)
    for loop, (label, note) in loops(v['block'].columns): out += ('<th scope="col" class="num" title="', printed(note), '"><span>', printed(linked(concat(loop.index, ' ', label), v['heads'][loop.index0])), '</span></th>',)
    out += ('<th scope="col" class="num"><span>all</span></th></tr>\n</thead>\n<tbody>\n',)
    for label2, url2, cells, total in v['rows']:
        out += ('<tr><th scope="row">', printed(linked(label2, url2)), '</th>',)
        for loop2, (count, shade, inside) in loops(cells):
            out += ('<td class="num',)
            if shade: out += (' s', printed(shade),)
            out += ('">', printed((linked(count, inside, concat(count, ' of ', v['block'].columns[loop2.index0][0], ' in ', label2)) if count else '')), '</td>',)
        out += ('<td class="num">', printed(total), '</td></tr>\n',)
    out += ('</tbody>\n<tfoot><tr><th scope="row">jobs</th>',)
    for number in v['hit']: out += ('<td class="num">', printed(number), '</td>',)
    out += ('<td></td></tr></tfoot>\n</table></div>',)
    return "".join(out)

def _blocks_measures(v: dict[str, Any]) -> str:
    out: list[str] = []
    out += ('<figure class="measures">\n',)
    if v['block'].title: out += ('<figcaption>', printed(v['block'].title), '</figcaption>\n',)
    out += ('<table>\n',)
    for label, percent, text, whisker, idle in v['rows']:
        out += ('<tr><th scope="row">', printed(label), '</th><td class="scale"><div><i',)
        if idle: out += (' class="idle"',)
        out += (' style="width:', printed(percent), '%"></i>',)
        if whisker: out += ('<u style="left:', printed(whisker[0]), '%;width:', printed(whisker[1]), '%"></u>',)
        out += ('</div></td><td class="num">', printed(text), '</td></tr>\n',)
    out += ('</table>\n</figure>',)
    return "".join(out)

def _blocks_panes(v: dict[str, Any]) -> str:
    out: list[str] = []
    if (v['place'] is None):
        out += ('<div class="panes" tabindex="0" role="group" aria-label="Code" style="--panes:', printed(len(v['block'].panes)), '">\n',)
        for pane in v['block'].panes:
            out += ('<section class="pane"><h6>', printed(pane.title),)
            if pane.note: out += (' <span class="dim">', printed(pane.note), '</span>',)
            out += ('</h6>\n<pre class="lines" tabindex="0" role="group" aria-label="', printed(pane.title), '"><code>',)
            for line in pane.lines:
                out += ('<span',)
                if line.kin: out += (' data-k="', printed(join(line.kin, ' ')), '"',)
                out += ('>',)
                if (not (line.number is None)): out += ('<i>', printed(line.number), '</i>',)
                out += (printed((line.text or ' ')), '</span>',)
            out += ('</code></pre></section>\n',)
        out += ('</div>\n',)
    elif v['place']: out += ('<div class="panes picker" role="group" aria-label="Code at each stage" data-place="', printed(v['place']), '"><noscript>This code needs JavaScript. <code>compilescope report --format md</code> prints it.</noscript></div>\n',)
    else: out += ('<p class="dim">No room on this page for this code. <code>compilescope report --format md</code> prints it.</p>\n',)
    return "".join(out)

def _blocks_paragraph(v: dict[str, Any]) -> str:
    out: list[str] = []
    if (v['block'].hanging == '-'): out += ('<p class="point">', printed(v['spans'](v['block'].words, v['prefix'])), '</p>',)
    elif v['block'].hanging: out += ('<p><b>', printed(v['block'].hanging), '</b> ', printed(v['spans'](v['block'].words, v['prefix'])), '</p>',)
    else: out += ('<p>', printed(v['spans'](v['block'].words, v['prefix'])), '</p>',)
    return "".join(out)

def _blocks_portions(v: dict[str, Any]) -> str:
    out: list[str] = []
    out += ('<figure class="portions">\n<figcaption><span>', printed(v['block'].title), '</span> <b>', printed(v['block'].text), '</b></figcaption>\n<div class="stack" aria-hidden="true">\n',)
    for portion, percent in v['shares']: out += ('<i class="', printed(portion.kind), '" style="width:', printed(percent), '%" title="', printed(portion.label), ': ', printed(portion.text), '"></i>\n',)
    out += ('</div>\n<ul class="legend">\n',)
    for group, portions in v['groups']:
        out += ('<li class="', printed(portions[0].kind), '">',)
        if group: out += ('<span>', printed(group), ': </span>',)
        for loop, portion2 in loops(portions):
            out += ('<span>',)
            if portion2.target: out += ('<a href="#', printed(v['prefix']), printed(portion2.target), '">', printed(portion2.label), '</a>',)
            else: out += (printed(portion2.label),)
            out += (' <b>', printed(portion2.text), '</b></span>',)
            if (not loop.last): out += (', ',)
        out += ('</li>\n',)
    out += ('</ul>\n</figure>',)
    return "".join(out)

def _blocks_quote(v: dict[str, Any]) -> str:
    out: list[str] = []
    out += ('<figure class="quote"><figcaption>', printed(v['block'].speaker), ':</figcaption><blockquote>', printed(v['block'].text), '</blockquote></figure>',)
    return "".join(out)

def _blocks_roofline(v: dict[str, Any]) -> str:
    out: list[str] = []
    out += ('<figure class="roofline">\n<figcaption>', printed(v['block'].title), ' <span class="dim">the larger a dot, the larger its share of the step</span></figcaption>\n<div class="field">\n<p class="unit dim" aria-hidden="true">FLOP/s</p>\n<div class="plot" role="img" aria-label="', printed(v['block'].title), ': ', printed(v['summary']), '">\n<svg viewBox="0 0 ', printed(v['width']), ' ', printed(v['height']), '" preserveAspectRatio="none" aria-hidden="true">\n',)
    for line in v['grid']: out += ('<polyline class="grid" points="', printed(line), '"/>',)
    for line2 in v['roofs']: out += ('<polyline points="', printed(line2), '"/>',)
    out += ('</svg>\n<span class="roof" style="right:', printed(v['slope'][1]), '%;bottom:', printed(v['slope'][2]), '%">', printed(v['slope'][0]), '</span>\n',)
    for text, bottom in v['ceilings']: out += ('<span class="roof level" style="bottom:', printed(bottom), '%">', printed(text), '</span>\n',)
    for top, text2 in v['y_ticks']: out += ('<span class="y dim" style="top:', printed(top), '%">', printed(text2), '</span>\n',)
    for left, text3 in v['x_ticks']: out += ('<span class="x dim" style="left:', printed(left), '%">', printed(text3), '</span>\n',)
    for number, dot, left2, top2, size in v['dots']: out += ('<i style="left:', printed(left2), '%;top:', printed(top2), '%;width:', printed(size), 'rem;height:', printed(size), 'rem" title="', printed(dot.label), ': ', printed(dot.text), '">', printed(number), '</i>\n',)
    out += ('</div>\n<p class="unit across dim" aria-hidden="true">FLOP/byte</p>\n</div>\n<ol>\n',)
    for dot2 in v['named']: out += ('<li>', printed(dot2.label), ' <span class="dim">', printed(dot2.text), '</span></li>\n',)
    out += ('</ol>\n</figure>',)
    return "".join(out)

def _blocks_sourcefile(v: dict[str, Any]) -> str:
    out: list[str] = []
    out += ('<details class="srcfile"',)
    if v['block'].unfolded: out += (' open',)
    out += ('>\n<summary><span class="name">', printed(v['block'].title), '</span> <span class="dim">', printed(v['block'].summary), '</span></summary>\n',)
    if v['block'].note: out += ('<p class="dim">', printed(v['block'].note), '</p>',)
    out += ('<div class="src-frame"><div class="src" tabindex="0" role="region" aria-label="Source of ', printed(v['block'].title), '" style="--sum:', printed(v['gutter']), ';--digits:', printed(v['digits']), 'ch">\n<div class="row heads" aria-hidden="true"><span class="gut">',)
    for name, short, width in v['heads']: out += ('<span class="cell" style="--w:', printed(width), '"><span class="long">', printed(name), '</span><span class="short">', printed(short), '</span></span>',)
    out += ('<i></i></span><code></code></div>\n',)
    for loop, rows in loops(v['parts']):
        if (not loop.first): out += ('<div class="row skip" aria-hidden="true"><span class="gut"><i>⋯</i></span><code> </code></div>',)
        for row in rows:
            out += ('<div class="row',)
            if row.cells: out += (' lost',)
            out += ('"',)
            if row.anchor: out += (' id="', printed(v['prefix']), printed(row.anchor), '"',)
            out += ('><span class="gut">',)
            if row.cells:
                for cell, width2 in row.cells:
                    if cell:
                        if cell.target: out += ('<a class="cell" style="--w:', printed(width2), '" href="#', printed(v['prefix']), printed(cell.target), '" title="', printed(cell.note), '" aria-label="', printed(cell.note), '">', printed(cell.text), '</a>',)
                        else: out += ('<span class="cell" title="', printed(cell.note), '" style="--w:', printed(width2), ';--heat:', printed(cell.heat), '">', printed(cell.text), '</span>',)
                    else: out += ('<span class="cell" style="--w:', printed(width2), '"></span>',)
            out += ('<i>', printed(row.numbers), '</i></span><code',)
            if row.stripe: out += (' class="', printed(row.stripe), '"',)
            out += ('>', printed((row.code or ' ')), '</code></div>\n',)
    out += ('</div>\n',)
    if v['ticks']:
        out += ('<div class="ruler" aria-hidden="true">',)
        for anchor, top, about in v['ticks']: out += ('<i data-line="', printed(v['prefix']), printed(anchor), '" style="top:', printed(top), '%" title="', printed(about), '"></i>',)
        out += ('</div>',)
    out += ('</div>\n',)
    if v['legend']:
        out += ('<p class="keys">',)
        for kind, about2 in v['legend']: out += ('<span class="stripe ', printed(kind), '">', printed(about2), '</span> ',)
        out += ('</p>',)
    out += ('</details>',)
    return "".join(out)

def _blocks_table(v: dict[str, Any]) -> str:
    out: list[str] = []
    out += ('<div class="wide" tabindex="0" role="group" aria-label="', printed((join(filter(None, v['block'].columns), ', ') or 'Table')), '"><table>\n<thead><tr>',)
    for loop, column in loops(v['block'].columns):
        out += ('<th scope="col"',)
        if (loop.index0 in v['block'].numeric): out += (' class="num"',)
        out += ('>', printed(column), '</th>',)
    out += ('</tr></thead>\n<tbody>\n',)
    for row in v['block'].rows:
        out += ('<tr>',)
        for loop2, cell in loops(row):
            out += ('<td',)
            if (loop2.index0 in v['block'].numeric): out += (' class="num"',)
            out += ('>', printed(v['spans'](cell, v['prefix'])), '</td>',)
        out += ('</tr>\n',)
    out += ('</tbody></table></div>',)
    return "".join(out)

def _blocks_timeline(v: dict[str, Any]) -> str:
    out: list[str] = []
    out += ('<figure class="timeline chart">\n', '<div class="controls" hidden>\n<button type="button" data-act="in">Zoom in</button><button type="button" data-act="out">Zoom out</button><button type="button" data-act="reset">Reset</button>\n<p class="readout" data-hint="Click the chart, then scroll to zoom (or Ctrl + scroll). Drag to pan, double-click to reset. Keys: + − ← → 0" data-touch="Swipe to pan. Tap a bar to go to its cause."></p>\n</div>\n<div class="wide" tabindex="0" role="group" aria-label="Timeline of ', printed(v['whole']), '"><div class="track" data-ns="', printed(v['block'].duration_ns), '">\n<div class="ticks" aria-hidden="true">',)
    for left, text in v['ticks']: out += ('<span style="left:', printed(left), '%">', printed(text), '</span>',)
    out += ('</div>\n',)
    for lane in v['lanes']:
        out += ('<div class="lane"><div class="title">', printed(lane.title), '</div><div class="bars" style="height:', printed(lane.height), 'px"',)
        if lane.rest: out += (' data-prefix="', printed(v['prefix']), '" data-rest=\'', printed(lane.rest), "'",)
        out += ('>\n',)
        for kind, style, about, label, target in lane.bars:
            if target: out += ('<a class="bar ', printed(kind), '" href="#', printed(v['prefix']), printed(target), '" style="', printed(style), '" title="', printed(about), '"><span>', printed(label), '</span></a>\n',)
            else: out += ('<div class="bar ', printed(kind), '" style="', printed(style), '" title="', printed(about), '"><span>', printed(label), '</span></div>\n',)
        out += ('</div></div>\n',)
    out += ('</div></div>\n<figcaption>',)
    for kind2, text2 in v['kinds']: out += ('<span class="key ', printed(kind2), '">', printed(text2), '</span> ',)
    out += ('</figcaption>\n</figure>',)
    return "".join(out)

def _blocks_tree(v: dict[str, Any]) -> str:
    out: list[str] = []
    def twigs(branches: Any) -> Any:
        out: list[str] = []
        for branch in branches:
            out += ('<li>',)
            if branch.branches:
                out += ('<details open><summary>', printed(label(branch, 'unlinked')), '</summary><ul>',)
                for target in v['targets'](branch): out += ('<li><a href="#', printed(v['prefix']), printed(target), '">its cause</a></li>',)
                out += (printed(twigs(branch.branches)), '</ul></details>',)
            else: out += (printed(label(branch)),)
            out += ('</li>\n',)
        return Markup("".join(out))

    def label(branch2: Any, how: Any = '') -> Any:
        out: list[str] = []
        out += (printed(v['spans'](branch2.words, v['prefix'], how)),)
        if branch2.note: out += (' <span class="note">', printed(v['spans'](branch2.note, v['prefix'], how)), '</span>',)
        return Markup("".join(out))

    if v['cells']:
        out += ('<figure class="icicle chart">\n', '<div class="controls" hidden>\n<button type="button" data-act="up">Zoom out</button><button type="button" data-act="reset">Reset</button>\n<p class="readout" data-hint="', printed(v['whole']), ' of compile time; width is time. Click a function to zoom in, a compilation to go to its cause. Keys: arrows, Enter, Esc" data-touch="', printed(v['whole']), ' of compile time; width is time. Tap a function to zoom in, a compilation to go to its cause."></p>\n</div>\n<div class="wide" tabindex="0" role="group" aria-label="Compile tree by time, ', printed(v['whole']), '"><div class="cells" style="height:', printed(v['height']), 'px">\n',)
        for kind, style, about, label2, target2 in v['cells']:
            if target2: out += ('<a class="cell ', printed(kind), '" href="#', printed(v['prefix']), printed(target2), '" style="', printed(style), '" title="', printed(about), '"><span>', printed(label2), '</span></a>\n',)
            else: out += ('<div class="cell ', printed(kind), '" style="', printed(style), '" title="', printed(about), '"><span>', printed(label2), '</span></div>\n',)
        out += ('</div></div>\n<figcaption>',)
        for kind2, text in v['kinds']: out += ('<span class="key ', printed(kind2), '">', printed(text), '</span> ',)
        if v['block'].cells_left_out: out += ('<span class="dim">The ', printed(v['block'].cells_left_out), ' shortest are not drawn.</span>',)
        out += ('</figcaption>\n</figure>\n<details class="plain"><summary>Indented tree, with guards and graph breaks</summary><ul class="tree">', printed(twigs(v['block'].branches)), '</ul></details>\n',)
    else: out += ('<ul class="tree">', printed(twigs(v['block'].branches)), '</ul>\n',)
    return "".join(out)

def _blocks_trend(v: dict[str, Any]) -> str:
    out: list[str] = []
    out += ('<figure class="trend',)
    if v['block'].compact: out += (' compact',)
    out += ('">\n',)
    if v['block'].title: out += ('<figcaption>', printed(v['block'].title), '</figcaption>\n',)
    out += ('<div class="plot">\n<svg viewBox="0 0 ', printed(v['width']), ' ', printed(v['height']), '" preserveAspectRatio="none" role="img" aria-label="', printed((concat(v['block'].title, ': ') if v['block'].title else '')), printed(v['summary']), '">\n',)
    if v['band']: out += ('<polygon points="', printed(v['band']), '"/>',)
    out += ('<polyline points="', printed(v['line']), '"/>\n</svg>\n',)
    if v['block'].compact:
        if v['dots']:
            point, x, y = v['dots'][-1]
            out += ('<i style="left:', printed(x), '%;top:', printed(y), '%"></i>',)
    else:
        for point2, x2, y2 in v['dots']:
            if v['is_address'](point2.url): out += ('<a href="', printed(point2.url), '" style="left:', printed(x2), '%;top:', printed(y2), '%" title="', printed(point2.label), ': ', printed(point2.text), '" aria-label="', printed(point2.label), ': ', printed(point2.text), '"></a>\n',)
            else: out += ('<i style="left:', printed(x2), '%;top:', printed(y2), '%" title="', printed(point2.label), ': ', printed(point2.text), '"></i>\n',)
    out += ('</div>\n',)
    if (not v['block'].compact): out += ('<p class="ends dim"><span>', printed(v['first']), '</span><span>', printed(v['last']), '</span></p>\n<p class="dim" aria-hidden="true">', printed(v['summary']), '</p>\n',)
    out += ('</figure>',)
    return "".join(out)

DRAWN = {
    "blocks/curves": _blocks_curves,
    "blocks/diff": _blocks_diff,
    "blocks/excerpt": _blocks_excerpt,
    "blocks/facts": _blocks_facts,
    "blocks/figures": _blocks_figures,
    "blocks/fold": _blocks_fold,
    "blocks/heading": _blocks_heading,
    "blocks/heatmap": _blocks_heatmap,
    "blocks/item": _blocks_item,
    "blocks/listing": _blocks_listing,
    "blocks/matrix": _blocks_matrix,
    "blocks/measures": _blocks_measures,
    "blocks/panes": _blocks_panes,
    "blocks/paragraph": _blocks_paragraph,
    "blocks/portions": _blocks_portions,
    "blocks/quote": _blocks_quote,
    "blocks/roofline": _blocks_roofline,
    "blocks/sourcefile": _blocks_sourcefile,
    "blocks/table": _blocks_table,
    "blocks/timeline": _blocks_timeline,
    "blocks/tree": _blocks_tree,
    "blocks/trend": _blocks_trend,
}
"""What draws each template, by name."""
