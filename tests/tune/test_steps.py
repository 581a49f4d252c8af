"""Where a step begins, found in a text and found again in a changed one."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from builders import event, frame, run_of
from compilescope.change.repair.trials.version import Version
from compilescope.change.tune.step_place import (
    MARK,
    Laps,
    StepPlace,
    choose,
    function_place,
    likely_steps,
    loops_around,
    marked,
    possible_steps,
)
from compilescope.knowledge.source.refusals import Refused
from compilescope.record.bodies import CompileTime, RegionCalls

_TEXT = '''"""A program."""
import torch


def train(model, data):
    """Both epochs."""
    for epoch in range(2):
        for x in data:
            loss = model(x)
    for x in data: model(x)
    while True:
        model(x)


class Trainer:
    def fit(self):
        "Of one line."
        with torch.no_grad():
            pass
'''


def _loops(line: int) -> list[StepPlace]:
    return loops_around("a.py", _TEXT, line)


def test_the_outermost_loop_comes_first() -> None:
    assert [place.line for place in _loops(9)] == [7, 8]
    assert [place.head for place in _loops(12)] == ["while True"]
    assert _loops(6) == [] and _loops(1) == []
    assert [place.nth for place in _loops(10)] == [1]  # The second `for x in data`.


@pytest.mark.parametrize("line", [9, 10, 12])
def test_a_mark_is_called_once_a_round(line: int) -> None:
    place = _loops(line)[-1]
    calls: list[int] = []
    text = marked(_TEXT.replace("while True", "while not seen"), [_changed(place)])
    space: dict[str, object] = {MARK: calls.append, "seen": calls}
    exec(compile(text.replace("import torch", ""), "a.py", "exec"), space)
    space["train"](lambda x: x, [1, 2, 3])  # type: ignore[operator]
    assert len(calls) == {9: 6, 10: 3, 12: 1}[line]


def _changed(place: StepPlace) -> StepPlace:
    head = place.head.replace("while True", "while not seen")
    return StepPlace(place.file, place.line, place.function, head, place.nth)


def test_it_is_found_again_below_new_lines() -> None:
    place = _loops(9)[-1]
    changed = _TEXT.replace(
        "    for epoch", "    for block in model.blocks:\n        pass\n    for epoch"
    )
    lines = marked(changed, [place]).splitlines()
    assert lines[lines.index("        for x in data:") + 1].strip() == f"{MARK}(0)"


def test_a_step_that_is_gone_is_refused() -> None:
    with pytest.raises(Refused):
        marked(_TEXT.replace("for x in data", "for y in data"), [_loops(9)[-1]])


def test_a_function_is_marked_below_its_docstring() -> None:
    place = function_place("a.py", _TEXT, "fit")
    assert place is not None and place.function == "Trainer.fit"
    made = ast.parse(marked(_TEXT, [place]))
    body = made.body[-1].body[0].body  # type: ignore[attr-defined]
    assert ast.unparse(body[1]) == f"{MARK}(0)" and isinstance(body[2], ast.With)
    assert function_place("a.py", _TEXT, "nothing") is None


def test_letters_of_more_than_one_byte_do_not_move_a_mark() -> None:
    text = 'for ä in "ö": print(ä)\n'
    made = marked(text, loops_around("a.py", text, 1))
    assert made == f'for ä in "ö": {MARK}(0); print(ä)\n'


def _chosen(rounds: list[Laps]) -> int:
    places = _loops(9)
    return places.index(choose([tuple(places)], dict(zip(places, rounds, strict=True))))


def test_epochs_are_no_steps() -> None:
    assert _chosen([Laps(2), Laps(100)]) == 1
    assert _chosen([Laps(40), Laps(400)]) == 0
    assert _chosen([Laps(2), Laps(9)]) == 1


def test_of_two_loops_the_one_that_takes_the_programs_time_is_the_step() -> None:
    warm_up, training = _loops(10)[0], _loops(12)[0]
    chains = [(warm_up,), (training,)]
    assert choose(chains, {warm_up: Laps(20, 6.0), training: Laps(60, 6.0)}) == training
    # An evaluation has more rounds, and shorter ones.
    assert choose(chains, {warm_up: Laps(80, 2.0), training: Laps(60, 6.0)}) == training
    assert choose(chains, {warm_up: Laps(20, 6.0), training: Laps(9, 90.0)}) == warm_up


_LIBRARY = """def fit(step, data):
    for batch in data:
        step(batch)
"""


def _possible(tmp_path: Path, *calls: tuple[int, str], library: int = 0) -> list[list[list[int]]]:
    """Lines of the places on each way, of a run whose compiled code is entered from these lines."""
    program, trainer = tmp_path / "a.py", tmp_path / "site-packages" / "trainer.py"
    program.write_text(_TEXT)
    trainer.parent.mkdir(exist_ok=True)
    trainer.write_text(_LIBRARY)
    events = []
    for number, (line, function) in enumerate(calls):
        user = frame(line, file=str(program), function=function)
        theirs = frame(library, file=str(trainer), function="fit", origin="library")
        stack = (frame(1, file=str(program), function="<module>"), theirs, user)
        body = CompileTime(duration_ns=1) if not number else RegionCalls(0, 2**number)
        events.append(event(body, stack=stack if library else (user,)))
    found = possible_steps(run_of(*events), Version(), None)
    return [[[place.line for place in chain] for chain in chains] for chains in found]


def test_where_compiled_code_is_entered_later_counts_too(tmp_path: Path) -> None:
    """Line 5 compiles it, outside of any loop; two loops call it afterwards."""
    calls = (5, "train"), (9, "train"), (10, "train"), (9, "train")
    assert _possible(tmp_path, *calls)[0] == [[7, 8], [10]]


def test_the_loop_may_be_a_librarys(tmp_path: Path) -> None:
    assert _possible(tmp_path, (18, "fit"), library=3) == [[[2]], [[16]]]
    # The user's own loops are asked first.
    assert _possible(tmp_path, (9, "train"), library=3)[:2] == [[[7, 8]], [[2, 7, 8]]]


def test_a_function_that_is_called_from_elsewhere(tmp_path: Path) -> None:
    assert _possible(tmp_path, (18, "fit")) == [[[16]]]
    assert _possible(tmp_path, (2, "<module>")) == []


def test_before_a_run_all_loops_may_be_the_step_but_those_of_compiled_code(tmp_path: Path) -> None:
    program = tmp_path / "a.py"
    program.write_text(
        _TEXT
        + """
class Net:
    def forward(self, x):
        for layer in self.layers:
            x = layer(x)

@torch.compile
def decorated(x):
    for _ in range(3):
        x = x + 1

def given(x):
    while x:
        x = x + 1

compiled = torch.compile(given)
for batch in data:
    compiled(batch)
"""
    )
    places = likely_steps(str(program))
    assert [place.head for place in places] == [
        "for epoch in range(2)",
        "for x in data",
        "for x in data",
        "while True",
        "for batch in data",
    ]
    # What a run tells later is one of them.
    assert set(loops_around(str(program), program.read_text(), 9)) <= set(places)


def test_without_a_file_there_is_nothing_to_count(tmp_path: Path) -> None:
    broken = tmp_path / "broken.py"
    broken.write_text("for x in")
    assert likely_steps("") == likely_steps(str(broken)) == []
