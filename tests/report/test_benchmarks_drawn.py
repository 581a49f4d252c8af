"""A benchmark run as people see it: the table they know, bars with intervals, every figure."""

from __future__ import annotations

import re

import pytest

from benchmark_runs import MACHINE, bench_run, benchmark_run, row
from compilescope.record.benchmark import Benchmark
from compilescope.record.run import Run
from compilescope.report.benchmarks import benchmarks_document
from compilescope.report.blocks import Document, Item, Measures, Part, Table, plain
from compilescope.report.document import report_document
from compilescope.report.render.html import to_html
from compilescope.report.render.markdown import to_markdown
from compilescope.report.render.measures import measure_rows
from compilescope.report.render.page import to_page
from compilescope.report.render.terminal import to_text
from compilescope.report.section import Reading


def drawn(run: Run, **how: bool) -> Document:
    return report_document(Reading(run, **how))


def tables(document: Document) -> list[list[list[str]]]:
    return [
        [list(block.columns), *([plain(cell) for cell in row] for row in block.rows)]
        for part in document.parts
        for block in part.blocks
        if isinstance(block, Table)
    ]


def text_of(run: Run, **how: bool) -> str:
    return to_text(drawn(run, **how))


def test_the_table_that_people_know() -> None:
    head, *rows = tables(benchmarks_document(Reading(benchmark_run())))[0]
    assert head[:5] == ["Model", "Eager ms", "Inductor ms", "Speed-up", "KernelDiff"]
    assert rows[0][:5] == ["bert", "813.4", "570.0", "1.43x [1.40, 1.45]", "pass"]
    assert [row[4] for row in rows] == ["pass", "FAIL", "pass"]


def test_without_inductor_the_first_backend_stands_in_its_place() -> None:
    run = bench_run(row("bert", "eager", 10.0), row("bert", "aot_eager", 10.0, eager=10.0))
    head, only = tables(benchmarks_document(Reading(run)))[0]
    assert head[2] == "aot_eager ms"
    assert only[3] == "no difference"


def test_every_backend_has_a_row_in_the_full_report() -> None:
    head, *rows = tables(drawn(benchmark_run(), full=True))[1]
    assert head[:4] == ["Model", "Backend", "ms", "Speed-up"]
    assert len(rows) == 12
    assert ["", "compilescope_mini", "failed"] in [row[:3] for row in rows]


def test_the_first_sentence_counts_models_failures_and_wrong_results() -> None:
    told = " ".join(text_of(benchmark_run()).split())
    assert "inductor is faster than eager mode on 2 of 3 models, slower on 1." in told
    assert "1 of 12 benchmarks failed. 1 result does not match eager mode" in told
    assert "aten.convolution` is not supported" in told
    assert "mamba on aot_eager: Interrupted after 2 of 10 runs." in told
    assert "mamba on compilescope_mini: not measured." in told


def test_the_machine_and_the_settings() -> None:
    told = " ".join(text_of(benchmark_run()).split())
    assert "AMD EPYC 7B13, 2 cores, 2 threads, 8 GiB memory · torch 2.13.0+cpu" in told
    assert "inference, float32, on cpu" in told and "up to 2 processes x 10 runs" in told


def test_all_figures_only_where_they_are_asked_for() -> None:
    assert "peak memory" not in text_of(benchmark_run())
    full = text_of(benchmark_run(), full=True)
    for label in (
        "95 % interval",
        "mean ± std",
        "p90 ms",
        "samples/s",
        "compile, warm",
        "outliers",
    ):
        assert label in full
    assert re.search(r"violations +- +3 +-", full)


@pytest.mark.parametrize("full", [False, True])
def test_a_benchmark_run_is_no_program_that_did_nothing(full: bool) -> None:
    told = text_of(benchmark_run(), full=full)
    for wrong in ("imported torch", "Nothing was compiled", "0 graphs", "not timed", "The program"):
        assert wrong not in told


def test_setups_that_differ_are_told_apart() -> None:
    run = bench_run(
        row("bert", "eager", 10.0),
        row("bert", "eager", 30.0, mode="training", dtype="bfloat16"),
        row("vit", "eager", 5.0),
    )
    told = text_of(run)
    assert "bert (inference, float32)" in told and "bert (training, bfloat16)" in told


def test_eager_mode_alone() -> None:
    told = text_of(bench_run(row("bert", "eager", 10.0), machine=None))
    assert "1 model in eager mode only." in told and "10.0" in told


def test_nothing_has_been_measured_yet() -> None:
    told = text_of(bench_run(exit_status=130), full=True)
    assert "No model has been measured." in told and "The benchmark was interrupted" in told
    assert "imported torch" not in told and "Nothing was compiled" not in told


def test_one_model_goes_by_its_name() -> None:
    run = bench_run(row("bert", "eager", 10.0), row("bert", "inductor", 5.0, eager=10.0))
    assert "inductor is faster than eager mode on bert." in text_of(run)


def test_a_model_that_could_not_be_built_at_all() -> None:
    run = bench_run(Benchmark(model="bert", backend="eager", error="No transformers here."))
    assert "bert on eager: No transformers here." in text_of(run, full=True)


def test_bars_have_whiskers() -> None:
    block = Measures("ms", (("a", 50.0, "50"), ("b", 20.0, "20")), ((25.0, 100.0), None))
    (_, wide, _), (_, plain_bar, _) = measure_rows(block)
    assert wide.startswith("█") and "├" in wide and wide.endswith("┤") and "┼" in wide
    assert len(wide) == 36
    assert set(plain_bar) <= set("█▏▎▍▌▋▊▉")


def test_a_narrow_interval_leaves_the_bar_as_it_is() -> None:
    block = Measures("ms", (("a", 50.0, "50"),), ((49.99, 50.01),))
    assert "├" not in measure_rows(block)[0][1]


def test_whiskers_on_a_page() -> None:
    rows = (("a", 50.0, "50 [25, 100]"),)
    item = Item("1", (), (), (Measures("", rows, ((25.0, 100.0),)),))
    page = to_html(Document("t", "", (Part("x", "", (item,)),)))
    assert '<i style="width:50.00%"></i><u style="left:25.00%;width:75.00%"></u>' in page
    assert "<figcaption>" not in page


def test_hostile_amounts_keep_bars_on_the_scale() -> None:
    block = Measures("", (("a", 0.0, "0"), ("b", -1.0, "x")), ((0.0, 0.0), (-5.0, 3.0)))
    for _, bar, _ in measure_rows(block):
        assert len(bar) <= 36


def test_the_page_opens_with_the_bars() -> None:
    document = drawn(benchmark_run(), full=True, page=True)
    assert [part.id for part in document.parts[:3]] == ["summary", "benchmarks", "violations"]
    assert to_page([document]).count('class="measures"') == 3


def test_bold_words_keep_their_spaces_in_markdown() -> None:
    told = to_markdown(drawn(benchmark_run()))
    assert "failed.** **1 result" in told and "compilescope\\_mini:** `aten" in told


def test_violations_and_differences_name_their_model() -> None:
    told = text_of(benchmark_run(), full=True)
    assert "bert: unknown location" in told
    assert "resnet: output[0]" in told


def test_two_machines_go_by_name() -> None:
    import msgspec

    other = msgspec.structs.replace(MACHINE, name="bob", problem="It has another torch.")
    told = " ".join(text_of(bench_run(other, row("bert", "eager", 10.0))).split())
    assert "ada · AMD" in told and "bob · AMD" in told and "It has another torch." in told
