"""What a report on several runs begins with."""

from __future__ import annotations

import json
import re

import msgspec
import pytest

from builders import event, frame, run_of
from compilescope.apps.cli.report_formats import draw
from compilescope.knowledge.analysis.digest import digest
from compilescope.knowledge.analysis.gate.verdict import NOTHING_LOST, judge
from compilescope.knowledge.analysis.overview import JudgedRun, Overview, overview
from compilescope.record.bodies import (
    Body,
    CompileFailed,
    DeviceChecked,
    DiffOutcome,
    GraphCaptured,
    ProcessEnded,
    TensorDiff,
    Violation,
)
from compilescope.record.outcomes import WrongOperation
from compilescope.record.run import Run
from compilescope.report.overview import status_style
from samples import CODE, RUNS


def made(name: str, program: str, started: int, *bodies: Body) -> Run:
    events = (event(body, number=n, stack=(frame(),)) for n, body in enumerate(bodies, 1))
    return run_of(*events, run=name, command=(program,), started_ns=started)


CHECKED = DeviceChecked("npu-a", "pass")


def graph(backend: str) -> GraphCaptured:
    return GraphCaptured(stage="dynamo", ops=3, frame=CODE, region=CODE, backend=backend)


def breach(severity: str, model: str = "Net") -> Violation:
    return Violation("dtype", "npu-a", "aten.mm", "float64", "float32",
                     severity=severity, model=model)  # type: ignore[arg-type] # fmt: skip


def diff(verdict: str, error: float, **more: float) -> TensorDiff:
    metrics = {"max_abs": error, **more}
    return TensorDiff("output[0]", verdict, "far", "Net", test="inductor",
                      metrics=metrics)  # type: ignore[arg-type] # fmt: skip


def seen(*runs: Run, gate: bool = True) -> Overview:
    judged = []
    for run in runs:
        found = digest(run)
        judged.append(JudgedRun(run, found, judge(found, NOTHING_LOST) if gate else None))
    return overview(judged)


def two_of_which_one_is_checked() -> Run:
    first = [event(graph("mock_backend"), number=1), event(CHECKED, number=2)]
    other = event(graph("inductor"), number=3, compile_id="1/0")
    return run_of(*first, other, run="a2", command=("b.py",), started_ns=2)


def test_only_what_was_checked_to_the_end_passes() -> None:
    whole = seen(
        made("a1", "a.py", 1, graph("mock_backend"), CHECKED),
        two_of_which_one_is_checked(),
        made("a3", "c.py", 3, graph("mock_backend"), breach("unknown")),
        made("a4", "d.py", 4, graph("mock_backend"), breach("error"), breach("error")),
        made("a5", "e.py", 5, graph("mock_backend"), breach("error")),
        made("a6", "f.py", 6, graph("inductor")),
        made("a7", "g.py", 7, graph("mock_backend"), breach("warning")),
    )
    tally = whole.constraints
    assert (tally.passed, tally.failed, tally.unknown, tally.unchecked) == (2, 2, 2, 1)
    assert tally.worst is not None and tally.worst.run == "a4"
    assert "2 violations on npu-a" in tally.worst.text
    assert whole.numbers.checked == 0 and whole.numbers.worst is None


def test_a_graph_counts_as_checked_by_its_check_not_by_the_name_of_its_backend() -> None:
    """Adapters, and functions of users that call a backend of ours, have names of their own."""
    both = [event(graph("Ours"), number=1), event(graph("Ours"), number=2, compile_id="1/0")]
    checked = [event(CHECKED, number=3), event(CHECKED, number=4, compile_id="1/0")]
    nothing_to_check = event(graph("mock_backend"), number=1)  # With `constraints=[]`.
    whole = seen(
        run_of(*both, *checked, run="a1", command=("a.py",), started_ns=1),
        run_of(*both, *checked[:1], run="a2", command=("b.py",), started_ns=2),
        run_of(*both, run="a3", command=("c.py",), started_ns=3),
        run_of(nothing_to_check, run="a4", command=("d.py",), started_ns=4),
    )
    tally = whole.constraints
    assert (tally.passed, tally.failed, tally.unknown, tally.unchecked) == (1, 0, 2, 1)


