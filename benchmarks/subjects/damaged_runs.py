"""Run folders, and one thing or several in them as they should not be."""

from __future__ import annotations

import json
import os
import random
import shutil
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, get_args

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

from hostile_sizes import sample
from mutating import (
    ODD_INTS,
    ODD_TEXTS,
    dump,
    mutate_bytes,
    mutate_json,
    odd_alike,
    odd_value,
)

import samples as samples  # Also for mutated_runs.py, which would not find it by itself.
from builders import event, frame, run_of
from compilescope.record.artifacts import artifact_name
from compilescope.record.bodies import Body
from compilescope.record.provenance import SEALS
from compilescope.record.run import Run

Mutation = Callable[[Path, random.Random], None]
KINDS = get_args(Body)
_WORDS = (
    *("forward", "model.py", f"{samples.ROOT}/model.py", "aten.mm.default", "torch.float32"),
    *("x.size()[0] == 2", "0/0", "1/0", "0/0_1", "0.1", "0.2", "inductor", "user", "Tensor.item()"),
    *("GB0170", "Data-dependent branching", "L['x']", "cuda:0", "f32[s0, 4]", "dynamo"),
)
_SOURCES = (
    b"\0import torch\n",
    "# -*- coding: latin-1 -*-\nx = 'é'\n".encode("latin-1"),
    "x = 'é'\n".encode("utf-16"),
    b"\xef\xbb\xbfx = 1\r\rdef f():\r\n\treturn x\n        y\n",
    b"this is no Python at all :-)\n" * 40,
    b"(" * 5000,
    b"x = [" * 200 + b"]" * 200,
    b"def f(x):\n" + b"    x = x + 1\n" * 3000,
    b"\x0c\x1c\x85\n" * 50,
    b"",
    b"{}",
    b"[]",
    b"null",
)


def random_run(rng: random.Random) -> Run:
    """Events of every kind, each field filled in, their texts and numbers in any order."""
    pool = [*_WORDS, *(name for name, _ in _all_artifacts())]

    class Texts:
        number = 0

        def __call__(self) -> str:
            return rng.choice(pool) if rng.random() < 0.9 else rng.choice(ODD_TEXTS)

    texts, events = Texts(), []
    for number in range(rng.choice((5, 40, 120))):
        texts.number = rng.choice((0, 1, 2, 7, rng.randrange(1000)))
        stack = (frame(rng.randrange(1, 30)), frame(rng.randrange(1, 12)))
        events.append(
            event(
                sample(rng.choice(KINDS), texts),
                number=number,
                compile_id=rng.choice(("0/0", "0/1", "1/0", None)),
                stack=stack[: rng.randrange(3)],
                rank=rng.choice((0, 0, 1)),
            )
        )
    run: Run = run_of(*events, ended=rng.random() < 0.8)
    for _, (text, suffix) in _all_artifacts():
        run.artifacts.put(text, suffix)
    return run


def _all_artifacts() -> list[tuple[str, tuple[str, str]]]:
    """Those of the tests' runs: graphs, guards, sources, fixes."""
    if not _known:
        for run in samples.RUNS.values():
            for name, text in run.artifacts.items():
                _known[name] = (text, name.rpartition(".")[2])
        _known[artifact_name(samples.SOURCE, "py")] = (samples.SOURCE, "py")
    return sorted(_known.items())


_known: dict[str, tuple[str, str]] = {}


def make_run(home: Path, name: str, rng: random.Random, bases: list[Path]) -> Path:
    """A run of any shape in `home`, and something in it that is wrong."""
    names = sorted(samples.RUNS)
    chosen = rng.randrange(len(names) + 5 + 2 * len(bases))
    if chosen < len(names):
        folder: Path = samples.store(samples.RUNS[names[chosen]], home, name)
    elif chosen < len(names) + 5:
        folder = samples.store(random_run(rng), home, name)
    else:
        folder = home / name
        shutil.copytree(bases[chosen % len(bases)], folder)
    # What the tool itself wrote may run programs. These are strangers'.
    (folder / SEALS).unlink(missing_ok=True)
    for _ in range(rng.choice((1, 1, 2, 5))):
        with suppress(RecursionError):  # What an earlier one made is too deep for this one.
            rng.choice(MUTATIONS)(folder, rng)
    return folder


