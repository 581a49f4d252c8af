"""Counting causes, not messages."""

from __future__ import annotations

from builders import event, frame, run_of
from compilescope.knowledge.analysis.digest import digest
from compilescope.record.bodies import (
    CacheAccess,
    CacheEntryMiss,
    CompileFailed,
    CompileTime,
    FailedGuard,
    FrameSkipped,
    GraphBreak,
    GraphCaptured,
    Recompile,
    StanceChanged,
)
from compilescope.record.stack import CodeRef, Frame

CODE = CodeRef("/home/ada/project/model.py", 6, "forward")
REST = CodeRef("/home/ada/project/model.py", 6, "forward", resumed_at=9)


def a_break(number: int, **fields: object) -> object:
    body = GraphBreak(gb_type="Data-dependent branching", gb_id="GB0170", frame=CODE)
    return event(body, number=number, **{"stack": (frame(),), **fields})


def test_one_site_however_often_it_is_reported() -> None:
    other_rank = {"rank": 1, "pid": 101}
    seen = digest(run_of(a_break(1), a_break(2), a_break(3, **other_rank)))
    assert seen.break_events == 3
    assert [(s.line, s.column, s.count, s.ranks) for s in seen.sites] == [(8, 11, 3, (0, 1))]


def test_two_expressions_of_one_line_are_two_sites() -> None:
    seen = digest(run_of(a_break(1), a_break(2, stack=(frame(column=30, end_column=40),))))
    assert [site.column for site in seen.sites] == [11, 30]


def test_the_same_line_from_two_callers_is_one_site() -> None:
    seen = digest(
        run_of(a_break(1, stack=(frame(50), frame())), a_break(2, stack=(frame(60), frame())))
    )
    assert len(seen.sites) == 1


def test_a_break_that_costs_a_frame_may_hide_others() -> None:
    skipped = FrameSkipped(CODE, "graph-break", "Data-dependent branching", because="0.1")
    seen = digest(run_of(a_break(1), event(skipped, number=2)))
    assert seen.hidden_breaks_possible
    assert [(f.function, f.rest_only) for f in seen.eager_frames] == [("forward", False)]


def test_harmless_skips_are_no_loss_and_unexplained_ones_stand_apart() -> None:
    seen = digest(
        run_of(
            event(FrameSkipped(CODE, "harmless", "no tensors"), number=1),
            event(FrameSkipped(REST, "unexplained", "?"), number=2),
        )
    )
    assert seen.eager_frames == ()
    assert len(seen.unexplained_skips) == 1


def test_without_skip_reports_the_break_itself_tells() -> None:
    body = GraphBreak(gb_type="t", outcome="frame-eager", frame=CODE)
    seen = digest(run_of(event(body, number=1, stack=(frame(),))))
    assert [f.function for f in seen.eager_frames] == ["forward"]


def miss(*failed: FailedGuard) -> CacheEntryMiss:
    return CacheEntryMiss("0/0", failed)


def test_a_recompile_is_charged_to_the_entry_that_came_nearest() -> None:
    size = FailedGuard("x.size()[0] == 2", "x.size()[0]", "2", "3")
    dtype = FailedGuard("x.dtype == float32", "x.dtype", "float32", "float64")
    first = Recompile(CODE, (miss(size),))
    second = Recompile(CODE, (miss(dtype), miss(size, dtype)))
    [function] = digest(run_of(event(first, number=1), event(second, number=2))).recompiles
    assert function.count == 2
    assert [(c.subject, c.count) for c in function.causes] == [("x.size()[0]", 1), ("x.dtype", 1)]


