"""A sweep's store: what is in it is valid, and whatever is wrong with it is said."""

from __future__ import annotations

import time
import uuid
from pathlib import Path
from typing import Any

import fsspec
import msgspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from compilescope.base.errors import ToolError
from compilescope.scale.jobs.job import Finished, Job, JobResult
from compilescope.scale.jobs.store import (
    Holder,
    Lease,
    Store,
    StorePlace,
    StorePlan,
    key_of,
    plan_of,
)
from waiting import until

_JOBS = [Job(name=name, task="m:f") for name in ("a", "b", "A", "a b/ü", "a b\\ü", "..", "")]


@pytest.fixture(params=["folder", "file", "memory"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return {
        "folder": str(tmp_path / "new" / "store"),
        "file": f"file://{tmp_path}/store",
        "memory": f"memory://{uuid.uuid4().hex}",
    }[request.param]


def _plan(jobs: list[Job] = _JOBS, **options: Any) -> StorePlan:
    return plan_of(jobs, options)


def _result(name: str, **more: Any) -> JobResult:
    return JobResult(name=name, state="ok", **more)


def test_results_and_archives_come_back(url: str) -> None:
    plan = _plan(backend="inductor")
    with Store(url) as store:
        assert store.begin(plan) == plan
        for job in _JOBS:
            store.put(Finished(_result(job.name, value={"of": job.name})))
        put = store.put(Finished(_result("b", reason="x"), b"zip"))
    again = Store(url)
    assert again.sweep() == plan
    assert again.names() == {job.name for job in _JOBS}
    found = {each.name: each for each in again.results()}
    assert [found[job.name].value for job in _JOBS if job.name != "b"] == [
        {"of": job.name} for job in _JOBS if job.name != "b"
    ]
    assert found["b"] == put
    assert put.archive.startswith("archives/")
    assert (again.archive("b"), again.archive("a")) == (b"zip", b"")
    assert again.notes == []


def test_an_empty_store(url: str) -> None:
    store = Store(url)
    assert store.sweep() is None
    assert store.names() == frozenset()


def test_keys_are_safe_and_differ() -> None:
    names = [job.name for job in _JOBS] + ["x" * 500, "x" * 501]
    keys = [key_of(name) for name in names]
    assert len({key.lower() for key in keys}) == len(names)
    assert all(len(key) < 100 and not key.startswith(".") for key in keys)
    assert all(char.isalnum() or char in "._-" for key in keys for char in key)


def test_resuming_needs_to_be_asked_for(url: str) -> None:
    with Store(url) as store:
        first = store.begin(_plan())
    with Store(url) as store:
        assert store.begin(_plan()).id == first.id  # Nothing has ended: nothing to mix.
        store.put(Finished(_result("a")))
    with Store(url) as store, pytest.raises(ToolError, match="1 of 7 results") as caught:
        store.begin(_plan())
    assert "--resume" in caught.value.hint
    with Store(url) as store:
        assert store.begin(_plan(), resume=True).id == first.id


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (_plan(_JOBS[:3], timeout=5), "7 jobs, not 3"),
        (_plan([*_JOBS[:-1], Job(name="z", task="m:f")], timeout=5), "its jobs are not the same"),
        (_plan(timeout=6, fix=True), "fix was not set, not true; timeout was 5, not 6"),
        (
            msgspec.structs.replace(_plan(timeout=5), version="0.0.1"),
            "made by compilescope",
        ),
    ],
)
def test_a_store_of_another_sweep(url: str, other: StorePlan, said: str) -> None:
    with Store(url) as store:
        store.begin(_plan(timeout=5))
    with Store(url) as store, pytest.raises(ToolError) as caught:
        store.begin(other, resume=True)
    assert "holds another sweep: " in caught.value.message
    assert said in caught.value.message
    assert caught.value.exit_code == 2


def test_a_record_that_is_not_readable_is_not_finished(tmp_path: Path) -> None:
    with Store(str(tmp_path)) as store:
        store.begin(_plan())
        for name in "abA":
            store.put(Finished(_result(name, value={"long": "x" * 500})))
    whole = tmp_path / "jobs" / f"{key_of('a')}.json"
    whole.write_bytes(whole.read_bytes()[:-5])
    (tmp_path / "jobs" / f"{key_of('b')}.json").write_bytes(b"")
    (tmp_path / "jobs" / "copy.json").write_bytes(
        (tmp_path / "jobs" / f"{key_of('A')}.json").read_bytes()
    )
    (tmp_path / "jobs" / f"{key_of('c')}.json.part").write_bytes(b"{}")
    store = Store(str(tmp_path))
    assert store.names() == {"A"}
    assert {each.name for each in store.results()} == {"A"}
    assert store.notes[0].startswith("3 results in the store are not readable")


