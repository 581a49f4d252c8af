"""The truth about every shared console log: all eras, flags and damages."""

from __future__ import annotations

from typing import NamedTuple

import msgspec
import pytest

from compilescope.knowledge.analysis.digest import digest
from compilescope.record.bodies import (
    BreakEcho,
    FallbackOps,
    FrameSkipped,
    GraphBreak,
    GraphCaptured,
    GraphCompiled,
    GraphExecuted,
    Recompile,
)
from logs.consoles import facts, golden, golden_names, of, read


class Truth(NamedTuple):
    """What a log holds."""

    breaks: int = 0
    echoes: int = 0
    compiled: int = 0
    """Graphs that torch_xla or tt-xla compiled."""
    captured: int = 0
    """Graphs that Dynamo handed to a backend."""
    recompiles: int = 0
    formats: str = "torch-logs"
    flags: str = "TORCH_LOGS=+dynamo"
    build: str = ""
    cut_tail: bool = False
    interleaved: str = ""


XLA = "torch-logs torch-xla"
XLA_FLAGS = "PT_XLA_DEBUG_LEVEL=2 TORCH_LOGS=+dynamo"
TT = "torch-logs tt-xla"
TT_FLAGS = "TORCH_LOGS=+dynamo TTXLA_LOGGER_LEVEL=DEBUG XLA_HLO_DEBUG=1"
C03 = Truth(2, 1, 4, 4, 0, TT, TT_FLAGS, "debug")
TRUTH = {
    "concurrent.dist_2rank_t213": Truth(2, captured=4, interleaved="tagged"),
    "flags.c01_openxla_noflags": Truth(formats="", flags=""),
    "flags.c02_t213_customformat": Truth(
        1, captured=2, flags="TORCH_LOGS=+dynamo TORCH_LOGS_FORMAT"
    ),
    "flags.c05_openxla_PT_XLA_DEBUG1": Truth(
        compiled=6, formats="torch-xla", flags="PT_XLA_DEBUG=1"
    ),
    "flags.c07_t213_recompiles": Truth(recompiles=1, flags="TORCH_LOGS=recompiles"),
    "t213.c00_clean": Truth(captured=1),
    "t213.c01_print": Truth(4, captured=4, recompiles=2),
    "t213.c02_item": Truth(1, captured=2),
    "t213.c03_dataif": Truth(2, captured=4),
    "t213.c04_nonzero": Truth(1),
    "t213.c08_numpy_log": Truth(3, captured=3),
    "tt_backend_cpu.c02_item": Truth(1, 1, 2, 2, 0, XLA, XLA_FLAGS),
    "ttlike.c00_clean.head": Truth(0, 0, 1, 1, 0, TT, TT_FLAGS, "debug"),
    "ttlike.c01_print.head": Truth(4, 0, 3, 5, 2, TT, TT_FLAGS, "debug"),
    "ttlike.c02_item.head": Truth(1, 1, 2, 2, 0, TT, TT_FLAGS, "debug"),
    "ttlike.c02_item.head.legacy_locs": Truth(1, 1, 2, 2, 0, TT, TT_FLAGS, "debug"),
    "ttlike.c03_dataif.2025-10": C03,
    "ttlike.c03_dataif.2026-03": C03,
    "ttlike.c03_dataif.head": C03,
    "ttlike.c03_dataif.head.ansi": C03,
    "ttlike.c03_dataif.head.no_TORCH_LOGS": Truth(
        0, 0, 4, 0, 0, "tt-xla", "TTXLA_LOGGER_LEVEL=DEBUG XLA_HLO_DEBUG=1", "debug"
    ),
    "ttlike.c03_dataif.head.no_XLA_HLO_DEBUG": C03._replace(
        flags="TORCH_LOGS=+dynamo TTXLA_LOGGER_LEVEL=DEBUG"
    ),
    "ttlike.c03_dataif.head.release": C03._replace(build="release"),
    "ttlike.c04_nonzero.head.truncated_tail": Truth(
        1, 1, 6, 6, 6, TT, TT_FLAGS, "debug", cut_tail=True
    ),
    "xla_lazy.c02_item": Truth(0, 0, 2, 0, 0, XLA, XLA_FLAGS),
    "xla_lazy.c05_fallback": Truth(0, 0, 3, 0, 0, XLA, XLA_FLAGS),
    "xla_lazy.c06_markstep_loop": Truth(0, 0, 4, 0, 0, XLA, XLA_FLAGS),
    "xla_openxla.c00_clean": Truth(0, 0, 1, 1, 0, XLA, XLA_FLAGS),
    "xla_openxla.c01_print": Truth(4, 0, 3, 4, 2, XLA, XLA_FLAGS),
    "xla_openxla.c02_item": Truth(1, 0, 2, 2, 0, XLA, XLA_FLAGS),
    "xla_openxla.c03_dataif": Truth(2, 0, 3, 3, 0, XLA, XLA_FLAGS),
    "xla_openxla.c04_nonzero": Truth(1, 0, 4, 0, 0, XLA, XLA_FLAGS),
}
SITES = {
    "dist_2rank": [("GB0170", 8)],
    "c02_t213": [("GB0124", 8)],
    "c01_print": [("GB0059", 8)],
    "c02_item": [("GB0124", 8)],
    "c03_dataif": [("GB0170", 8)],
    "c04_nonzero": [("GB0036", 10)],
    "c08_numpy_log": [("GB0291", 9), ("GB0033", 12), ("GB0025", 13)],
}
"""The causes, counted once, and the program's own line of each."""


