"""The base class of all event bodies, and words that many of them use: verdicts, stages, findings.

A body is frozen and holds plain JSON values; the name of its class is its kind in the file.
"""

from typing import Literal

import msgspec


class EventBody(
    msgspec.Struct, frozen=True, tag=True, tag_field="kind", omit_defaults=True, gc=False
):
    """Frozen, with plain JSON values; its class names its kind.

    What is frozen and comes from a line of text holds no cycle: Python's garbage collector need not
    walk through millions of such values, here and in what bodies are made of (`gc=False`).
    """


Verdict = Literal["pass", "fail", "unknown"]
"""What could not be told is `unknown`, and never a pass."""
GraphStage = Literal[
    "dynamo",
    "aot_joint",
    "aot_forward",
    "aot_backward",
    "aot_inference",
    "post_grad",
    "ir_pre_fusion",
    "ir_post_fusion",
]
# Stored runs name them, so none is renamed.
FindingKind = Literal["break", "recompile", "eager", "failure", "violation", "difference"]
Level = Literal["error", "warning", "note"]
