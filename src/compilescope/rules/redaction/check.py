"""The last look before a redacted run is handed out: none of the user's names may be in it.

It knows nothing of how the names were replaced, so it finds what was forgotten.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from compilescope.rules.redaction import vocabulary
from compilescope.rules.redaction.paths import KEPT_WORDS
from compilescope.rules.redaction.run import Redaction

_WORD = re.compile(r"[^\W\d]\w*")
_ESCAPE = re.compile(r"\\u[0-9a-fA-F]{4}|\\.|\b[0-9a-f]{40}\.[a-z]+\b|\b[0-9a-f]{6}-redacted\b")
"""An escape of JSON, whose letter is no part of the word after it; hashes, and the run's new id."""
_OURS = KEPT_WORDS | {"kind", "host", "redacted", "Redacted", "unreadable", "missing"}
_SHORTEST = 3


def leaked_names(redaction: Redaction, texts: Iterable[str]) -> list[str]:
    """Names of the user's that these texts, the files of the redacted run, still have."""
    hidden = _hidden(redaction)
    found: set[str] = set()
    for text in texts:
        found |= hidden.intersection(_WORD.findall(_ESCAPE.sub(" ", text)))
    return sorted(found)


def _hidden(redaction: Redaction) -> set[str]:
    """The user's names, and the words of strings, but for those that are somebody else's too."""
    names = redaction.words.names
    shown = {word for text in redaction.kept for word in _WORD.findall(text)}
    others = {*names.public, *names.given, *shown, *_OURS}
    spoken = {word for text in names.texts for word in _WORD.findall(_ESCAPE.sub(" ", text))}
    common = vocabulary.prose() | vocabulary.errors() | vocabulary.generated()
    return {
        word
        for word in (names.users | spoken | names.parts) - others - common
        if len(word) >= _SHORTEST and not vocabulary.is_public(word)
    }
