"""`fix --llm`: asks a language model for patches where no fix of ours holds. What it answers is
tried by the search, like everybody's patch; nothing else of the answer is used.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

import click

from compilescope.apps.cli.llm import LlmOptions, llm_options
from compilescope.base.errors import ToolError

if TYPE_CHECKING:
    from compilescope.change.repair.search.proposer import OpenCause, ProposedPatch
    from compilescope.knowledge.findings.finding import Finding
    from compilescope.report.llm.patch_question import PatchQuestion
    from compilescope.report.llm.server import ModelSettings

F = TypeVar("F", bound=Callable[..., Any])
_ROUNDS, _TOKENS = 3, 60_000
"""Chosen: a patch that fails thrice seldom holds; and some twenty questions with answers."""
_LETTERS = 4
"""Of a token. An estimate: servers count each in their own way, and few say how."""
LLM_NAMES = ("llm", "llm_model", "llm_url", "llm_redact", "llm_dry_run", "llm_rounds", "llm_tokens")


def patch_options(function: F) -> F:
    """Those of `explain --llm`, and how often and how much is asked."""
    options = (
        click.option(
            "--llm-rounds",
            type=click.IntRange(1, 20),
            default=_ROUNDS,
            show_default=True,
            metavar="N",
            help="Ask at most N times about a cause: a rejected patch goes back with the reason.",
        ),
        click.option(
            "--llm-tokens",
            type=click.IntRange(min=1000),
            default=_TOKENS,
            show_default=True,
            metavar="N",
            help="Send and read about N tokens at most, at four letters each.",
        ),
    )
    for option in reversed(options):
        function = option(function)
    words = (
        "Ask a language model for patches where no fix is verified; only those that are verified "
        "are shown, marked as the model's."
    )
    return llm_options(function, words)


def read_model(given: dict[str, Any]) -> ModelProposer | None:
    """Takes its options out of `given`. Raises `ToolError` where nobody could be asked."""
    values = {name: given.pop(name) for name in LLM_NAMES}
    rounds, tokens = values.pop("llm_rounds"), values.pop("llm_tokens")
    wanted = LlmOptions(**values)
    given["asking"] = tuple(_asking(wanted, rounds, tokens))
    if not (wanted.llm or wanted.llm_dry_run):
        if (rounds, tokens) != (_ROUNDS, _TOKENS):
            raise ToolError("--llm-rounds and --llm-tokens need --llm.")
        return None
    if wanted.llm_redact:
        raise ToolError(
            "--llm-redact is for explanations: a patch for redacted source cannot be put back into "
            "yours, whose strings and constants it has never seen.",
            hint="Use `compilescope explain --llm --llm-redact`, or a model on your own machine.",
        )
    if wanted.llm_dry_run and (given["write"] or given["script"] or given["output"]):
        raise ToolError("--llm-dry-run sends and writes nothing: leave out --write and --script.")
    from compilescope.report.llm.replies import problem_of

    settings = wanted.settings
    problem = problem_of(settings)
    if problem is not None and not wanted.llm_dry_run:
        raise ToolError(f"The model cannot be asked. {problem}")
    return ModelProposer(wanted, settings, rounds, tokens)


def _asking(wanted: LlmOptions, rounds: int, tokens: int) -> Iterator[str]:
    """What to type to ask the same: it is answered from what is kept."""
    if not wanted.llm:
        return
    yield "--llm"
    for flag, value in (("--llm-model", wanted.llm_model), ("--llm-url", wanted.llm_url)):
        yield from (flag, value) if value else ()
    for flag, number, usual in (
        ("--llm-rounds", rounds, _ROUNDS),
        ("--llm-tokens", tokens, _TOKENS),
    ):
        yield from (flag, str(number)) if number != usual else ()


@dataclass
class ModelProposer:
    """Asks about one cause after the other, until a round, a token or the server ends it."""

    wanted: LlmOptions
    settings: ModelSettings
    rounds: int
    tokens: int
    questions: list[tuple[int, Finding, PatchQuestion]] = field(default_factory=list)
    """What would be sent, in a dry run."""
    used: int = 0
    """Tokens, estimated."""
    asked: int = 0
    """Questions."""
    stopped: str = ""
    """Why nothing is asked any more, in one sentence."""

    @property
    def name(self) -> str:
        return self.settings.model or "a model"

    def propose(self, cause: OpenCause) -> ProposedPatch | None:
        from compilescope.change.repair.search.proposer import ProposedPatch
        from compilescope.report.llm.patch_reply import read_patch
        from compilescope.report.llm.replies import ask

        if self.stopped or len(cause.rejected) >= self.rounds:
            return None
        if cause.rejected and cause.rejected[-1].proposal.is_last:
            return None
        question = self._question(cause)
        if self.wanted.llm_dry_run:
            self.questions.append((len(self.questions) + 1, cause.subject.finding, question))
            return None
        if question.longest_answer <= 0:
            self._stop(f"--llm-tokens {self.tokens} are used up.")
            return None
        host = urlsplit(self.settings.url or "").netloc
        at = f"{cause.subject.file.rpartition('/')[2]}:{cause.subject.line}"
        again = f", again ({len(cause.rejected) + 1} of {self.rounds})" if cause.rejected else ""
        told = f"asking {self.name} at {host} for a patch of {at}{again}..."
        print(f"compilescope: {told}", file=sys.stderr)
        self.asked += 1
        reply = ask(question, self.settings)
        if reply.words is None:
            self._stop(reply.problem or "")
            return None
        if not reply.cached:
            self.used += _tokens_of(question) + len(reply.words) // _LETTERS
        found = read_patch(reply.words)
        return ProposedPatch(reply.words, found.diff, found.problem, is_last=found.declines)

    def _question(self, cause: OpenCause) -> PatchQuestion:
        from dataclasses import replace

        from compilescope.report.llm.patch_question import (
            MAX_PATCH_CHARS,
            ModelTry,
            patch_question,
        )

        program = cause.program
        tries = [ModelTry(each.proposal.reply, each.reason) for each in cause.rejected]
        asked = patch_question(
            program.run,
            program.digest,
            cause.subject.finding,
            cause.texts,
            cause.attempts,
            tries,
        )
        left = (self.tokens - self.used - _tokens_of(asked)) * _LETTERS
        return replace(asked, longest_answer=min(MAX_PATCH_CHARS, left))

    def _stop(self, words: str) -> None:
        self.stopped = f"The model was not asked any further: {words}"
        print(f"compilescope: {self.stopped}", file=sys.stderr)


def _tokens_of(question: PatchQuestion) -> int:
    return sum(len(each["content"]) for each in question.messages) // _LETTERS + 1
