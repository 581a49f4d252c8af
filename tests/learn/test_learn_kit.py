"""What lessons draw with, without torch; and what they measure with."""

from __future__ import annotations

import pytest

from compilescope.apps.learn import kit
from compilescope.apps.learn.display import amount, number
from compilescope.apps.learn.verdict import LearnerAnswer, problem
from compilescope.record.graph import Graph, Node, TensorInfo
from compilescope.report.blocks import Document, Measures, Part
from compilescope.report.graph_drawing import rail_rows
from compilescope.report.render.html import to_fragment, to_html
from compilescope.report.render.markdown import to_markdown
from compilescope.report.render.page import to_page
from compilescope.report.render.terminal import to_text
from samples import HOSTILE


def test_numbers_are_short() -> None:
    values = {1: "1", 1234567: "1,234,567", 0.01234: "0.0123", 1.234: "1.23", 12.34: "12.3"}
    assert {value: number(value) for value in values} == values
    assert number(1234.5) == "1,234"
    assert amount(3 * 2**20, "bytes") == "3 MiB"
    assert amount(2.5, "x") == "2.50 x"
    assert amount(7, "") == "7"


def test_bars_share_one_scale(capsys: pytest.CaptureFixture[str]) -> None:
    kit.bars("Time", {"eager": 8.0, "compiled": 2.0, "free": 0.0})
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].strip() == "Time"
    strokes = [line.count("█") for line in lines[2:]]
    assert strokes == [36, 9, 0]
    assert [line.split()[-2] for line in lines[2:]] == ["8", "2", "0"]


@pytest.mark.parametrize("rows", [(), (("a", 0.0, "0"),), (("a", -1.0, "-1"), ("b", 2.0, "2"))])
def test_every_format_draws_bars(rows: tuple[tuple[str, float, str], ...]) -> None:
    block = Measures("How long", (*rows, (HOSTILE, 1.0, HOSTILE)))
    drawn = Document("a", "", (Part("p", "P", (block,)),))
    for text in (to_text(drawn), to_markdown(drawn), to_html(drawn), to_page([drawn])):
        assert "How long" in text
        assert "\x1b" not in text
    assert "<script>window" not in to_html(drawn)
    assert all(len(line) <= 80 for line in to_text(drawn).splitlines())


def test_a_fragment_is_blocks_alone() -> None:
    html = to_fragment([Measures("How long", (("a", 1.0, "1 ms"),))])
    assert html.startswith('<div class="cscope')
    assert "width:100.00%" in html


def test_a_table_puts_numbers_at_the_right(capsys: pytest.CaptureFixture[str]) -> None:
    kit.table(["name", "ms"], [["a", 1.5], ["b", 200]])
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines() if line.strip()]
    assert lines[1].endswith("1.50")
    assert lines[2].endswith(" 200")
    assert len(lines[1]) == len(lines[2])


def test_a_timeline_sets_in_what_lies_inside(capsys: pytest.CaptureFixture[str]) -> None:
    kit.timeline("Call", [("inner", 1.0, 0.5), ("outer", 0.0, 2.0), ("later", 2.0, 1.0)])
    lines = capsys.readouterr().out.splitlines()
    begins = {line.split()[0]: len(line) - len(line.lstrip()) for line in lines if line.strip()}
    assert begins["outer"] == begins["later"] == begins["inner"] - 2


def test_related_lines_get_the_same_number(capsys: pytest.CaptureFixture[str]) -> None:
    kit.beside(("left", "a\nb"), ("right", "c\nd"), related=[(2, 1)])
    lines = capsys.readouterr().out.splitlines()
    assert lines[2].split() == ["a", "1", "c"]
    assert lines[3].split() == ["1", "b", "d"]


def test_what_is_too_wide_stands_below(capsys: pytest.CaptureFixture[str]) -> None:
    kit.beside(("left", "x" * 60), ("right", "y" * 60))
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert lines.index("right") > lines.index("x" * 60)


def test_text_and_what_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    kit.show("One.\n\nTwo.")
    kit.missing("Triton", "it needs a GPU.")
    out = capsys.readouterr().out
    assert out.split("\n") == ["One.", "Two.", "Not on this machine: Triton. It needs a GPU.", ""]


def node(name: str, *inputs: str, op: str = "call_function", target: str = "") -> Node:
    value = (TensorInfo((2,), "float32"),)
    return Node(name, op, target or f"torch.{name}", inputs, () if op == "output" else value)


def rails(*nodes: Node) -> list[str]:
    return [row.rails for row in rail_rows(Graph(nodes))[0]]


X, Y = node("x", op="placeholder"), node("y", op="placeholder")


def test_two_values_meet() -> None:
    out = node("output", "add", op="output")
    drawn = rails(X, Y, node("sin", "x"), node("cos", "y"), node("add", "sin", "cos"), out)
    assert drawn == ["●", "●", "│ ●", "│ ●", "●─╯", "●"]


def test_a_value_that_is_needed_later_keeps_its_rail() -> None:
    out = node("output", "b", "x", op="output")
    drawn = rails(X, node("a", "x"), node("b", "a", "x"), out)
    assert drawn == ["●", "├─●", "├─●", "●─╯"]


