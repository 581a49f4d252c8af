"""Text of others, made so that it can only be read."""

from __future__ import annotations

import ast
import io
import json
import sys
import unicodedata
from html import unescape
from typing import Any

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from compilescope.apps.cli.streams import exact, guard_streams, put, put_json
from compilescope.base.texts import (
    as_prose,
    ascii_json,
    begun,
    code_span,
    fenced,
    file_stem,
    in_docstring,
    json_parts,
    one_line,
    plain_json,
    visible,
    whole_number,
)
from compilescope.report.blocks import Excerpt, Listing, MarkedLine, MarkedLines, SourceFile
from compilescope.report.render.visible_blocks import cleaned

NASTY = st.text(
    st.sampled_from(
        "ab`|\\*_[]()<>#!&;:-+=~1. \n\t\r\x1b\x9b\u202e\u2028\x00\"'/{}$@\udce9\U000e0041"
    )
)
_PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"])


def test_everything_hidden_is_shown() -> None:
    for number in range(0x110000):
        character = chr(number)
        hidden = unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp")
        if character in "\n\t":
            assert visible(character) == character
        elif hidden or number & 0xFFFE == 0xFFFE:
            assert visible(character).startswith("\\"), hex(number)


def test_how_it_is_shown() -> None:
    assert visible("a\x1b]0;x\x07\r\nb\rc\t\x9b") == "a\\x1b]0;x\\x07\nb\\rc\t\\x9b"
    assert visible("\u202eevil\U000e0041") == "\\u202eevil\\U000e0041"
    assert visible("caf\udce9.py") == "caf\\xe9.py", "a byte of a name that is no UTF-8"
    assert visible("naïve 漢字 🙂\xa0—") == "naïve 漢字 🙂\xa0—"
    assert one_line(" a\n\n# b\x85 ") == "a # b\\x85"


@given(NASTY)
@settings(max_examples=150, deadline=None)
def test_markdown_reads_as_the_text(text: str) -> None:
    shown = visible(text).replace("\n", " ")
    if shown.strip():
        [_, inline, _] = _PARSER.parse(f"x{code_span(text)}x")
        assert [t.type for t in inline.children or [] if t.type != "text"] in (
            [], ["code_inline"], ["html_inline", "html_inline"],
        )  # fmt: skip
        assert _read(inline) == f"x{shown}x"
        [_, inline, _] = _PARSER.parse(f"x {as_prose(text)} x")
        assert {t.type for t in inline.children or []} == {"text"}
        assert _read(inline).split() == f"x {shown} x".split()
        [opened, inline, _] = _PARSER.parse(begun(as_prose(text)))
        assert opened.type == "paragraph_open"
    [block] = _PARSER.parse(fenced(text, "text"))
    assert block.type == "fence" and block.content == visible(text) + "\n"


def _read(inline: Any) -> str:
    """As a reader reads it. Bars are escaped for the sake of tables, which undo it."""
    parts = []
    for token in inline.children or []:
        if token.type == "code_inline":
            parts.append(token.content.replace("\\|", "|"))
        elif token.type == "text":
            parts.append(token.content)
    return unescape("".join(parts))


@example("a\\|b", "a\\|b")
@given(NASTY, NASTY)
@settings(max_examples=100, deadline=None)
def test_a_cell_stays_a_cell(one: str, two: str) -> None:
    rows = [["a", "b"], [code_span(one) or "-", as_prose(two) or "-"]]
    table = "\n".join(["| a | b |", "|---|---|", f"| {rows[1][0]} | {rows[1][1]} |"])
    kinds = [token.type for token in _PARSER.parse(table)]
    assert kinds.count("td_open") == 2 and kinds.count("tr_open") == 2
    # As GitHub reads it: a backslash is escaped by the one before it.
    bars, escaped = 0, False
    for character in table.splitlines()[2]:
        bars += character == "|" and not escaped
        escaped = character == "\\" and not escaped
    assert bars == 3


@given(NASTY)
@settings(max_examples=100, deadline=None)
def test_scripts_keep_words_in_their_place(text: str) -> None:
    [only] = ast.parse(f'"""{in_docstring(text)}\n"""').body
    assert isinstance(only, ast.Expr) and isinstance(only.value, ast.Constant)
    assert only.value.value == visible(text).replace('"""', "'''") + "\n"
    assert ast.parse(f"# {one_line(text)}").body == []
    assert "/" not in file_stem(text) and file_stem(text) not in (".", "..")


