"""Packs: many artifacts in one compressed file, for runs with more texts than a folder likes.

A pack is texts in blocks, each block compressed as a whole, then a table of the blocks, then an
index sorted by hash. It lies among the artifacts under a name like theirs (`<40 digits>.pack`), so
whatever copies a run copies its packs. It is written aside and renamed when it is whole. Whoever
made a pack, reading one gives the text of that hash or nothing, and no block may unpack to more
than it says it holds.
"""

from __future__ import annotations

import os
import struct
import threading
import zlib
from array import array
from collections import OrderedDict, deque
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from queue import SimpleQueue

from compilescope.record.plain_files import open_plain

SUFFIX = ".pack"
DIGEST_BYTES = 20
"""160 bits, as in the names of artifacts: no two texts share one by accident."""
_MAGIC = b"compilescope pack 1\n"
_FOOT = struct.Struct("<QQQ20s")
"""Where the table of blocks begins, how many blocks, how many texts, and the magic again."""
_BLOCK = struct.Struct("<QII")
"""Where a block begins, its length in the file, its length unpacked."""
_ENTRY = struct.Struct(f"<{DIGEST_BYTES}sIII")
"""Hash of a text, its block, where it begins in the unpacked block, its length."""
_BLOCK_BYTES = 1 << 17
"""Chosen: a larger block packs better, but whoever reads one text unpacks its block."""
_BLOCKS_KEPT = 16
"""Unpacked. Chosen: 8 MiB at most, since of those above four times the usual size one is kept."""
_MOST_WAITING = 8
"""Blocks that wait for the packing thread. Chosen: a mebibyte of memory, unless texts are large."""
LARGEST_TEXT = 1 << 26
"""Bytes of a block, unpacked. Chosen: far above any graph or code, for it bounds the memory that a
stranger's pack can take, three times: the block, the text and its letters."""
_LARGE = 4 * _BLOCK_BYTES
"""Bytes of a block, unpacked, from which on only one is kept."""
_MOST_UNPACKED = 1 << 30
_MOST_TIMES = 200
"""Bytes of large blocks that are unpacked from one pack, or so many times its length where that is
more. Chosen: it bounds the time that a stranger's pack can take, to seconds for ten megabytes."""


_MOST_KEPT = 1 << 23
"""Bytes of texts. Chosen: the memory of a small command."""
_written: dict[str, dict[bytes, bytes]] = {}
"""The texts, by hash, of the pack that was handed over last, by the pack's name, itself a hash:
whoever writes a small one and reads it again need not unpack it."""


class _Packer:
    """Packs blocks in a thread of its own, in their order."""

    def __init__(self, as_they_are: int) -> None:
        self._as_they_are = as_they_are
        self._blocks: SimpleQueue[bytes | None] = SimpleQueue()
        self._packed: SimpleQueue[bytes | Exception] = SimpleQueue()
        self._thread = threading.Thread(target=self._pack_all, daemon=True)
        self._thread.start()

    def _pack_all(self) -> None:
        stored = 0
        while (block := self._blocks.get()) is not None:
            stored += len(block)
            try:
                self._packed.put(zlib.compress(block, 0 if stored <= self._as_they_are else 1))
            except Exception as error:  # For the thread that waits.
                self._packed.put(error)

    def take(self, block: bytes) -> None:
        self._blocks.put(block)

    def packed(self) -> bytes:
        """The next block, as soon as it is packed."""
        found = self._packed.get()
        if isinstance(found, Exception):
            raise found
        return found

    def end(self) -> None:
        """After at most `_MOST_WAITING` blocks more."""
        self._blocks.put(None)
        self._thread.join()


