"""A driver to be killed: `python ray_driver.py ADDRESS STORE FILE JOBS`, run again to resume."""

from __future__ import annotations

import sys

from compilescope.scale.jobs.ray_engine import RayEngine
from compilescope.scale.jobs.schedule import run_jobs
from compilescope.scale.jobs.store import Store, plan_of
from scale.quick_tasks import make


def main(address: str, url: str, file: str, count: int) -> None:
    names = [f"job-{number}" for number in range(count)]
    jobs = [make(name, "note", name=name, file=file, seconds=0.2) for name in names]
    with RayEngine(address) as engine, Store(url) as store:
        store.begin(plan_of(jobs, {}), resume=True)
        for result in run_jobs(jobs, engine, store, lambda progress: None):
            print(result.name, result.state, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
