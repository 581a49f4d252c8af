"""Why each graph of a log exists, and what the log itself is worth."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from builders import ROOT, event, frame, run_of
from compilescope.knowledge.analysis.digest import digest
from compilescope.knowledge.analysis.figures import figures
from compilescope.knowledge.analysis.logged.answers import Answers, answers
from compilescope.logs.reader import read_logs
from compilescope.record.bodies import (
    CompileFailed,
    FallbackOps,
    FrameSkipped,
    GraphBreak,
    GraphCaptured,
    GraphCompiled,
    LogRead,
    Recompile,
)
from compilescope.record.event import Event
from compilescope.record.logged import OpPlace
from compilescope.record.run import Run, read_run
from compilescope.record.stack import CodeRef, Frame
from logs.consoles import GOLDEN, golden_names

MODEL = f"{ROOT}/model.py"
FORWARD = CodeRef(MODEL, 6, "forward")
BRIDGE = "/venv/lib/python3.11/site-packages/torch_xla/_dynamo/dynamo_bridge.py"
ACCESS = "most likely user code trying to access tensor value before torch_xla.sync"
COMPILES = "dynamo is compiling a FX graph to HLO"
CLASSES: dict[str, dict[str, int]] = {
    "concurrent.dist_2rank_t213": {"region": 2, "graph-break": 2},
    "flags.c01_openxla_noflags": {},
    "flags.c02_t213_customformat": {"region": 1, "graph-break": 1},
    "flags.c05_openxla_PT_XLA_DEBUG1": {"cpu-fallback": 4, "probe": 2},
    "flags.c07_t213_recompiles": {},
    "t213.c00_clean": {"region": 1},
    "t213.c01_print": {"region": 1, "graph-break": 1, "recompile": 2},
    "t213.c02_item": {"region": 1, "graph-break": 1},
    "t213.c03_dataif": {"region": 1, "graph-break": 3},
    "t213.c04_nonzero": {},
    "t213.c08_numpy_log": {"region": 1, "graph-break": 2},
    "tt_backend_cpu.c02_item": {"region": 1, "graph-break": 1},
    "ttlike.c00_clean.head": {"region": 1},
    "ttlike.c01_print.head": {"region": 1, "graph-break": 1, "override-echo": 1},
    "ttlike.c02_item.head": {"region": 1, "graph-break": 1},
    "ttlike.c02_item.head.legacy_locs": {"region": 1, "graph-break": 1},
    "ttlike.c04_nonzero.head.truncated_tail": {"override-echo": 5, "eager": 1},
    "xla_lazy.c02_item": {"eager": 1, "sync": 1},
    "xla_lazy.c05_fallback": {"eager": 2, "sync": 1},
    "xla_lazy.c06_markstep_loop": {"sync": 3, "eager": 1},
    "xla_openxla.c00_clean": {"region": 1},
    "xla_openxla.c01_print": {"region": 1, "graph-break": 1, "sync": 1},
    "xla_openxla.c02_item": {"region": 1, "graph-break": 1},
    "xla_openxla.c03_dataif": {"region": 1, "graph-break": 2},
    "xla_openxla.c04_nonzero": {"eager": 3, "sync": 1},
}
C03 = {"region": 1, "graph-break": 3}
AT_LEAST = (
    "flags.c01_openxla_noflags",
    "flags.c07_t213_recompiles",
    "ttlike.c04_nonzero.head.truncated_tail",
)


def read(folder: Path, name: str) -> Run:
    return read_run(read_logs([str(GOLDEN / f"{name}.log.xz")], folder).path)


def found_in(run: Run) -> Answers:
    found = answers(run, digest(run))
    assert found is not None
    return found


@pytest.mark.parametrize("name", golden_names())
def test_every_shared_log(name: str, tmp_path: Path) -> None:
    run = read(tmp_path, name)
    found, seen = found_in(run), digest(run)
    # One rule says how many graphs there are and how many would do.
    assert (len(found.graphs), found.expected) == (seen.graphs, seen.regions)
    assert figures(run).graphs == seen.graphs
    assert figures(run).breaks == len(seen.sites) == len(found.breaks)
    assert found.classes == CLASSES.get(name, C03 if "c03" in name else None)
    assert sum(found.classes.values()) == len(found.graphs)
    assert found.at_least == (name in AT_LEAST)
    assert sum(each.graphs for each in found.breaks) <= len(found.graphs)


def test_what_a_break_costs(tmp_path: Path) -> None:
    found = found_in(read(tmp_path, "ttlike.c04_nonzero.head.truncated_tail"))
    (cause,) = found.breaks
    assert (cause.line, cause.gb_id, cause.events, cause.echoes, cause.graphs) == (
        10,
        "GB0036",
        1,
        1,
        6,
    )
    assert found.expected == 1


def test_breaks_without_a_line_of_dynamo(tmp_path: Path) -> None:
    found = found_in(read(tmp_path, "ttlike.c03_dataif.head.no_TORCH_LOGS"))
    assert {(each.line, each.graphs, each.inferred) for each in found.breaks} == {
        (8, 2, True),
        (17, 1, True),
    }
    assert found.verdict.rerun.startswith("TORCH_LOGS=+dynamo,recompiles TTXLA_LOGGER_LEVEL=DEBUG")
    assert found.verdict.rerun.endswith(
        "python /home/user/models/c03_dataif.py 2>&1 | tee ttlike.c03_dataif.head.no_TORCH_LOGS.log"
    )


def log(**fields: object) -> Event:
    defaults: dict[str, object] = {
        "source": "model.log",
        "formats": ("torch-logs", "torch-xla"),
        "flags": ("PT_XLA_DEBUG_LEVEL=2", "TORCH_LOGS=+dynamo"),
    }
    return event(LogRead(**{**defaults, **fields}), number=10**6)  # type: ignore[arg-type]


def captured(number: int, compile_id: str, code: CodeRef = FORWARD) -> Event:
    body = GraphCaptured("dynamo", frame=code, region=FORWARD, backend="openxla")
    return event(body, number=number, compile_id=compile_id)


def compiled(number: int, cause: str = COMPILES, *stack: Frame, **fields: object) -> Event:
    body = GraphCompiled("torch_xla", cause=cause, **fields)  # type: ignore[arg-type]
    return event(body, number=number, stack=stack)


def kinds(*events: Event) -> list[str]:
    return [graph.kind for graph in found_in(run_of(*events, log())).graphs]


def test_one_graph_of_dynamo_in_pieces() -> None:
    assert kinds(captured(1, "0/0"), compiled(2, after="0/0"), compiled(3, after="0/0")) == [
        "region",
        "cpu-fallback",
    ]


def test_a_recompile() -> None:
    assert kinds(
        captured(1, "0/0"), compiled(2, after="0/0"), captured(3, "0/1"), compiled(4, after="0/1")
    ) == ["region", "recompile"]


def test_the_backward_half() -> None:
    engine = Frame(
        "/venv/lib/python3.11/site-packages/torch/autograd/graph.py",
        865,
        "_engine_run_backward",
        origin="torch",
    )
    events = [captured(1, "0/0"), compiled(2, after="0/0"), compiled(3, COMPILES, engine)]
    assert kinds(*events) == ["region", "backward"]
    assert found_in(run_of(*events, log())).expected == 2


def test_a_probe_is_told_from_a_read() -> None:
    bridge = [
        Frame(BRIDGE, 699, name, origin="torch")
        for name in ("partition_fx_graph_for_cpu_fallback", "run_node")
    ]
    assert kinds(compiled(1, ACCESS, *bridge), compiled(2, ACCESS, frame(12))) == ["probe", "eager"]


def test_old_words_for_a_sync() -> None:
    assert kinds(
        compiled(1, "user mark_step", frame(20)),
        compiled(2, "mark_step in parallel loader at step end"),
        compiled(3, "most likely user code trying to access tensor value before mark_step"),
    ) == ["sync", "sync", "eager"]


def test_a_read_in_code_that_a_break_gave_up() -> None:
    broken = event(
        GraphBreak("Dynamic shape operator", frame=FORWARD), number=1, stack=(frame(10),)
    )
    skipped = event(FrameSkipped(FORWARD, "graph-break", because="0.1"), number=2)
    run = run_of(broken, skipped, compiled(3, ACCESS, frame(10)), log())
    found = found_in(run)
    assert [graph.kind for graph in found.graphs] == ["eager"]
    assert found.breaks[0].graphs == 1 and found.expected == 1


def test_a_failed_compilation() -> None:
    failed = compiled(2, after="0/0", error="failed to legalize operation 'ttir.sort'")
    assert kinds(captured(1, "0/0"), failed) == ["failed"]
    raised = event(CompileFailed("BackendCompilerFailed", "no"), number=2, compile_id="0/0")
    run = run_of(captured(1, "0/0"), raised, log(formats=("torch-logs",)))
    assert [graph.kind for graph in found_in(run).graphs] == ["failed"]


def test_a_graph_nobody_explains_is_unknown() -> None:
    assert kinds(compiled(1), compiled(2)) == ["region", "unknown"]
    assert kinds(compiled(1, "a cause of a later release")) == ["unknown"]


def test_graphs_before_the_first_line_of_dynamo() -> None:
    """The log has its lines, further down: nothing says where these graphs came from."""

    def made(number: int, after: str | None = None) -> Event:
        place = OpPlace(frame(number), 4)
        body = GraphCompiled("tt-xla", name=f"Graph.{number}", places=(place,), after=after)
        return event(body, number=number)

    told = log(formats=("torch-logs", "tt-xla"))
    found = found_in(run_of(made(1), made(2), captured(3, "0/0"), made(4, "0/0"), told))
    early = "no Dynamo line comes before it in the log"
    assert [(graph.kind, graph.words) for graph in found.graphs] == [
        ("unknown", early),
        ("unknown", early),
        ("region", "compile id 0/0"),
    ]
    assert found.expected == found.classes["region"] == 1
    lost = found_in(run_of(captured(1, "0/0"), made(2, "0/0"), made(3, "1/0"), told)).graphs[-1]
    assert (lost.kind, lost.words) == ("unknown", "the log lacks Dynamo's graph 1/0")


def test_as_many_are_needed_as_the_table_has_regions() -> None:
    """torch_xla says of the first that Dynamo handed it over, and Dynamo's lines begin later."""
    handed = compiled(1, COMPILES)
    later = [captured(2, "0/0"), compiled(3, COMPILES, after="0/0")]
    found = found_in(run_of(handed, *later, log()))
    assert found.classes == {"region": 2} and found.expected == 2


