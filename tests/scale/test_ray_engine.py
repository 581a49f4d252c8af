"""The Ray engine on a cluster of its own; and what it says where there is none."""

from __future__ import annotations

import http.server
import json
import os
import subprocess
import sys
import threading
import zipfile
from pathlib import Path

import pytest

from compilescope.base.errors import ToolError
from compilescope.scale.jobs.ray_work import FOLDER, pack
from scale.ray_cluster import environment

_DRIVER = """
import json, sys
from pathlib import Path
from compilescope.scale.jobs.ray_engine import RayEngine
from scale.quick_tasks import make

jobs = [make(f"{n}", "program", code="print(open('data.txt').read())") for n in range(6)]
jobs.append(make("raises", "fail", kind="value"))
heard = []
with RayEngine(jobs=2, working_dir=Path(sys.argv[1])) as engine:
    found = [each.result for each in engine.run(iter(jobs), heard.append)]
print(json.dumps({
    "results": {each.name: [each.state, (each.value or {}).get("stdout")] for each in found},
    "most": max(len(each.running) for each in heard),
    "machines": [[each.name, each.problem] for each in engine.machines()],
}))
"""


@pytest.mark.slow
@pytest.mark.ray
def test_a_cluster_of_its_own(tmp_path: Path) -> None:
    """The whole of it in one process: jobs, the user's folder, and no word from Ray."""
    pytest.importorskip("ray")
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "data.txt").write_text("from the folder")
    # Ray's workers must not import a program of the user's in place of a module.
    (folder / "random.py").write_text("raise SystemExit('imported by mistake')")
    ran = subprocess.run(
        [sys.executable, "-c", _DRIVER, str(folder)],
        capture_output=True,
        text=True,
        env=environment() | {"TMPDIR": str(tmp_path)},
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr == ""
    told = json.loads(ran.stdout)
    expected = {f"{number}": ["ok", "from the folder\n"] for number in range(6)}
    assert told["results"] == expected | {"raises": ["failed", None]}
    assert told["most"] == 2
    assert told["machines"] == [[os.uname().nodename, ""]]


def test_no_cluster_at_the_address() -> None:
    pytest.importorskip("ray")
    for address in ("127.0.0.1:1", "host.invalid:6379", "ray://127.0.0.1:1"):
        assert _refused(address) == f"No Ray cluster answers at {address}."
    assert _refused("nonsense") == "'nonsense' is not a Ray address."
    assert _refused("a:b") == "'a:b' is not a Ray address."


def test_something_else_at_the_address() -> None:
    pytest.importorskip("ray")
    with http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler) as server:
        server.RequestHandlerClass.log_message = lambda *_: None  # type: ignore[method-assign]
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"127.0.0.1:{server.server_port}"
        assert _refused(address) == f"No Ray cluster answers at {address}."
        server.shutdown()


def test_ray_is_not_installed() -> None:
    code = (
        "import sys; sys.modules['ray'] = None\n"
        "from compilescope.base.errors import ToolError\n"
        "from compilescope.scale.jobs.ray_engine import RayEngine\n"
        "try: RayEngine().__enter__()\n"
        "except ToolError as error: print(error.message, error.hint)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == (
        'Ray is not installed. Install it with: pip install "compilescope[ray]"'
    )


def test_what_is_sent_to_the_nodes(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    for name in ("a.py", "inner/b.txt", ".git/config", "venv/x", "inner/__pycache__/a.pyc"):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    (folder / ".gitignore").write_text("a.py\n")
    (folder / "loop").symlink_to(folder)
    (folder / "a.py").chmod(0o755)
    pack(folder, tmp_path / "one.zip")
    pack(folder, tmp_path / "two.zip")
    assert (tmp_path / "one.zip").read_bytes() == (tmp_path / "two.zip").read_bytes()
    with zipfile.ZipFile(tmp_path / "one.zip") as archive:
        names = {name.removeprefix(f"{FOLDER}/") for name in archive.namelist()}
        assert names == {"", ".gitignore", "a.py", "inner/b.txt"}
        assert archive.getinfo(f"{FOLDER}/a.py").external_attr >> 16 == 0o755


def test_a_folder_that_is_too_large(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "weights.bin").write_bytes(b"0" * (1 << 20))
    (folder / "a.py").write_text("a")
    with pytest.raises(ToolError, match=r"too large .*: 1\.0 MiB, .* 0\.5 MiB .* weights\.bin"):
        pack(folder, tmp_path / "a.zip", most_bytes=1 << 19)
    with pytest.raises(ToolError, match="is not a folder"):
        pack(tmp_path / "none", tmp_path / "a.zip")


def _refused(address: str) -> str:
    from compilescope.scale.jobs.ray_engine import RayEngine

    with pytest.raises(ToolError) as error, RayEngine(address):
        raise AssertionError("it opened")
    return error.value.message
