"""Devices: what they support, and their violations by model."""

from __future__ import annotations

from html import unescape
from pathlib import Path

import samples
from builders import event, run_of
from compilescope.backends.device_files import shipped_devices
from compilescope.record.bodies import DeviceChecked
from dashboard_history import stored
from dashboard_server import Served, serving
from waiting import until


def test_every_device_is_listed_with_its_violations(history: Served) -> None:
    page = history.client.get("/devices").text
    for device in shipped_devices():
        assert f'href="/devices/{device.name}"' in page
    assert 'href="/devices/my-chip"' in page  # Only a run knows it.


def test_what_nobody_chose_is_an_example_without_figures(history: Served) -> None:
    """No run was checked against it: what it would refuse stands on its own page."""
    page = unescape(history.client.get("/devices").text)
    yours, _, examples = page.partition('id="examples"')
    for name in ("npu-a", "my-chip"):
        assert f'href="/devices/{name}"' in yours
    assert 'href="/devices/edge-dsp"' in examples and 'href="/devices/edge-dsp"' not in yours
    assert "errors" not in examples


def test_a_device_shows_violations_by_model_and_what_it_supports(history: Served) -> None:
    page = unescape(history.client.get("/devices/npu-a").text)
    assert ">bert<" in page and ">train.py<" in page
    assert "found 7; allowed multiples of 16" in page and "Pad it." in page
    assert 'href="/runs/00000f-train"' in page
    assert "Number formats" in page
    own = unescape(history.client.get("/devices/my-chip").text)
    assert "aten.cos.default" in own and "Number formats" not in own


def test_the_graphs_of_the_newest_runs_are_checked(history: Served) -> None:
    """Nobody asked for that device when they ran."""
    page = unescape(history.client.get("/devices/edge-dsp").text)
    assert 'href="/runs/000014-big"' in page
    assert "found float32; allowed bool, float16, int32, int8" in page and "layer0.py:10" in page


def test_a_device_that_all_passes_is_yours_and_says_so(tmp_path: Path) -> None:
    home = tmp_path / ".compilescope"
    passed = DeviceChecked("my-npu", "pass", graphs=3, title="The chip we build", whole=True)
    refused = DeviceChecked("edge-dsp", "fail", graphs=3, errors=4, whole=True)
    for day, name in enumerate(("000001-train", "000002-train")):
        run = run_of(event(passed, number=0), event(refused, number=1), command=("train.py",))
        stored(run, home, name, day)
    with serving(home) as served:
        until(lambda: "my-npu" in served.client.get("/devices").text)
        yours, _, examples = unescape(served.client.get("/devices").text).partition('id="examples"')
        assert 'href="/devices/my-npu"' in yours and "The chip we build" in yours
        assert 'href="/devices/edge-dsp"' in yours and 'href="/devices/edge-dsp"' not in examples
        own = unescape(served.client.get("/devices/my-npu").text)
        assert own.count(">passed<") == 2 and 'href="/runs/000002-train"' in own
        assert "No violations found." in own
        other = unescape(served.client.get("/devices/edge-dsp").text)
        assert other.count(">failed<") == 2
        assert "compilescope preflight --device edge-dsp --run 000002-train" in other


def test_a_run_that_preflight_failed_is_the_one_whose_places_are_shown(tmp_path: Path) -> None:
    """Its count alone is in the run; an older run of the program would have other places."""
    home = tmp_path / ".compilescope"
    stored(samples.big_run(5, 6, 60), home, "000001-big", 1, command=("big.py",))
    newer = samples.big_run(5, 6, 60)
    failed = DeviceChecked("edge-dsp", "fail", graphs=6, errors=9, whole=True)
    newer.events.append(event(failed, number=10**6))
    stored(newer, home, "000002-big", 2, command=("big.py",))
    with serving(home) as served:
        until(lambda: "000002-big" in served.client.get("/devices/edge-dsp").text)
        page = unescape(served.client.get("/devices/edge-dsp").text)
        assert 'href="/runs/000002-big"' in page and 'href="/runs/000001-big"' not in page
        assert "found float32; allowed bool, float16, int32, int8" in page


def test_without_runs_it_says_what_to_do(tmp_path: Path) -> None:
    with serving(tmp_path / ".compilescope") as made:
        assert (
            "No violations found. Run or check a program" in made.client.get("/devices/npu-a").text
        )


def test_what_is_no_device_is_told(history: Served) -> None:
    for name, status in (("nothing", 404), ("a%20b", 404), ("x" * 300, 400)):
        assert history.client.get(f"/devices/{name}").status_code == status
