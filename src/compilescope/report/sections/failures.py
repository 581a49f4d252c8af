"""Compilations that failed."""

from __future__ import annotations

from compilescope.report.advice import advice_blocks
from compilescope.report.blocks import Block, Item, Span, note, words
from compilescope.report.excerpts import excerpt
from compilescope.report.explanation import failure_item, fate, repro_words
from compilescope.report.failing import torchs_page, why_it_failed
from compilescope.report.places import place
from compilescope.report.section import Reading, Section
from compilescope.rules.failures import Failure


def _build(reading: Reading) -> list[Block]:
    failures = enumerate(reading.digest.failures, 1)
    if reading.full:
        return [failure_item(number, failure, reading) for number, failure in failures]
    return [_failure(number, failure, reading) for number, failure in failures]


def _failure(number: int, failure: Failure, reading: Reading) -> Item:
    where = place(failure.file, failure.line, reading.root) if failure.file else "no place known"
    left = words(Span(where, "strong"), f" in {failure.function}" if failure.function else "")
    name = f"{failure.gb_id} " if failure.gb_id else ""
    blocks: list[Block] = []
    if failure.source:
        blocks.append(excerpt(failure))
    blocks += why_it_failed(failure)
    blocks += advice_blocks(failure.advice, reading.told, where, brief=True)
    blocks += repro_words(failure)
    blocks.append(note(fate(failure)))
    blocks += torchs_page(failure)
    return Item(str(number), left, words(Span(name + failure.error, "bad")), tuple(blocks))


SECTION = Section("failures", 20, _build, "Failures", "compilation raised an error")
