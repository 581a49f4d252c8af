"""What an exception's text says in one line: the innermost cause, its link, its place.

torch wraps one error in another, and says what went wrong last: in a `got RuntimeError('...')`,
under `raised:`, in the traceback of another process.
"""

from __future__ import annotations

import re

from compilescope.base.patterns import late
from compilescope.record.python_text import read_literal
from compilescope.record.stack import origin_of

_NAME = r"[A-Za-z_][\w.]{0,200}?(?:Error|Exception|Interrupt|Failed|Warning|Exit|Iteration)\w{0,60}"
_GOT = late(
    r"^(?:.*: got|[ \t]*Developer debug context: raised exception) "
    rf"({_NAME})\((.{{0,2000}})\)[ \t]*$",
    re.M,
)
_RAISED = late(r"^backend=.* raised:\s*\n", re.M)
_NAMED = late(rf"^({_NAME}): *(?! )(.*)$")
_TRACEBACK = "Traceback (most recent call last):"
_LINK = late(r"https?://[^\s)>\]]{1,300}/gb/gb(\d{1,9})\.html")
_USER_CODE = late(r"^(?:from user code:|Found from :)[ \t]*\n((?:[ \t]+.*\n?)+)", re.M)
_FILE = late(r'^[ \t]*File "([^"\n]+)", line (\d{1,9})', re.M)
_ALONE = late(rf"^{_NAME}$")
_SHORT = 160
"""Letters of a text that is shown as one line even if it has several. Chosen: two of a terminal."""
_COMPILER = late(r"^.*\b(?:fatal )?error: .*$", re.M)


def innermost_cause(message: str) -> str:
    """`RuntimeError: The size of tensor a (5) must match ...`; empty where no error is inside."""
    said = _in_other_process(message) or _under_raised(message) or _got(message)
    named = _NAMED.match(said or first_words(message))
    if named is None:
        return said
    return _unwrapped(*named.groups()) + _compiler_error(message)


def one_line(error: str, message: str) -> str:
    """`ValueError: ...`: the error's class, and what it says at heart."""
    cause = innermost_cause(message)
    if cause.startswith(f"{error}: "):
        return cause
    whole = " ".join(message.split())
    said = cause or (whole if len(whole) <= _SHORT else first_words(message))
    return f"{error}: {said}" if said else error


def first_words(message: str) -> str:
    """The first line that says something: more than a rule or a heading."""
    for line in message.splitlines():
        text = line.strip()
        if text.strip("-=*_ "):
            return " ".join(text.split())
    return ""


def graph_break_link(message: str) -> tuple[str, str | None]:
    """The page that torch links for it, and the id of that page."""
    found = _LINK.search(message)
    return (found[0], f"GB{found[1]}") if found else ("", None)


def user_place(message: str) -> tuple[str, int] | None:
    """The line that torch names under `from user code:`, the innermost one of the user's own."""
    block = _USER_CODE.search(message)
    places = _FILE.findall(block[1]) if block else []
    own = [place for place in places if origin_of(place[0]) == "user"] or places
    return (own[-1][0], int(own[-1][1])) if own else None


def _unwrapped(name: str, said: str) -> str:
    """`LoweringException: AssertionError: no` is an AssertionError."""
    inner = _NAMED.match(said)
    while inner is not None:
        name, said = inner.groups()
        inner = _NAMED.match(said)
    return f"{name}: {said}".rstrip(": ")


def _got(message: str) -> str:
    """Of `got RuntimeError('no')` what it quotes: `RuntimeError: no`."""
    found = _GOT.search(message)
    if found is None:
        return ""
    name, quoted = found.groups()
    try:
        value = read_literal(quoted) if quoted else ""
    except ValueError:
        value = quoted
    said = first_words(value) if isinstance(value, str) else quoted
    return f"{name}: {said}".rstrip(": ")


def _under_raised(message: str) -> str:
    """What stands under `backend='x' raised:`."""
    found = _RAISED.search(message)
    return first_words(message[found.end() :]) if found else ""


def _in_other_process(message: str) -> str:
    """The last line of the last traceback in the text."""
    _, found, after = message.rpartition(_TRACEBACK)
    if not found:
        return ""
    for line in after.splitlines():
        # Frames and what is quoted of them are set in; the error itself is not.
        if line[:1].strip() and (_NAMED.match(line) or _ALONE.match(line.strip())):
            return " ".join(line.split())
    return ""


def _compiler_error(message: str) -> str:
    """The first complaint of a C++ compiler whose whole output the message holds."""
    if "\nOutput:" not in message:
        return ""
    found = _COMPILER.search(message, message.index("\nOutput:"))
    return f": {' '.join(found[0].split())}" if found else ""
