"""Every field of every body, hostile, in every format: nothing but text comes out."""

from __future__ import annotations

import io
import json
import os
import sys
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

import msgspec
import pytest

import samples
from compilescope.apps.cli.commands.show import DETAILED, section_of
from compilescope.apps.cli.main import main
from compilescope.apps.dashboard.live.live_entries import kind_of, moment
from compilescope.base.texts import visible
from compilescope.knowledge.analysis.gate.terms import GateLimits
from compilescope.knowledge.analysis.gate.verdict import Judgement, judge
from compilescope.record.header import RunHeader
from compilescope.record.run import Run
from compilescope.report.blocks import Document, Part, Quote
from compilescope.report.comparison import ComparedRun, compare_runs
from compilescope.report.document import record_of, report_document
from compilescope.report.explanation import explanation
from compilescope.report.gate import GateTerms, gate_document
from compilescope.report.render.annotations import to_annotations
from compilescope.report.render.html import to_html
from compilescope.report.render.junit import to_junit
from compilescope.report.render.markdown import to_markdown
from compilescope.report.render.page import to_page
from compilescope.report.render.sarif import to_sarif
from compilescope.report.render.structured import to_json
from compilescope.report.render.terminal import to_text
from compilescope.report.section import Reading
from compilescope.report.trace import to_trace
from hostile import (
    CONTROLS,
    GROUPS,
    HALF,
    MARKUP,
    Makers,
    hostile_run,
    live_html,
    live_markdown,
    steering,
    without_colours,
)

NO_LOSS = GateLimits(breaks=0, recompiles=0, eager=0, failures=0, graphs=0)
SLOW = ("logged", "bench", "odd")
"""What the default run leaves out: the same fields, reported in other ways."""
groups = pytest.mark.parametrize(
    "group", [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in GROUPS]
)
a_run = cache(hostile_run)


@cache
def reading(group: str) -> Reading:
    run, makers = a_run(group), Makers(sane_keys=False)
    causes = Reading(run, full=True).causes
    quotes = {cause.fingerprint: Quote(makers.text(), makers.text()) for cause in causes}
    return Reading(run, full=True, quotes=quotes)


@cache
def judged(group: str) -> Judgement:
    return judge(reading(group).digest, NO_LOSS)


@cache
def documents(group: str) -> list[Document]:
    """The report, its sections in detail, causes explained, the gate, a comparison, live events."""
    read, run = reading(group), a_run(group)
    live = (moment(each, "", 0) for each in run.events if kind_of(each) is not None)
    terms = GateTerms(
        baseline=Makers(sane_keys=False).text(), project=Makers(sane_keys=False).text()
    )
    detailed = [section_of(run, name)[1] for name in DETAILED]
    if group == "captured":
        detailed += [section_of(run, name)[1] for name in ("tree", "timeline", "source")]
    return [
        report_document(read),
        *detailed,
        explanation(read, list(range(1, len(read.causes) + 1))),
        gate_document(judged(group), terms, root=read.root, record=record_of(read)),
        compare_runs(ComparedRun(run, "a"), ComparedRun(a_run(group), "b")).document,
        Document("live", "", (Part("live", "", tuple(live)),)),
    ]


@groups
def test_a_terminal_is_not_steered(group: str) -> None:
    for document in documents(group):
        assert not steering(to_text(document))
    assert "\\x1b]0;title\\x07" in to_text(documents(group)[0]), "shown, not dropped"


def test_colours_are_ours_alone() -> None:
    text = to_text(documents("captured")[0], colour=True)
    assert "\x1b[" in text
    assert not steering(without_colours(text))
    assert "\x1b[8m" not in text, "theirs hides what follows"
    assert "\x1b]8;;http://evil" not in text and "[bold]b[/bold]" in text


@groups
def test_markdown_has_no_node_of_theirs(group: str) -> None:
    for document in documents(group):
        text = to_markdown(document)
        assert not steering(text)
        assert not live_markdown(text)


@groups
def test_html_has_no_element_of_theirs(group: str) -> None:
    page = to_page([report_document(Reading(a_run(group), full=True, page=True))])
    for text in (page, to_html(documents(group)[0])):
        assert not steering(text)
        assert not live_html(text)


