"""Makes the golden traces anew:  python tests/logs/golden/make.py

They are what torch wrote, with two changes: folders are called as on nobody's machine, and the
hashes of payloads are those of the payloads so changed. README.md says when, and with which torch.
"""

from __future__ import annotations

import hashlib
import lzma
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
_HASH = re.compile(rb'"has_payload": "[0-9a-f]{32}"')


def make(backend: str, cache: Path) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        environment = {
            **os.environ,
            "TORCH_TRACE": folder,
            "TORCHINDUCTOR_CACHE_DIR": str(cache),
            "CUDA_VISIBLE_DEVICES": "",
        }
        program = [sys.executable, str(HERE / "model.py"), backend]
        subprocess.run(program, env=environment, check=True, stdout=subprocess.DEVNULL)
        (trace,) = Path(folder).glob("*.log")
        data = trace.read_bytes()
    shared = os.path.commonpath((HERE, sys.prefix))
    names = {
        folder: "/home/ada/trace",
        str(cache): "/home/ada/cache",
        str(HERE): "/home/ada/project",
        f"{os.path.relpath(HERE, shared)}/": "project/",
        sys.prefix: "/home/ada/venv",
        sys.base_prefix: "/usr",
        shared: "/home/ada",
    }
    for old, new in sorted(names.items(), key=lambda item: -len(item[0])):
        data = data.replace(old.encode(), new.encode())
    return b"".join(_hashed(record) for record in re.split(rb"(?<=\n)(?!\t)", data))


def _hashed(record: bytes) -> bytes:
    head, tab, payload = record.partition(b"\n\t")
    if tab:
        text = payload.removesuffix(b"\n").replace(b"\n\t", b"\n")
        digest = hashlib.md5(text).hexdigest().encode()
        head = _HASH.sub(b'"has_payload": "%s"' % digest, head)
    return head + tab + payload


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for name, backend in (("eager", "eager"), ("inductor", "inductor"), ("warm", "inductor")):
            packed = lzma.compress(make(backend, Path(folder)), preset=9)
            (HERE / f"torch_trace_{name}.log.xz").write_bytes(packed)


if __name__ == "__main__":
    main()
