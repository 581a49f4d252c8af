"""Breaks of torch_xla's own: explained, on the line that means something, and never hidden."""

from __future__ import annotations

from pathlib import Path

import pytest

from builders import event, run_of
from compilescope.knowledge.analysis.logged import fallbacks
from compilescope.knowledge.analysis.logged.answers import Answers, answers
from compilescope.knowledge.analysis.logged.fallbacks import MOST_SOUGHT
from compilescope.logs.reader import read_logs
from compilescope.record.bodies import FallbackOps, GraphCaptured, LogRead
from compilescope.record.run import Run, read_run
from compilescope.report.explanation import explanation
from compilescope.report.render.terminal import to_text
from compilescope.report.section import Reading
from compilescope.report.sections.logged import SECTION, _fallbacks
from logs.xla_blocks import IN_MODULE, IN_PRINT, IN_SYNC, MAIN, PACKAGES, READ, SYNC, graph


def logged(folder: Path, text: str, *, sources: tuple[str, ...] = ()) -> Run:
    log = folder / "train.log"
    log.write_text(text)
    return read_run(read_logs([str(log)], folder / "runs", source_folders=sources).path)


def found_in(run: Run) -> Answers:
    found = answers(run, Reading(run).digest)
    assert found is not None
    return found


def explained(run: Run) -> str:
    reading = Reading(run)
    text = to_text(explanation(reading, range(1, len(reading.causes) + 1)), width=200)
    assert isinstance(text, str)
    return text


def places(run: Run) -> list[tuple[str, str, int]]:
    return [(each.rule, Path(each.file).name, each.line) for each in found_in(run).breaks]


LOOP = "train_epoch (/srv/engine.py:40)"


@pytest.mark.parametrize(
    ("frames", "place", "through"),
    [
        ((IN_SYNC, "train (/srv/train.py:14)"), ("train.py", 14), ""),
        ((IN_SYNC, "sync (/srv/helpers.py:3)", LOOP), ("engine.py", 40), "sync (helpers.py:3)"),
        (
            (IN_SYNC, "_mark_step_if_needed (/srv/engine.py:9)", LOOP),
            ("engine.py", 40),
            "_mark_step_if_needed (engine.py:9)",
        ),
        ((IN_SYNC, "done (/srv/x.py:3)", LOOP), ("engine.py", 40), "done (x.py:3)"),
        ((IN_SYNC, "tick (/srv/engine.py:3)", LOOP), ("engine.py", 40), "tick (engine.py:3)"),
        ((IN_SYNC, "train_step (/srv/x.py:3)", LOOP), ("x.py", 3), ""),
        (
            (
                f"mark_step ({PACKAGES}/torch_xla/core/xla_model.py:891)",
                f"step ({PACKAGES}/accelerate/optimizer.py:140)",
                LOOP,
            ),
            ("engine.py", 40),
            "step (accelerate/optimizer.py:140)",
        ),
    ],
)
def test_a_sync_is_put_on_the_line_that_asks_for_it(
    tmp_path: Path, frames: tuple[str, ...], place: tuple[str, int], through: str
) -> None:
    run = logged(tmp_path, graph(SYNC, *frames, MAIN) + graph(SYNC, *frames, MAIN))
    assert places(run) == [("xla/sync", *place)]
    (cause,) = found_in(run).breaks
    assert through in cause.context
    assert ("through" in cause.context) == bool(through)


def test_a_helper_is_told_by_its_source(tmp_path: Path) -> None:
    (tmp_path / "loop.py").write_text(
        "def go():\n    torch_xla.sync()\n\n\n"
        "def work(x):\n    y = f(x)\n    y.backward()\n    opt.step()\n    torch_xla.sync()\n"
        "    return y\n\n\n"
        "def main():\n    for x in data:\n        work(x)\n        go()\n"
    )
    main = "main (/elsewhere/loop.py:{})"
    text = "".join(
        graph(SYNC, IN_SYNC, inner, main.format(line), MAIN)
        for inner, line in (("go (/elsewhere/loop.py:2)", 16), ("work (/elsewhere/loop.py:9)", 15))
        for _ in range(2)
    )
    run = logged(tmp_path, text, sources=(str(tmp_path),))
    assert {(file, line) for _, file, line in places(run)} == {("loop.py", 16), ("loop.py", 9)}


