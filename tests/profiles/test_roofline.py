"""The roofline of a step: numbers of a recorded trace, its drawing, and a roof that is in doubt."""

from __future__ import annotations

import math
import re
from pathlib import Path

import msgspec
import pytest

from compilescope.instrument.torchapi.times import roof as roofs
from compilescope.knowledge.analysis.step_kernels import (
    StepKernel,
    faster_than_roof,
    kernels_by_profile,
    merged,
    roof_of,
    roof_points,
)
from compilescope.knowledge.profiles.kernel_rows import Bound, KernelRow, Roof
from compilescope.knowledge.profiles.step_profile import StepProfile, profiles_of
from compilescope.record.run import Run
from compilescope.report.blocks import Roofline, RooflineDot
from compilescope.report.document import report_document
from compilescope.report.render.charts import roofline_summary, roofline_values
from compilescope.report.render.html import to_html
from compilescope.report.render.markdown import to_markdown
from compilescope.report.render.page import to_page
from compilescope.report.render.terminal import to_text
from compilescope.report.section import Reading
from profiles.traces import H200, PRODUCT_BYTES, PRODUCT_FLOPS, profiled_run

LOW = Roof(4.1e12, {"float32": 1e12})


def _profile(run: Run) -> StepProfile:
    (profile,) = profiles_of(run)
    return profile


def _text(run: Run) -> str:
    text = to_text(report_document(Reading(run, full=True), only="step"))
    return " ".join(text.split())


def _row(name: str = "gemm", us: float = 10.0, flops: float = 1e6) -> KernelRow:
    return KernelRow(name, "library", 1, us, us / 100, dtypes=("float32",), flops=flops)


def _place(left: str, top: str) -> tuple[float, float]:
    return round(float(left), 1), round(float(top), 1)


def test_numbers_of_a_recorded_step() -> None:
    run = profiled_run()
    profile = _profile(run)
    kernels = merged(kernels_by_profile(run, [profile])[0])
    points = roof_points(kernels, H200, "highest")
    assert points and len(points) < len(kernels)
    for point in points:
        row = point.kernel.row
        assert point.ceiling == "float32"
        assert point.flops_per_byte == pytest.approx(PRODUCT_FLOPS / PRODUCT_BYTES)
        assert point.flops_per_second == pytest.approx(row.flops / row.us * 1e6)
        assert row.flops <= row.calls * PRODUCT_FLOPS + 1
    # Each product counts once, though it may launch several kernels: 14 in a step.
    assert sum(point.kernel.row.flops for point in points) == pytest.approx(14 * PRODUCT_FLOPS)
    times = sum(kernel.row.us for kernel in kernels)
    assert times == pytest.approx(sum(row.us for row in profile.kernels))


def test_equal_kernels_of_a_line_are_one() -> None:
    def kernel(us: float, flops: float, share: float) -> StepKernel:
        return StepKernel(_row(us=us, flops=flops), Bound("compute", share), [], 100.0)

    both = merged([kernel(10, 1e6, 0.5), kernel(30, 1e6, 0.1), kernel(5, 2e6, 0.4)])
    assert [(each.row.calls, each.row.us) for each in both] == [(2, 40), (1, 5)]
    assert both[0].bound.share == pytest.approx((10 * 0.5 + 30 * 0.1) / 40)
    assert (both[0].bytes, both[0].row.flops) == (200, 2e6)


def test_where_things_are_drawn() -> None:
    dots = (RooflineDot("a", "1 ms", 1.0, 1e11, 0.25), RooflineDot("b", "", 100.0, 1e12, 0.0001))
    drawn = roofline_values(Roofline("R", 1e12, (("float32", 1e13),), dots))
    # From 0.1 (a dot is at 1, the slope ends at 10) to 1000; from 10 G to 100 T.
    assert [text for _, text in drawn["x_ticks"]] == ["0.1", "1", "10", "100", "1k"]
    assert [text for _, text in drawn["y_ticks"]] == ["10G", "100G", "1T", "10T", "100T"]
    assert [_place(left, top) for _, _, left, top, _ in drawn["dots"]] == [(25, 75), (75, 50)]
    slope, ceiling = drawn["roofs"]
    assert (slope, ceiling) == ("0.0,375.0 500.0,125.0", "500.0,125.0 1000.0,125.0")
    assert drawn["slope"][0] == "1 TB/s"
    assert drawn["ceilings"] == [("float32 10 TFLOP/s", "75.00")]
    sizes = [float(size) for *_, size in drawn["dots"]]
    assert sizes[0] > sizes[1] > 1


def test_ceilings_side_by_side_share_a_label() -> None:
    ceilings = (("bfloat16", 7.9e14), ("float16", 7.8e14), ("float32", 5e13))
    dot = RooflineDot("a", "", 3.0, 1e13, 0.1)
    drawn = roofline_values(Roofline("R", 4e12, ceilings, (dot,)))
    first, second = drawn["ceilings"]
    assert first[0] == "bfloat16 790 TFLOP/s, float16 780 TFLOP/s"
    assert second[0] == "float32 50 TFLOP/s"


