"""The envelope around every body, and its JSON line.

Invariant: `decode(encode(event)) == event`, and no line, however garbled, raises anything but
`UnreadableLine`.
"""

from typing import Any

import msgspec

from compilescope.base.patterns import late
from compilescope.base.texts import encode_json
from compilescope.record.bodies import Body, Unknown
from compilescope.record.stack import Frame, innermost_user_frame


class UnreadableLine(ValueError):
    """The line is no event: cut, garbled, or not ours."""


class Envelope(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, gc=False):
    """What every event has."""

    id: str
    """`<process>.<sequence>`; a process is its rank, `<rank>:<pid>` beside the first of a rank."""
    time_ns: int
    pid: int
    rank: int = 0
    thread: int = 0
    epoch: int = 0
    """How often `torch._dynamo.reset()` had run: compile ids start again with each."""
    compile_id: str | None = None
    """Dynamo's `frame/compile_attempt`."""
    test: str | None = None
    """The pytest node that was running."""
    stack: tuple[Frame, ...] = ()
    """The user's stack, outermost first."""

    @property
    def site(self) -> Frame | None:
        return innermost_user_frame(self.stack)


class _KnownEvent(Envelope, frozen=True, omit_defaults=True, kw_only=True):
    body: Body


class _RawEvent(Envelope, frozen=True, omit_defaults=True, kw_only=True):
    body: dict[str, Any]


class Event(Envelope, frozen=True, omit_defaults=True, kw_only=True):
    """One thing that was seen."""

    body: Body | Unknown


_MOST = 10**19
"""The smallest number of 20 digits: int64 ends below it (9.2e18)."""
_LONG_NUMBER = late(rb"[:,\[\s-][0-9]{20}")
"""In a value, or in a text: it is looked at closely only where this is found."""
_DIGITS = bytes.maketrans(b"123456789", b"0" * 9)
_ENVELOPE_FIELDS = tuple(field for field in Envelope.__struct_fields__)
_encoder = msgspec.json.Encoder()
_known = msgspec.json.Decoder(_KnownEvent)
_raw = msgspec.json.Decoder(_RawEvent)


def encode(event: Event) -> bytes:
    if isinstance(event.body, Unknown):
        raw = _RawEvent(**_fields(event), body=event.body.raw)
        return encode_json(raw, _encoder)
    return encode_json(event, _encoder)


def decode(line: bytes) -> Event:
    body: Body | Unknown
    envelope: Envelope
    try:
        known = _known.decode(line)
        envelope, body = known, known.body
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        try:
            raw = _raw.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise UnreadableLine(str(error)) from None
        envelope, body = raw, Unknown(raw.body)
    event = Event(**_fields(envelope), body=body)
    if may_have_long_number(line) and not _is_countable(event):
        raise UnreadableLine("a number is too large")
    return event


def may_have_long_number(text: bytes) -> bool:
    """Does it have so many digits in a row that only Python could hold the number?"""
    # An expression alone takes eight times as long, and this is asked of every byte of a run.
    return b"0" * 20 in text.translate(_DIGITS) and _LONG_NUMBER.search(text) is not None


def _is_countable(event: Event) -> bool:
    """No number that only Python could hold: rules divide and multiply them."""
    try:
        waiting = [msgspec.to_builtins(event)]
    except RecursionError:
        return False
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            waiting += each.values()
        elif isinstance(each, list | tuple):
            waiting += each
        elif isinstance(each, int) and abs(each) >= _MOST:
            return False
    return True


def _fields(envelope: Envelope) -> dict[str, Any]:
    return {name: getattr(envelope, name) for name in _ENVELOPE_FIELDS}
