"""Keeps the fields of every graph-break message (type, ID, explanation, hints) as torch formats it.

Later hooks meet the formatted text alone, and look the fields up by it.
"""

from __future__ import annotations

from compilescope.instrument.torchapi.hook import Hook, HookedCall, Watch
from compilescope.record.break_text import BreakFields


def _remember(watch: Watch, call: HookedCall) -> None:
    from torch._dynamo import exc

    gb_type = call["gb_type"]
    load = getattr(exc, "_load_gb_type_to_gb_id_map", dict)
    fields = BreakFields(
        gb_type=gb_type,
        gb_id=load().get(gb_type),
        explanation=call["explanation"],
        hints=tuple(call["hints"]),
        context=call["context"],
    )
    watch.texts.remember(call.result, fields)


HOOK = Hook(
    id="break-messages",
    module="torch._dynamo.exc",
    target="format_graph_break_message",
    loses="exact hints and IDs of graph breaks: they are read from the message text instead",
    after=_remember,
)