def test_one_sync_a_step_is_no_break(tmp_path: Path) -> None:
    run = logged(tmp_path, graph(SYNC, IN_SYNC, LOOP, MAIN, runs=9))
    found = found_in(run)
    assert (len(found.graphs), found.expected, [*found.breaks]) == (1, 1, [])
    assert "no graph breaks" in explained(run)


def test_a_sync_inside_the_model(tmp_path: Path) -> None:
    inside = graph(SYNC, IN_SYNC, "forward (/srv/model.py:8)", IN_MODULE, LOOP, MAIN)
    run = logged(tmp_path, inside + graph(SYNC, IN_SYNC, LOOP, MAIN))
    assert (len(found_in(run).graphs), found_in(run).expected) == (2, 1)
    assert places(run) == [("xla/sync", "model.py", 8)]
    assert "Remove this sync." in explained(run)


def test_a_value_read_on_the_host(tmp_path: Path) -> None:
    printed = graph(READ, IN_PRINT, LOOP, MAIN, runs=2)
    unknown = graph(READ, "forward (/srv/model.py:8)", IN_MODULE, LOOP, MAIN)
    run = logged(tmp_path, unknown + printed + graph(SYNC, IN_SYNC, LOOP, MAIN))
    assert {each.rule for each in found_in(run).breaks} == {"xla/host-read"}
    told = explained(run)
    assert "Printing the tensor needs the value on the host" in told
    assert "executed 2 times" in told
    assert "or calls an operator without a lowering" in told
    assert "No automatic fix:" in told


