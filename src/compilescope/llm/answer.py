"""The words of an answer, from the lines that a server sends. Untrusted: any part may be amiss."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from compilescope.llm.prompt import printable

MAX_ANSWER_CHARS = 4000
"""Chosen: several times the words that the prompt asks for."""
_MOST_LEVELS = 8
"""Chosen: a bound for an answer that anyone may have made."""
CUT_NOTE = "\n[answer truncated here]"


class NoAnswer(Exception):
    """Why there are no words; the sentence has `{model}` where the model is named."""


class ServerError(Exception):
    """An error that the server reported in the middle of its answer: what it said."""


class Unreadable(Exception):
    """What came is no JSON: the kind of the error."""


def read_answer(lines: Iterable[bytes], on_text: Callable[[str], None]) -> str:
    """The words; `on_text` gets them piece by piece as they come."""
    answer = ModelAnswer(on_text)
    finish, count = None, 0
    for chunk in _chunks(lines):
        count += 1
        piece, finish_here = _piece(chunk)
        finish = finish_here or finish
        answer.feed(piece)
        if answer.full:
            finish = "length"
            break
    if not count:
        raise NoAnswer(
            "{model} did not send an answer. Is the URL the base of an OpenAI-compatible server "
            "(most end in /v1)?"
        )
    if finish is None:
        raise NoAnswer("The answer from {model} ended early.")
    if not answer.words.strip():
        raise NoAnswer("{model} sent an empty answer.")
    if finish in ("length", "content_filter"):
        answer.tell(CUT_NOTE)
    return answer.words.rstrip()


def _chunks(lines: Iterable[bytes]) -> Iterator[Any]:
    """The JSON values of a stream; of a server that does not stream, the one value that it sent."""
    plain: list[bytes] = []
    streamed = False
    for line in lines:
        if not line.startswith(b"data:"):
            plain.append(line)
            continue
        streamed = True
        text = line[5:].strip()
        if text == b"[DONE]":
            return
        yield _checked(text)
    whole = b"".join(plain).strip()
    if not streamed and whole.startswith(b"{"):
        value = _checked(whole)
        if value.get("choices"):
            yield value


def _checked(text: bytes) -> Any:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Unreadable(type(error).__name__) from None
    if isinstance(value, dict) and value.get("error"):
        raise ServerError(message_in(value["error"]))
    return value


def _piece(chunk: Any) -> tuple[str, str | None]:
    """Text and finish reason of a chunk."""
    choices = chunk.get("choices") if isinstance(chunk, dict) else None
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        return "", None
    part = choices[0].get("delta") or choices[0].get("message")
    text = part.get("content") if isinstance(part, dict) else None
    finish = choices[0].get("finish_reason")
    return text if isinstance(text, str) else "", finish if isinstance(finish, str) else None


def message_in(body: object) -> str:
    """Servers disagree on where the message is: OpenAI's in a dict, Gemini's in a list of them."""
    for _ in range(_MOST_LEVELS):
        if isinstance(body, list) and body:
            body = body[0]
        elif isinstance(body, dict):
            body = body.get("message") or body.get("error")
    return body if isinstance(body, str) else ""


class ModelAnswer:
    """The words so far, handed on as they come and no further than the longest answer."""

    def __init__(self, on_text: Callable[[str], None] = lambda _: None) -> None:
        self.words = ""
        self.full = False
        self._on_text = on_text
        self._heard = ""

    def feed(self, piece: str) -> None:
        self._heard += printable(piece)
        text = _without_thoughts(self._heard)
        self.full = len(text) > MAX_ANSWER_CHARS
        self.tell(text[len(self.words) : MAX_ANSWER_CHARS])

    def tell(self, text: str) -> None:
        if text:
            self.words += text
            self._on_text(text)


def tidy(text: str) -> str:
    """Words that came as a whole, with the same limits."""
    answer = ModelAnswer()
    answer.feed(text)
    return (answer.words + (CUT_NOTE if answer.full else "")).strip()


def _without_thoughts(text: str) -> str:
    """Servers without a reasoning parser pass a leading `<think>` block through."""
    text = text.lstrip()
    if text.startswith("<think>"):
        return text.partition("</think>")[2].lstrip()
    return "" if "<think>".startswith(text) else text