class PackWriter:
    """Writes one pack."""

    def __init__(self, folder: Path, as_they_are: int = 0) -> None:
        """`as_they_are`: so many bytes of texts at its beginning are not compressed."""
        self._folder = folder
        self._as_they_are = as_they_are
        self._part = folder / f"{os.getpid()}-{os.urandom(4).hex()}{SUFFIX}.part"
        folder.mkdir(parents=True, exist_ok=True)
        self._file = self._part.open("wb")
        self._hash = blake2b(digest_size=DIGEST_BYTES)
        self._write(_MAGIC)
        self._at = len(_MAGIC)
        self._blocks = bytearray()
        self._count = 0
        self._packer: _Packer | None = None
        self._packing: deque[int] = deque()
        """Lengths of the blocks that were handed over."""
        self._pending: list[bytes] = []
        self._size = 0
        # Digest -> number of its text; the places are in arrays, which hold them far smaller.
        self._numbers: dict[bytes, int] = {}
        self._places = (array("I"), array("I"), array("I"))
        self._kept: dict[bytes, bytes] | None = {}
        """All texts; None where they are too many to keep, or not all known."""
        self._kept_bytes = 0
        self.path: Path | None = None
        """Where it lies, once it is whole."""

    def put(self, data: bytes) -> bytes:
        """Keep a text, unless it is there; its digest comes back."""
        digest = blake2b(data, digest_size=DIGEST_BYTES).digest()
        if digest not in self._numbers:
            self._numbers[digest] = len(self._numbers)
            for place, value in zip(
                self._places, (self._count, self._size, len(data)), strict=True
            ):
                place.append(value)
            self._pending.append(data)
            self._size += len(data)
            self._keep(digest, data)
            if self._size >= _BLOCK_BYTES:
                self._flush()
        return digest

    def _keep(self, digest: bytes, data: bytes) -> None:
        self._kept_bytes += len(data)
        if self._kept_bytes > _MOST_KEPT:
            self._kept = None
        elif self._kept is not None:
            self._kept[digest] = data

    def _flush(self) -> None:
        """Hand the block over. Packing leaves the interpreter free, so a thread does it."""
        if not self._pending:
            return
        data = b"".join(self._pending)
        self._pending, self._size = [], 0
        self._count += 1
        if self._packer is None:
            self._packer = _Packer(self._as_they_are)
        self._packer.take(data)
        self._packing.append(len(data))
        self._write_packed(_MOST_WAITING)

    def _write_packed(self, waiting: int) -> None:
        """Write the blocks that are packed, all but so many."""
        while self._packer is not None and len(self._packing) > waiting:
            self._write_block(self._packer.packed(), self._packing.popleft())

    def _write(self, data: bytes | bytearray) -> None:
        self._file.write(data)
        self._hash.update(data)

    def _write_block(self, stored: bytes, size: int) -> None:
        self._write(stored)
        self._blocks += _BLOCK.pack(self._at, len(stored), size)
        self._at += len(stored)

    def take(self, pack: Pack) -> None:
        """Take over the texts of another pack that are not here yet.

        Whole blocks are copied as they are; only blocks of which some is known are packed anew.
        """
        self._kept = None
        for block, entries in pack.blocks():
            new = [entry for entry in entries if entry[0] not in self._numbers]
            if len(new) == len(entries):
                stored, size = pack.stored_block(block)
                self._flush()
                self._write_packed(0)
                for digest, start, length in entries:
                    self._numbers[digest] = len(self._numbers)
                    for place, value in zip(
                        self._places, (self._count, start, length), strict=True
                    ):
                        place.append(value)
                self._write_block(stored, size)
                self._count += 1
                continue
            for digest, _, _ in new:
                data = pack.get(digest)
                if data is not None:
                    self.put(data)

    def close(self) -> Path | None:
        """Write the index and give the pack its name; an empty one is not kept."""
        if not self._numbers:
            self.discard()
            return None
        self._flush()
        self._write_packed(0)
        if self._packer is not None:
            self._packer.end()
        blocks, starts, lengths = self._places
        index = bytearray()
        for digest, number in sorted(self._numbers.items()):
            index += _ENTRY.pack(digest, blocks[number], starts[number], lengths[number])
        self._write(self._blocks)
        self._write(index)
        self._write(_FOOT.pack(self._at, self._count, len(self._numbers), _MAGIC))
        self._file.close()
        path = self._folder / f"{self._hash.hexdigest()}{SUFFIX}"
        self._part.replace(path)
        self.path = path
        return path

    def hand_over(self) -> None:
        """To whoever reads the pack in this process: its texts as they are, where they are few."""
        _written.clear()
        if self._kept is not None and self.path is not None:
            _written[self.path.name] = self._kept

    def discard(self) -> None:
        if self._packer is not None:
            self._packer.end()
        self._file.close()
        self._part.unlink(missing_ok=True)


