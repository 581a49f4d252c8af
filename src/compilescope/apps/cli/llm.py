"""The options of `--llm`: which model to ask about which causes, and what it is told."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

import click

from compilescope.apps.cli.options import print_json
from compilescope.base.errors import ToolError

if TYPE_CHECKING:
    from compilescope.knowledge.findings.finding import Finding
    from compilescope.report.blocks import Quote
    from compilescope.report.llm.prompt import CauseQuestion, Question
    from compilescope.report.llm.server import ModelSettings
    from compilescope.report.section import Reading

F = TypeVar("F", bound=Callable[..., Any])
Numbered = Sequence[tuple[int, "Finding"]]
"""Causes with their numbers."""


_EXPLAINS = "Add a language model's explanation, marked as such."


def llm_options(function: F, words: str = _EXPLAINS) -> F:
    """`words`: what `--llm` does here."""
    options = (
        click.option("--llm", is_flag=True, help=words),
        click.option("--llm-model", metavar="NAME", help="The model to ask."),
        click.option(
            "--llm-url", metavar="URL", help="The base URL of an OpenAI-compatible server."
        ),
        click.option(
            "--llm-redact", is_flag=True, help="Replace your names and constants in what is sent."
        ),
        click.option(
            "--llm-dry-run", is_flag=True, help="Show exactly what --llm would send; send nothing."
        ),
    )
    for option in reversed(options):
        function = option(function)
    return function


@dataclass(frozen=True)
class LlmOptions:
    """What these options ask for."""

    llm: bool
    llm_model: str | None
    llm_url: str | None
    llm_redact: bool
    llm_dry_run: bool

    def __post_init__(self) -> None:
        given = {
            "--llm-model": self.llm_model,
            "--llm-url": self.llm_url,
            "--llm-redact": self.llm_redact,
        }
        named = next((name for name, value in given.items() if value), None)
        if named and not (self.llm or self.llm_dry_run):
            raise ToolError(f"{named} needs --llm, or --llm-dry-run to see what would be sent.")

    @property
    def settings(self) -> ModelSettings:
        from compilescope.report.llm.server import model_settings

        return model_settings(model=self.llm_model, url=self.llm_url)

    def questions(self, reading: Reading, causes: Numbered) -> list[CauseQuestion]:
        from compilescope.report.llm.question import questions_for

        found = [finding for _, finding in causes]
        return questions_for(reading.run, reading.digest, found, redacted=self.llm_redact)


def ask_model(wanted: LlmOptions, reading: Reading, causes: Numbered) -> dict[str, Quote]:
    """Fingerprint -> a model's words. A problem is one sentence on stderr, and ends the asking."""
    from compilescope.report.llm.replies import problem_of, replies, server_speaker
    from compilescope.report.quotes import model_quote

    settings = wanted.settings
    problem = problem_of(settings)
    if problem is not None:
        _tell_problem(problem)
        return {}
    host = urlsplit(settings.url or "").netloc
    questions = wanted.questions(reading, causes)
    said: dict[str, Quote] = {}
    answers = replies(server_speaker(settings), questions)
    for at, (_, finding) in enumerate(causes, 1):
        told = f"asking {settings.model} at {host} about cause {at} of {len(causes)}..."
        print(told, file=sys.stderr)
        reply = next(answers)
        if reply.words is None:
            _tell_problem(reply.problem or "")
            break
        said[finding.fingerprint] = model_quote(
            reply.model, reply.words, redacted=wanted.llm_redact
        )
    if not causes:
        name = reading.digest.run
        print(f"{name} has no cause to ask about: nothing was sent.", file=sys.stderr)
    return said


def _tell_problem(problem: str) -> None:
    print(f"compilescope: no answer from the model: {problem}", file=sys.stderr)


def show_requests(
    wanted: LlmOptions,
    readings: Iterable[tuple[Reading, Numbered]],
    *,
    noun: str = "cause",
    as_json: bool = False,
) -> None:
    """What would be sent, to the byte, and nothing is."""
    asked = [
        (number, finding, question)
        for reading, causes in readings
        for (number, finding), question in zip(
            causes, wanted.questions(reading, causes), strict=True
        )
    ]
    show_questions(wanted, asked, noun=noun, as_json=as_json)


def show_questions(
    wanted: LlmOptions,
    asked: Sequence[tuple[int, Finding, Question]],
    *,
    noun: str = "cause",
    as_json: bool = False,
) -> None:
    """Likewise, of questions that are there."""
    from compilescope.report.llm.prompt import request_for
    from compilescope.report.llm.replies import problem_of

    settings = wanted.settings
    problem = problem_of(settings)
    if as_json:
        requests = [
            {
                "cause": finding.fingerprint,
                "url": request_for(question, settings).url if problem is None else None,
                "headers": request_for(question, settings).headers,
                "key": settings.key_name or None,
                "body": request_for(question, settings).body.decode(),
            }
            for _, finding, question in asked
        ]
        print_json({"requests": requests, "problem": problem})
        return
    for number, _, question in asked:
        _show(f"{noun} {number}", question, settings, sendable=problem is None)
    if problem is not None:
        print(f"Nothing could be sent: {problem}", file=sys.stderr)
    elif not asked:
        print("There is no cause to ask about: nothing would be sent.", file=sys.stderr)


def _show(name: str, question: Question, settings: ModelSettings, *, sendable: bool) -> None:
    from compilescope.report.llm.prompt import prompt_for, request_for

    if sendable:
        request = request_for(question, settings)
        key = f"Bearer ${settings.key_name}" if settings.key else "(no key is sent)"
        print(f"--- {name}, request\nPOST {request.url}")
        print(f"Authorization: {key}")
        for header, value in request.headers.items():
            print(f"{header}: {value}")
        print(f"\n{request.body.decode()}\n\nThe same messages, easier to read:\n")
    for message in prompt_for(question):
        print(f"--- {name}, {message['role']} message\n{message['content']}")
