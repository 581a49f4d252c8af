"""Two runs side by side, and the ranks of one."""

from __future__ import annotations

from builders import ROOT, event, frame, run_of
from compilescope.knowledge.analysis.comparison import (
    RunComparison,
    compare,
    with_doubts,
    with_relation,
)
from compilescope.knowledge.analysis.digest import digest
from compilescope.knowledge.analysis.ranks import compare_ranks
from compilescope.record.bodies import CompileTime, GraphBreak, GraphCaptured, ProcessStarted
from compilescope.record.event import Event
from compilescope.record.presence import Presence
from compilescope.record.run import Run
from compilescope.record.stack import CodeRef, Frame
from compilescope.report.comparison import comparison_document
from compilescope.report.render.terminal import to_text
from samples import full_run, ranks_run

CODE = CodeRef(f"{ROOT}/model.py", 6, "forward")


def broken_at(
    *frames: Frame,
    root: str = ROOT,
    gb_type: str = "Data-dependent branching",
    gb_id: str = "GB0170",
) -> Run:
    events = [
        event(GraphBreak(gb_type=gb_type, gb_id=gb_id, frame=CODE), number=n, stack=(at,))
        for n, at in enumerate(frames)
    ]
    return run_of(*events, root=root)


def compared(before: Run, after: Run) -> RunComparison:
    return compare(digest(before), digest(after))


def test_a_run_equals_itself() -> None:
    seen = compared(full_run(), full_run())
    assert seen.equal and seen.same > 0
    assert all(figure.before == figure.after for figure in seen.figures)


def test_a_cause_that_went_and_one_that_came() -> None:
    first = frame(8)
    second = frame(20, source="    while y.sum() > 0:", function="loop")
    seen = compared(broken_at(first), broken_at(second))
    assert [finding.line for finding in seen.gone] == [8]
    assert [finding.line for finding in seen.new] == [20]
    assert not seen.moved and not seen.equal


def test_lines_above_push_a_cause_down() -> None:
    seen = compared(broken_at(frame(8)), broken_at(frame(15)))
    assert [(pair.before.line, pair.after.line) for pair in seen.moved] == [(8, 15)]
    assert not seen.gone and not seen.new


def test_a_rewritten_line_that_breaks_as_before_has_moved() -> None:
    seen = compared(broken_at(frame(8)), broken_at(frame(8, source="        if mean(h) > 0:")))
    assert len(seen.moved) == 1 and not seen.gone and not seen.new


def with_torch(run: Run, torch: str) -> Run:
    started = ProcessStarted(argv=("model.py",), python="3.11", torch=torch, parent_pid=1)
    kept = [each for each in run.events if not isinstance(each.body, ProcessStarted)]
    return Run(run.header, [event(started, number=99), *kept], run.artifacts)


def test_another_torch_is_no_new_cause_for_having_other_words() -> None:
    old = with_torch(broken_at(frame(8), frame(20, source="    time.time()")), "2.11.0")
    clock = broken_at(
        frame(20, source="    time.time()"), gb_type="Call to a time function", gb_id="GB9193"
    )
    seen = compared(old, with_torch(clock, "2.15.0"))
    assert [(pair.before.line, pair.after.line) for pair in seen.retold] == [(20, 20)]
    assert [finding.line for finding in seen.gone] == [8] and not seen.new
    text = to_text(comparison_document(seen, (ROOT, ROOT)))
    assert "Under torch 2.15.0 instead of 2.11.0, better: graph breaks 2 -> 1." in text
    assert "Named otherwise" in text and "Call to a time function" in text
    # Under one torch it is another cause.
    seen = compared(with_torch(old, "2.15.0"), with_torch(clock, "2.15.0"))
    assert not seen.retold and not seen.other_torch and seen.new
    assert "instead of" not in to_text(comparison_document(seen, (ROOT, ROOT)))


def test_no_guess_where_two_lines_could_be_meant() -> None:
    one, two = frame(8, source="if a > 0:"), frame(9, source="if b > 0:")
    three, four = frame(8, source="if c > 0:"), frame(9, source="if d > 0:")
    seen = compared(broken_at(one, two), broken_at(three, four))
    assert len(seen.gone) == len(seen.new) == 2 and not seen.moved


def test_another_checkout_is_no_move() -> None:
    there = frame(8, file="/elsewhere/copy/model.py")
    seen = compared(broken_at(frame(8)), broken_at(there, root="/elsewhere/copy"))
    assert seen.equal and seen.same == 1


def test_more_often_is_told() -> None:
    seen = compared(broken_at(frame(8)), broken_at(frame(8), frame(8)))
    assert [(pair.before.count, pair.after.count) for pair in seen.changed] == [(1, 2)]


def test_figures() -> None:
    graph = GraphCaptured(stage="dynamo", ops=3, frame=CODE, region=CODE)
    seen = compared(
        run_of(event(graph, number=1), event(graph, number=2)),
        run_of(event(graph, number=1), event(CompileTime(2 * 10**9), number=2)),
    )
    figures = {figure.name: (figure.before, figure.after) for figure in seen.figures}
    assert figures["graphs"] == (2, 1)
    assert figures["compile time"] == (0.0, 2.0)
    assert figures["coverage"] == (None, None)


def test_ranks_that_part_ways() -> None:
    report = compare_ranks(ranks_run())
    assert report is not None
    (apart,) = report.divergences
    assert (apart.rank, apart.step, apart.expected) == (1, 1, "")
    assert "broke the graph" in apart.found
    assert [finding.ranks for finding in report.partial] == [(1,)]
    assert [(rank.rank, rank.sites) for rank in report.ranks] == [(0, 0), (1, 1)]


