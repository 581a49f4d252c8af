"""What the gate says to CI systems and to people: JUnit XML, GitHub annotations, the terminal."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import msgspec
import pytest

from analysis.gate_runs import (
    HOSTILE,
    a_break,
    a_failure,
    a_library_break,
    a_recompile,
    an_eager_function,
    graph,
    hostile_run,
)
from builders import ROOT, run_of
from compilescope.knowledge.analysis.digest import digest
from compilescope.knowledge.analysis.gate.verdict import (
    NOTHING_LOST,
    AcceptedFinding,
    GateLimits,
    Judgement,
    judge,
)
from compilescope.record.run import Run
from compilescope.report.document import record_of
from compilescope.report.gate import GateTerms, gate_document, update_document
from compilescope.report.render.annotations import to_annotations
from compilescope.report.render.junit import to_junit
from compilescope.report.render.markdown import to_markdown
from compilescope.report.render.terminal import to_text
from compilescope.report.section import Reading

LOSSES = (a_break(), a_library_break(), a_recompile(), a_failure(), an_eager_function())
RUNS = {
    "clean": run_of(graph()),
    "full": run_of(graph(), *LOSSES),
    "crashed": run_of(graph(), a_break(), exit_status=3),
    "empty": run_of(),
    "hostile": hostile_run(),
}


def judged(run: Run, limits: GateLimits = NOTHING_LOST, **options: object) -> Judgement:
    return judge(digest(run), limits, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", RUNS)
def test_a_real_reader_reads_the_xml(name: str, tmp_path: Path) -> None:
    junitparser = pytest.importorskip("junitparser")
    judgement = judged(RUNS[name], baseline=())
    path = tmp_path / "junit.xml"
    path.write_text(to_junit(judgement, ROOT), encoding="utf-8")
    suites = junitparser.JUnitXml.fromfile(str(path))
    [suite] = list(suites)
    cases = list(suite)
    failed = [c for c in cases if any(isinstance(r, junitparser.Failure) for r in c.result)]
    errors = [c for c in cases if any(isinstance(r, junitparser.Error) for r in c.result)]
    assert (suite.tests, suite.failures, suite.errors) == (len(cases), len(failed), len(errors))
    assert (suites.tests, suites.failures) == (suite.tests, suite.failures)
    checks = judgement.checks
    expected = sum(c.outcome == "fail" for c in checks) + len(judgement.against)
    assert len(failed) == expected
    assert len(errors) == sum(c.outcome == "unknown" for c in checks)
    assert len({(c.classname, c.name) for c in cases}) == len(cases)


def test_the_form_that_jenkins_and_gitlab_know() -> None:
    root = ElementTree.fromstring(to_junit(judged(RUNS["full"]), ROOT))
    assert root.tag == "testsuites"
    [suite] = root.findall("testsuite")
    for case in suite.findall("testcase"):
        assert case.get("name") and case.get("classname") and case.get("time") == "0"
        for problem in [*case.findall("failure"), *case.findall("error")]:
            assert problem.get("message") and problem.get("type")
    causes = [c for c in suite.findall("testcase") if c.get("classname") == "compilescope.break"]
    assert {c.get("file") for c in causes} == {"model.py", "faux/ops.py"}
    text = causes[0].findtext("failure") or ""
    assert "model.py:8 in forward" in text and "if h.mean() > 0:" in text and "By hand: " in text


def test_what_could_not_be_told_is_an_error() -> None:
    root = ElementTree.fromstring(to_junit(judged(RUNS["empty"]), ROOT))
    errors = [case.get("name") for case in root.iter("testcase") if case.find("error") is not None]
    assert errors == ["compiled", "breaks", "recompiles", "eager", "failures"]


def test_a_case_keeps_its_name_when_its_line_moves() -> None:
    names = [
        [case.get("name") for case in ElementTree.fromstring(to_junit(judged(run), "")).iter()]
        for run in (run_of(graph(), a_break(8)), run_of(graph(), a_break(80)))
    ]
    assert names[0] == names[1]


_COMMAND = re.compile(r"^::error (?:[a-zA-Z]+=[^,:\n\r]*,?)+::[^\n\r]+$")


@pytest.mark.parametrize("name", RUNS)
def test_every_annotation_is_one_command(name: str) -> None:
    lines = to_annotations(judged(RUNS[name], baseline=()), ROOT).split("\n")
    assert lines.pop() == ""
    assert bool(lines) == (name != "clean")
    for line in lines:
        assert _COMMAND.match(line), line
        assert re.fullmatch(r"(?:[^%]|%(?:25|0A|0D|3A|2C))*", line), line
        assert "\x1b" not in line


def test_annotations_name_the_line() -> None:
    run = run_of(graph(), a_break())
    [line] = to_annotations(judged(run), ROOT).splitlines()
    head = "title=GB0170%3A Data-dependent branching,file=model.py,line=8,endLine=8,col=12"
    assert line.startswith(f"::error {head},endColumn=23::")
    assert "%0ABy hand: " in line
    [outside] = to_annotations(judged(run), "/elsewhere").splitlines()
    assert f"file={ROOT}/model.py," in outside


def test_properties_and_messages_are_escaped() -> None:
    finding = judged(run_of(graph(), a_break())).against[0]
    hostile = msgspec.structs.replace(
        finding, gb_type="a%b:c,d\r\ne", why="1%2\r\n::error::x", remedy=(), file="/w/a,b:%.py"
    )
    check = judged(run_of(graph(), a_break())).checks[0]
    check = msgspec.structs.replace(check, findings=(hostile,))
    [line] = to_annotations(Judgement(run="r", checks=(check,)), "/w").splitlines()
    assert "title=GB0170%3A a%25b%3Ac%2Cd%0D%0Ae,file=a%2Cb%3A%25.py," in line
    assert line.endswith("::1%252%0D%0A::error::x")


def test_limits_without_causes_are_annotated_too() -> None:
    text = to_annotations(judged(RUNS["clean"], GateLimits(graphs=0, coverage=90.0)), ROOT)
    assert "::error title=compilescope%3A graphs::1 graph, at most 0 allowed\n" in text
    assert "::Inconclusive: coverage was not measured" in text
    crashed = to_annotations(judged(RUNS["crashed"], GateLimits(breaks=5)), ROOT)
    assert crashed.splitlines() == [
        "::error title=compilescope%3A program::Inconclusive: the program ended with status 3"
    ]


def drawn(name: str, limits: GateLimits = NOTHING_LOST, **options: object) -> str:
    run = RUNS[name]
    terms = GateTerms(
        baseline="b.json", baseline_torch="2.12.0", project="pyproject.toml", own=True,
        accept="compilescope check --run abc123-model --update-baseline",
        more="compilescope explain abc123-model",
    )  # fmt: skip
    judgement = judged(run, limits, **options)
    document = gate_document(judgement, terms, root=ROOT, record=record_of(Reading(run)))
    assert to_markdown(document)
    return to_text(document, width=80)


@pytest.mark.parametrize("name", RUNS)
def test_it_fits_eighty_columns_and_steers_no_terminal(name: str) -> None:
    gone = tuple(
        AcceptedFinding(kind="break", fingerprint=str(n), title=HOSTILE) for n in range(12)
    )
    text = drawn(name, baseline=gone)
    assert max(map(len, text.splitlines())) <= 80
    assert "\x1b" not in text


def test_the_verdict_comes_first_and_names_the_limits() -> None:
    assert "PASS: within all 4 limits." in drawn("clean")
    assert "PASS: nothing new." in drawn("clean", GateLimits(), baseline=())
    assert "PASS: within the limit; nothing new." in drawn(
        "clean", GateLimits(breaks=0), baseline=()
    )
    failed = " ".join(drawn("full", GateLimits(breaks=1)).split())
    assert "FAIL: 2 graph breaks, at most 1 allowed." in failed
    assert "INCONCLUSIVE: nothing was compiled." in drawn("empty")
    crashed = " ".join(drawn("crashed").split())
    assert "at most 0 allowed. Also, the program ended with status 3." in crashed


def test_what_comes_next_is_told() -> None:
    text = " ".join(drawn("full").split())
    for words in (
        "model.py:8 in forward GB0170",
        "By hand: ",
        "To accept all of it: compilescope check --run abc123-model --update-baseline",
        "To see more: compilescope explain abc123-model",
        "It was made with torch 2.12.0; torch 2.13.0 may",
        "Limits from pyproject.toml.",
        "Only causes in your own files count",
    ):
        assert words in text, words


def test_what_is_gone_can_be_dropped() -> None:
    gone = (
        AcceptedFinding(kind="break", fingerprint="f", title="Old one", file="a.py", function="g"),
    )
    text = " ".join(drawn("clean", GateLimits(), baseline=gone).split())
    gone_line = "1 cause in the baseline is no longer present; --update-baseline removes it:"
    assert f"{gone_line} - Old one (a.py in g)" in text
    crashed = drawn("crashed", GateLimits(), baseline=gone)
    assert "gone" not in crashed, "a program that ended early saw less, not fewer causes"


def test_many_causes_are_cut() -> None:
    many = run_of(graph(), *(a_break(n, f"    if h{n}:") for n in range(1, 31)))
    document = gate_document(judged(many), GateTerms(), root=ROOT, record=record_of(Reading(many)))
    text = to_text(document)
    assert "and 10 more causes" in text


def test_an_update_tells_what_changed() -> None:
    finding = judged(RUNS["full"]).against[0]
    gone = AcceptedFinding(
        kind="break", fingerprint="f", title="Old one", file="a.py", function="g"
    )
    text = to_text(update_document([finding], (gone,), 3, file="b.json", root=ROOT))
    assert "b.json now accepts 4 causes: 1 added, 1 removed, 3 kept." in text
    assert finding.title in text and "Old one (a.py in g)" in text
