"""No damage makes a reader raise, and what remains readable is still read."""

from __future__ import annotations

import random

import pytest

from compilescope.record.event import decode, encode
from logs.consoles import golden, golden_names, read

SMALL = ("flags.c07_t213_recompiles", "flags.c01_openxla_noflags")


@pytest.mark.parametrize("name", SMALL)
def test_cut_at_every_byte(name: str) -> None:
    data = golden(name)
    for at in range(len(data)):
        read(data[:at])
        read(data[at:])


def window(data: bytes, rng: random.Random, most: int) -> bytes:
    at = rng.randrange(len(data))
    return data[at : at + rng.choice((200, 2000, most))]


def flipped(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.randrange(1, 60)):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def shuffled(data: bytes, rng: random.Random) -> bytes:
    lines = data.split(b"\n")
    rng.shuffle(lines)
    return b"\n".join(lines)


def thinned(data: bytes, rng: random.Random) -> bytes:
    return b"\n".join(line for line in data.split(b"\n") if rng.random() < 0.8)


def salted(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(30):
        changed.insert(
            rng.randrange(len(changed) + 1), rng.choice((0, 255, 27, 10, 13, 128, 40, 91))
        )
    return bytes(changed)


def clipped(data: bytes, rng: random.Random) -> bytes:
    return b"\n".join(line[rng.randrange(len(line) + 1) :] for line in data.split(b"\n"))


def mixed(data: bytes, rng: random.Random) -> bytes:
    other = golden(rng.choice(golden_names())).split(b"\n")[:400]
    lines = data.split(b"\n")
    for line in other:
        lines.insert(rng.randrange(len(lines) + 1), line)
    return b"\n".join(lines)


DAMAGES = (flipped, shuffled, thinned, salted, clipped, mixed)


def check(rounds: int, seed: int, most: int) -> None:
    rng = random.Random(seed)
    names = golden_names()
    for _ in range(rounds):
        data = rng.choice(DAMAGES)(window(golden(rng.choice(names)), rng, most), rng)
        run, tally = read(data, block=rng.choice((700, 1 << 21)))
        assert tally.unread >= 0
        for event in run.events:
            assert decode(encode(event)) == event


def test_damaged() -> None:
    check(rounds=150, seed=1, most=20_000)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 8))
def test_damaged_much(seed: int) -> None:
    check(rounds=500, seed=seed, most=100_000)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    ["xla_lazy.c02_item", "t213.c00_clean", "ttlike.c00_clean.head", "flags.c02_t213_customformat"],
)
def test_cut_at_many_bytes(name: str) -> None:
    data = golden(name)
    step = max(len(data) // 400, 1)
    for at in range(0, len(data), step):
        read(data[:at])
        read(data[at:])