class Pack:
    """Reads one pack. A few blocks stay unpacked: texts of one compilation lie together."""

    def __init__(self, path: Path) -> None:
        """Raises ValueError or OSError where the file is no whole pack."""
        self._path = path
        self._known = _written.get(path.name, {})
        self._unpacked: OrderedDict[int, bytes] = OrderedDict()
        self._large: tuple[int, bytes] | None = None
        """The large block that was unpacked last."""
        with open_plain(path) as file:
            size = file.seek(0, os.SEEK_END)
            if size < _FOOT.size:
                raise ValueError("too short")
            file.seek(size - _FOOT.size)
            table, blocks, texts, magic = _FOOT.unpack(file.read(_FOOT.size))
            if magic != _MAGIC or (
                table + blocks * _BLOCK.size + texts * _ENTRY.size + _FOOT.size != size
            ):
                raise ValueError("no pack")
            file.seek(table)
            self._blocks = file.read(blocks * _BLOCK.size)
            self._index = file.read(texts * _ENTRY.size)
        self._end = table
        self._large_left = max(_MOST_UNPACKED, _MOST_TIMES * size)
        self._texts = texts

    def get(self, digest: bytes) -> bytes | None:
        known = self._known.get(digest)
        if known is not None:
            return known
        entry = self._find(digest)
        if entry is None:
            return None
        block, start, length = entry
        data = self._unpack(block)
        if data is None or start + length > len(data):
            return None
        text = data[start : start + length]
        found = blake2b(text, digest_size=DIGEST_BYTES).digest()
        return text if found == digest else None

    def _find(self, digest: bytes) -> tuple[int, int, int] | None:
        low, high = 0, self._texts
        while low < high:
            middle = (low + high) // 2
            found, block, start, length = _ENTRY.unpack_from(self._index, middle * _ENTRY.size)
            if found == digest:
                return block, start, length
            if found < digest:
                low = middle + 1
            else:
                high = middle
        return None

    def size(self, digest: bytes) -> int:
        entry = self._find(digest)
        return entry[2] if entry is not None else 0

    def _unpack(self, block: int) -> bytes | None:
        known = self._unpacked.get(block)
        if known is not None:
            self._unpacked.move_to_end(block)
            return known
        if self._large is not None and self._large[0] == block:
            return self._large[1]
        self._large = None
        try:
            stored, size = self.stored_block(block)
            if size > _LARGE:
                self._large_left -= min(size, LARGEST_TEXT)
                if self._large_left < 0:
                    return None
            # No more than it says it holds, whatever it unpacks to.
            data = zlib.decompressobj().decompress(stored, min(size, LARGEST_TEXT) or 1)
        except (OSError, ValueError, struct.error, zlib.error):
            return None
        # One large text is a block of its own: sixteen of them must not stay.
        if len(data) > _LARGE:
            self._large = (block, data)
        else:
            self._unpacked[block] = data
            if len(self._unpacked) > _BLOCKS_KEPT:
                self._unpacked.popitem(last=False)
        return data

    def stored_block(self, block: int) -> tuple[bytes, int]:
        """A block as it lies in the file, and its length unpacked."""
        at, length, size = _BLOCK.unpack_from(self._blocks, block * _BLOCK.size)
        if at + length > self._end:
            raise ValueError("beyond the end")
        with open_plain(self._path) as file:
            file.seek(at)
            return file.read(length), size

    def texts(self) -> Iterator[bytes]:
        """Every text, block by block."""
        for block, entries in self.blocks():
            data = self._unpack(block) or b""
            for _, start, length in entries:
                yield data[start : start + length]

    def blocks(self) -> list[tuple[int, list[tuple[bytes, int, int]]]]:
        """Every block with the texts in it: (digest, start, length), in their order."""
        inside: dict[int, list[tuple[bytes, int, int]]] = {}
        for at in range(0, len(self._index), _ENTRY.size):
            digest, block, start, length = _ENTRY.unpack_from(self._index, at)
            inside.setdefault(block, []).append((digest, start, length))
        return [
            (block, sorted(entries, key=lambda entry: entry[1]))
            for block, entries in sorted(inside.items())
        ]