def test_a_line_passes_over_a_value_that_it_does_not_need() -> None:
    out = node("output", "c", op="output")
    drawn = rails(X, node("a", "x"), node("b", "x"), node("c", "a", "b"), out)
    assert drawn == ["●", "├─●", "● │", "●─╯", "●"]
    drawn = rails(X, node("a", "x"), node("b", "x"), node("c", "a", "b", "x"))
    assert drawn == ["●", "├─●", "├─│─●", "●─┴─╯"]


def test_a_value_that_nothing_needs_ends() -> None:
    assert rails(X, node("lost", "x"), node("kept", "x"), node("output", "kept", op="output")) == [
        "●",
        "├─●",
        "●",
        "●",
    ]


def test_unused_inputs_and_empty_graphs_are_drawn() -> None:
    assert rails() == []
    assert len(rails(X, Y, node("output", "x", op="output"))) == 3


def test_a_graph_is_cut_off_and_wide_rails_too() -> None:
    many = [node(f"p{n}", op="placeholder") for n in range(40)]
    total = node("stack", *(each.name for each in many))
    rows, left = rail_rows(Graph((*many, total)), most=10)
    assert (len(rows), left) == (10, 31)
    rows, _ = rail_rows(Graph((*many, total)))
    assert max(len(row.rails) for row in rows) <= 24


def test_an_answer_lacks_a_name() -> None:
    def check(answer: LearnerAnswer) -> str | None:
        return None if answer.f() == 1 else "f gives another number."  # type: ignore[operator]

    assert problem(check, {}) == "Your code defines no `f`."
    assert problem(check, {"f": lambda: 2}) == "f gives another number."
    assert problem(check, {"f": lambda: 1}) == ""
    assert not hasattr(LearnerAnswer({"__name__": "x"}), "g")


def test_all_are_timed_and_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    now = 0.0

    def call(name: str, seconds: float) -> None:
        nonlocal now
        calls.append(name)
        now += seconds

    monkeypatch.setattr(kit, "perf_counter", lambda: now)
    functions = {"a": lambda: call("a", 0.25), "b": lambda: call("b", 0.5)}
    assert kit.median_ms(functions, runs=3) == {"a": 250.0, "b": 500.0}
    assert "".join(calls)[-6:] == "abbaab"
    assert kit.median_ms({}, runs=1) == {}


BASE = (10.0, 11.0, 10.5, 9.8, 10.2, 10.1)
AGAIN = (10.1, 10.8, 10.6, 9.9, 10.0, 10.3)


@pytest.mark.parametrize(
    ("times", "again", "said"),
    [
        ((5.0, 5.1, 5.2, 5.0, 5.1, 5.0), AGAIN, "faster than"),
        ((15.0, 16.0, 15.0, 15.0, 16.0, 15.0), AGAIN, "slower than"),
        # Every round says faster, and each as little as the function differs from itself.
        ((9.9, 10.8, 10.4, 9.7, 10.1, 10.0), AGAIN, "no different from"),
        # One round disagrees.
        ((8.0, 8.0, 8.0, 8.0, 8.0, 10.2), AGAIN, "no different from"),
        # As it was on a loaded machine: the same function, 30 % apart.
        ((8.0, 8.5, 8.0, 8.0, 8.0, 8.0), tuple(0.7 * each for each in BASE), "no different from"),
        ((5.0, 50.0, 5.0, 8.0, 30.0, 10.0), AGAIN, "too noisy to tell from"),
        ((9.0,) * 6, (10.0, 40.0, 10.0, 9.0, 90.0, 9.0), "too noisy to tell from"),
    ],
)
def test_a_difference_is_one_beyond_the_noise(
    times: tuple[float, ...], again: tuple[float, ...], said: str
) -> None:
    rounds = [
        {"eager": base, "compiled": time, "the same again": twice}
        for base, time, twice in zip(BASE, times, again, strict=True)
    ]
    timings = kit.Timings(rounds)
    assert timings.differs("compiled") == said
    assert list(timings.ms) == ["eager", "compiled"]
    assert timings.ms["eager"] == pytest.approx(10.15)


def test_what_is_compared_is_timed_with_the_first_one_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 0.0

    def call(seconds: float) -> None:
        nonlocal now
        now += seconds

    monkeypatch.setattr(kit, "perf_counter", lambda: now)
    found = kit.compare_ms({"a": lambda: call(0.5), "b": lambda: call(0.25)}, runs=2)
    assert found.ms == {"a": 500.0, "b": 250.0}
    assert found.share("b") == (0.5, 0.5) and found.differs("b") == "faster than"


@pytest.mark.torch
def test_peak_memory_counts_what_lives_at_once() -> None:
    import torch

    x = torch.ones(1000, 1000)
    size = 4 * 1000 * 1000
    assert size <= kit.peak_bytes(lambda t: t + 1, x) < 1.1 * size
    # The sum of two results, which both live until it is there.
    assert 3 * size <= kit.peak_bytes(lambda t: t.sin() + t.cos(), x) < 3.1 * size


@pytest.mark.torch
def test_graphs_are_drawn_from_whatever_holds_one(capsys: pytest.CaptureFixture[str]) -> None:
    import torch

    def wave(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.sin(x) + torch.cos(y)

    module = torch.fx.symbolic_trace(wave)
    kit.draw_graph(module, "wave")
    first = capsys.readouterr().out
    kit.draw_graph(module.graph, "wave")
    assert capsys.readouterr().out == first
    assert "●─╯  add = add(sin, cos)" in first
