"""Pages of runs whose every text is hostile: text on every page that shows one."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

import samples
from compilescope.record.header import RunHeader
from compilescope.record.run import Run
from dashboard_server import serving
from hostile import hostile_run, live_html, steering
from waiting import until

pytestmark = pytest.mark.slow
GROUPS = ("captured", "logged", "bench", "sweep")


def test_every_page_of_a_hostile_run(tmp_path: Path) -> None:
    home = tmp_path / "home"
    for group in GROUPS:
        made = hostile_run(group)
        plain = RunHeader(run=group, tool="1", root=made.header.root, exit_status=0)
        folder = samples.store(Run(plain, made.events, made.artifacts), home, group)
        fields = {**msgspec.structs.asdict(made.header), "run": group, "schema": 1}
        (folder / "run.json").write_text(json.dumps(fields))
    with serving(home) as served:
        until(lambda: len(served.client.get("/runs.json").json()["runs"]) == len(GROUPS))
        pages = ["/", "/runs.json", "/fixes", "/sweeps", "/benchmarks", "/numbers", "/devices"]
        of_one = ("", "/report.html", "/report.json")
        pages += [f"/runs/{group}{part}" for group in GROUPS for part in of_one]
        pages += ["/runs/sweep/jobs", "/fixes/captured", "/compare?a=captured&b=logged"]
        for page in pages:
            answer = served.client.get(page, follow_redirects=True)
            assert answer.status_code == 200, page
            assert not steering(answer.text), page
            if answer.headers["content-type"].startswith("text/html"):
                live = live_html(answer.text)
                assert not [each for each in live if "scripts" not in each], page
            else:
                assert answer.headers["x-content-type-options"] == "nosniff", page
                json.loads(answer.text)
