"""No sentence stands twice in one answer."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from compilescope.record.home import find_run
from compilescope.record.run import read_run
from compilescope.report.blocks import Block, Document, Fold, Item, Paragraph, Part, plain, prose
from compilescope.report.document import report_document
from compilescope.report.explanation import explanation
from compilescope.report.repeats import without_repeats
from compilescope.report.section import Reading
from samples import RUNS, big_run

_AMOUNTS = ("Cost:", "-")
_LEAST_WORDS = 5


def sentences(blocks: Iterable[Block]) -> Iterator[str]:
    """Of all paragraphs; what others wrote, source and stacks, is set in code or as a listing."""
    for block in blocks:
        if isinstance(block, Item | Fold):
            yield from sentences(block.blocks)
        elif isinstance(block, Paragraph) and block.hanging not in _AMOUNTS:
            for sentence in re.split(r"(?<=[.!?])\s+(?=[^\sa-z])", plain(block.words)):
                if len(sentence.split()) >= _LEAST_WORDS:
                    yield " ".join(sentence.split()).rstrip(".")


def repeated(document: Document) -> list[str]:
    found = Counter(s for part in document.parts for s in sentences(part.blocks))
    return [f"{times} x {sentence}" for sentence, times in found.items() if times > 1]


def answers(reading: Reading) -> dict[str, Document]:
    run = reading.run
    every = range(1, len(reading.causes) + 1)
    return {
        "show": report_document(Reading(run)),
        "show --all": report_document(Reading(run, full=True)),
        "explain --all": explanation(Reading(run), every),
    }


@pytest.mark.parametrize("name", [*RUNS, "big"])
def test_nothing_is_said_twice(name: str) -> None:
    run = big_run(causes=20, graphs=5, events=200) if name == "big" else RUNS[name]
    for command, document in answers(Reading(run)).items():
        assert not repeated(document), command


@pytest.mark.slow
@pytest.mark.torch
def test_nothing_is_said_twice_of_a_real_run(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    tour = Path(__file__).parents[2] / "examples" / "tour.py"
    command = [sys.executable, "-m", "compilescope", "run", "-q", "--dir", str(tmp_path), str(tour)]
    subprocess.run(command, check=True, capture_output=True)
    for name, document in answers(Reading(read_run(find_run(tmp_path, None)))).items():
        assert not repeated(document), name


def _document(*items: tuple[str, str, str]) -> Document:
    blocks = tuple(
        Item(number, prose("m.py:1"), blocks=(Paragraph(prose(text), label),))
        for number, label, text in items
    )
    return without_repeats(Document("", "", (Part("causes", "", blocks),)))


def _texts(document: Document) -> list[str]:
    return [
        f"{block.hanging} {plain(block.words)}".strip()
        for part in document.parts
        for item in part.blocks
        if isinstance(item, Item)
        for block in item.blocks
        if isinstance(block, Paragraph)
    ]


def test_equal_advice_points_to_where_it_was_given() -> None:
    advice = "Keep to one size, or pad the batch."
    made = _document(("1", "By hand:", advice), ("2", "By hand:", advice))
    assert _texts(made) == [f"By hand: {advice}", "By hand: same as cause 1"]


def test_a_sentence_that_is_known_is_left_out_of_a_longer_text() -> None:
    known = "Dynamo traces without values, so it cannot know the branch."
    made = _document(("1", "Why:", f"`a` decides. {known}"), ("2", "Why:", f"`b` decides. {known}"))
    assert _texts(made)[1] == "Why: `b` decides."


def test_remarks_are_not_made_twice_and_short_words_may_be() -> None:
    made = _document(
        ("1", "", "unverified; run it to verify"), ("2", "", "unverified; run it to verify")
    )
    assert len(_texts(made)) == 1
    made = _document(
        ("1", "Try:", "Compile with dynamic=True."), ("2", "Try:", "Compile with dynamic=True.")
    )
    assert len(set(_texts(made))) == 1 and len(_texts(made)) == 2