@groups
def test_json_is_whole_and_loses_nothing(group: str) -> None:
    read = reading(group)
    sections = [section_of(a_run(group), name)[0] for name in DETAILED]
    texts = [
        to_json([documents(group)[0]], [read.digest]),
        to_sarif([documents(group)[0]]),
        to_trace(a_run(group)).decode(),
        plain(sections),
    ]
    for text in texts:
        assert not steering(text)
        json.loads(text)
        msgspec.json.decode(text)
    strings = list(_strings(json.loads(texts[0])))
    assert any(CONTROLS + MARKUP in string for string in strings), "as it was recorded"


def plain(value: object) -> str:
    from compilescope.base.texts import plain_json

    return plain_json(value, indent=2)


def _strings(value: object) -> list[str]:
    if isinstance(value, dict):
        return [s for pair in value.items() for each in pair for s in _strings(each)]
    if isinstance(value, list):
        return [s for each in value for s in _strings(each)]
    return [value] if isinstance(value, str) else []


@groups
def test_a_gate_says_one_thing_a_line(group: str) -> None:
    judgement = judged(group)
    text = to_annotations(judgement, "")
    assert not steering(text)
    expected = len(judgement.against)
    lines = text.splitlines()
    assert len(lines) >= expected and all(line.startswith("::error ") for line in lines)
    xml = to_junit(judgement, "")
    assert not steering(xml)
    tree = ElementTree.fromstring(xml)
    assert {each.tag for each in tree.iter()} <= {
        "testsuites", "testsuite", "testcase", "properties", "property", "failure", "error",
    }  # fmt: skip


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("home")
    for group in ("captured", "logged"):
        run = a_run(group)
        # A header is JSON of anyone's making: half characters and all.
        fields = msgspec.structs.asdict(run.header)
        sound = {n: visible(v) if isinstance(v, str) else v for n, v in fields.items()}
        sound_run = Run(RunHeader(**{**sound, "command": ("m.py",)}), run.events, run.artifacts)
        folder = samples.store(sound_run, home, group)
        header = {**fields, "run": group, "schema": 1}
        (folder / "run.json").write_text(json.dumps(header))
        labels = {"schema": 1, "tags": [f"t{CONTROLS}{HALF}"], "note": CONTROLS + MARKUP}
        (folder / "labels.json").write_text(json.dumps(labels))
    return home


COMMANDS = [
    ["list"], ["list", "--json"], ["show", "captured"], ["explain", "captured", "--format", "md"],
    ["check", "--run", "captured", "--annotations"], ["tag", "captured"],
    ["fix", "--run", "captured", "--apply"], ["show", CONTROLS + HALF[0]],
    ["show", "captured", "--section", CONTROLS], ["explain", "captured", CONTROLS],
    ["import", CONTROLS + HALF[0]], [CONTROLS], ["list", CONTROLS],
]  # fmt: skip
MORE = [
    ["list", "--artifacts", "--all"], ["show", "captured", "--all"], ["show", "--json", "logged"],
    ["show", "captured", "--format", "md"], ["show", "logged", "--section", "source"],
    ["explain", "captured"], ["compare", "captured", "logged"],
    ["compare", "captured", "logged", "--json"], ["check", "--run", "logged", "--json"],
    ["report", "captured", "--format", "md"], ["report", "captured", "--format", "trace"],
    ["report", "captured", "logged", "--format", "terminal"], ["report", "--format", "html"],
    ["report", "captured", "--format", "sarif"], ["report", "captured", "--format", "json"],
]  # fmt: skip
SPOKEN = [*COMMANDS, *(pytest.param(words, marks=pytest.mark.slow) for words in MORE)]


@pytest.mark.parametrize("words", SPOKEN, ids=lambda words: ascii(" ".join(words))[:40])
def test_commands_print_text(words: list[str], home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With what is said on stderr: errors, notes, and whatever a library prints."""
    out, err = io.StringIO(), io.StringIO()
    words = [word.replace("\0", "") for word in words]
    monkeypatch.setattr(sys, "argv", ["compilescope", *words])
    monkeypatch.setenv("COMPILESCOPE_DIR", os.fspath(home))
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    with pytest.raises(SystemExit):
        main()
    for stream in (out, err):
        assert not steering(stream.getvalue())
        assert "Traceback" not in stream.getvalue()
    assert out.getvalue() or err.getvalue()
    if {"--json", "trace", "sarif", "json"} & set(words):
        json.loads(out.getvalue())