def test_a_graph_whose_check_raised_is_not_passed() -> None:
    """As with settings that are none: `MOCK_ALIGNMENT=abc`."""
    refused = CompileFailed("BackendMisuse", "MOCK_ALIGNMENT is 'abc'", backend="mock_backend")
    earlier = [event(graph("mock_backend"), number=1), event(refused, number=2)]
    later = [
        event(graph("mock_backend"), number=3, compile_id="1/0"),
        event(CHECKED, number=4, compile_id="1/0"),
    ]
    whole = seen(
        run_of(*earlier, run="a1", command=("a.py",), started_ns=1),
        run_of(*earlier, *later, run="a2", command=("b.py",), started_ns=2),
    )
    assert [row.constraints for row in whole.all] == ["unknown", "unknown"]
    assert (whole.constraints.passed, whole.constraints.checked) == (0, 2)
    doubt = digest(run_of(*earlier)).constraints.doubt
    assert doubt == "its one graph was not checked"


def test_a_program_that_ended_early_may_have_had_more_to_check() -> None:
    begun = event(graph("mock_backend"), number=1)
    checked = event(CHECKED, number=3)
    raised = event(ProcessEnded(error="OSError", message="no disk"), number=2)
    ended = run_of(begun, checked, raised, exit_status=1)
    assert digest(ended).constraints.state == "unknown"
    assert "no disk" in digest(ended).constraints.doubt
    failed = run_of(begun, event(breach("error"), number=2), exit_status=1)
    assert digest(failed).constraints.state == "fail"
    assert digest(run_of(begun, checked, exit_status=0)).constraints.state == "pass"
    # A comparison's status is its verdict.
    compared = event(DiffOutcome("Net", "eager", "inductor", "pass"), number=2)
    assert digest(run_of(begun, checked, compared, exit_status=1)).constraints.state == "pass"


def test_a_cut_record_is_not_passed() -> None:
    cut = made("a1", "a.py", 1, graph("mock_backend"), diff("pass", 0.0))
    cut.torn = True
    whole = seen(cut)
    assert (whole.constraints.unknown, whole.numbers.unknown, whole.gate.unknown) == (1, 1, 1)


def test_the_worst_number_and_the_worst_verdict() -> None:
    whole = seen(
        made("a1", "a.py", 1, diff("pass", 0.1)),
        made("a2", "a.py", 2, diff("fail", 0.5)),
        made("a3", "b.py", 3, diff("fail", 0.25), diff("fail", 3.0)),
        made("a4", "c.py", 4, diff("unknown", 9.0)),
        RUNS["full"],
    )
    tally = whole.numbers
    assert (tally.passed, tally.failed, tally.unknown, tally.unchecked) == (1, 2, 1, 1)
    assert tally.worst is not None and tally.worst.run == "a3" and "max error 3" in tally.worst.text
    assert whole.gate.worst is not None and whole.gate.worst.run == "abc123-full"
    assert whole.gate.unchecked == 4, "a comparison of numbers compiled nothing to look at"
    nan = seen(made("a5", "d.py", 5, diff("fail", 0.0, disagreeing=1)))
    assert nan.numbers.worst is not None and "far" in nan.numbers.worst.text


def test_what_stands_now_is_the_newest_run_of_each_program() -> None:
    whole = seen(
        made("old", "a.py", 1, graph("mock_backend"), breach("error")),
        made("new", "a.py", 2, graph("mock_backend"), CHECKED),
        made("only", "b.py", 1, graph("inductor")),
    )
    assert [row.run for row in whole.now] == ["new", "only"] and whole.runs == 3
    assert [row.run for row in whole.all] == ["new", "old", "only"]
    assert whole.now[0].constraints == "pass" and whole.constraints.failed == 1
    assert len(whole.programs) == 2 and whole.models == ("Net",)


