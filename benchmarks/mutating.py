"""What fuzzers share: mutations of bytes, texts and JSON."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

_DEEP = 3000

ODD_TEXTS = (
    "",
    " ",
    "\ud800",
    "\udcff.py",
    "\x00",
    "\x1b]0;x\x07\x1b[31m",
    "\x9b31m",
    "\u202etxt.exe",
    "\u2028\x85\x0b\x0c\x1c",
    "\r\n# heading\n![x](y)",
    "<script>alert(1)</script>",
    "]]>-->\x08",
    "../../../etc/passwd",
    "/dev/zero",
    "/",
    ".",
    "~",
    "C:\\x\\y.py",
    "http://[::1",
    "%s%n{}{0}",
    "0/0",
    "0/0_1",
    "!0/0",
    "0.1",
    "0:5.1",
    "-1/-1",
    "٣/٣",
    "²",
    "1e999",
    "nan",
    "None",
    "s0",
    "s0*s1 // 0",
    "1/0",
    "L['x'].size()[0] == 2",
    "torch.float32",
    "9" * 5000,
    "(" * 3000,
    "[" * 300 + "]" * 300,
    "not " * 2000 + "x",
    "x" * 200_000,
    "a b " * 10_000,
    "\n" * 5000,
    "\U0001f600\u0301" * 20,
    "if x:\n\ty\n        z\n",
    "\ufeff# -*- coding: utf-7 -*-\nx = 1\n",
    "def f(:\n",
    "'''",
    "f'{x!r:{y}}'",
    "\\\n",
)
"""Nothing of them may reach anything but a reader's eyes."""
ODD_INTS = (0, -1, 1, 2, 40, 255, 256, 2**31, 2**53 + 1, 2**62, 2**63 - 1, -(2**63))
ODD_NUMBERS = (
    *(*ODD_INTS, 2**63, -(2**64), 10**18, 10**19, 10**30, 10**400),
    *(0.5, -0.0, -1.5, 1e-320, 1e308, -1e308, float("nan"), float("inf"), float("-inf")),
)
ODD_FLOATS = (0.0, -0.0, -1.0, 0.5, 1e-320, 1e18, 1e300, 1e308, -1e308)


def odd_value(rng: random.Random) -> Any:
    """Something that does not belong there."""
    kind = rng.randrange(6)
    if kind == 0:
        return rng.choice(ODD_TEXTS)
    if kind in (1, 2):
        return rng.choice(ODD_NUMBERS)
    if kind == 3:
        return rng.choice((None, True, False, [], {}, [None], {"": None}))
    if kind == 4:
        return _nested(rng.choice((3, 50, _DEEP)), rng)
    return [rng.choice(ODD_TEXTS[:8]) for _ in range(rng.choice((1, 3, 2000)))]


def _nested(depth: int, rng: random.Random) -> Any:
    value: Any = 1
    in_list = rng.random() < 0.5
    for _ in range(depth):
        value = [value] if in_list else {"a": value}
    return value