def _files(folder: Path, pattern: str) -> list[Path]:
    """Plain files of the folder's own: what a link leads to is never touched."""
    return sorted(
        path
        for path in folder.glob(pattern)
        if not (path.is_symlink() or path.parent.is_symlink()) and path.is_file()
    )


def _event_files(folder: Path) -> list[Path]:
    return _files(folder, "events-*.jsonl")


def header(folder: Path, rng: random.Random) -> None:
    path = folder / "run.json"
    if path not in _files(folder, "*"):
        return  # Another mutation has put something else in its place.
    value = _json(path.read_bytes())
    if value is None:
        return
    for _ in range(rng.choice((1, 2, 4))):
        value = mutate_json(value, rng)
    if isinstance(value, dict) and rng.random() < 0.9:
        value = {"schema": 1, "run": folder.name, "tool": "0", **value}
    text = dump(value, rng)
    path.write_bytes(text * rng.choice((1, 1, 1, 2)))


def times(folder: Path, rng: random.Random) -> None:
    """Far away, before the start, all the same."""
    path = folder / "run.json"
    value = _json(path.read_bytes()) if path in _files(folder, "*") else None
    if isinstance(value, dict):
        for key in ("started_ns", "ended_ns", "exit_status", "signal", "launcher_pid", "main_pid"):
            if rng.random() < 0.5:
                value[key] = rng.choice((*ODD_INTS, 10**18, 2**62 + 5, None))
        path.write_bytes(dump(value, rng))
    far = rng.choice((*ODD_INTS, 10**18))
    for file in _event_files(folder):
        _rewrite(file, lambda each: each.update(time_ns=far), rng, rng.choice((0.1, 1.0)))


def events(folder: Path, rng: random.Random) -> None:
    for path in _event_files(folder):
        lines = path.read_bytes().split(b"\n")
        for _ in range(rng.choice((1, 5, 40))):
            at = rng.randrange(len(lines))
            value = _json(lines[at])
            if value is not None:
                lines[at] = dump(mutate_json(value, rng), rng)
        path.write_bytes(b"\n".join(lines))


def one_field(folder: Path, rng: random.Random) -> None:
    """One field of one kind of event, in all of its events: same type, other value."""
    for path in _event_files(folder):
        values = [_json(line) for line in path.read_bytes().splitlines()]
        found = [
            v["body"] for v in values if isinstance(v, dict) and isinstance(v.get("body"), dict)
        ]
        if not found:
            continue
        body = rng.choice(found)
        if not (fields := [name for name in body if name != "kind"]):
            continue
        field = rng.choice(fields)
        way = rng.choice((odd_alike, odd_alike, lambda _, rng: odd_value(rng)))
        for each in found:
            if each.get("kind") == body.get("kind") and field in each:
                each[field] = way(each[field], rng)
        path.write_bytes(b"\n".join(dump(value, rng) for value in values if value is not None))


def references(folder: Path, rng: random.Random) -> None:
    """Names of events, artifacts and processes lead to others: to none, to themselves, in rings."""
    for path in _event_files(folder):
        values = [v for v in map(_json, path.read_bytes().splitlines()) if isinstance(v, dict)]
        change = _Redirect(values, [found.name for found in _files(folder, "artifacts/*")], rng)
        path.write_bytes(b"\n".join(dump(_mapped(v, change), rng) for v in values) + b"\n")


class _Redirect:
    """Gives a name of another where it finds one."""

    def __init__(self, values: list[Any], artifacts: list[str], rng: random.Random) -> None:
        self._ids = [v["id"] for v in values if isinstance(v.get("id"), str)]
        self._pids = [v["pid"] for v in values if isinstance(v.get("pid"), int)]
        self._artifacts = artifacts
        self._rng = rng
        self._chance = rng.choice((0.1, 0.9))

    def __call__(self, value: Any, key: str) -> Any:
        if self._rng.random() > self._chance:
            return value
        if key in ("pid", "parent_pid") and self._pids:
            return self._rng.choice(self._pids)
        if not isinstance(value, str):
            return value
        if value in self._ids and key != "id":
            return self._rng.choice((*self._ids, "0.999999"))
        if len(value) > 40 and value[:40].isalnum() and self._artifacts:
            return self._rng.choice((*self._artifacts, "0" * 40 + ".json"))
        return value