def test_what_the_source_tells_of_a_read(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(
        "def forward(x):\n    n = x.sum().item()\n    return torch.special.bessel_j0(x) * n\n"
    )
    text = graph(READ, "forward (/srv/model.py:2)", LOOP, MAIN)
    text += graph(READ, "forward (/srv/model.py:3)", LOOP, MAIN)
    told = explained(logged(tmp_path, text, sources=(str(tmp_path),)))
    assert "`x.sum().item()` needs the value on the host" in told
    assert "This line reads no value itself" in told
    assert "> 3 │     return torch.special.bessel_j0(x) * n" in told


def test_a_read_that_a_fix_removes(tmp_path: Path) -> None:
    """Unverified: that needs torch_xla."""
    (tmp_path / "model.py").write_text(
        "def forward(x):\n    n = x.abs().max().item()\n    return x / n\n"
    )
    text = graph(READ, "forward (/srv/model.py:2)", LOOP, MAIN)
    run = logged(tmp_path, text, sources=(str(tmp_path),))
    (site,) = Reading(run).digest.sites
    first, second = site.advice[:2]
    assert (first.fix, first.status) == ("tensor-for-number", "proposed")
    assert "-    n = x.abs().max().item()" in first.diff
    assert (second.fix, second.status) == (None, "by hand")
    assert "No automatic fix" not in second.text


COUNTERS = "Counter: aten::nonzero\n  Value: 33\nCounter: aten::_local_scalar_dense\n  Value: 7\n"


def test_operators_that_a_metrics_report_names(tmp_path: Path) -> None:
    run = logged(tmp_path, "loss 2.3\n" + COUNTERS + COUNTERS.replace("33", "66"))
    ops = {op.op: op for op in found_in(run).fallback_ops}
    assert (ops["aten::nonzero"].count, ops["aten::nonzero"].log_line) == (66, 2)
    assert ops["aten::_local_scalar_dense"].host_read
    assert places(run) == [("xla/cpu-fallback", "", 0)]
    assert "unknown place" in explained(run)


def test_operators_whose_lines_nobody_looked_for_are_said(tmp_path: Path) -> None:
    counters = (f"Counter: aten::op{number}\n  Value: 3\n" for number in range(MOST_SOUGHT + 2))
    run = logged(tmp_path, "".join(counters))
    assert [op.op for op in found_in(run).fallback_ops if not op.sought] == [
        f"aten::op{MOST_SOUGHT}",
        f"aten::op{MOST_SOUGHT + 1}",
    ]
    assert f"2 operators' lines were not searched for (only those of the first {MOST_SOUGHT}" in (
        explained(run)
    )
    table = str(SECTION.build(Reading(run, full=True)))
    assert table.count(f"not searched: beyond {MOST_SOUGHT} operators") == 2


def test_graphs_that_nobody_searched_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 300 graphs the last one calls the operator, and another one on another line."""
    kept = run_of().artifacts

    def run_with(*calls: str) -> Run:
        lines = (f"# File: /srv/m.py:{at} in f, code: {call}" for at, call in enumerate(calls, 1))
        graphs = [GraphCaptured(stage="dynamo", text=kept.put(line, "txt")) for line in lines]
        run = run_of(
            event(LogRead("a.log")),
            *map(event, graphs),
            event(FallbackOps(("aten::sort",), "dynamo")),
        )
        run.artifacts = kept
        return run

    def called_at(run: Run) -> str:
        (row,) = _fallbacks(found_in(run), Reading(run)).rows
        return "".join(span.text for span in row[-1])

    others = [f"y = x + {number}" for number in range(300)]
    last, twice = run_with(*others, "x.sort()"), run_with("x.sort()", *others, "y.sort()")
    assert called_at(last).endswith("m.py:301") and called_at(twice) == "one of 2 lines"
    monkeypatch.setattr(fallbacks, "_MOST_LETTERS", 250 * 45)
    assert called_at(last).startswith("not found; ")
    assert "m.py:1; " in called_at(twice) and called_at(twice).endswith(" graphs not searched")
    assert "graphs: the log has too many" in explained(last)


def test_the_line_of_an_operator(tmp_path: Path) -> None:
    """In color, behind a progress bar: the number is that of the file."""
    line = "pt-xla-profiler: Op(s) not lowered: aten::nanmedian.dim_values,  Please open an issue\n"
    text = "a\rb\rc\n" + graph(READ, "forward (/srv/model.py:2)", LOOP, MAIN) + line
    (tmp_path / "model.py").write_text("def forward(x):\n    return x.nanmedian(0)[0]\n")
    run = logged(tmp_path, text, sources=(str(tmp_path),))
    (op,) = found_in(run).fallback_ops
    assert op.log_line == text.count("\n")
    assert places(run) == [("xla/cpu-fallback", "model.py", 2)]
    assert "has no lowering for `aten::nanmedian.dim_values`" in explained(run)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nothing of ours\n", "too little to say whether anything was lost"),
        (
            graph("dynamo is compiling a FX graph to HLO") * 2,
            "2 graphs instead of 1. The log does not say why each of them exists",
        ),
    ],
)
def test_explain_never_calls_a_loss_good_news(tmp_path: Path, text: str, said: str) -> None:
    told = explained(logged(tmp_path, text))
    assert said in told
    assert "no graph breaks" not in told.lower()


def test_a_log_that_begins_later(tmp_path: Path) -> None:
    """Steps run, and nothing is compiled any more."""
    whole = graph(SYNC, IN_SYNC, LOOP, MAIN, runs=3)
    found = found_in(logged(tmp_path, whole.partition("\n\n")[2]))
    assert (len(found.graphs), found.at_least) == (0, True)
    assert "1 graph is executed that it does not show being compiled" in found.verdict.notes[0]


def test_ranks_count_for_themselves(tmp_path: Path) -> None:
    inside = graph(SYNC, IN_SYNC, "forward (/srv/model.py:8)", IN_MODULE, LOOP, MAIN)
    text = inside + graph(SYNC, IN_SYNC, LOOP, MAIN)
    mixed = "".join(f"[rank0]: {line}\n[rank1]: {line}\n" for line in text.splitlines())
    found = found_in(logged(tmp_path, mixed))
    assert (len(found.graphs), found.expected, len(found.breaks)) == (4, 2, 1)


def test_each_rank_compiles_its_own(tmp_path: Path) -> None:
    text = graph(SYNC, IN_SYNC, LOOP, MAIN) + graph(SYNC, IN_SYNC, LOOP, MAIN)
    mixed = "".join(f"[rank0]: {line}\n[rank1]: {line}\n" for line in text.splitlines())
    run = logged(tmp_path, mixed)
    assert (len(found_in(run).graphs), found_in(run).expected) == (4, 2)
    assert "This sync compiled 2 different graphs." in explained(run)
