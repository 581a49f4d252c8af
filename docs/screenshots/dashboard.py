"""Record real runs and take pictures of the dashboard over them.

    python docs/screenshots/dashboard.py -o DIR [--tool PATH] [--runs DIR]

A folder with copies of examples/*.py is worked on as a user would: programs run, one is edited,
another gets verified fixes, and they run again; a benchmark and a sweep follow. Then `compilescope
serve` shows it: runs-WIDTH-SCHEME.png is the list, and live-WIDTH-SCHEME.png a run that was started
from the form, while it happens.

--runs keeps the recordings there, and takes those that are there already.

It needs Chromium and the packages of `pip install -e ".[dev]"`, and takes some minutes.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from make import ROOT, SCHEMES, SCREENS, saved, taken

from browsing import chromium, looking

PROGRAMS = ("tour.py", "train_storm.py", "crash.py")
LOSS = '        log.info("step %d: loss %.3f", self.step, loss.item())\n'
EDIT = "edit"
HISTORY: tuple[tuple[str, ...], ...] = (
    ("run", "--quiet", "tour.py"),
    ("run", "--quiet", "train_storm.py"),
    ("run", "--quiet", "tour.py"),
    (EDIT, "train_storm.py", LOSS),
    ("run", "--quiet", "train_storm.py"),
    ("fix", "--write", "--no-time", "tour.py"),
    ("run", "--quiet", "tour.py"),
    ("run", "--quiet", "crash.py"),
    ("bench", "--small", "--model", "resnet", "--backend", "aot_eager", "--runs", "3"),
    ("sweep", "."),
)
"""Commands of the tool; an edit removes a line of a program."""
LABELS = {1: ("baseline",), 2: ("baseline",), 5: ("no-logging",), 7: ("fixed",)}
"""Tags of the run that the n-th step made, from 1."""
NOTES = {5: "Without the loss in the log.", 7: "With what fix --write changed."}
FEW_EVENTS = 12
MARGIN = 24
LAST = """
const parts = [...document.querySelectorAll("main > *")];
return Math.max(...parts.map((part) => part.getBoundingClientRect().bottom));
"""
PATIENCE_S = 180


def main() -> None:
    options = _options()
    options.output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch, chromium("hide-scrollbars") as driver:
        work = (options.runs or Path(scratch)).resolve() / "models"
        if not work.exists():
            record(options.tool, work)
        with serving(options.tool, work, Path(scratch)) as address:
            for path in pictures(driver, address, options.output):
                print(f"{path} {path.stat().st_size / 1000:.0f} KB")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    default = Path(sys.executable).parent / "compilescope"
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="DIR")
    parser.add_argument("--tool", type=Path, default=default, metavar="PATH")
    parser.add_argument("--runs", type=Path, metavar="DIR")
    options = parser.parse_args()
    options.tool = Path(os.path.abspath(options.tool))
    return options


def record(tool: Path, work: Path) -> None:
    work.mkdir(parents=True)
    for name in PROGRAMS:
        shutil.copy(ROOT / "examples" / name, work)
    for number, (command, *words) in enumerate(HISTORY, 1):
        if command == EDIT:
            name, line = words
            text = (work / name).read_text()
            assert line in text
            (work / name).write_text(text.replace(line, ""))
            continue
        print("recording:", command, *words, file=sys.stderr)
        before = _runs(tool, work)
        # One of them crashes, as it should, and hands on its exit status: not an error here.
        said = subprocess.run([tool, command, *words], cwd=work, capture_output=True, text=True)
        new = [run for run in _runs(tool, work) if run not in before]
        if not new:
            sys.exit(f"{command} {' '.join(words)}: nothing was recorded\n{said.stderr}")
        if number in LABELS:
            note = ["--note", NOTES[number]] if number in NOTES else []
            subprocess.run(
                [tool, "tag", new[0], *LABELS[number], *note],
                cwd=work,
                check=True,
                capture_output=True,
            )


def _runs(tool: Path, work: Path) -> list[str]:
    said = subprocess.run(
        [tool, "list", "--json"], cwd=work, check=True, capture_output=True, text=True
    )
    return [run["run"] for run in json.loads(said.stdout)["runs"]]


@contextmanager
def serving(tool: Path, work: Path, scratch: Path) -> Iterator[str]:
    """The address that signs a browser in."""
    environment = {**os.environ, "XDG_STATE_HOME": str(scratch / "state")}
    with subprocess.Popen(
        [tool, "serve", "--port", "0"], cwd=work, env=environment, stdout=subprocess.PIPE, text=True
    ) as server:
        try:
            assert server.stdout is not None
            yield next(word for word in server.stdout.readline().split() if "http" in word)
        finally:
            server.terminate()


def pictures(driver: Any, address: str, folder: Path) -> Iterator[Path]:
    base = address.partition("/?")[0]
    until(lambda: _is_read(base))
    driver.get(address)
    for width, height in SCREENS.items():
        for scheme in SCHEMES:
            with looking(driver, width, height, scheme):
                driver.get(base)
                picture = taken(driver)
                seen = min(int(driver.execute_script(LAST)) + MARGIN, height)
                box = (0, 0, picture.width, seen)
                yield saved(picture.crop(box), folder / f"runs-{width}-{scheme}.png")
    driver.get(f"{base}/start/run?script=train_storm.py")
    driver.execute_script("document.querySelector('form[data-preview] button.primary').click()")
    until(lambda: driver.find_elements("css selector", "main a[href^='/runs/']"))
    driver.get(driver.find_element("css selector", "main a[href^='/runs/']").get_attribute("href"))
    until(lambda: len(driver.find_elements("css selector", ".live-feed > *")) > FEW_EVENTS)
    for width, height in SCREENS.items():
        for scheme in SCHEMES:
            with looking(driver, width, height, scheme):
                driver.execute_script("scrollTo(0, 0)")
                yield saved(taken(driver), folder / f"live-{width}-{scheme}.png")
    driver.execute_script("document.querySelector('[data-live=stop] button').click()")


def _is_read(base: str) -> bool:
    """Has the server read what every run comes to?"""
    with urllib.request.urlopen(f"{base}/runs.json") as answer:
        value = json.load(answer)
    return bool(value["read"] == value["total"])


def until(condition: Callable[[], Any]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > end:
            sys.exit("the dashboard does not come to it")
        time.sleep(0.5)


if __name__ == "__main__":
    main()
