"""The compile tree tells the truth: parts under their breaks, callees under their callers."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from builders import ROOT, event, frame, run_of
from compilescope.knowledge.analysis.tree.compile_tree import compile_tree
from compilescope.knowledge.analysis.tree.frames import CompileTree, TreeFrame
from compilescope.knowledge.analysis.tree.parents import Extents
from compilescope.knowledge.findings.breaks import break_sites
from compilescope.knowledge.findings.compile_ids import without_attempt
from compilescope.knowledge.findings.eager import eager_frames
from compilescope.record.bodies import (
    CacheEntryMiss,
    CompileFailed,
    CompileTime,
    FailedGuard,
    FrameSkipped,
    GraphBreak,
    GraphCaptured,
    Recompile,
    SourceSeen,
)
from compilescope.record.event import Event
from compilescope.record.run import Run
from compilescope.record.stack import CodeRef, Frame
from compilescope.report.blocks import Branch, Tree, plain
from compilescope.report.section import Reading
from compilescope.report.sections.tree import SECTION

FILE = f"{ROOT}/model.py"
MAIN = frame(50, function="main", source="model(x)")


def at(line: int, function: str = "forward", column: int = 4) -> Frame:
    return frame(line, function=function, column=column, source="    call(x)")


def code(line: int = 6, function: str = "forward", resumed_at: int | None = None) -> CodeRef:
    return CodeRef(FILE, line, function, resumed_at)


class Story:
    """Events one after the other, as a process would tell them."""

    def __init__(self, **fields: Any) -> None:
        self._fields = fields
        self._times = itertools.count(1000, 10)
        self.events: list[Event] = []

    def tell(self, body: Any, compile_id: str | None = None, stack: tuple[Frame, ...] = ()) -> None:
        told = event(
            body, time_ns=next(self._times), compile_id=compile_id, stack=stack, **self._fields
        )
        self.events.append(told)

    def compiled(
        self, compile_id: str, what: CodeRef, *callers: Frame, ops: int = 3, ended: bool = False
    ) -> None:
        graph = GraphCaptured(stage="dynamo", ops=ops, frame=what, ended_by_break=ended)
        self.tell(graph, compile_id)
        self.tell(CompileTime(duration_ns=5, frame=what), compile_id, callers)

    def broken(
        self, compile_id: str, what: CodeRef, *stack: Frame, outcome: str = "resumed"
    ) -> None:
        body = GraphBreak("Data-dependent", "GB0170", frame=what, outcome=outcome)  # type: ignore[arg-type]
        self.tell(body, compile_id, stack)


def by_id(tree: CompileTree, compile_id: str) -> TreeFrame:
    for one in tree.frames:
        if any(compile_id in told.compile_ids for told in one.compilations):
            return one
    raise AssertionError(f"{compile_id} is not in the tree")


def under(tree: CompileTree, child: TreeFrame) -> tuple[TreeFrame | None, int | None]:
    """The parent, and the line of the break that the child hangs under."""
    number = tree.frames.index(child)
    if child.parent is None:
        return None, None
    parent = tree.frames[child.parent]
    for broken in parent.breaks:
        if number in broken.frames:
            return parent, broken.line
    assert number in parent.frames
    return parent, None


def assert_sound(run: Run, tree: CompileTree) -> None:
    """Each frame hangs at one place, and every compilation and eager frame is there."""
    below = [n for one in tree.frames for n in one.frames]
    below += [n for one in tree.frames for broken in one.breaks for n in broken.frames]
    assert sorted([*below, *tree.roots]) == list(range(len(tree.frames)))
    told = {without_attempt(e.compile_id) for e in run.events if e.compile_id is not None}
    shown = {i for one in tree.frames for c in one.compilations for i in c.compile_ids}
    assert told == shown | {lost.compile_id for lost in tree.elsewhere if lost.compile_id}
    eager = {(f.code.file, f.code.line, f.code.function) for f in tree.frames if f.eager}
    assert {(e.file, e.line, e.function) for e in eager_frames(run)} <= eager
    sites = {site.fingerprint for site in break_sites(run)}
    assert {b.fingerprint for one in tree.frames for b in one.breaks} == sites


def test_an_empty_run_has_an_empty_tree() -> None:
    tree = compile_tree(run_of())
    assert (tree.frames, tree.roots, tree.elsewhere) == ((), (), ())


def test_the_rest_hangs_under_the_break_it_resumes_after() -> None:
    story = Story()
    story.broken("0/0", code(), MAIN, at(8))
    story.compiled("0/0_1", code(), MAIN, ended=True)
    story.broken("1/0", code(resumed_at=8), MAIN, at(12))
    story.compiled("1/0_1", code(resumed_at=8), MAIN, at(8), ended=True)
    story.compiled("2/0", code(resumed_at=12), MAIN, at(12))
    run = run_of(*story.events)
    tree = compile_tree(run)
    assert_sound(run, tree)
    first, second, third = (by_id(tree, number) for number in ("0/0", "1/0", "2/0"))
    assert under(tree, second) == (first, 8)
    assert under(tree, third) == (second, 12)
    assert tree.roots == (0,)
    assert first.called_from == MAIN


def test_two_branches_after_one_break_and_a_rest_that_they_share() -> None:
    story = Story()
    story.broken("0/0", code(), MAIN, at(8))
    story.compiled("0/0", code(), MAIN)
    story.broken("1/0", code(resumed_at=8), MAIN, at(12))
    story.compiled("1/0", code(resumed_at=8), MAIN, at(8))
    story.compiled("2/0", code(resumed_at=12), MAIN, at(12))
    story.broken("3/0", code(resumed_at=8), MAIN, at(12))
    story.compiled("3/0", code(resumed_at=8), MAIN, at(8))
    run = run_of(*story.events)
    tree = compile_tree(run)
    assert_sound(run, tree)
    other = by_id(tree, "3/0")
    assert under(tree, other) == (by_id(tree, "0/0"), 8)
    shared = other.breaks[0].goes_on_in
    assert shared is not None
    assert tree.frames[shared] is by_id(tree, "2/0")


def test_a_callee_hangs_under_the_break_that_let_go_of_it() -> None:
    story = Story()
    story.broken("0/0", code(), MAIN, at(8), at(22, "callee"))
    story.compiled("0/0_1", code(), MAIN)
    story.compiled("1/0", code(20, "callee"), MAIN, at(8))
    story.compiled("2/0", code(resumed_at=8), MAIN, at(8))
    tree = compile_tree(run_of(*story.events))
    caller = by_id(tree, "0/0")
    assert under(tree, by_id(tree, "1/0")) == (caller, 8)
    assert under(tree, by_id(tree, "2/0")) == (caller, 8)
    assert (caller.breaks[0].line, caller.breaks[0].site_line) == (8, 22)


def test_a_callee_of_an_eager_function_hangs_in_it() -> None:
    story = Story()
    story.broken("0/0", code(), MAIN, at(8), outcome="frame-eager")
    story.tell(CompileTime(duration_ns=5, frame=code(), ok=False), "0/0", (MAIN,))
    story.tell(FrameSkipped(code(), "graph-break", "Data-dependent", because="0.1"), None, (MAIN,))
    story.compiled("1/0", code(20, "callee"), MAIN, at(9), at(40, "between"))
    run = run_of(*story.events)
    tree = compile_tree(run)
    assert_sound(run, tree)
    eager, callee = by_id(tree, "0/0"), by_id(tree, "1/0")
    assert [reason.cause for reason in eager.eager] == ["graph-break"]
    assert under(tree, callee) == (eager, None)
    assert [call.function for call in callee.through] == ["between"]


def test_a_function_of_the_same_name_further_up_is_not_the_caller() -> None:
    """The text of the file tells that line 30 is in another `forward`, which is not compiled."""
    from compilescope.record.artifacts import artifact_name

    text = "\n".join(
        ["class A:", "    def forward(self, x):", "        return x"]
        + [""] * 20
        + ["class B:", "    def forward(self, x):", "        return self.a(x)"]
    )
    story = Story()
    story.compiled("0/0", code(2), MAIN)
    story.compiled("1/0", code(60, "callee"), MAIN, at(26))
    run = run_of(*story.events)
    assert under(compile_tree(run), by_id(compile_tree(run), "1/0"))[0] is not None
    seen = event(SourceSeen(FILE, artifact_name(text, "py")), number=1)
    told = run_of(*story.events, seen)
    told.artifacts.put(text, "py")
    tree = compile_tree(told)
    assert by_id(tree, "1/0").parent is None


def test_what_torch_itself_calls_hangs_under_torchs_frame() -> None:
    inner = CodeRef("/lib/python3.11/site-packages/torch/_dynamo/external_utils.py", 67, "inner")
    story = Story()
    story.compiled("0/0", inner, MAIN)
    story.compiled("1/0", code(), MAIN)
    tree = compile_tree(run_of(*story.events))
    assert under(tree, by_id(tree, "1/0"))[0] is by_id(tree, "0/0")
    # Another call in the same line is not in torch's frame.
    story.compiled("2/0", code(30, "other"), frame(50, function="main", column=40))
    tree = compile_tree(run_of(*story.events))
    assert by_id(tree, "2/0").parent is None


def test_recompiles_tell_what_changed() -> None:
    story = Story()
    story.compiled("0/0", code(), MAIN)
    guard = FailedGuard("x.size()[0] == 2", "x.size()[0]", "2", "3")
    story.tell(Recompile(code(), (CacheEntryMiss("0/0", (guard,)),)), "0/1", (MAIN,))
    story.compiled("0/1", code(), frame(51, function="main"))
    refused = Recompile(code(), (CacheEntryMiss("0/1", (guard,)),), refused="limit")
    story.tell(refused, "0/2", (MAIN,))
    story.tell(FrameSkipped(code(), "recompile-limit", "too many"), None, (MAIN,))
    run = run_of(*story.events)
    tree = compile_tree(run)
    assert_sound(run, tree)
    (one,) = tree.frames
    assert [c.recompiled for c in one.compilations] == [
        "", "x.size()[0]: expected 2, got 3", "x.size()[0]: expected 2, got 3",
    ]  # fmt: skip
    assert [c.refused for c in one.compilations] == ["", "", "limit"]
    assert [c.called_from and c.called_from.line for c in one.compilations] == [None, 51, None]
    assert [reason.cause for reason in one.eager] == ["recompile-limit"]


def test_the_value_of_a_broken_expression_has_its_authors_name() -> None:
    story = Story()
    site = frame(8, source="    n = x.item()", column=8, end_column=16)
    story.broken("0/0", code(), MAIN, site)
    story.compiled("0/0", code(), MAIN)
    story.compiled("1/0", code(resumed_at=8), MAIN, site)
    guard = FailedGuard("___stack0 == 2", "___stack0", "2", "3")
    body = Recompile(code(resumed_at=8), (CacheEntryMiss("1/0", (guard,)),))
    story.tell(body, "1/1", (MAIN, site))
    tree = compile_tree(run_of(*story.events))
    told = by_id(tree, "1/1").compilations[-1]
    assert told.recompiled == "x.item(): expected 2, got 3"


def test_failures_and_backward() -> None:
    story = Story()
    story.compiled("0/0", code(), MAIN)
    story.tell(CompileFailed("ValueError", "no", phase="backward"), "0/0")
    story.tell(CompileTime(duration_ns=3, phase="backward", ok=False), "0/0")
    story.compiled("1/0", code(20, "other"), MAIN)
    story.tell(CompileTime(duration_ns=3, phase="backward"), "1/0")
    tree = compile_tree(run_of(*story.events))
    failed, fine = (by_id(tree, i).compilations[0] for i in ("0/0", "1/0"))
    assert (failed.backward, failed.failures) == ("failed", ("backward failed: ValueError",))
    assert (fine.backward, fine.duration_ns) == ("compiled", 8)


def test_ranks_that_look_the_same_are_one() -> None:
    def told(**fields: Any) -> list[Event]:
        story = Story(**fields)
        story.broken("0/0", code(), MAIN, at(8))
        story.compiled("0/0", code(), MAIN)
        story.compiled("1/0", code(resumed_at=8), MAIN, at(8))
        if fields["rank"] == 1:
            story.compiled("2/0", code(30, "only_here"), MAIN)
        return story.events

    run = run_of(*told(pid=100, rank=0), *told(pid=101, rank=1))
    tree = compile_tree(run)
    assert_sound(run, tree)
    assert [tree.frames[root].ranks for root in tree.roots] == [(0, 1), (1,)]
    assert len(tree.frames) == 3
    assert "on ranks 0, 1" in drawn(run)


def test_ranks_that_differ_stay_apart() -> None:
    one, two = Story(pid=100, rank=0), Story(pid=101, rank=1)
    one.compiled("0/0", code(), MAIN, ops=3)
    two.compiled("0/0", code(), MAIN, ops=4)
    tree = compile_tree(run_of(*one.events, *two.events))
    assert [tree.frames[root].ranks for root in tree.roots] == [(0,), (1,)]


def test_after_a_reset_ids_begin_anew() -> None:
    before, after = Story(epoch=0), Story(epoch=1)
    before.compiled("0/0", code(), MAIN)
    after.compiled("0/0", code(30, "other"), MAIN)
    tree = compile_tree(run_of(*before.events, *after.events))
    assert sorted(one.code.function for one in tree.frames) == ["forward", "other"]
    # The very same again is one, and says so.
    again = Story(epoch=1)
    again.compiled("0/0", code(), MAIN)
    tree = compile_tree(run_of(*before.events, *again.events))
    assert [one.times for one in tree.frames] == [2]


def test_what_cannot_be_placed_is_listed() -> None:
    run = run_of(
        event(GraphCaptured(stage="aot_forward"), compile_id="7/0"),
        event(GraphBreak("Something"), stack=(at(8),)),
        event(CompileTime(duration_ns=4)),
    )
    tree = compile_tree(run)
    assert tree.frames == ()
    assert [(lost.compile_id, lost.line) for lost in tree.elsewhere] == [
        ("7/0", 0), (None, 8), (None, 0),
    ]  # fmt: skip
    assert "Unplaced" in drawn(run)


def drawn(run: Run) -> str:
    from compilescope.report.blocks import Document, Part
    from compilescope.report.render.terminal import to_text

    blocks = tuple(SECTION.build(Reading(run, full=True)))
    return to_text(Document("", "", (Part("tree", "", blocks),)), width=300)


def test_a_chain_of_a_thousand_breaks_can_be_walked_and_drawn() -> None:
    story = Story()
    for number in range(1000):
        what = code(resumed_at=number + 10 if number else None)
        line = number + 11
        story.broken(f"{number}/0", what, MAIN, at(line))
        callers = (MAIN, at(line - 1)) if number else (MAIN,)
        story.compiled(f"{number}/0", what, *callers)
    run = run_of(*story.events)
    tree = compile_tree(run)
    assert len(tree.frames) == 1000
    assert [one.parent for one in tree.frames] == [None, *range(999)]
    text = drawn(run)
    assert "600 functions and parts of functions are not drawn" in text
    assert "399/0" in text
    assert "400/0" not in text


def test_many_entry_points_all_get_some_room() -> None:
    story = Story()
    for number in range(150):
        story.compiled(f"{number}/0", code(10 * number + 1, f"f{number}"), MAIN)
    text = drawn(run_of(*story.events))
    assert all(f"f{number}" in text for number in range(150))


def test_breaks_link_to_their_explanation() -> None:
    story = Story()
    story.broken("0/0", code(), MAIN, at(8))
    story.compiled("0/0", code(), MAIN)
    run = run_of(*story.events)
    (tree,) = (b for b in SECTION.build(Reading(run, full=True)) if isinstance(b, Tree))
    (site,) = break_sites(run)

    def spans(branches: tuple[Branch, ...]) -> list[str]:
        return [s.target for b in branches for s in b.words] + [
            target for b in branches for target in spans(b.branches)
        ]

    assert site.fingerprint in spans(tree.branches)
    assert "break at line 8" in plain(tree.branches[0].branches[0].words)


PROGRAMS = (
    "break_in_callee_loop", "break_in_generator", "break_in_try", "deep_chain", "disabled_callee",
    "disabled_not_recursive", "generator_compiled", "method_break", "module_list_loop",
    "nested_function", "recompile_after_break", "recompile_limit", "recursion", "reset_between",
    "sequential", "three_in_a_row", "two_callers", "two_threads", "whole_train_step",
)  # fmt: skip


@pytest.mark.torch
@pytest.mark.parametrize("name", PROGRAMS)
def test_real_programs(name: str) -> None:
    pytest.importorskip("torch")
    from analysis.real_programs import captured

    run = captured(name)
    tree = compile_tree(run)
    assert_sound(run, tree)
    assert tree.elsewhere == ()
    for one in tree.frames:
        if one.code.resumed:
            parent, line = under(tree, one)
            assert parent is not None
            assert line == one.code.resumed_at
            assert (parent.code.file, parent.code.line) == (one.code.file, one.code.line)
    ops = sum(o or 0 for one in tree.frames for c in one.compilations for o in c.ops)
    assert name == "reset_between" or ops == sum(
        body.ops or 0 for _, body in run.of(GraphCaptured) if body.stage == "dynamo"
    )


@pytest.mark.torch
def test_callers_of_a_deep_chain() -> None:
    pytest.importorskip("torch")
    from analysis.real_programs import captured

    tree = compile_tree(captured("deep_chain"))
    names = []
    one: TreeFrame | None = next(f for f in tree.frames if f.code.function == "fourth")
    while one is not None:
        names.append(one.code.function)
        one = under(tree, one)[0]
    assert names == ["fourth", "third", "second", "first", "f"]


def test_texts_are_parsed_up_to_a_limit_that_a_long_run_meets_sooner(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Functions of later files are as if nobody had kept their text: unknown, and not wrong."""
    text = "import torch\n\n\ndef f(x):\n    return x\n"
    files = [f"{ROOT}/part_{number}.py" for number in range(3)]
    run = run_of(*(event(SourceSeen(file, ""), number=n) for n, file in enumerate(files)))
    run._kept_sources.update(dict.fromkeys(files, run.artifacts.put(text, "py")))

    def first_lines() -> list[int | None]:
        extents = Extents(run)
        return [extents.first_line(file, "f", 5) for file in (*files, *files)]

    assert first_lines() == [4] * 6
    monkeypatch.setattr("compilescope.knowledge.analysis.tree.parents._MOST_LETTERS", len(text) + 1)
    assert first_lines() == [4, 4, None] * 2
    monkeypatch.setattr("compilescope.knowledge.analysis.partial_digest._LONG", 2)
    assert first_lines() == [4] * 6
    monkeypatch.setattr("compilescope.knowledge.analysis.tree.parents._LETTERS_OF_LONG", 1)
    assert first_lines() == [4, None, None] * 2


def test_frames_that_are_told_the_same_share_it() -> None:
    """A long run has a hundred thousand of them: one break, one reason, one rank."""
    story = Story()
    for number in range(50):
        lost = code(10 * number + 1)
        story.broken(f"{number}/0", lost, MAIN, at(10 * number + 3), outcome="frame-eager")
        story.tell(FrameSkipped(lost, "graph-break", "Data-dependent", gb_id="GB0170"))
    tree = compile_tree(run_of(*story.events))
    assert [len(each.breaks) for each in tree.frames] == [1] * 50
    assert [len(each.eager) for each in tree.frames] == [1] * 50
    assert len({id(each.eager[0]) for each in tree.frames}) == 1
    assert len({id(each.ranks) for each in tree.frames}) == 1


def test_a_break_that_is_reported_again_is_told_once_of_a_frame_with_several() -> None:
    story = Story()
    for line in (8, 9, 8, 9, 10):
        story.broken("0/0", code(), MAIN, at(line))
    (only,) = compile_tree(run_of(*story.events)).frames
    assert [each.line for each in only.breaks] == [8, 9, 10]
