"""Which settings of TORCH_LOGS must have been on, by the lines that are there."""

from __future__ import annotations

from compilescope.logs.format import ReadTally

_WITH_DYNAMO = frozenset(
    {
        "graph_breaks",
        "guards",
        "graph_code",
        "trace_source",
        "trace_call",
        "trace_bytecode",
        "side_effects",
        "graph_sizes",
        "not_implemented",
    }
)
"""Artifacts that `+dynamo` brings by itself."""
_DYNAMO = (b"torch/_dynamo/", b"torch/fx/experimental/symbolic_shapes.py")


class Evidence:
    """What was seen of one log."""

    def __init__(self) -> None:
        self.traced = False
        """Lines of the tracer: only `+dynamo` has them."""
        self._artifacts: set[str] = set()
        self._debug: set[str] = set()
        self._info: set[str] = set()
        self._format = False

    def line(self, level: bytes, where: bytes, artifact: str) -> None:
        if artifact:
            self._artifacts.add(artifact)
        elif level == b"V":
            self._debug.add(_component(where))
        elif level == b"I":
            self._info.add(_component(where))

    def custom(self, prefix: bytes, artifact: str) -> None:
        self._format = True
        if artifact:
            self._artifacts.add(artifact)
        elif b"DEBUG" in prefix:
            self._debug.add("dynamo")
        elif b"INFO" in prefix:
            self._info.add("dynamo")

    def tell(self, tally: ReadTally) -> None:
        parts: list[str] = []
        if self.traced or "dynamo" in self._debug:
            parts.append("+dynamo")
        elif "dynamo" in self._info:
            parts.append("dynamo")
        parts += sorted(f"+{name}" for name in self._debug - {"dynamo", ""})
        parts += sorted(self._info - self._debug - {"dynamo", ""})
        extra = self._artifacts - (_WITH_DYNAMO if "+dynamo" in parts else set())
        parts += sorted(extra)
        if parts:
            tally.flags.add("TORCH_LOGS=" + ",".join(parts))
            if self._format:
                tally.flags.add("TORCH_LOGS_FORMAT")


def _component(where: bytes) -> str:
    """The log that a file of torch belongs to."""
    if where.startswith(_DYNAMO):
        return "dynamo"
    if where.startswith((b"torch/_functorch/", b"torch/_aot")):
        return "aot"
    if where.startswith(b"torch/_inductor/"):
        return "inductor"
    if where.startswith(b"torch/distributed/"):
        return "distributed"
    return ""
