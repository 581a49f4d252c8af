"""A language model's words about causes: of a server, or of a function that somebody passes.

`ask` never fails because of the network, the server or the answer: it returns a sentence instead.
What comes back is untrusted: printable text of limited length, and no more. Answers are kept by
server, model and question, one text file each: a line with the checksum, then the words. A file is
whole or absent; one that was damaged since counts as absent. Keeping is a favour: a full disk is no
error.
"""

from __future__ import annotations

import contextlib
import email.utils
import hashlib
import json
import os
import socket
import ssl
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

from compilescope.base.errors import ToolError
from compilescope.record.error_text import one_line
from compilescope.report.llm.http_request import ModelRequest, ServerRefused, TooLong, answer_lines
from compilescope.report.llm.prompt import (
    MAX_ANSWER_CHARS,
    Prompt,
    Question,
    printable,
    prompt_for,
    request_for,
    text_prompt,
)
from compilescope.report.llm.server import ModelSettings, same_server

_FORMAT = "compilescope-answer-2"


def entry_for(folder: Path, url: str, model: str, messages: Sequence[dict[str, str]]) -> Path:
    """Where the answer of `model` at `url` to `messages` is kept: two servers may well give
    different models the same name."""
    content = json.dumps([_FORMAT, url.rstrip("/"), model, list(messages)], sort_keys=True)
    return folder / f"{_hash(content)}.txt"


def read_entry(entry: Path) -> str | None:
    try:
        # Bytes, because text mode would rewrite line ends under the checksum.
        head, _, words = entry.read_bytes().decode().partition("\n")
    except (OSError, UnicodeDecodeError):
        return None
    return words if words and head == f"{_FORMAT} {_hash(words)}" else None


def write_entry(entry: Path, words: str) -> None:
    with contextlib.suppress(OSError):
        entry.parent.mkdir(parents=True, exist_ok=True)
        # Under another name first: a reader never meets half an answer.
        handle, draft = tempfile.mkstemp(dir=entry.parent, suffix=".part")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(f"{_FORMAT} {_hash(words)}\n{words}".encode())
            os.replace(draft, entry)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(draft)
            raise


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


_REDIRECTS = (301, 302, 303, 307, 308)  # HTTP's; 300 and 304 name no other place to ask.


class _Problem(Exception):
    """One sentence on why there are no words."""


@dataclass(frozen=True)
class ModelReply:
    """What came of a question: either words or a problem."""

    words: str | None
    problem: str | None
    """One sentence, when there are no words."""
    model: str
    cached: bool = False
    """The words are from an earlier time; nothing was sent."""


def problem_of(settings: ModelSettings) -> str | None:
    """Why these settings cannot work, before anything leaves the machine; None where they can."""
    if settings.url is None:
        return (
            "No model server is set: set OPENAI_API_KEY or GEMINI_API_KEY, or name a server with "
            "--llm-url or COMPILESCOPE_LLM_URL."
        )
    if not settings.model:
        return "No model is set: name one with --llm-model or COMPILESCOPE_LLM_MODEL."
    try:
        parts = urlsplit(settings.url)
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        usable = False
    url = settings.url
    if not usable or not (url.isascii() and url.isprintable()) or " " in url:
        return (
            "The model URL (--llm-url or COMPILESCOPE_LLM_URL) is not an http or https URL; it is "
            "one such as http://localhost:11434/v1."
        )
    if "@" in parts.netloc or parts.query or parts.fragment:
        # Such parts often hold a secret, and addresses end up in logs.
        return (
            "The model URL must not contain a user name or a query; put the secret in "
            "COMPILESCOPE_LLM_KEY."
        )
    if settings.key and not (settings.key.isascii() and settings.key.isprintable()):
        return f"{_key_name(settings)} contains characters that are not allowed in a key."
    return None


def ask(
    question: Question, settings: ModelSettings, on_text: Callable[[str], None] | None = None
) -> ModelReply:
    """Ask, or take the kept answer. `on_text` gets the words piece by piece as they come."""
    model = settings.model or ""
    problem = problem_of(settings)
    if problem is not None:
        return ModelReply(None, problem, model)
    entry = entry_for(settings.cache_dir, settings.url or "", model, prompt_for(question))
    kept = read_entry(entry)
    if kept is not None:
        words = printable(kept)
        if on_text:
            on_text(words)
        return ModelReply(words, None, model, cached=True)
    try:
        request = request_for(question, settings)
        most = question.longest_answer
        words = _ask_server(request, settings, on_text or (lambda _: None), most)
    except _Problem as said:
        return ModelReply(None, str(said), model)
    write_entry(entry, words)
    return ModelReply(words, None, model)


