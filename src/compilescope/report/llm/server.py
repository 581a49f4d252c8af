"""Which model is asked, where, and with which key: a key goes only where it was meant to go."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from compilescope.base.settings import ModelVariables, read_model_variables

OPENAI_URL = "https://api.openai.com/v1"
GEMINI_URL = "https://generativelanguage.googleapis.com/v1beta/openai"
_USUAL_MODELS = {OPENAI_URL: "gpt-4o-mini", GEMINI_URL: "gemini-2.5-flash"}
OWN_KEY, OPENAI_KEY, GEMINI_KEY = "COMPILESCOPE_LLM_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"


@dataclass(frozen=True)
class ModelSettings:
    """The language model to ask. Nothing is sent where the model or the server is not known."""

    model: str | None = None
    """Its name, as the server calls it."""
    url: str | None = None
    """The base URL of an OpenAI-compatible server."""
    key: str | None = field(default=None, repr=False)
    timeout_s: float = ModelVariables.timeout_s
    cache_dir: Path = field(default_factory=lambda: ModelVariables().cache_dir)
    key_name: str = ""
    """The variable that the key comes from."""
    withheld: str = ""
    """A variable with a key that is not sent, since it is for another server."""


def model_settings(
    variables: ModelVariables | None = None, *, model: str | None = None, url: str | None = None
) -> ModelSettings:
    """What the environment says; `model` and `url` are those that somebody named just now."""
    known = read_model_variables() if variables is None else variables
    model = model or known.model
    chosen = url or known.url or known.openai_url or _usual_server(model, known)
    key_name, key = _key_for(chosen, url, known) if chosen else ("", None)
    withheld = "" if key else _withheld(known)
    if model is None and key is not None and chosen is not None:
        usual = (name for server, name in _USUAL_MODELS.items() if same_server(chosen, server))
        model = next(usual, None)
    return ModelSettings(model, chosen, key, known.timeout_s, known.cache_dir, key_name, withheld)


def _usual_server(model: str | None, known: ModelVariables) -> str | None:
    """Of a model or a key whose server nobody named."""
    if (model or "").lower().startswith("gemini") and (known.key or known.gemini_key):
        return GEMINI_URL
    if known.key or known.openai_key:
        return OPENAI_URL
    return GEMINI_URL if known.gemini_key else None


def _key_for(chosen: str, named: str | None, known: ModelVariables) -> tuple[str, str | None]:
    """The variable whose key this server may see, and the key.

    Our own key belongs to our own URL, where both are set. OpenAI's belongs to OPENAI_BASE_URL or
    OpenAI, and to a server on this machine that somebody named just now: the key stays here.
    """
    if known.key and (named is None or known.url is None or same_server(named, known.url)):
        return OWN_KEY, known.key
    if known.gemini_key and same_server(chosen, GEMINI_URL):
        return GEMINI_KEY, known.gemini_key
    home = known.openai_url or OPENAI_URL
    if known.openai_key and (
        same_server(chosen, home) or (named is not None and is_this_machine(named))
    ):
        return OPENAI_KEY, known.openai_key
    return "", None


def _withheld(known: ModelVariables) -> str:
    keys = {OPENAI_KEY: known.openai_key, GEMINI_KEY: known.gemini_key, OWN_KEY: known.key}
    return next((name for name, key in keys.items() if key), "")


def same_server(one: str, other: str) -> bool:
    """The same scheme, host and port: a key for https is not sent over http."""
    try:
        return _origin(urlsplit(one)) == _origin(urlsplit(other))
    except ValueError:
        return False


def _origin(parts: SplitResult) -> tuple[str, str, int | None]:
    usual = {"https": 443, "http": 80}.get(parts.scheme)
    return parts.scheme, (parts.hostname or "").rstrip("."), parts.port or usual


def is_this_machine(url: str) -> bool:
    """Is it an address that never leaves this machine?"""
    try:
        host = urlsplit(url).hostname or ""
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
