"""Tests of the marker parser."""

from __future__ import annotations

from pathlib import Path

import pytest

from zoo.truth import (
    BreakTruth,
    EagerTruth,
    FailureTruth,
    RecompileTruth,
    all_programs,
    read_truth,
)


def write(tmp_path: Path, *lines: str) -> Path:
    path = tmp_path / "program.py"
    path.write_text("\n".join(['"""Shows a thing."""', *lines, ""]), encoding="utf-8")
    return path


def test_every_marker(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "#: graphs 2",
        'def f(x):  #: eager A root #: limit #: recompile 3 "x.size()[0]" 4 -> 5',
        '    print(x); print(x)  #: break "print"@2 Some type',
        "def g(x):  #: eager-rest B root #: failure BackendError - -",
        '    return x.item()  #: failure Unsupported "x.item" Another type',
    )
    truth = read_truth(path)
    assert truth.title == "Shows a thing."
    assert truth.graphs == 2
    assert truth.breaks == {BreakTruth(4, 14, "Some type")}
    assert truth.eager == {EagerTruth(3, "A root", False), EagerTruth(5, "B root", True)}
    assert truth.recompiles == {RecompileTruth(3, 3, "x.size()[0]", "4", "5")}
    assert truth.limits == {3}
    assert truth.failures == {
        FailureTruth(5, "BackendError", None, None),
        FailureTruth(6, "Unsupported", 11, "Another type"),
    }


def test_what_another_torch_does(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "#: graphs 2 #: without tracing/new graphs 1",
        'def f(x):  #: eager A root #: with tracing/odd eager B root #: recompile 1 "x" 1 -> 2',
        '    print(x)  #: break "print" Some type #: without tracing/new none',
    )
    old, odd, new = (
        read_truth(path, has.__contains__)
        for has in ((), ("tracing/odd", "tracing/new"), ("tracing/new",))
    )
    assert (old.graphs, odd.graphs, new.graphs) == (1, 2, 2)
    assert [e.root for e in (*old.eager, *odd.eager, *new.eager)] == ["A root", "B root", "A root"]
    assert odd.breaks == new.breaks == {BreakTruth(4, 4, "Some type")} and not old.breaks
    assert old.recompiles == odd.recompiles == new.recompiles != frozenset()


def test_a_marker_names_a_capability_of_the_table(tmp_path: Path) -> None:
    path = write(tmp_path, "#: graphs 2 #: with tracing/nothing graphs 1")
    with pytest.raises(KeyError, match="tracing/nothing"):
        read_truth(path)


def test_markers_in_strings_are_text(tmp_path: Path) -> None:
    path = write(tmp_path, "#: graphs 1", "s = '#: limit'")
    assert not read_truth(path).limits


def test_expr_in_comment_does_not_count(tmp_path: Path) -> None:
    path = write(tmp_path, "#: graphs 1", 'x = 1  # y #: break "y" Some type')
    with pytest.raises(ValueError, match="not in the line"):
        read_truth(path)


@pytest.mark.parametrize(
    "marker",
    [
        "#: brake",
        "#: eager",
        "#: limit 3",
        "#: break Some type",
        '#: break "x"',
        '#: break "absent" Some type',
        '#: break "x"@2 Some type',
        '#: recompile 0 "x" 1 -> 2',
        '#: recompile 1 "x" 1',
        "#: failure BackendError",
        "#: graphs many",
    ],
)
def test_malformed_marker_names_file_and_line(tmp_path: Path, marker: str) -> None:
    path = write(tmp_path, "#: graphs 1", f"x = 1  {marker}")
    with pytest.raises(ValueError, match=r"program\.py:3: "):
        read_truth(path)


def test_counts_of_one_function_agree(tmp_path: Path) -> None:
    path = write(tmp_path, 'f = 1  #: graphs 1 #: recompile 1 "a" 1 -> 2 #: recompile 2 "b" 1 -> 2')
    with pytest.raises(ValueError, match="disagree"):
        read_truth(path)


@pytest.mark.parametrize("lines", [[], ["#: graphs 1", "#: graphs 1"]])
def test_graphs_exactly_once(tmp_path: Path, lines: list[str]) -> None:
    with pytest.raises(ValueError, match="'graphs' markers instead of one"):
        read_truth(write(tmp_path, *lines))


@pytest.mark.parametrize("path", all_programs(), ids=lambda path: path.stem)
def test_programs_parse(path: Path) -> None:
    assert read_truth(path).title.endswith(".")