@given(NASTY)
@settings(max_examples=100, deadline=None)
def test_json_loses_nothing(text: str) -> None:
    sound = text.replace("\udce9", "")
    for written in (plain_json({sound: [sound]}), ascii_json(plain_json([{sound: [sound]}])[1:-1])):
        assert visible(written) == written
        assert json.loads(written) == msgspec.json.decode(written) == {sound: [sound]}
    assert json.loads(plain_json({text: (text,)}))[text.replace("\udce9", "\\xe9")]


def test_streams_pass_on_what_can_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", stream)
    monkeypatch.setattr(sys, "stderr", None)
    guard_streams()
    guard_streams()
    print("a\x1b[31m", "é", end="")
    sys.stdout.writelines(["\x9b", "\n"])
    put("\x1b[1mours\x1b[0m\n")
    put_json({"é": "\x9b"})
    assert exact(sys.stdout) is stream and sys.stderr is None
    assert not sys.stdout.isatty() and sys.stdout.encoding == "ascii"
    stream.flush()
    assert stream.buffer.getvalue() == (  # type: ignore[attr-defined]
        b'a\\x1b[31m \\xe9\\x9b\n\x1b[1mours\x1b[0m\n{"\\u00e9":"\\u009b"}\n'
    )


@pytest.mark.parametrize("command", ["::error::x", " \t\xa0::add-mask::x", "a ##[error]x"])
def test_no_line_is_a_command_for_github(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def written() -> str:
        print(f"a\n{command}")
        put(f"b\n{command}\n")
        put_json([command], indent=1)
        put("::error::ours\n", commands=True)
        return capsys.readouterr().out

    monkeypatch.setattr(sys, "stdout", sys.stdout)
    monkeypatch.setattr(sys, "stderr", sys.stderr)
    guard_streams()
    assert written().count(command) >= 2
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    said = written()
    assert [line for line in said.splitlines() if line.strip()[:2] == "::"] == ["::error::ours"]
    array = said[said.index("[\n") : said.index("\n]") + 2]
    assert "##[" not in said and json.loads(array) == [command]


def test_marks_stay_under_their_expression() -> None:
    line = '    s = "\u202e\x1b" + x.item()'
    start, stop = line.index("x.item"), len(line)
    excerpt = cleaned(Excerpt(line, start, stop))
    assert excerpt.text[excerpt.column : excerpt.end_column] == "x.item()"
    listing = cleaned(Listing(7, ("", line), 8, start, stop))
    assert listing.lines[1][listing.column : listing.end_column] == "x.item()"
    marked = MarkedLine(8, (), start, stop)
    whole = cleaned(SourceFile("f", 1, "", (), (MarkedLines(7, ("", line)),), (marked,)))
    [mark] = whole.marked
    assert whole.stretches[0].lines[1][mark.column : mark.end_column] == "x.item()"
    same = Excerpt("x.item()", 0, 8)
    assert cleaned(same) is same


def test_whole_numbers() -> None:
    assert [whole_number(text) for text in ("0", "17", "9" * 18)] == [0, 17, 10**18 - 1]
    # Digits to `isdigit`, and more of them than `int` takes.
    for text in ("", "-1", "²", "٣", "1_0", " 1", "9" * 19, "9" * 5000):
        assert whole_number(text) is None


_ENTRIES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)


@settings(deadline=None)
@given(value=st.dictionaries(st.text(max_size=3), _ENTRIES, max_size=4), indent=st.integers(0, 3))
def test_json_in_parts_is_the_json_of_the_whole(value: dict[str, Any], indent: int) -> None:
    as_iterators = {k: iter(v) if isinstance(v, list) else v for k, v in value.items()}
    whole = plain_json(value, indent=indent)
    assert "".join(json_parts(value, indent=indent)) == whole
    assert "".join(json_parts(as_iterators, indent=indent)) == whole


def test_json_parts_take_some_entries_after_the_others() -> None:
    taken: list[int] = []
    parts = json_parts({"entries": (taken.append(n) or "x" * 5000 for n in range(100))})
    assert next(parts) == '{"entries":' and not taken
    assert next(parts).startswith('["x') and len(taken) < 10


@pytest.mark.parametrize("indent", [0, 2])
def test_json_of_many_entries_in_parts_is_that_of_the_whole(indent: int) -> None:
    value = {"some": [{"n": n, "told": ["a\u202eb\n", []]} for n in range(2000)], "none": []}
    assert "".join(json_parts(value, indent=indent)) == plain_json(value, indent=indent)