def _ask_server(
    request: ModelRequest, settings: ModelSettings, on_text: Callable[[str], None], most: int
) -> str:
    deadline = time.monotonic() + settings.timeout_s
    for attempt in (1, 2):
        failed: Exception
        try:
            # Closed by hand: a traceback would keep the generator, and its connection, alive.
            with contextlib.closing(answer_lines(request, settings.key, deadline)) as lines:
                # A server that echoes what it was sent would otherwise put the key into the cache.
                return _without_key(_read_answer(_marked(lines), on_text, most), settings)
        except NoAnswer as nothing:
            raise _Problem(str(nothing).replace("{model}", settings.model or "")) from None
        except _Failed as wrapped:
            failed = wrapped.error
        except (ServerError, Unreadable) as error:
            failed = error
        wait_s = _retry_after_s(failed)
        if attempt == 2 or wait_s is None or time.monotonic() + wait_s >= deadline:
            raise _problem_for(failed, settings) from None
        time.sleep(wait_s)
    raise AssertionError("the second attempt returns or raises")


class _Failed(Exception):
    """The server or the way to it failed. Not so what a caller raises while it is told words."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error


def _marked(lines: Iterator[bytes]) -> Iterator[bytes]:
    try:
        yield from lines
    except Exception as error:  # Of the thread that talks to the server: a border.
        raise _Failed(error) from None


def _retry_after_s(error: Exception) -> float | None:
    """How long a server that is asked too often wants us to wait, if it says so."""
    if not isinstance(error, ServerRefused) or error.status != 429:
        return None
    text = str(error.headers.get("retry-after") or "")
    if text.isascii() and text.isdigit():
        return float(text)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(text).timestamp() - time.time())
    except (ValueError, TypeError):
        return None


def _problem_for(error: Exception, settings: ModelSettings) -> _Problem:
    """The sentence for what went wrong."""
    server = f"The model's server at {urlsplit(settings.url or '').netloc}"
    if isinstance(error, TimeoutError):
        return _Problem(f"{server} did not finish its answer within {settings.timeout_s:g} s.")
    if isinstance(error, ServerRefused):
        return _Problem(f"{server} {_refusal(error, settings)}.")
    if isinstance(error, TooLong):
        return _Problem(f"{server} sent an answer that is too long; the rest was not read.")
    if isinstance(error, ServerError):
        return _Problem(f"{server} failed with an error{_quoted(str(error), settings)}.")
    if isinstance(error, OSError):
        return _Problem(f"{server} {_unreachable(error)}.")
    # Bad JSON in the stream, a line cut by the network, an answer that is no HTTP.
    kind = str(error) if isinstance(error, Unreadable) else type(error).__name__
    return _Problem(f"{server} sent an unreadable answer ({kind}).")


def _refusal(error: ServerRefused, settings: ModelSettings) -> str:
    status = error.status
    said = _quoted(_said(error.body), settings)
    if status in _REDIRECTS:
        return f"{_redirect(error, settings)} (HTTP {status}); redirects are not followed"
    if status in (401, 403):
        # What it said is left out: some servers quote the key.
        return _key_words(settings, status)
    if status == 404:
        return f"has no model {settings.model!r}, or its URL is wrong (HTTP 404){said}"
    if status == 429:
        return f"accepts no more requests for now: rate limit or quota (HTTP 429){said}"
    if status >= 500:
        return f"has an internal error (HTTP {status}){said}"
    return f"rejected the request (HTTP {status}){said}"


def _redirect(error: ServerRefused, settings: ModelSettings) -> str:
    url = settings.url or ""
    try:
        to = urljoin(url, printable(str(error.headers.get("location") or "")).strip())
        host = urlsplit(to).netloc.rpartition("@")[2]
    except ValueError:
        host = ""
    if not host:
        return "redirects to an invalid address"
    if same_server(to, url):
        return "redirects to another address on the same server"
    return f"redirects to another server, {host[:100]}"


def _key_words(settings: ModelSettings, status: int) -> str:
    if settings.key:
        return f"rejected the key (HTTP {status}): check {_key_name(settings)}"
    kept = (
        f"; {settings.withheld} is for another server and was not sent" if settings.withheld else ""
    )
    return f"needs a key (HTTP {status}): set COMPILESCOPE_LLM_KEY{kept}"


def _key_name(settings: ModelSettings) -> str:
    return settings.key_name or "COMPILESCOPE_LLM_KEY"


def _unreachable(error: OSError) -> str:
    if isinstance(error, socket.gaierror):
        return "was not found: the name is unknown, or there is no network"
    if isinstance(error, ConnectionRefusedError):
        return "is not running: the connection was refused"
    if isinstance(error, ssl.SSLCertVerificationError):
        return "has a certificate that cannot be verified"
    return "could not be reached, or closed the connection"


def _said(body: bytes) -> str:
    try:
        return _message_in(json.loads(body))
    except (ValueError, RecursionError):
        return ""


def _quoted(text: str, settings: ModelSettings) -> str:
    """The server's own words, made fit to stand in a sentence."""
    text = " ".join(printable(_without_key(text, settings)).split()).rstrip(".")
    return f': "{text[:200]}"' if text else ""


