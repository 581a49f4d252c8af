"""A language model's words about causes: of a server, or of a function that somebody passes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from compilescope.errors import ToolError
from compilescope.llm.answer import tidy
from compilescope.llm.llm import ModelReply, ask
from compilescope.llm.prompt import CauseQuestion, Prompt, text_prompt
from compilescope.llm.server import ModelSettings
from compilescope.model.error_text import one_line

Answering = Callable[[Prompt], str | None]
"""Gets the whole question as a text, with `.messages` for whoever talks in messages."""


@dataclass(frozen=True)
class Speaker:
    """Who answers."""

    name: str
    answer: Callable[[CauseQuestion], ModelReply]


def server_speaker(settings: ModelSettings) -> Speaker:
    return Speaker(settings.model or "", lambda question: ask(question, settings))


def function_speaker(function: Answering) -> Speaker:
    """A function that raises at the first question is broken, and its traceback says how; one that
    raises later has given answers, which may have cost money and are kept."""
    name = getattr(function, "__name__", "") or type(function).__name__
    name = "your function" if name == "<lambda>" else name

    answered = False

    def answer(question: CauseQuestion) -> ModelReply:
        nonlocal answered
        try:
            said = function(text_prompt(question))
        except Exception as error:
            if not answered:
                raise
            return ModelReply(None, f"{name} raised {_error(error)}", name)
        answered = True
        if said is not None and not isinstance(said, str):
            raise ToolError(
                f"{name} must return text for a question, not {type(said).__name__}.",
                hint="Return the model's answer as a str, or None for no answer.",
            )
        words = tidy(said or "")
        return ModelReply(words or None, None if words else f"{name} returned no answer.", name)

    return Speaker(name, answer)


def _error(error: Exception) -> str:
    said = one_line(type(error).__name__, str(error))
    return said if said.endswith((".", "!", "?")) else f"{said}."


def replies(speaker: Speaker, questions: Sequence[CauseQuestion]) -> Iterator[ModelReply]:
    """One for each question, up to the first without words: the next would fail likewise."""
    for question in questions:
        reply = speaker.answer(question)
        yield reply
        if reply.words is None:
            return
