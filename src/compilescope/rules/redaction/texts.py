"""The artifacts of a run, redacted. Their names are hashes of what they hold, so they change."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from compilescope.model.artifacts import Artifacts, artifact_name
from compilescope.model.graph import Graph, KernelOrigins, Origins
from compilescope.model.guard_text import decode_guards
from compilescope.rules.redaction.files import Files
from compilescope.rules.redaction.policies import Policy
from compilescope.rules.redaction.prose import Prose

if TYPE_CHECKING:
    from compilescope.rules.redaction.records import Records

_encoder = msgspec.json.Encoder()
_STRUCTS: dict[str, type[msgspec.Struct]] = {
    "artifact-graph": Graph,
    "artifact-origins": Origins,
    "artifact-kernels": KernelOrigins,
}
_NOTHING = "{}"


class Texts:
    """From the name of an artifact to the name of the redacted one."""

    def __init__(
        self, old: Artifacts, new: Artifacts, files: Files, prose: Prose, public: set[str]
    ) -> None:
        """`public` are the sources of well-known packages: they stay."""
        self._old = old
        self._new = new
        self._files = files
        self._prose = prose
        self._public = public
        self._done: dict[tuple[str, str], str] = {}

    def redacted(self, name: str, policy: Policy, records: Records) -> str:
        key = (name, policy)
        if key not in self._done:
            self._done[key] = self._put(name, policy, records)
        return self._done[key]

    def _put(self, name: str, policy: Policy, records: Records) -> str:
        text = self._old.get(name)
        kind = name.rpartition(".")[2]
        kind = kind if kind.isalpha() and kind.islower() and kind.isascii() else "txt"
        if text is None:
            # The name alone would tell what the missing text was, to who can guess it.
            return artifact_name(f"missing {len(self._done)}", kind)
        return self._new.put(self._text(text, name, policy, records), kind)

    def _text(self, text: str, name: str, policy: Policy, records: Records) -> str:
        if policy == "artifact-source":
            if name in self._public:
                self._files.kept.add(text)
                return text
            return self._files.source(text).text
        if policy == "artifact-generated":
            return self._prose.generated(text)
        try:
            if policy == "artifact-guards":
                return _encoder.encode(records.guards(decode_guards(text))).decode()
            struct = msgspec.json.decode(text, type=_STRUCTS[policy])
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return _NOTHING
        return _encoder.encode(records.struct(struct)).decode()