def test_all_are_told_about() -> None:
    assert golden_names() == sorted(TRUTH)


@pytest.mark.parametrize("name", golden_names())
def test_truth(name: str) -> None:
    run, tally = read(golden(name))
    counts = facts(run)
    seen = Truth(
        breaks=counts.get("GraphBreak", 0),
        echoes=counts.get("BreakEcho", 0),
        compiled=counts.get("GraphCompiled", 0),
        captured=len([g for g in of(run, GraphCaptured) if g.stage == "dynamo"]),
        recompiles=counts.get("Recompile", 0),
        formats=" ".join(sorted(tally.formats)),
        flags=" ".join(sorted(tally.flags)),
        build=tally.build,
        cut_tail=tally.cut_tail,
        interleaved=tally.interleaved,
    )
    assert seen == TRUTH[name]
    assert (tally.unread, tally.cut_head) == (0, False)
    assert all(graph.cut == "" for graph in of(run, GraphCompiled))


@pytest.mark.parametrize("name", [name for name in golden_names() if TRUTH[name].breaks])
def test_causes_are_counted_once_and_blame_the_program(name: str) -> None:
    run, _ = read(golden(name))
    sites = [(site.gb_id, site.line) for site in digest(run).sites]
    assert sites == next(truth for program, truth in SITES.items() if program in name)
    for site in digest(run).sites:
        assert "/home/user/models/" in site.file
        assert site.source.strip()


@pytest.mark.parametrize("name", golden_names())
def test_blocks_do_not_matter(name: str) -> None:
    data = golden(name)
    if len(data) > 200_000:
        pytest.skip("a smaller one shows the same")

    def timeless(block: int) -> list[object]:
        run, _ = read(data, block=block)
        return [msgspec.structs.replace(event, time_ns=0) for event in run.events]

    assert timeless(900) == timeless(1 << 21)


def test_echo_follows_from_the_break_it_echoes() -> None:
    run, _ = read(golden("ttlike.c03_dataif.head"))
    (echo,) = of(run, BreakEcho)
    behind = next(event for event in run.events if event.id == echo.because)
    assert isinstance(behind.body, GraphBreak)
    assert behind.site is not None and behind.site.line == 8
    assert echo.override is not None and echo.override.line == 149