@pytest.mark.parametrize("ceiling", [1e-5, 1.0, 1e59])
@pytest.mark.parametrize("number", [1e-59, 1e59])
def test_odd_numbers_have_a_place(ceiling: float, number: float) -> None:
    dot = RooflineDot("a", "", number, number, 7.0)
    block = Roofline("R", 1e12, (("x", ceiling),), (dot,))
    drawn = roofline_values(block)
    places = [float(part) for line in drawn["roofs"] for part in re.split("[ ,]", line)]
    assert all(map(math.isfinite, places)) and roofline_summary(block)
    assert len(drawn["x_ticks"]) <= 9 and len(drawn["y_ticks"]) <= 9


def test_the_page_draws_it_beside_the_source() -> None:
    document = report_document(Reading(profiled_run(), full=True, page=True))
    page = to_page([document])
    assert '<figure class="roofline">' in page and 'role="img"' in page
    (anchor,) = set(re.findall(r'<a href="#(line-\d+-2)">train.py:2</a>', page))
    assert f'id="{anchor}"' in page and "<code>return layer(x)</code>" in page
    assert '<figure class="roofline">' in to_html(document)
    assert "**Roofline** the roof is 4.1 TB/s, float32 51 TFLOP/s" in to_markdown(document)


def test_what_is_left_out_is_said() -> None:
    run = profiled_run()
    kernels = merged(kernels_by_profile(run, [_profile(run)])[0])
    points = roof_points(kernels, H200, "highest")
    text = _text(run)
    assert f"Not drawn: of {len(kernels) - len(points)} kernels, " in text
    assert f" {len(kernels) - 12} more kernels, " in text


def test_no_roof_no_roofline() -> None:
    run = profiled_run(None, "cudagraphs")
    assert "No roofline: what this machine can do was not measured." in _text(run)
    for roof in (None, Roof(0.0), Roof(1e12, {"float32": 1e300})):
        assert roof_of(_profile(profiled_run(roof, "cudagraphs"))) is None


def test_a_kernel_above_the_roof() -> None:
    run = profiled_run(LOW)
    faster = faster_than_roof(_profile(run))
    assert faster and all(row.operator == "aten::addmm" for row in faster)
    assert "The roof was measured too low: a call of `aten::addmm (sm80_xmma_gemm" in _text(run)
    assert faster_than_roof(_profile(profiled_run(H200))) == []


def test_a_roof_of_a_busy_machine() -> None:
    busy = msgspec.structs.replace(H200, spread=0.8)
    again = "The next `run --profile` measures it again."
    assert f"repeats differed by 80%. {again}" in _text(profiled_run(busy, "cudagraphs"))
    assert again not in _text(profiled_run(H200, "cudagraphs"))
    tired = msgspec.structs.replace(busy, tries=3)
    assert again not in _text(profiled_run(tired, "cudagraphs"))


def test_a_doubtful_roof_is_measured_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    found = iter([
        Roof(10.0, {"float32": 5.0}, spread=0.9),
        Roof(8.0, {"float32": 7.0}, spread=0.01),
    ])  # fmt: skip

    def measured() -> None:
        roof = roofs._better(roofs.known_roof(roofs.CPU), next(found))
        roofs._write(roofs._read(), {roofs.CPU: roof})

    assert not roofs.is_measured()
    measured()
    assert not roofs.is_measured()
    measured()
    assert roofs.is_measured()
    best = Roof(10.0, {"float32": 7.0}, spread=0.01, tries=2)
    assert roofs.known_roof(roofs.CPU) == best
    roofs.note_beaten(roofs.CPU)
    assert not roofs.is_measured()
    # A machine that is always busy is not measured before every program.
    roofs._write(roofs._read(), {roofs.CPU: msgspec.structs.replace(best, spread=9.0, tries=3)})
    assert roofs.is_measured()


def test_it_can_be_measured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """With small matrices: how fast is not the question here."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setitem(roofs._MATRIX, "cpu", 32)
    monkeypatch.setitem(roofs._COPY_BYTES, "cpu", 4096)
    roofs.measure()
    roof = roofs.known_roof(roofs.CPU)
    assert roof is not None and set(roof.flops_per_second) == {"float32", "float64"}
    assert roof.spread >= 0 and roof.tries == 1
    roofs.measure()
    again = roofs.known_roof(roofs.CPU)
    assert again is not None and again.tries == 2
    assert again.bytes_per_second >= roof.bytes_per_second


def test_time_in_which_the_device_waits_looks_different() -> None:
    page = to_page([report_document(Reading(profiled_run(), full=True, page=True))])
    rows = re.findall(r'<th scope="row">(busy|idle): .*?<i( class="idle")? style', page)
    assert {kind for kind, _ in rows} == {"busy", "idle"}
    assert all((kind == "idle") == bool(mark) for kind, mark in rows)
