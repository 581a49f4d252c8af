"""Local processes and a Ray cluster come to the same findings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sweep.sweep_programs import QUICK, TORCH, swept, write_programs

_MEASURED = ("seconds", "overhead_seconds", "machine", "compile_seconds", "run", "attempts")


def _findings(value: dict[str, Any]) -> list[dict[str, Any]]:
    """All but what a clock says."""
    found = []
    for job in value["jobs"]:
        causes = [{k: v for k, v in each.items() if k != "seconds"} for each in job["causes"]]
        kept = {key: each for key, each in job.items() if key not in _MEASURED}
        found.append({**kept, "causes": causes})
    return found


@pytest.mark.ray
@pytest.mark.torch
@pytest.mark.slow
def test_local_and_ray_give_the_same_findings(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    names = ("fine.py", "wrong.py", "crash.py")
    programs = {name: QUICK[name] for name in names}
    programs |= {f"sub/{name}": TORCH[name] for name in ("broken.py", "killed.py")}
    (tmp_path / "sub").mkdir()
    write_programs(tmp_path, programs)
    words = ("list.txt", "--jobs", "2", "--limit", "120")
    status, local = swept(tmp_path, *words)
    assert status == 1 and local["states"] == {"ok": 2, "failed": 1, "crashed": 2}
    status, ray = swept(tmp_path, *words, "--engine", "ray")
    assert status == 1
    assert _findings(ray) == _findings(local)
    files = {cause["file"] for job in ray["jobs"] for cause in job["causes"]}
    assert files == {str(tmp_path / "sub" / name) for name in ("broken.py", "killed.py")}
