"""Maps of errors, and pictures of them."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from compilescope.base.errors import ToolError  # noqa: E402
from compilescope.measure.diff.pictures import VisualizationConfig, draw_pictures  # noqa: E402
from compilescope.measure.diff.report import error_grid, error_profiles  # noqa: E402
from compilescope.measure.diff.values import ValueDiff  # noqa: E402
from compilescope.measure.tensors.comparison import compare_tensors, map_errors  # noqa: E402

pytestmark = pytest.mark.torch


def test_a_map_shows_where_the_errors_lie() -> None:
    one = torch.zeros(4, 60, 100)
    other = one.clone()
    other[2, :, 50] = 1e-3
    other[3, 59, 99] = math.nan
    found = map_errors(one, other, 24, 50)
    assert found is not None and (found.rows, found.columns) == (24, 50)
    assert (found.row_size, found.column_size) == (240, 100)
    hot = [(r, c) for r, line in enumerate(found.lines()) for c, v in enumerate(line) if v]
    assert hot == [*((row, 25) for row in range(12, 18)), (23, 49)]
    assert found.lines()[23][49] == math.inf
    assert dict(found.histogram)[-3] == 60 and found.zeros == 4 * 60 * 100 - 61


@pytest.mark.parametrize("shape", [(), (1,), (7,), (5000,), (3, 4), (2, 1, 3, 5)])
def test_tensors_of_any_rank(shape: tuple[int, ...]) -> None:
    one = torch.zeros(shape)
    found = map_errors(one, one + 1)
    assert found is not None and len(found.cells) == found.rows * found.columns
    assert max(found.cells) == 1 and sum(n for _, n in found.histogram) == one.numel()
    turned = one.movedim(0, -1) if one.dim() > 1 else one
    assert map_errors(turned, turned + 1) is not None


def test_nothing_to_draw() -> None:
    assert map_errors(torch.ones(2), torch.ones(3)) is None
    assert map_errors(torch.empty(0), torch.empty(0)) is None
    assert map_errors(torch.ones(2, device="meta"), torch.ones(2, device="meta")) is None
    assert error_grid(None) is None


def test_the_record_keeps_levels_and_the_worst_places() -> None:
    one = torch.zeros(6, 40)
    other = one.clone()
    other[3] = torch.logspace(-6, -2, 40)
    other[5, 0] = math.inf
    found = compare_tensors(one, other)
    grid = error_grid(found.errors)
    assert grid is not None
    assert grid.lines[3][0] == "1" and grid.lines[3][-1] == "8" and grid.lines[5][0] == "9"
    assert set(grid.lines[0]) == {"0"}
    rows, columns = error_profiles(found)
    assert rows.worst[0][:2] == (3, 1) and rows.size == 6 and columns.size == 40
    assert compare_tensors(one, one).errors is None


def diff(path: str, shape: tuple[int, ...], error: float) -> ValueDiff:
    one = torch.ones(shape)
    other = one + error
    found = compare_tensors(one, other, path)
    return ValueDiff(path, "output", found.verdict, found.reason, found, (one, other))


@pytest.mark.slow
def test_pictures_have_names_of_their_own(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    diffs = [diff("output[0]", (9, 9), 0.1), diff("output['0']", (30,), 0.2)]
    diffs += [diff("OUTPUT[0]", (2, 3, 4), math.nan), diff("../$x", (), 0.0)]
    written = draw_pictures(diffs, tmp_path, "toy", VisualizationConfig(formats=("png", "svg")))
    assert len(written) == len(set(written)) == 2 * 5
    for path in map(Path, written):
        assert path.parent == tmp_path and path.stat().st_size > 1000
        begin = path.read_bytes()[:5]
        assert begin == (b"\x89PNG\r" if path.suffix == ".png" else b"<?xml")


def test_without_matplotlib_one_is_told_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ToolError) as caught:
        draw_pictures([diff("x", (3,), 1.0)], tmp_path)
    assert "plots" in caught.value.hint
    with pytest.raises(ToolError):
        VisualizationConfig(formats=("bmp",))