def odd_alike(value: Any, rng: random.Random) -> Any:
    """Another value of the same kind: what checks of types let through."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return rng.choice((*ODD_INTS, value + 1, -value, value * 10**6))
    if isinstance(value, float):
        return rng.choice((*ODD_FLOATS, -value, value * 1e12))
    if isinstance(value, str):
        return odd_text(value, rng)
    if isinstance(value, list):
        shuffled = rng.sample(value, len(value))
        return rng.choice(([], value[:1], value * 2, value * 40, shuffled))
    if isinstance(value, dict) and value:
        key = rng.choice(list(value))
        rest = {name: each for name, each in value.items() if name != key}
        return rng.choice(({}, rest, {**rest, rng.choice(ODD_TEXTS): value[key]}))
    return odd_value(rng)


def mutate_json(value: Any, rng: random.Random) -> Any:
    """A copy in which one thing is another, gone, or there twice."""
    places = list(_places(value))
    if not places or rng.random() < 0.03:
        return odd_value(rng)
    *path, last = rng.choice(places)
    copy = json.loads(json.dumps(value))
    inner = copy
    for step in path:
        inner = inner[step]
    change = rng.randrange(10)
    if change == 0:
        del inner[last]
    elif change == 1:
        inner[last] = [inner[last]]
    elif change == 2 and len(places) > 1:
        inner[last] = _at(value, rng.choice(places))
    elif change == 3:
        inner[last] = odd_value(rng)
    elif change == 4 and isinstance(last, str):
        alike = [place for place in places if place[-1] == last]
        inner[last] = _at(value, rng.choice(alike))
    else:
        inner[last] = odd_alike(inner[last], rng)
    return copy


def odd_text(text: str, rng: random.Random) -> str:
    at = rng.randrange(len(text) + 1)
    odd = rng.choice(ODD_TEXTS)
    # Mutated several times, a text would grow beyond any memory.
    long = text * min(50, 1 + 1_000_000 // (len(text) + 1))
    return rng.choice((odd, odd, text[:at] + odd + text[at:], text[:at], text[at:], long))


def _places(value: Any) -> Iterator[tuple[Any, ...]]:
    waiting: list[tuple[tuple[Any, ...], Any]] = [((), value)]
    while waiting:
        path, each = waiting.pop()
        steps = each if isinstance(each, dict) else range(len(each)) if _is_list(each) else ()
        for step in steps:
            yield (*path, step)
            waiting.append(((*path, step), each[step]))


def _is_list(value: Any) -> bool:
    return isinstance(value, list)


def _at(value: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        value = value[step]
    return value


def dump(value: Any, rng: random.Random) -> bytes:
    """As JSON, or nearly: with NaN, with halves of characters, escaped or as bytes."""
    try:
        text = json.dumps(value, ensure_ascii=rng.random() < 0.7)
    except (RecursionError, ValueError):
        text = "[" * _DEEP
    return text.encode("utf-8", "surrogatepass")


def mutate_bytes(data: bytes, rng: random.Random) -> bytes:
    at, end = sorted(rng.randrange(len(data) + 1) for _ in range(2))
    end = min(end, at + rng.choice((1, 20, 5000)))
    change = rng.randrange(9)
    if change == 0:
        return data[:at]
    if change == 1:
        return data[:at] + data[end:]
    if change == 2:
        return data[:end] + data[at:end] * rng.choice((1, 50)) + data[end:]
    if change == 3:
        return data[:at] + rng.randbytes(end - at) + data[end:]
    if change == 4:
        return data[:at] + b"\0" * (end - at) + data[end:]
    if change == 5:
        return data[:at] + dump(odd_value(rng), rng) + data[at:]
    if change == 6:
        return data[:at] + "é…\U0001f600".encode()[: rng.randrange(1, 9)] + data[end:]
    if change == 7:
        return recoded(data, rng)
    return data.replace(b"\n", rng.choice((b"\r\n", b"\r", b"", b"\n\n", b"\xff\n")))


def recoded(data: bytes, rng: random.Random) -> bytes:
    """The same text as another system would have written it."""
    text = data.decode("utf-8", "replace")
    name = rng.choice(("utf-16", "utf-16-be", "utf-32", "utf-8-sig", "latin-1", "cp1252", "cp037"))
    return text.encode(name, "replace")


def mutate_lines(text: str, rng: random.Random) -> str:
    """Of a file that people write, such as TOML: values, keys, lines and all of it."""
    lines = text.split("\n")
    for _ in range(rng.choice((1, 2, 4))):
        at = rng.randrange(len(lines))
        key, equals, value = lines[at].partition("=")
        change = rng.randrange(7)
        if change == 0:
            del lines[at : at + 1]
            lines = lines or [""]
        elif change == 1:
            lines.insert(at, lines[rng.randrange(len(lines))])
        elif change == 2 and equals:
            lines[at] = f"{key}= {_toml(rng)}"
        elif change == 3 and equals:
            other = rng.choice([line for line in lines if "=" in line])
            lines[at] = f"{key}={other.partition('=')[2]}"
        elif change == 4 and equals:
            lines[at] = f"{json.dumps(rng.choice(ODD_TEXTS))} ={value}"
        elif change == 5:
            lines[at] = odd_text(lines[at], rng)
        elif equals:
            lines[at] = f"{key}={value * rng.choice((2, 50))}"
    return "\n".join(lines)


def _toml(rng: random.Random) -> str:
    odd = json.dumps(rng.choice(ODD_TEXTS))
    return rng.choice(
        (
            *("-1", "0", "nan", "inf", "1e400", "9" * 5000, "true", '""', "[]", "{}", "[[1]]"),
            *("1979-05-27T07:32:00Z", "0x" + "f" * 300, "[" * 2000, '"-5 GiB"', '"1e999 GiB"'),
            *(odd, f"[{odd}]", f"{{ {odd} = 1 }}", '["*", "", "aten.*["]', "[-1, 2.5]"),
        )
    )
