"""How long a report of a long job takes to make, and how large it is, in every format.

    python benchmarks/report_speed.py [--events 10000] [--graphs 500] [--repeat 3]

The run is made up: as many graphs at four stages each, the rest graph breaks at 200 places. Times
are CPU seconds of this process, medians over the repeats; reading it from disk is part of it.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from compilescope.record.run import read_run
from compilescope.report.blocks import Document
from compilescope.report.document import report_document
from compilescope.report.render.markdown import to_markdown
from compilescope.report.render.page import to_page
from compilescope.report.render.sarif import to_sarif
from compilescope.report.render.terminal import to_text
from compilescope.report.section import Reading
from samples import big_run, store


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=10_000)
    parser.add_argument("--graphs", type=int, default=500)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    formats: dict[str, Callable[[Document], str]] = {
        "html": lambda document: to_page([document]),
        "md": to_markdown,
        "sarif": lambda document: to_sarif([document]),
        "terminal": to_text,
    }
    with tempfile.TemporaryDirectory() as folder:
        run = big_run(graphs=options.graphs, events=options.events)
        path = store(run, Path(folder), "long-job")
        print(f"{len(run.events)} events, {options.graphs} graphs")
        for name, draw in formats.items():
            seconds = []
            for _ in range(options.repeat):
                start = time.process_time()
                text = draw(report_document(Reading(read_run(path), full=True)))
                seconds.append(time.process_time() - start)
            size = len(text.encode()) / 1e6
            print(f"{name:>9}: {statistics.median(seconds):6.2f} s CPU, {size:6.2f} MB")


if __name__ == "__main__":
    main()
