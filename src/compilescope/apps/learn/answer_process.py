"""The process that runs an answer and judges it, and what it says of it.

python -m compilescope.apps.learn.answer_process LESSON ANSWER OUT
"""

from __future__ import annotations

import sys
import traceback
from pathlib import Path

import msgspec

from compilescope.apps.learn.lesson import find_lesson, load_check, new_module, run_code
from compilescope.apps.learn.verdict import problem
from compilescope.base.processes.fork import die_with_parent


class AnswerVerdict(msgspec.Struct, frozen=True, omit_defaults=True):
    """What came of an answer: right if it says nothing."""

    wrong: str = ""
    """What is still wrong with it."""
    error: str = ""
    """Why it could not be judged."""


def judge_answer(number: str, answer: Path) -> AnswerVerdict:
    """Run it, then the lesson's check on what it defines."""
    lesson = find_lesson(number)
    names = vars(new_module("answer", answer))
    sys.path.insert(0, str(answer.parent.absolute()))
    try:
        run_code(answer.read_text(encoding="utf-8"), answer, names)
        return AnswerVerdict(wrong=problem(load_check(lesson), names))
    except SyntaxError as error:
        return AnswerVerdict(error=f"{answer}:{error.lineno}: {error.msg}")
    except (Exception, SystemExit) as error:
        return AnswerVerdict(error=_crash(error, answer))


def _crash(error: BaseException, answer: Path) -> str:
    """In one sentence, with the answer's innermost line."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame.lineno for frame in frames if frame.filename == str(answer)]
    lines = traceback.format_exception_only(error)[-1].strip().splitlines()
    said = lines[0].strip() if lines else type(error).__name__
    if own:
        return f"{answer}:{own[-1]}: {said}"
    return f"The check could not finish on {answer}: {said}"


def main() -> None:
    die_with_parent()
    number, answer, out = sys.argv[1:]
    Path(out).write_bytes(msgspec.json.encode(judge_answer(number, Path(answer))))


if __name__ == "__main__":
    main()