def test_parts_of_a_function_whose_beginning_is_cut_off_are_one() -> None:
    """A log that begins between two breaks: each part would count as a function of its own."""

    def made(number: int, code: CodeRef) -> Event:
        region = msgspec.structs.replace(code, resumed_at=None)
        body = GraphCaptured("dynamo", frame=code, region=region, backend="openxla")
        return event(body, number=number, compile_id=f"{number}/0")

    parts = [
        made(n, CodeRef("model.py", line, "forward", resumed_at=line))
        for n, line in ((1, 8), (2, 17))
    ]
    found = found_in(run_of(*parts, log(cut_head=True)))
    assert len(found.graphs) == 2 and found.expected == 1
    begun = made(3, CodeRef("model.py", 6, "forward"))
    assert found_in(run_of(*parts, begun, log())).expected == 1


def test_the_same_lines_again_are_a_recompile() -> None:
    place = OpPlace(frame(7), 4)
    graphs = [
        event(GraphCompiled("tt-xla", name=f"Graph.{n}", places=(place,)), number=n)
        for n in range(1, 4)
    ]
    run = run_of(*graphs, log(formats=("tt-xla",), flags=("TTXLA_LOGGER_LEVEL=DEBUG",)))
    assert found_in(run).classes == {"recompile": 2, "region": 1}