def _without_key(text: str, settings: ModelSettings) -> str:
    return text.replace(settings.key, "[key]") if settings.key else text


Answering = Callable[[Prompt], str | None]
"""Gets the whole question as a text, with `.messages` for whoever talks in messages."""


@dataclass(frozen=True)
class Speaker:
    """Who answers."""

    name: str
    answer: Callable[[Question], ModelReply]


def server_speaker(settings: ModelSettings) -> Speaker:
    return Speaker(settings.model or "", lambda question: ask(question, settings))


def function_speaker(function: Answering) -> Speaker:
    """A function that raises at the first question is broken, and its traceback says how; one that
    raises later has given answers, which may have cost money and are kept."""
    name = getattr(function, "__name__", "") or type(function).__name__
    name = "your function" if name == "<lambda>" else name

    answered = False

    def answer(question: Question) -> ModelReply:
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
        words = _tidy(said or "")
        return ModelReply(words or None, None if words else f"{name} returned no answer.", name)

    return Speaker(name, answer)


def _error(error: Exception) -> str:
    said = one_line(type(error).__name__, str(error))
    return said if said.endswith((".", "!", "?")) else f"{said}."


def replies(speaker: Speaker, questions: Sequence[Question]) -> Iterator[ModelReply]:
    """One for each question, up to the first without words: the next would fail likewise."""
    for question in questions:
        reply = speaker.answer(question)
        yield reply
        if reply.words is None:
            return


_MOST_LEVELS = 8
"""Chosen: a bound for an answer that anyone may have made."""
CUT_NOTE = "\n[answer truncated here]"


class NoAnswer(Exception):
    """Why there are no words; the sentence has `{model}` where the model is named."""


class ServerError(Exception):
    """An error that the server reported in the middle of its answer: what it said."""


class Unreadable(Exception):
    """What came is no JSON: the kind of the error."""


def _read_answer(lines: Iterable[bytes], on_text: Callable[[str], None], most: int) -> str:
    """The words, `most` letters at most; `on_text` gets them piece by piece as they come."""
    answer = ModelAnswer(on_text, most)
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
        raise ServerError(_message_in(value["error"]))
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


def _message_in(body: object) -> str:
    """Servers disagree on where the message is: OpenAI's in a dict, Gemini's in a list of them."""
    for _ in range(_MOST_LEVELS):
        if isinstance(body, list) and body:
            body = body[0]
        elif isinstance(body, dict):
            body = body.get("message") or body.get("error")
    return body if isinstance(body, str) else ""


class ModelAnswer:
    """The words so far, handed on as they come and no further than the longest answer."""

    def __init__(
        self, on_text: Callable[[str], None] = lambda _: None, most: int = MAX_ANSWER_CHARS
    ) -> None:
        self._most = most
        self.words = ""
        self.full = False
        self._on_text = on_text
        self._heard = ""

    def feed(self, piece: str) -> None:
        self._heard += printable(piece)
        text = _without_thoughts(self._heard)
        self.full = len(text) > self._most
        self.tell(text[len(self.words) : self._most])

    def tell(self, text: str) -> None:
        if text:
            self.words += text
            self._on_text(text)


def _tidy(text: str) -> str:
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
