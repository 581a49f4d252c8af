"""Pictures of errors as files, drawn by matplotlib: heatmaps, histograms and a summary."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from compilescope.base.errors import ToolError
from compilescope.base.texts import one_line
from compilescope.measure.tensors.comparison import ENDLESS, ErrorMap, TensorComparison, map_errors

_COLOURS = {"pass": "#3d8b52", "fail": "#c4483b", "unknown": "#c98a1b"}
_SIDE = 256
"""Cells. Chosen: what a picture of this size still shows."""
_MOST_LETTERS = 80
"""Of a file's name. Chosen: file systems take 255 bytes."""


@dataclass(frozen=True)
class VisualizationConfig:
    """How pictures are made."""

    formats: tuple[str, ...] = ("png",)
    """Any of "png" and "svg"."""
    dpi: int = 120
    most: int = 24
    """Tensors with a picture of their own: the worst first."""

    def __post_init__(self) -> None:
        wrong = [name for name in self.formats if name not in ("png", "svg")]
        if wrong:
            raise ToolError(f"{wrong[0]!r} is not a picture format.", hint="Use png or svg.")


class _Value(Protocol):
    path: str
    verdict: Any
    numbers: TensorComparison | None
    sides: tuple[Any, Any] | None


def draw_pictures(
    diffs: Sequence[_Value],
    folder: Path,
    title: str = "",
    config: VisualizationConfig | None = None,
) -> list[str]:
    """One summary, and a heatmap with a histogram for each tensor that differs; their paths."""
    config = config or VisualizationConfig()
    pyplot = plotter()
    names = _PictureNames(folder, config)
    told = [diff for diff in diffs if diff.numbers is not None]
    written = []
    if told:
        figure = _summary(pyplot, told, title)
        written += names.save(figure, f"{title} summary" if title else "summary")
    order = {"fail": 0, "unknown": 1, "pass": 2}
    for diff in sorted(told, key=lambda diff: order[diff.verdict])[: config.most]:
        found = map_errors(*diff.sides, _SIDE, _SIDE) if diff.sides is not None else None
        if found is not None and diff.numbers is not None:
            written += names.save(_portrait(pyplot, found, diff.numbers), f"{title} {diff.path}")
    return written


class _PictureNames:
    """File names that say what they show, and never the same one twice."""

    def __init__(self, folder: Path, config: VisualizationConfig) -> None:
        self._folder = folder
        self._config = config
        self._used: set[str] = set()

    def save(self, figure: Any, title: str) -> list[str]:
        name = self._free(title)
        written = []
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            for kind in self._config.formats:
                path = self._folder / f"{name}.{kind}"
                figure.savefig(path, dpi=self._config.dpi, bbox_inches="tight")
                written.append(str(path))
        except OSError as error:
            raise ToolError(f"Cannot write pictures to {self._folder}: {error.strerror}.") from None
        finally:
            figure.clear()
        return written

    def _free(self, title: str) -> str:
        # Some file systems take capitals and small letters for the same.
        plain = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:_MOST_LETTERS] or "tensor"
        name, number = plain, 2
        while name in self._used or self._is_taken(name):
            name, number = f"{plain}-{number}", number + 1
        self._used.add(name)
        return name

    def _is_taken(self, name: str) -> bool:
        """By a file that was there before: it may be anybody's."""
        return any((self._folder / f"{name}.{kind}").exists() for kind in self._config.formats)


def plotter() -> Any:
    """matplotlib; without it, what to install."""
    try:
        import matplotlib.figure
    except ImportError:
        raise ToolError(
            "Pictures need matplotlib, which is not installed.",
            hint="pip install 'compilescope[plots]'",
        ) from None
    return matplotlib.figure


def _portrait(figures: Any, found: ErrorMap, told: TensorComparison) -> Any:
    figure = figures.Figure(figsize=(11, 4.2))
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    known = [math.log10(value) for value in found.cells if 0 < value < math.inf]
    # What is infinite is drawn a decade above all others.
    above = max(known, default=0.0) + 1
    lines = [[_log(value, above) for value in line] for line in found.lines()]
    extent = (0, found.column_size, found.row_size, 0)
    image = left.imshow(lines, aspect="auto", extent=extent, interpolation="nearest", cmap="magma")
    left.set_facecolor("#e6e9ee")
    figure.colorbar(image, ax=left, label="log10 of the largest absolute error")
    left.set_title("where the errors are")
    left.set_xlabel("last dimension" if len(told.shape) > 1 else "position")
    left.set_ylabel("other dimensions, in order" if len(told.shape) > 2 else "row")
    finite = [(n, count) for n, count in found.histogram if n < ENDLESS]
    places = [n for n, _ in finite]
    right.bar(places, [count for _, count in finite], width=0.9, color="#5470a8")
    right.set_yscale("log" if finite else "linear")
    right.set_title(f"error sizes ({found.zeros} elements without error)")
    right.set_xlabel("absolute error, as a power of 10")
    right.set_ylabel("elements")
    shape = "x".join(map(str, told.shape)) or "a single number"
    head = f"{told.name}  {told.dtype} {shape}: {told.verdict}"
    figure.suptitle(_plain(head), color=_COLOURS[told.verdict])
    return figure


def _summary(figures: Any, diffs: Sequence[_Value], title: str) -> Any:
    shown = diffs[:60]
    figure = figures.Figure(figsize=(9, 1.6 + 0.24 * len(shown)))
    axes = figure.subplots()
    values = [_largest(diff) for diff in shown]
    known = [value for value in values if 0 < value < math.inf]
    low, high = min(known, default=1e-8) / 10, max(known, default=1.0) * 10
    widths = [min(max(value, low), high) for value in values]
    places = range(len(shown))
    axes.barh(places, widths, left=0, color=[_COLOURS[diff.verdict] for diff in shown])
    axes.set_yticks(places, [_plain(diff.path)[-48:] for diff in shown])
    axes.set_xscale("log")
    axes.set_xlim(low, high)
    axes.invert_yaxis()
    axes.set_xlabel("largest absolute error (green: agrees, red: differs, amber: inconclusive)")
    more = f" (first {len(shown)} of {len(diffs)})" if len(shown) < len(diffs) else ""
    axes.set_title(_plain(f"{title}{more}"))
    return figure


def _largest(diff: _Value) -> float:
    told = diff.numbers.metrics if diff.numbers is not None else {}
    return math.inf if told.get("disagreeing") else told.get("max_abs", 0.0)


def _log(value: float, above: float) -> float:
    if value == 0:
        return math.nan
    return math.log10(value) if value < math.inf else above


def _plain(text: str) -> str:
    """A dollar would begin a formula."""
    return one_line(text).replace("$", r"\$")