@pytest.mark.parametrize("form", ["terminal", "md", "html"])
def test_the_report_begins_with_it(form: str) -> None:
    runs = [RUNS["full"], RUNS["later"], RUNS["models"]]
    text = draw(runs, form, to_file=True)
    text = text[text.find("<main") + 1 :]
    at = [text.index(words) for words in ("of 2", "Worst of each", "Where each program stands")]
    assert at == sorted(at) and at[-1] < text.index("Data-dependent")
    assert "not checked" in text
    if form == "html":
        assert 'href="#r1-summary"' in text and 'id="r1-summary"' in text
        assert 'id="now"' in text
    single = draw(runs[:1], form, to_file=True)
    assert "Where each program stands" not in single


def test_the_start_of_an_id_names_a_run_beside_its_program() -> None:
    runs = [
        made("aa0001-a-very-long-name-of-a-program", "a.py", 1, graph("mock_backend")),
        made("bb0002-another-long-name-of-a-program", "b.py", 2, graph("mock"), breach("error")),
    ]
    text = draw(runs, "terminal", to_file=True)
    text = text[: text.index("compilescope aa0001")]
    assert "aa0001  a.py" in text and "bb0002  b.py" in text and "aa0001-" not in text
    assert "bb0002  b.py: 1 violation on npu-a" in text
    assert re.search(r"models tested +1 +Net\n", text)
    page = draw(runs, "html", to_file=True)
    assert "<title>compilescope report on 2 runs · " in page
    assert page.count("compilescope report on 2 runs") == 2, "the title and the heading"


def test_machines_get_it_too() -> None:
    data = json.loads(draw([RUNS["full"], RUNS["later"]], "json", to_file=True))
    whole = data["overview"]
    assert whole["runs"] == 2 and whole["gate"]["failed"] == 2
    assert {row["run"] for row in whole["now"]} <= {"abc123-full", "abc123-later"}
    assert json.loads(draw([RUNS["full"]], "json", to_file=True))["overview"] is None


def test_every_sample_has_a_standing() -> None:
    named = [msgspec.structs.replace(run.header, command=(name,)) for name, run in RUNS.items()]
    runs = [
        Run(header, run.events, run.artifacts)
        for header, run in zip(named, RUNS.values(), strict=True)
    ]
    whole = seen(*runs)
    for tally in (whole.constraints, whole.numbers, whole.gate):
        assert tally.checked + tally.unchecked == len(RUNS)
    assert "abc123-empty" in draw(runs, "md", to_file=True)


def test_a_comparison_that_failed_without_a_value() -> None:
    raised = DiffOutcome("Net", "eager", "inductor", "fail", error="RuntimeError: no kernel")
    worst = seen(made("a1", "a.py", 1, raised)).numbers.worst
    assert worst is not None and worst.text == "RuntimeError: no kernel"
    silent = DiffOutcome("Net", "eager", "inductor", "fail")
    worst = seen(made("a1", "a.py", 1, silent)).numbers.worst
    assert worst is not None and worst.text == "the comparison failed"


def test_a_comparison_says_nothing_of_breaks() -> None:
    """Nobody watched what it compiled: 0 would say that there was nothing to see."""
    wrong = tuple(WrongOperation(words, "m.py", 12) for words in ("torch.sin at m.py:12", "mul"))
    found = DiffOutcome("Net", "eager", "bad", "fail", operations=wrong)
    whole = seen(
        made("a1", "a.py", 1, diff("fail", 0.5), found),
        made("a2", "b.py", 2, diff("pass", 0.0)),
        made("a3", "c.py", 3, graph("inductor")),
    )
    rows = {row.run: row for row in whole.all}
    assert [rows[name].causes for name in ("a1", "a2", "a3")] == [2, None, 0]
    assert [rows[name].breaks for name in ("a1", "a2", "a3")] == [None, None, 0]
    compared = made("b1", "b.py", 2, diff("pass", 0.0))
    text = draw([compared, made("c1", "c.py", 3, graph("inductor"))], "terminal", to_file=True)
    assert re.search(r"b\.py .* -\s*$", text, re.M) and re.search(r"c\.py .* 0\s*$", text, re.M)


def test_only_a_status_that_says_so_is_red() -> None:
    styles = {
        name: status_style(name) for name in ("ok", "ended", "cut short", "exit 1", "SIGKILL")
    }
    assert styles == {
        "ok": "plain", "ended": "plain", "cut short": "warn", "exit 1": "bad", "SIGKILL": "bad"
    }  # fmt: skip