def test_graphs_know_their_stages_ops_and_source() -> None:
    run, _ = read(golden("ttlike.c03_dataif.head.no_TORCH_LOGS"))
    graphs = of(run, GraphCompiled)
    head = "vhlo shlo shlo_frontend shlo_compiler shlo_set_mesh_attr shlo_compiler_cleaned"
    assert [" ".join(s.name for s in g.stages) for g in graphs] == [
        f"{head} ttir ttnn ttnn_runtime"
    ] * 4
    assert [g.stages[0].ops for g in graphs] == [10, 2, 6, 2]
    assert [[p.frame.line for p in g.places] for g in graphs] == [[6], [8], [17], [8]]
    # Graphs join to breaks even without TORCH_LOGS.
    assert [[(c.function, c.resumed_at) for c in g.resumes] for g in graphs] == [
        [],
        [("forward", 8)],
        [("forward", 17)],
        [("forward", 8)],
    ]
    assert graphs[1].stages[0].kinds == {"vhlo.constant_v1": 1, "vhlo.subtract_v1": 1}


def test_stages_by_era() -> None:
    for era, stages in (("2025-10", 6), ("2026-03", 8), ("head", 9)):
        run, _ = read(golden(f"ttlike.c03_dataif.{era}"))
        assert [len(graph.stages) for graph in of(run, GraphCompiled)] == [stages] * 4


def test_legacy_locations() -> None:
    run, _ = read(golden("ttlike.c02_item.head.legacy_locs"))
    first, second = of(run, GraphCompiled)
    places = {(p.frame.line, p.frame.function, p.modules) for p in first.places}
    assert places >= {(7, "forward", "Linear[L['s'].fc]"), (8, "forward", "")}
    assert second.places == ()  # After a break the legacy compile knows nothing.


def test_graphs_follow_their_compilations() -> None:
    run, _ = read(golden("ttlike.c03_dataif.head"))
    assert [(g.after, g.backend) for g in of(run, GraphCompiled)] == [
        ("1/0", "tt"),
        ("3/0", "tt"),
        ("4/0", "tt"),
        ("5/0", "tt"),
    ]


def test_causes_and_executions_of_torch_xla() -> None:
    run, _ = read(golden("xla_lazy.c06_markstep_loop"))
    causes = [graph.cause for graph in of(run, GraphCompiled)]
    assert causes == ["user torch_xla.sync"] * 3 + [
        "most likely user code trying to access tensor value before torch_xla.sync"
    ]
    assert sorted(body.count for body in of(run, GraphExecuted)) == [1, 1, 2, 4]
    places = [event.site.line for event, _ in run.of(GraphCompiled) if event.site]
    assert places == [21, 21, 21, 16]


def test_fallbacks_and_short_hashes() -> None:
    run, _ = read(golden("flags.c05_openxla_PT_XLA_DEBUG1"))
    assert {(body.told_by, body.ops) for body in of(run, FallbackOps)} == {
        ("dynamo", ("nanmedian", "special_bessel_j0")),
        ("profiler", ("aten::nanmedian.dim_values", "aten::special_bessel_j0")),
        ("profiler", ()),
    }
    assert {body.log_line for body in of(run, FallbackOps) if body.ops} == {103, 196}
    assert {len(graph.hash) for graph in of(run, GraphCompiled)} == {31, 32}


def test_recompiles_without_their_flag_are_inferred() -> None:
    run, _ = read(golden("t213.c01_print"))
    assert [(r.inferred, len(r.entries)) for r in of(run, Recompile)] == [(True, 1), (True, 2)]
    run, _ = read(golden("flags.c07_t213_recompiles"))
    (told,) = of(run, Recompile)
    assert not told.inferred
    failed = told.entries[0].failed[0]
    assert (failed.subject, failed.expected, failed.actual) == ("ids.size()[1]", "1", "2")


@pytest.mark.parametrize("name", ["t213.c04_nonzero", "xla_openxla.c04_nonzero"])
def test_skipped_frames_of_both_eras(name: str) -> None:
    run, _ = read(golden(name))
    (skipped,) = of(run, FrameSkipped)
    (broken,) = of(run, GraphBreak)
    assert (skipped.cause, skipped.gb_id, skipped.frame.line) == ("graph-break", "GB0036", 6)
    assert broken.outcome == "frame-eager"
    assert broken.gb_type == "Dynamic shape operator"


def test_ranks_come_apart() -> None:
    run, _ = read(golden("concurrent.dist_2rank_t213"))
    assert {(event.rank, event.pid) for event, _ in run.of(GraphBreak)} == {(0, 17105), (1, 17106)}
