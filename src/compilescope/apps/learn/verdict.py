"""Is an answer to an exercise right? The lesson's own check says so, by running it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from compilescope.apps.learn.display import show
from compilescope.report.blocks import Paragraph, Span, prose, words

Check = Callable[[Any], str | None]


class Unanswered(Exception):
    """The answer lacks a name that the check asks for."""


class LearnerAnswer:
    """The names that a learner's code defines, as attributes."""

    def __init__(self, names: Mapping[str, Any]) -> None:
        self.__dict__.update((name, value) for name, value in names.items() if _is_own(name))

    def __getattr__(self, name: str) -> NoReturn:
        # `hasattr` and `getattr` with a default ask for an AttributeError: it is one, too.
        raise _Missing(name)


class _Missing(AttributeError, Unanswered):
    def __init__(self, name: str) -> None:
        super().__init__(f"Your code defines no `{name}`.")


def problem(check: Check, names: Mapping[str, Any]) -> str:
    """What is still wrong with an answer, as a sentence; empty where it is right."""
    try:
        found = check(LearnerAnswer(names))
    except Unanswered as lack:
        return str(lack)
    return "" if found is None else found.strip() or "The check gave no reason."


def judge(check: Check, names: Mapping[str, Any]) -> None:
    """In a notebook: run the check on what the exercise's cell defines, and say what came of it."""
    wrong = problem(check, names)
    if wrong:
        show(Paragraph(words(Span("Not yet. ", "warn"), *prose(wrong))))
    else:
        show(Paragraph(words(Span("Right.", "good"))))


def _is_own(name: str) -> bool:
    return not re.fullmatch(r"__\w+__", name)
