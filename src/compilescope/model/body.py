"""The base class of all event bodies, and the names of the stages that a graph passes.

A body is frozen and holds plain JSON values; the name of its class is its kind in the file.
"""

from __future__ import annotations

from typing import Literal

import msgspec


class EventBody(msgspec.Struct, frozen=True, tag=True, tag_field="kind", omit_defaults=True):
    """Frozen, with plain JSON values; its class names its kind."""


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