def test_one_rank_has_nothing_to_compare() -> None:
    assert compare_ranks(full_run()) is None


def test_ranks_that_did_the_same() -> None:
    run = ranks_run()
    alike = [e for e in run.events if not isinstance(e.body, GraphBreak)]
    report = compare_ranks(Run(run.header, alike, run.artifacts))
    assert report is not None and not report.divergences and not report.partial


def renamed(*frames: Frame, name: str = "trainer.py") -> Run:
    """The same, under another name and a line further down."""
    moved = [
        Frame(f"{ROOT}/{name}", at.line + 1, at.function, at.column, at.end_column, at.source)
        for at in frames
    ]
    return broken_at(*moved)


SITES = (
    frame(8),
    frame(12, source="        if h.sum() > 0:"),
    frame(20, source="    while y.sum() > 0:", function="loop"),
)


def test_a_renamed_file_keeps_its_causes() -> None:
    seen = compared(broken_at(*SITES), renamed(*SITES))
    assert not seen.gone and not seen.new and not seen.equal
    assert [(pair.before.line, pair.after.line) for pair in seen.moved] == [
        (8, 9),
        (12, 13),
        (20, 21),
    ]
    [pair] = seen.renamed
    assert (pair.before, pair.after, pair.causes) == ("model.py", "trainer.py", 3)
    text = to_text(comparison_document(seen, (ROOT, ROOT)))
    assert "model.py is now trainer.py: 3 causes moved from model.py." in text
    assert "trainer.py:9 moved from model.py:8" in text


def test_what_else_changed_in_a_renamed_file_is_told() -> None:
    rewritten = frame(20, source="    while norm(y) > 0:", function="loop")
    more = frame(30, source="    z.item()", function="other")
    seen = compared(broken_at(*SITES), renamed(SITES[1], rewritten, more))
    assert [finding.function for finding in seen.new] == ["other"]
    assert [finding.line for finding in seen.gone] == [8]
    assert [(pair.before.line, pair.after.line) for pair in seen.moved] == [(12, 13), (20, 21)]


def test_a_file_that_is_still_there_was_not_renamed() -> None:
    seen = compared(broken_at(SITES[0], SITES[2]), run_of(*_both(SITES[2], SITES[0])))
    assert not seen.renamed
    assert [finding.line for finding in seen.gone] == [8]
    assert [finding.line for finding in seen.new] == [9]


def _both(old: Frame, moved: Frame) -> list[Event]:
    return [*broken_at(old).events[1:-1], *renamed(moved).events[1:-1]]


def test_no_guess_between_two_new_names() -> None:
    events = [e for name in ("a.py", "b.py") for e in renamed(*SITES, name=name).events[1:-1]]
    seen = compared(broken_at(*SITES), run_of(*events))
    assert len(seen.gone) == 3 and len(seen.new) == 6 and not seen.renamed


def test_programs_with_nothing_in_common_are_no_change_of_one() -> None:
    one, other = broken_at(frame(8)), broken_at(frame(9, file=f"{ROOT}/other.py", function="g"))
    apart = [
        run_of(event(GraphCaptured("dynamo", text="", nodes=1, ops=1, frame=CodeRef(file, 1, "f"))))
        for file in (f"{ROOT}/model.py", "/elsewhere/other.py")
    ]
    seen = with_relation(compared(*apart), *apart)
    assert seen.unrelated
    assert "no file and no cause in common" in " ".join(drawn(seen).split())
    # The same name in another folder, a cause in common, or nothing known: no such warning.
    moved = run_of(
        event(
            GraphCaptured(
                "dynamo", text="", nodes=1, ops=1, frame=CodeRef("/elsewhere/model.py", 1, "f")
            )
        )
    )
    assert not with_relation(compared(apart[0], moved), apart[0], moved).unrelated
    assert not with_relation(compared(one, one), *apart).unrelated
    assert not with_relation(compared(one, other), one, other).unrelated


def test_a_record_that_is_not_whole_is_told_and_equals_nothing() -> None:
    """What it lacks need not be gone."""
    whole, cut = broken_at(frame(8)), broken_at(frame(8))
    cut.torn = True
    seen = with_doubts(compared(whole, cut), whole, cut)
    told = " ".join(drawn(seen).split())
    assert "is not recorded to its end: an event file ends in the middle of a line." in told
    assert "No difference in what was recorded: 1 cause in both." in told
    assert "Both runs have the same causes" not in told
    assert with_doubts(compared(whole, whole), whole, whole).doubts == ()


def test_a_run_whose_events_are_gone_is_no_empty_program() -> None:
    whole = broken_at(frame(8))
    bare = Run(whole.header, [], whole.artifacts, presence=Presence(torch=frozenset({100})))
    (doubt,) = with_doubts(compared(whole, bare), whole, bare).doubts
    assert doubt.endswith("its event files are empty.")


def test_the_figures_lead() -> None:
    seen = compared(full_run(), full_run())
    names = [figure.name for figure in seen.figures[:4]]
    assert names == ["graph breaks", "functions run eagerly", "recompiles", "compile time"]
    text = drawn(seen)
    assert text.index("compile time") < text.index("Both runs have the same causes")


def drawn(seen: RunComparison) -> str:
    return to_text(comparison_document(seen, (ROOT, ROOT)))
