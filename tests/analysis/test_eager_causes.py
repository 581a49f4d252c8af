"""Which causes of a digest are behind an eager function."""

from __future__ import annotations

from builders import ROOT, event, frame, run_of
from compilescope.knowledge.analysis.digest import digest
from compilescope.knowledge.analysis.findings import EagerCauses
from compilescope.record.bodies import FrameSkipped, GraphBreak
from compilescope.record.event import Event
from compilescope.record.stack import CodeRef

FILE = f"{ROOT}/model.py"
TORCHS = CodeRef("/x/site-packages/torch/nn/modules/container.py", 5, "forward")


def broke(line: int, gb_type: str, code: CodeRef) -> Event:
    body = GraphBreak(gb_type=gb_type, outcome="frame-eager", frame=code)
    return event(body, number=line, compile_id=f"{line}/0", stack=(frame(line),))


def test_a_break_is_found_by_its_type_and_the_function_it_gave_up() -> None:
    one, other = CodeRef(FILE, 4, "one"), CodeRef(FILE, 40, "other")
    seen = digest(run_of(broke(8, "a", one), broke(9, "b", one), broke(41, "a", other)))
    behind = EagerCauses(seen)
    found = {(f.function, f.reason): [s.line for s in behind.sites(f)] for f in seen.eager_frames}
    assert found == {("one", "a"): [8], ("one", "b"): [9], ("other", "a"): [41]}
    assert all(behind.is_known(each) for each in seen.eager_frames)


def test_code_that_torch_wrote_is_shown_as_the_users_call_of_it() -> None:
    seen = digest(run_of(broke(9, "a", TORCHS), broke(8, "a", CodeRef(FILE, 4, "one"))))
    behind = EagerCauses(seen)
    found = {each.function: [s.line for s in behind.sites(each)] for each in seen.eager_frames}
    in_order = [site.line for site in seen.sites]
    assert found["one"] == in_order
    assert found["forward"] == [9]


def test_a_function_that_nothing_explains_is_a_cause_of_its_own() -> None:
    skipped = FrameSkipped(CodeRef(FILE, 4, "one"), "error", "it failed")
    seen = digest(run_of(event(skipped, number=1), broke(9, "a", TORCHS)))
    [alone] = [each for each in seen.eager_frames if each.cause == "error"]
    assert not EagerCauses(seen).is_known(alone)