def test_fallback_operators_cut_a_graph() -> None:
    assert kinds(event(FallbackOps(("sort",), "dynamo")), compiled(1), compiled(2)) == [
        "region",
        "cpu-fallback",
    ]


@pytest.mark.parametrize(
    ("fields", "at_least", "lacks"),
    [
        ({}, False, []),
        ({"cut_head": True}, True, []),
        ({"cut_tail": True}, True, []),
        ({"interleaved": "ambiguous"}, True, []),
        ({"interleaved": "tagged"}, False, []),
        ({"flags": ("TORCH_LOGS=+dynamo", "PT_XLA_DEBUG_LEVEL=1")}, True, ["PT_XLA_DEBUG_LEVEL=2"]),
        ({"flags": ("PT_XLA_DEBUG=1",)}, False, ["TORCH_LOGS=+dynamo"]),
        (
            {"formats": ("tt-xla",), "flags": ("TTXLA_LOGGER_LEVEL=VERBOSE",)},
            False,
            ["TORCH_LOGS=+dynamo", "XLA_HLO_DEBUG=1"],
        ),
        ({"formats": ("torch-trace",), "flags": ()}, False, []),
    ],
)
def test_what_a_log_is_worth(fields: dict[str, object], at_least: bool, lacks: list[str]) -> None:
    verdict = found_in(run_of(log(**fields))).verdict
    assert verdict.at_least == at_least
    assert [lack.setting for lack in verdict.lacks] == lacks
    assert bool(verdict.rerun) == bool(lacks or verdict.cut_head or verdict.cut_tail or at_least)


def test_inferred_recompiles_ask_for_their_guards() -> None:
    run = run_of(event(Recompile(FORWARD, inferred=True), number=1, compile_id="0/1"), log())
    (lack,) = found_in(run).verdict.lacks
    assert lack.setting == "TORCH_LOGS=+dynamo,recompiles"


def test_a_live_run_is_no_log() -> None:
    run = run_of()
    assert answers(run, digest(run)) is None
