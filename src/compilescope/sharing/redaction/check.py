"""The last look before a redacted run is handed out: none of the user's names may be in it.

It knows nothing of how the names were replaced, so it finds what was forgotten.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from compilescope.sharing.redaction import vocabulary
from compilescope.sharing.redaction.paths import KEPT_WORDS
from compilescope.sharing.redaction.run import Redaction

_WORD = re.compile(r"[^\W\d]\w*")
_ESCAPE = re.compile(r"\\u[0-9a-fA-F]{4}|\\.|\b[0-9a-f]{40}\.[a-z]+\b|\b[0-9a-f]{6}-redacted\b")
"""An escape of JSON, whose letter is no part of the word after it; hashes, and the run's new id."""
_OURS = KEPT_WORDS | {"kind", "host", "redacted", "Redacted", "missing"}
_AT_ONCE = 1 << 16
"""Letters, and the text that goes beyond them. Chosen: the words of so many take little memory."""
_SHORTEST = 3
"""Letters of a name that is looked for in the redacted run. Chosen: shorter ones stand in any text
by chance."""


def leaked_names(redaction: Redaction, texts: Iterable[str]) -> list[str]:
    """Names of the user's that these texts, the files of the redacted run, still have."""
    hidden = _hidden(redaction)
    found: set[str] = set()
    for text in texts:
        # No word goes over a quote or a line; what stands between them is often there again.
        for some in _joined(set(text.replace("\n", '"').split('"'))):
            found |= hidden.intersection(_words(some))
    return sorted(found)


def _joined(texts: Iterable[str]) -> Iterator[str]:
    """Many of the texts as one: most are a word or two, and take longer one by one."""
    some: list[str] = []
    size = 0
    for text in texts:
        some.append(text)
        size += len(text)
        if size > _AT_ONCE:
            yield '"'.join(some)
            some, size = [], 0
    yield '"'.join(some)


def _words(text: str) -> list[str]:
    return _WORD.findall(_ESCAPE.sub(" ", text))


def a_few(names: list[str]) -> str:
    """For a sentence; in a damaged run a name may be of any length."""
    return ", ".join(name if len(name) <= 60 else f"{name[:59]}…" for name in names[:5])


def _hidden(redaction: Redaction) -> set[str]:
    """The user's names, and the words of strings, but for those that are somebody else's too."""
    names = redaction.words.names
    kept = redaction.kept | names.public_paths
    shown = {word for some in _joined(kept) for word in _WORD.findall(some)}
    others = {*names.public, *names.given, *shown, *_OURS}
    spoken = {word for some in _joined(names.texts) for word in _words(some)}
    common = vocabulary.prose() | vocabulary.errors() | vocabulary.generated()
    return {
        word
        for word in (names.users | spoken | names.parts) - others - common
        if len(word) >= _SHORTEST and not vocabulary.is_public(word)
    }