def _mapped(value: Any, change: Callable[[Any, str], Any], key: str = "") -> Any:
    if isinstance(value, dict):
        return {name: _mapped(each, change, name) for name, each in value.items()}
    if isinstance(value, list):
        return [_mapped(each, change, key) for each in value]
    return change(value, key)


def order(folder: Path, rng: random.Random) -> None:
    """Lines twice, elsewhere, or with the name of another."""
    for path in _event_files(folder):
        lines = path.read_bytes().splitlines()
        if not lines:
            continue
        change = rng.randrange(4)
        if change == 0:
            lines += rng.choices(lines, k=rng.choice((1, 30)))
        elif change == 1:
            rng.shuffle(lines)
        elif change == 2:
            lines = lines[:1] * 2 + lines[::-1]
        else:
            lines = list(_swapped(lines, rng))
        path.write_bytes(b"\n".join(lines) + b"\n")


def _swapped(lines: list[bytes], rng: random.Random) -> Iterator[bytes]:
    values = [_json(line) for line in lines]
    known = [value for value in values if isinstance(value, dict)]
    for field in ("id", "compile_id", "pid", "time_ns", "rank", "epoch", "stack", "body"):
        given = [value.get(field) for value in known]
        rng.shuffle(given)
        if rng.random() < 0.4:
            for value, other in zip(known, given, strict=True):
                value[field] = other
    for line, value in zip(lines, values, strict=True):
        yield dump(value, rng) if value is not None else line


def without(folder: Path, rng: random.Random) -> None:
    """Nothing of a kind of event, or of a stage: what others lead to is not there."""
    marks = (b'"kind":"', b'"stage":"')
    for path in _event_files(folder):
        lines = path.read_bytes().splitlines(keepends=True)
        mark = rng.choice(marks)
        names = {line.partition(mark)[2].partition(b'"')[0] for line in lines} - {b""}
        dropped = rng.sample(sorted(names), min(len(names), rng.choice((1, 3, 6))))
        gone = tuple(mark + name for name in dropped)
        path.write_bytes(b"".join(line for line in lines if not any(g in line for g in gone)))


def ranks(folder: Path, rng: random.Random) -> None:
    """The same events as of many processes, some of them cut."""
    for path in _event_files(folder)[:1]:
        data = path.read_bytes()
        for number in rng.choice(((1,), (1, 2, 3), (7, 10**6), tuple(range(1, 40)))):
            other = folder / f"events-{number}{rng.choice(('', '', f'.{number + 50}'))}.jsonl"
            if not os.path.lexists(other):
                changed = data.replace(b'"id":"0.', b'"id":"%d.' % number)
                changed = changed.replace(b'"pid":', b'"rank":%d,"pid":' % number)
                other.write_bytes(changed[: rng.choice((len(changed), rng.randrange(1, 9999)))])


def any_bytes(folder: Path, rng: random.Random) -> None:
    files = _files(folder, "*") + _files(folder, "*/*")
    if files:
        path = rng.choice(files)
        path.write_bytes(mutate_bytes(path.read_bytes(), rng))


def artifact(folder: Path, rng: random.Random) -> None:
    files = _files(folder, "artifacts/*")
    for path in rng.sample(files, min(len(files), rng.choice((1, 3, 20)))):
        value = _json(path.read_bytes())
        if value is None or rng.random() < 0.1:
            path.write_bytes(mutate_bytes(path.read_bytes(), rng))
            continue
        for _ in range(rng.choice((1, 1, 4))):
            value = mutate_json(value, rng)
        path.write_bytes(dump(value, rng))


def sources(folder: Path, rng: random.Random) -> None:
    """Texts of another kind than their names say."""
    files = _files(folder, "artifacts/*")
    for path in rng.sample(files, min(len(files), rng.choice((1, 3, 20)))):
        path.write_bytes(rng.choice(_SOURCES))


def another_file(folder: Path, rng: random.Random) -> None:
    """A link, a folder, a pipe or nothing where a file was."""
    files = _files(folder, "*") + _files(folder, "*/*")
    if not files:
        return
    path = rng.choice(files)
    if rng.random() < 0.2:
        path.chmod(0)
        return
    path.unlink()
    change = rng.randrange(7)
    if change == 0:
        path.mkdir()
    elif change == 1:
        os.mkfifo(path)
    elif change in (2, 3, 4):
        targets = ("/dev/zero", "/etc/passwd", path.name, "/dev/null", ".", "/nowhere", "../..")
        path.symlink_to(rng.choice(targets))
    elif change == 5:
        path.write_bytes(b"")


