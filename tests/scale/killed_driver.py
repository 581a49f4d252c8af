"""A driver to be killed: `python killed_driver.py STORE FILE JOBS GATE`, run again to resume."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from compilescope.scale.jobs.local_engine import LocalEngine
from compilescope.scale.jobs.schedule import run_jobs
from compilescope.scale.jobs.store import Store, plan_of
from scale.quick_tasks import make


def main(url: str, file: str, count: int, gate: str) -> None:
    names = [f"job-{number}" for number in range(count)]
    jobs = [make(name, "note", name=name, file=file, gate=gate) for name in names]
    with LocalEngine(2) as engine, Store(url) as store:
        store.begin(plan_of(jobs, {}), resume=True)
        for result in run_jobs(jobs, engine, store, lambda progress: None):
            print(result.name, result.state, flush=True)
        for note in store.notes:
            print("note:", note, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4])
