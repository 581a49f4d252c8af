"""How a program ended, in one line."""

from __future__ import annotations

import pytest

from builders import ROOT, event, run_of
from compilescope.knowledge.analysis.program_end import how_it_ended
from compilescope.record.bodies import GraphCaptured, ProcessEnded
from compilescope.record.event import Event
from compilescope.record.run import Run
from compilescope.record.stack import Frame
from compilescope.report.document import report_document
from compilescope.report.render.html import clean
from compilescope.report.render.markdown import to_markdown
from compilescope.report.render.page import to_page
from compilescope.report.render.terminal import to_text
from compilescope.report.section import Reading

AT = (
    Frame(f"{ROOT}/train.py", 3, "<module>"),
    Frame(f"{ROOT}/train.py", 12, "step"),
    Frame("/v/site-packages/numpy/x.py", 5, "load", origin="library"),
)
FAILED = "\n====\ntrain.py FAILED\nRoot Cause (first observed failure):\n[0]:\n"
KILLED = f"{FAILED}  rank      : 1 (local_rank: 1)\n  exitcode  : -9 (pid: 883)\n"


def raised(error: str, message: str = "", pid: int = 100, rank: int = 0, time: int = 5) -> Event:
    body = ProcessEnded(error=error, message=message)
    return event(body, number=time, pid=pid, rank=rank, stack=AT)


def ended(*events: Event, status: int | None = None, **header: object) -> Run:
    return run_of(*events, exit_status=status, **header)


@pytest.mark.parametrize(
    ("run", "how", "text"),
    [
        (ended(status=0), "normally", "The program ended normally."),
        (ended(status=3), "exit", "The program ended with exit status 3."),
        (ended(signal=9), "signal", "The program was terminated by SIGKILL (killed)."),
        (ended(signal=99), "signal", "The program was terminated by signal 99."),
        (
            ended(raised("ValueError", "no good"), status=1),
            "exception",
            "The program ended with exit status 1: ValueError: no good (train.py:12).",
        ),
        (
            ended(raised("KeyboardInterrupt"), signal=2),
            "signal",
            "The program was interrupted by SIGINT: KeyboardInterrupt (train.py:12).",
        ),
        (
            ended(
                raised("ChildFailedError", FAILED, time=9),
                raised("ValueError", "ill", pid=101, rank=1),
                status=1,
            ),
            "exception",
            "The program ended with exit status 1: in rank 1, ValueError: ill (train.py:12).",
        ),
        (
            ended(raised("ChildFailedError", KILLED), status=1),
            "exception",
            "The program ended with exit status 1: ChildFailedError: "
            "rank 1 was terminated by SIGKILL.",
        ),
        (
            ended(raised("OSError", "full", pid=101), status=4),
            "exit",
            "The program ended with exit status 4; "
            "one of its processes raised OSError: full (train.py:12).",
        ),
        (
            ended(raised("OSError", "full", pid=101), status=0),
            "normally",
            "The program ended normally; one of its processes raised OSError: full (train.py:12).",
        ),
        (
            ended(launcher_pid=99),
            "unknown",
            "How the program ended is unknown: compilescope was stopped first.",
        ),
        (ended(), "unknown", ""),
    ],
)
def test_the_line(run: Run, how: str, text: str) -> None:
    seen = how_it_ended(run)
    assert (seen.how, seen.text) == (how, text)


def test_a_run_that_goes_on() -> None:
    run = ended(launcher_pid=99)
    run.live = True
    assert how_it_ended(run).text == "The program is still running."
    text = to_text(report_document(Reading(run)))
    assert "Nothing was compiled so far." in text and "never called" not in text


def test_torchs_own_word_on_the_place_goes_first() -> None:
    message = f'bad\n\nfrom user code:\n   File "{ROOT}/model.py", line 40, in f\n    x + y\n\nSet'
    seen = how_it_ended(ended(raised("TorchRuntimeError", message), status=1))
    assert (seen.file, seen.line) == (f"{ROOT}/model.py", 40)


@pytest.mark.parametrize("status", [0, 3])
def test_it_is_the_first_line_in_every_format(status: int) -> None:
    run = ended(event(GraphCaptured(stage="dynamo", ops=1)), status=status)
    line = how_it_ended(run).text
    document = report_document(Reading(run))
    assert to_text(document).splitlines()[2] == line
    bold = f"**{line}**" if status else line
    assert to_markdown(document).splitlines()[4] == bold
    page = to_page([document])
    assert page.index(clean(line)) < page.index("1 graph, no graph breaks")


def test_a_program_that_fails_early_did_not_forget_to_compile() -> None:
    error = raised("ModuleNotFoundError", "No module named 'x'")
    text = to_text(report_document(Reading(ended(error, status=1))))
    assert "ModuleNotFoundError: No module named 'x'" in text
    assert "Nothing was compiled before that." in text
    assert "never called" not in text and "--compile-all" not in text
    in_order = to_text(report_document(Reading(ended(status=0))))
    assert "The program never called a compiled function" in in_order
