"""Plain lines are coloured without Pygments, and exactly as it colours them."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from compilescope.report.render import code_colors
from compilescope.report.render.code_colors import plain_tokens

SOURCES = Path(code_colors.__file__).parent
_MUTATIONS = ('"', "'", "'''", "%", "{", "}", "@", ".", "#", "1e", "0x", "from ", "import ", "def ",
              "class ", " as ", "None", "%s", "{a[b]}", "r'", 'f"', "\\", "self", "…")  # fmt: skip


def by_pygments(text: str) -> list[list[tuple[str, str]]]:
    lines: list[list[tuple[str, str]]] = [[]]
    for kind, value in code_colors._lexer().get_tokens(text):
        for number, part in enumerate(value.split("\n")):
            if number:
                lines.append([])
            if part:
                lines[-1].append((code_colors._style(kind), part))
    return lines


def html(lines: list[list[tuple[str, str]]]) -> list[str]:
    return [str(code_colors.line_html(tokens)) for tokens in lines]


@pytest.mark.parametrize(
    "text",
    [
        "def forward(self, x: 'f32[4, s0]'):  # a comment",
        "class Net(nn.Module):",
        "from torch._inductor import async_compile as c, list",
        "from . import x",
        "raise ValueError from error",
        "import torch.nn as nn, list, os",
        "@torch.compile(fullgraph=True)",
        "y = x @weight @ 3.5e-3 + .5 + 1_000 + 0xff_ff + 1. + 2j",
        "print('%s of %(n)d%%', r\"{0!r:>8} {a[\"b\"]}\", b'', u'x', rb'{', BR'y')",
        "x = async_compile.cpp_pybinding(['const float*'], r'''",
        "''')",
        'open = "not closed',
        "for (int64_t x0=static_cast<int64_t>(0L); x0<4; x0+=1L) { a->b::from(c); }",
        "return (x, y … 17 more)",
        "if not a.list or list is None: del self",
        "def (x): defx; class_; defdef f",
        "",
        "    \n\tx = 1\n",
    ],
)
def test_a_plain_text(text: str) -> None:
    made = plain_tokens(text)
    assert made is not None
    assert html(made) == html(by_pygments(text))


@pytest.mark.parametrize(
    "text",
    [
        "f'{x}'", "rt'{x}'", "x = 'a\\n'", "match x:", "case _:", "x.__init__()", "naïve = 1",
        '"""one"""', "x = '''a\nb'''", "yield from x", "import a,", "class : pass",
        "raise x from None",
    ],
)  # fmt: skip
def test_what_is_left_to_pygments(text: str) -> None:
    assert plain_tokens(text) is None
    assert html(code_colors.code_tokens(text)) == html(by_pygments(text))


def test_lines_of_real_programs_and_broken_ones() -> None:
    chance = random.Random(14)
    texts = []
    for path in sorted(SOURCES.glob("*.py"))[:12]:
        lines = path.read_text(encoding="utf-8").split("\n")
        texts += chance.sample(lines, min(len(lines), 25))
        texts.append("\n".join(lines[20:28]))
    for text in list(texts):
        at = chance.randrange(len(text) + 1)
        texts.append(text[:at] + chance.choice(_MUTATIONS) + text[at + chance.randrange(2) :])
    read = [(text, made) for text in texts if (made := plain_tokens(text)) is not None]
    assert len(read) > len(texts) / 2
    for text, made in read:
        assert html(made) == html(by_pygments(text)), text


_MIXED = r'''"""One

two \n and ' in it."""
import os
x = f"{x!r:>{n}}"
y = """a
# no """
z = 1
def __init__(self):
    r"""doc"""
    f"""{
    self
    }"""
    print("naïve")
w = """ open
'''


def test_files_are_read_partly_here_and_partly_by_pygments() -> None:
    chance = random.Random(19)
    texts = [path.read_text(encoding="utf-8") for path in sorted(SOURCES.glob("*.py"))[:12]]
    texts += [_MIXED, _MIXED.replace("y =", "def"), _MIXED.replace("z = 1", "match x\n_")]
    for text in [*texts, *([_MIXED] * 60)]:
        at = chance.randrange(len(text) + 1)
        texts.append(text[:at] + chance.choice(_MUTATIONS) + text[at + chance.randrange(2) :])
    assert sum(plain_tokens(text) is None for text in texts) > len(texts) / 2
    for text in texts:
        assert html(code_colors.code_tokens(text)) == html(by_pygments(text)), text
