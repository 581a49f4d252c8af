"""What is known of a run is found in a text as trying each of it in turn would find it."""

from __future__ import annotations

import random
import re

from compilescope.report.sharing.redaction import names
from compilescope.report.sharing.redaction.code import _NOT_PLAIN, Words, apply
from compilescope.report.sharing.redaction.lexer import tokens
from compilescope.report.sharing.redaction.names import KnownPaths, KnownTexts

PATHS = [
    *("/u/my models/net.py", "/u/my models", "/u/a.py", "/u/a.pyx", "/", "C:\\work\\net.py"),
    *("/u/deep/er/still/net.py", "/u/", "/v/a b c"),
]
CODE = (
    *("x", "L['x']", "torch", ".add(", "size()[0]", " == ", "3", "4096", "12.5", ".5", "'abc def'"),
    *('"k"', "''", '"', "'", " . ", "!r", "{", "}", "[0]", "['3']", "\n", " ", "nn.Module", "1a"),
    *("0x1F", ",", "_", "...", "__import_numpy"),
)


def test_the_longest_known_path_is_found() -> None:
    paths = KnownPaths(PATHS)
    tried = re.compile("|".join(map(re.escape, sorted(PATHS, key=len, reverse=True))))
    rng = random.Random(1)
    for _ in range(500):
        text = "".join(rng.choice((*PATHS, " ", "net.py", "x", "/")) for _ in range(5))
        for at in range(len(text)):
            match = tried.match(text, at)
            assert paths.end(text, at) == (match.end() if match else at), (text, at)


def test_a_path_is_walked_once_however_many_are_known() -> None:
    paths = KnownPaths([f"/u/m{n}.py" for n in range(20_000)])
    assert paths.end("at /u/m19999.py:3", 3) == len("at /u/m19999.py")
    assert paths._top.folders["/"].folders["u/"].lengths == [9, 8, 7, 6, 5]


def test_a_line_that_holds_a_string_is_known() -> None:
    texts = KnownTexts()
    held = ["secret words", "ab", "a much longer secret of theirs"]
    for each in (*held, ""):
        texts.add(each)
    for line in ("the secret words here", "cab", "no", "", "a much longer secret of their"):
        assert texts.is_in(line) == any(each in line for each in held), line


def test_where_strings_take_too_long_to_look_up_a_line_is_taken_for_one() -> None:
    texts = KnownTexts()
    for length in range(10, 500):
        texts.add("a" * length + "b")
    line = "a" * 3000
    texts._looked = names._MOST_LOOKED - 1000
    assert texts.is_in(line)


def test_plain_code_is_redacted_as_its_tokens_are() -> None:
    rng = random.Random(2)
    plain = 0
    for _ in range(3000):
        text = "".join(rng.choice(CODE) for _ in range(rng.randint(1, 8)))
        if _NOT_PLAIN.search(text):
            continue
        plain += 1
        one, other = Words(), Words()
        for _ in range(2):
            assert one.code(text) == apply(
                text, other.edits(text, tokens(text), "code", indices=True)
            ), text
            one.settle()
            other.settle()
    assert plain > 1000