def test_a_cache_that_grows_is_not_told_as_none_against_tensor() -> None:
    def sizes(name: str, was: int) -> list[FailedGuard]:
        made = (("size()[1]", was, 9), ("stride()[0]", 4 * was, 36))
        return [
            FailedGuard(f"{name}.{part} == {old}", f"{name}.{part}", str(old), str(new))
            for part, old, new in made
        ]

    none = [FailedGuard(f"{name} is None", name, "None", "Tensor") for name in ("k", "v")]
    first = Recompile(CODE, (miss(*none),))
    later = [
        Recompile(CODE, (miss(*sizes("k", was), *sizes("v", was)), miss(*none))) for was in (7, 8)
    ]
    events = [event(each, number=n) for n, each in enumerate([first, *later], 1)]
    [function] = digest(run_of(*events)).recompiles
    assert {c.subject: c.count for c in function.causes} == {"k": 1, "k.size()[1]": 2}


def test_the_attempt_that_hit_the_limit_is_no_recompile() -> None:
    guard = FailedGuard("n == 1", "n", "1", "2")
    done = Recompile(CODE, (miss(guard),))
    refused = Recompile(CODE, (miss(guard),), refused="limit")
    [function] = digest(run_of(event(done, number=1), event(refused, number=2))).recompiles
    assert (function.count, function.limit_hit) == (1, True)


def test_a_value_on_the_stack_is_called_by_the_expression_that_broke() -> None:
    broken = frame(9, source="    for _ in range(int(n)):", column=19, end_column=25)
    after = Recompile(REST, (miss(FailedGuard("___stack1 == 2", "___stack1", "2", "3")),))
    [function] = digest(run_of(a_break(1, stack=(broken,)), event(after, number=2))).recompiles
    assert (function.causes[0].subject, function.causes[0].guard) == ("int(n)", "int(n) == 2")


def test_a_compiled_torch_wrapper_is_shown_at_the_users_call() -> None:
    wrapper = CodeRef("/v/site-packages/torch/_dynamo/external_utils.py", 67, "inner")
    again = Recompile(wrapper, (miss(FailedGuard("n == 1", "n", "1", "2")),))
    [function] = digest(run_of(event(again, number=1, stack=(frame(40),)))).recompiles
    assert (function.line, function.function) == (40, "forward")


def test_a_backward_failure_finds_its_function_by_compile_id() -> None:
    forward = event(CompileTime(duration_ns=5, frame=CODE), number=1, compile_id="3/0_1")
    failed = CompileFailed("ValueError", "no", phase="backward")
    seen = digest(run_of(forward, event(failed, number=2, compile_id="3/0")))
    assert [(f.function, f.line, f.phase) for f in seen.failures] == [("forward", 6, "backward")]


def test_graphs_regions_times_and_caches_add_up() -> None:
    graph = GraphCaptured(stage="dynamo", ops=3, frame=CODE, region=CODE)
    rest = GraphCaptured(stage="dynamo", ops=2, frame=REST, region=CODE)
    lowered = GraphCaptured(stage="aot_forward", ops=9)
    seen = digest(
        run_of(
            *(event(b, number=n) for n, b in enumerate((graph, rest, lowered))),
            event(CompileTime(duration_ns=10**9, phases_us={"a_us": 5}), number=4),
            event(CompileTime(duration_ns=10**9, phases_us={"a_us": 6}), number=5),
            event(CacheAccess("fx_graph", "hit"), number=6),
            event(StanceChanged("force_eager"), number=7),
        )
    )
    assert (seen.graphs, seen.regions, seen.graph_ops) == (2, 1, 5)
    assert (seen.compile_seconds, seen.phases_seconds) == (2.0, {"a_us": 0.0})
    assert seen.caches["fx_graph"].hits == 1
    assert seen.stances == ("force_eager",)


def test_an_empty_run_is_a_run() -> None:
    seen = digest(run_of())
    assert (seen.graphs, seen.sites, seen.cut_short) == (0, (), False)


def test_the_frame_of_a_site_may_be_unknown() -> None:
    seen = digest(run_of(event(GraphBreak(gb_type="t"), number=1)))
    assert (seen.sites[0].file, seen.sites[0].line) == ("", 0)
    assert isinstance(frame(), Frame)
