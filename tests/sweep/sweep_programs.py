"""Programs that a sweep meets: those without torch end in every state within a moment."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

QUICK = {
    "fine.py": "print('fine')\n",
    "wrong.py": "raise ValueError('no data')\n",
    "three.py": "import sys\nprint('gave up', file=sys.stderr)\nsys.exit(3)\n",
    "crash.py": "import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n",
    "greedy.py": "import time\nkept = b'x' * 700_000_000\ntime.sleep(600)\n",
}
STATES = {
    "fine": "ok",
    "wrong": "failed",
    "three": "failed",
    "crash": "crashed",
    "greedy": "memory",
}
HANG = "import time\ntime.sleep(600)\n"
_COMPILED = "import torch\n\n\n@torch.compile(backend='eager', dynamic=False)\ndef f(x):\n"
TORCH = {
    "broken.py": f"{_COMPILED}    if x.sum() > 0:\n        x = x + 1\n    return x.cos()\n\n\n"
    "f(torch.ones(4))\nf(torch.ones(5))\n",
    "clean.py": f"{_COMPILED}    return x.cos()\n\n\nf(torch.ones(4))\n",
    "uncompiled.py": "import torch\n\nprint(torch.ones(2))\n",
    "killed.py": f"import os\n{_COMPILED}    print('now')\n    return x.cos()\n\n\n"
    "f(torch.ones(4))\nos.kill(os.getpid(), 9)\n",
    "built.py": "import torch\n\n\ndef build():\n    return torch.nn.Linear(4, 4), "
    "(torch.ones(2, 4),)\n\n\nmodel, args = build()\n"
    "torch.compile(model, backend='eager')(*args)\n",
}


def write_programs(folder: Path, programs: dict[str, str]) -> Path:
    """They, and a list of them."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in programs.items():
        (folder / name).write_text(text)
    (folder / "list.txt").write_text("".join(f"{name}\n" for name in programs))
    return folder / "list.txt"


def compilescope(folder: Path, *words: str, timeout: float = 280) -> subprocess.CompletedProcess:
    """The command as a user runs it, in `folder`."""
    command = [sys.executable, "-m", "compilescope", *words]
    environment = {**os.environ, "COMPILESCOPE_DIR": str(folder / "runs")}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=timeout
    )


def swept(folder: Path, *words: str) -> tuple[int, dict[str, Any]]:
    """Exit status and JSON of a sweep."""
    ended = compilescope(folder, "sweep", *words, "--json")
    assert ended.stdout, ended.stderr
    return ended.returncode, json.loads(ended.stdout)
