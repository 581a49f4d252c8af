"""The first sentence about a run, and what stands beside the compile time."""

from __future__ import annotations

import pytest

from builders import ROOT, event, run_of
from compilescope.record.artifacts import MemoryArtifacts
from compilescope.record.bodies import (
    Body,
    CompileTime,
    FrameSkipped,
    GraphCaptured,
    RegionTime,
    SourceSeen,
)
from compilescope.record.run import Run
from compilescope.record.stack import CodeRef, Frame
from compilescope.report.blocks import plain
from compilescope.report.document import report_document
from compilescope.report.headline import headline
from compilescope.report.render.markdown import to_markdown
from compilescope.report.render.terminal import to_text
from compilescope.report.section import Reading

FILE = f"{ROOT}/model.py"
SOURCE = """\
import torch


class Detector(torch.nn.Module):
    def forward(self, x):
        return nms(x)

    @staticmethod
    def decode(x):
        def inner(y):
            return y

        return inner(x)


class Outer:
    class Head(torch.nn.Module):
        if True:

            def forward(self, x):
                return x


def nms(x):
    return x
"""
FORWARD = CodeRef(FILE, 5, "forward")
DECODE = CodeRef(FILE, 8, "decode")
HEAD = CodeRef(FILE, 20, "forward")
NMS = CodeRef(FILE, 24, "nms")
REST = CodeRef(FILE, 8, "decode", resumed_at=13)
ADAM = CodeRef("/venv/lib/python3.11/site-packages/torch/optim/adam.py", 214, "step")
HERE = (Frame(FILE, 6, "forward", source="        return nms(x)"),)


def skipped(code: CodeRef, cause: str = "graph-break") -> FrameSkipped:
    return FrameSkipped(code, cause, "why")  # type: ignore[arg-type]


def graph(code: CodeRef, region: CodeRef | None = None) -> GraphCaptured:
    return GraphCaptured(stage="dynamo", ops=1, frame=code, region=region or code)


def reading(*bodies: Body) -> Reading:
    run = run_of(*(event(b, number=n, stack=HERE) for n, b in enumerate(bodies, 1)))
    artifacts = MemoryArtifacts()
    seen = event(SourceSeen(FILE, artifacts.put(SOURCE, "py")), number=99)
    return Reading(Run(run.header, [*run.events[:-1], seen, run.events[-1]], artifacts))


def said(*bodies: Body) -> str:
    return plain(headline(reading(*bodies)))


def test_functions_that_run_eagerly_are_named() -> None:
    assert said(graph(HEAD), skipped(NMS), skipped(DECODE)) == (
        "1 graph; `nms` and `Detector.decode` run eagerly in every call."
    )
    assert said(graph(HEAD), skipped(REST)) == (
        "1 graph; the rest of `Detector.decode` runs eagerly."
    )


def test_one_that_was_compiled_before_runs_eagerly_from_then_on() -> None:
    assert said(graph(FORWARD), skipped(FORWARD), skipped(NMS)) == (
        "1 graph; `nms` runs eagerly in every call; "
        "`Detector.forward` runs eagerly in every later call."
    )


def test_nothing_of_the_outermost_function_is_compiled() -> None:
    assert said(graph(HEAD, region=FORWARD), skipped(FORWARD)) == (
        "1 graph; nothing of `Detector.forward` itself is compiled, only functions that it calls."
    )
    assert said(skipped(FORWARD)) == (
        "Nothing was compiled; `Detector.forward` runs eagerly in every call."
    )


def test_the_recompile_limit_leaves_the_versions_there_are() -> None:
    assert said(graph(HEAD), skipped(HEAD, "recompile-limit")) == (
        "1 graph; `Head.forward` runs eagerly beyond the recompile limit."
    )


def test_no_claim_about_every_call_where_it_is_not_known() -> None:
    assert said(graph(HEAD), skipped(NMS, "dispatch-mode")) == "1 graph; `nms` runs eagerly."


def test_a_function_of_torch_is_named_by_its_call() -> None:
    found = reading(graph(HEAD), skipped(ADAM))
    assert plain(headline(found)) == "1 graph; what is called at `model.py:6` runs eagerly."
    assert [frame.title for frame in found.digest.eager_frames] == [
        "what forward calls runs eagerly"
    ]


def test_of_many_two_are_named_and_they_stay_two_lines() -> None:
    many = [skipped(CodeRef(FILE, 100 + n, f"function_{n}")) for n in range(9)]
    assert said(graph(HEAD), *many) == (
        "1 graph; `function_0`, `function_1` and 7 more functions run eagerly in every call."
    )
    long = [skipped(CodeRef(FILE, 100 + n, "f" * 120 + str(n))) for n in range(3)]
    assert said(graph(HEAD), *long) == "1 graph; 3 functions run eagerly in every call."


def test_the_share_of_the_time_that_runs_compiled_is_in_it() -> None:
    timed = RegionTime(HEAD, calls=4, total_ns=1000, inside_ns=818)
    assert said(graph(HEAD), timed) == (
        "1 graph, no graph breaks, no recompiles; 81.8 % of the time runs compiled."
    )
    assert said(graph(HEAD), timed, skipped(NMS)) == (
        "1 graph; 81.8 % of the time runs compiled; `nms` runs eagerly in every call."
    )


def test_markdown_keeps_the_blanks_around_code() -> None:
    text = to_markdown(report_document(reading(skipped(FORWARD))))
    assert "**Nothing was compiled;** `Detector.forward` **runs eagerly in every call.**" in text


@pytest.mark.parametrize(
    ("forward", "backward", "inductor", "words"),
    [
        (21.64, 5.77, 24.73, "27.41 s in the backend, 24.73 s of it in Inductor"),
        (54.85, 0, 49.09, "54.85 s in the backend, 49.09 s of it in Inductor"),
        (6.34, 0, 0, "6.34 s in the backend"),
        (1.36, 0, 59.21, "1.36 s in the backend"),
        (99.0, 0, 50.0, ""),
        (0, 0, 5.0, ""),
    ],
)
def test_a_part_of_the_compile_time_is_no_larger_than_its_whole(
    forward: float, backward: float, inductor: float, words: str
) -> None:
    names = {"aot_autograd": forward, "backward": backward, "inductor": inductor}
    spent = {f"{n}_cumulative_compile_time_us": int(s * 1e6) for n, s in names.items()}
    time = CompileTime(60_000_000_000, spent, frame=HEAD)
    text = " ".join(to_text(report_document(reading(graph(HEAD), time))).split())
    assert f"Compile time 60.00 s {words}".strip() in text
    assert ("backend" in text, "Inductor" in text) == ("backend" in words, "Inductor" in words)