def beside(folder: Path, rng: random.Random) -> None:
    """Files that the tool keeps with a run, as anybody may have written them."""
    names = ("labels.json", "products.jsonl", "seals.json", "sweep.json", "processes")
    value = rng.choice(
        (
            odd_value(rng),
            {"tags": odd_value(rng), "note": odd_value(rng)},
            {"tags": ["a"], "note": rng.choice(ODD_TEXTS)},
            {"kind": odd_value(rng), "path": odd_value(rng)},
            {"kind": "report", "path": rng.choice(ODD_TEXTS)},
            {"store": rng.choice(("../..", "nosuch://x", "memory://x", "/etc"))},
        )
    )
    path = folder / rng.choice(names)
    if not os.path.lexists(path) or path in _files(folder, "*"):
        path.write_bytes(dump(value, rng))
    if rng.random() < 0.3:
        Path(os.fsdecode(os.fsencode(folder) + b"/events-7.\xff.jsonl")).write_bytes(b"{}\n")
    if rng.random() < 0.3:
        more = folder / f"events-{rng.choice((7, 10**30, '٣', '1.2'))}.jsonl"
        if not os.path.lexists(more):
            more.write_bytes(b'{"id":"7.0","time_ns":1,"pid":1,"body":{"kind":"New"}}\n' * 3)


def folders(folder: Path, rng: random.Random) -> None:
    if (folder / "artifacts").is_symlink() or not (folder / "artifacts").is_dir():
        return
    shutil.rmtree(folder / "artifacts", ignore_errors=True)
    change = rng.randrange(3)
    if change == 0:
        (folder / "artifacts").write_bytes(b"")
    elif change == 1:
        (folder / "artifacts").symlink_to("/usr/share")


def _json(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def _rewrite(
    path: Path, change: Callable[[dict[str, Any]], None], rng: random.Random, chance: float
) -> None:
    lines = path.read_bytes().splitlines()
    for at, line in enumerate(lines):
        value = _json(line)
        if isinstance(value, dict) and rng.random() < chance:
            change(value)
            lines[at] = dump(value, rng)
    path.write_bytes(b"\n".join(lines) + b"\n")


MUTATIONS: tuple[Mutation, ...] = (
    *(without, header, header, times, events, events, events, one_field, one_field, one_field),
    *(references, references, order, ranks, any_bytes, artifact, artifact, artifact, sources),
    *(another_file, beside, folders),
)


def damaged_zip(folder: Path, target: Path, rng: random.Random) -> None:
    """The run as an archive, whatever `export` would say to it, and damaged."""
    files = _files(folder, "*") + _files(folder, "artifacts/*")
    names = {path: str(path.relative_to(folder)) for path in files if os.access(path, os.R_OK)}
    for path in rng.sample(sorted(names), min(len(names), rng.choice((0, 0, 1, 2)))):
        odd = ("../x", "/etc/x", "run.json", "a" * 300, "artifacts/../run.json", "\udcff", "x\0y")
        names[path] = rng.choice((*odd, names[path] + "/"))
    method = rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2))
    with zipfile.ZipFile(target, "w", method) as packed:
        for path, name in names.items():
            info = zipfile.ZipInfo(name.encode("utf-8", "replace").decode())
            if rng.random() < 0.02:
                info.external_attr = 0o120777 << 16
            info.compress_type = method
            packed.writestr(info, path.read_bytes())
    data = target.read_bytes()
    for _ in range(rng.choice((0, 1, 1, 3))):
        data = mutate_bytes(data, rng)
    if rng.random() < 0.05:
        with tarfile.open(target, rng.choice(("w", "w:gz"))) as packed:
            for path, name in names.items():
                packed.add(path, name)
        return
    if rng.random() < 0.05:
        data = rng.choice((b"", b"PK\x05\x06" + b"\0" * 18, b"\x1f\x8b\x08\x00", b"x" * 5000))
    target.write_bytes(data)
