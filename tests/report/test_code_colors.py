"""Code is read piece by piece: comments, strings, numbers, words. `test_browser_graphs.py` holds
the page's script to the same."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from compilescope.report.render import code_colors
from compilescope.report.render.code_colors import code_lines, code_tokens, line_html

SOURCES = Path(code_colors.__file__).parent
_MUTATIONS = ('"', "'", "'''", "%", "{", "}", "@", ".", "#", "1e", "0x", "from ", "import ", "def ",
              "class ", " as ", "None", "%s", "{a[b]}", "r'", 'f"', "\\", "self", "…")  # fmt: skip


def drawn(text: str) -> str:
    """Each piece with a colour in brackets, after its class."""
    lines = []
    for tokens in code_tokens(text):
        lines.append("".join(f"{style}[{piece}]" if style else piece for style, piece in tokens))
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("def forward(self):  # why", "k[def] f[forward](b[self]):  c[# why]"),
        ("class Net(nn.Module):", "k[class] f[Net](nn.Module):"),
        ("@torch.compile(fullgraph=True)", "f[@torch].compile(fullgraph=k[True])"),
        ("y = 3.5e-3 + .5 + 1_000 - 0xff", "y = n[3.5e-3] + n[.5] + n[1_000] - n[0xff]"),
        ("x.sum(list, a.list)", "x.sum(b[list], a.list)"),
        ("r'\\d' b\"\" 'it\\'s'", "s[r'\\d'] s[b\"\"] s['it\\'s']"),
        ("f'{len(x)} of {{2}}'", "s[f']s[{]b[len](x)s[}]s[ of {]s[{]n[2]s[}]s[}']"),
        ("open = 'not closed", "b[open] = s['not closed]"),
        ("return (x, y … 17 more)", "k[return] (x, y … n[17] more)"),
        ('"""One\n# two\n""" if x', 's["""One]\ns[# two]\ns["""] k[if] x'),
        ("naïve = défi1", "naïve = défi1"),
        ("", ""),
    ],
)
def test_pieces(text: str, wanted: str) -> None:
    assert drawn(text) == wanted


def test_all_characters_stay_in_their_places() -> None:
    chance = random.Random(14)
    texts = [path.read_text(encoding="utf-8") for path in sorted(SOURCES.glob("*.py"))[:12]]
    for text in list(texts):
        at = chance.randrange(len(text) + 1)
        texts.append(text[:at] + chance.choice(_MUTATIONS) + text[at + chance.randrange(2) :])
    for text in texts:
        assert ["".join(p for _, p in line) for line in code_tokens(text)] == text.split("\n")


def test_part_of_a_line_is_marked() -> None:
    (tokens,) = code_tokens("return x.item()")
    assert line_html(tokens, 7, 13) == '<b class="k">return</b> <mark>x.item</mark>()'
    assert line_html(tokens, 3, 8) == (
        '<b class="k">ret</b><mark><b class="k">urn</b> x</mark>.item()'
    )


def test_what_is_hidden_in_code_is_shown_and_escaped() -> None:
    (line,) = code_lines("x < '\u202e&'")
    assert line == 'x &lt; <b class="s">&#x27;\\u202e&amp;&#x27;</b>'


@pytest.mark.parametrize("piece", ["'", '"""', "f'{", "\\", "{", "1e", "@", "'\\"])
def test_no_text_takes_more_than_its_length(piece: str) -> None:
    """Time is not judged: one that took the square of its length would not end here."""
    assert sum(map(len, code_tokens(piece * 60_000)))