def test_two_jobs_of_one_name() -> None:
    with pytest.raises(ToolError, match="Two jobs are named a"):
        plan_of([_JOBS[0], _JOBS[0]], {})


def test_a_plan_that_is_not_readable(tmp_path: Path) -> None:
    (tmp_path / "sweep.json").write_text("{")
    with Store(str(tmp_path)) as store, pytest.raises(ToolError, match="not readable"):
        store.begin(_plan())


def test_a_place_that_cannot_be_written_to(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with Store(str(tmp_path / "file" / "store")) as store, pytest.raises(ToolError) as caught:
        store.begin(_plan())
    assert caught.value.message.startswith("Cannot ")
    assert "Not a directory" in caught.value.message


@pytest.mark.parametrize(
    ("url", "package", "said"),
    [("s3://bucket/x", "s3fs", "s3fs"), ("gs://bucket/x", "gcsfs", "gcsfs")],
)
def test_a_driver_that_is_not_installed(url: str, package: str, said: str) -> None:
    try:
        __import__(package)
    except ImportError:
        with pytest.raises(ToolError) as caught:
            Store(url)
        assert said in caught.value.message
        assert said in caught.value.hint
    else:
        pytest.skip(f"{package} is installed")


def test_a_protocol_that_nobody_knows() -> None:
    with pytest.raises(ToolError, match="Cannot open the store nope://x: Protocol not known"):
        Store("nope://x")


def test_a_password_is_not_shown(tmp_path: Path) -> None:
    place = StorePlace(f"file://user:secret@{tmp_path}")
    assert "secret" not in place.url


class _Flaky(MemoryFileSystem):
    """A store that is away for some calls."""

    protocol = "flaky"
    cachable = False
    failures = 0

    def pipe_file(self, path: str, value: bytes, **options: Any) -> None:
        if type(self).failures > 0:
            type(self).failures -= 1
            raise ConnectionError("the network is down")
        super().pipe_file(path, value, **options)


@pytest.fixture
def flaky() -> str:
    fsspec.register_implementation("flaky", _Flaky, clobber=True)
    _Flaky.failures = 0
    return f"flaky://{uuid.uuid4().hex}"


def test_a_store_that_is_away_for_a_moment(flaky: str) -> None:
    place = StorePlace(flaky, waits_s=(0.0, 0.0, 0.0))
    with Store(flaky, place=place, lease=Lease(place, settle_s=0)) as store:
        store.begin(_plan())
        _Flaky.failures = 3
        store.put(Finished(_result("a")))
        assert store.names() == {"a"}
        _Flaky.failures = 4
        with pytest.raises(ToolError, match="the network is down") as caught:
            store.put(Finished(_result("b"), b"zip"))
        assert "--resume" in caught.value.hint
        _Flaky.failures = 0
        assert store.names() == {"a"}


def test_only_one_driver_at_a_time(url: str) -> None:
    with Store(url) as first:
        first.begin(_plan())
        with (
            Store(url) as second,
            pytest.raises(ToolError, match=r"Another sweep on .*is writing"),
        ):
            second.begin(_plan())
        first.put(Finished(_result("a")))
    with Store(url) as third:
        third.begin(_plan(), resume=True)
        assert third.notes == []


def _hold(url: str, **more: Any) -> None:
    holder = {"token": "t", "machine": "far", "namespace": "n", "pid": 1, "started": 1.0}
    held = msgspec.convert({**holder, "beat": time.time(), **more}, Holder)
    StorePlace(url).write("lease.json", msgspec.json.encode(held))


def test_the_lease_of_a_machine_that_died_is_taken_over(url: str) -> None:
    _hold(url, beat=time.time() - 120)
    with Store(url) as store:
        store.begin(_plan())
        assert store.notes == [
            "Took over the store from a sweep on far that ended without closing it."
        ]
    _hold(url, beat=time.time() - 5)
    with Store(url) as store, pytest.raises(ToolError, match="on far, process 1, is writing"):
        store.begin(_plan())


def test_a_driver_that_lost_its_lease_writes_no_more(url: str) -> None:
    place = StorePlace(url)
    with Store(url, place=place, lease=Lease(place, beat_s=0.02)) as store:
        store.begin(_plan())
        _hold(url)

        def written() -> bool:
            store.put(Finished(_result("a")))
            _hold(url)
            return False

        with pytest.raises(ToolError, match="took over the store"):
            until(written)
    assert StorePlace(url).read("lease.json") is not None


def test_a_lease_is_renewed_and_given_back(url: str) -> None:
    place = StorePlace(url)
    lease = Lease(place, beat_s=0.02)
    lease.take()
    first = place.read("lease.json")
    until(lambda: place.read("lease.json") != first)
    lease.check()
    lease.release()
    assert place.read("lease.json") is None
