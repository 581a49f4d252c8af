"""Record real runs and take pictures of what compilescope shows of them.

    python docs/screenshots/make.py -o DIR [--tool PATH] [--only NAME] [--runs DIR]

For each run: NAME-terminal-N.png is the answer in a terminal of 80 columns; NAME-WIDTH-SCHEME.png
is the page's first screen, 1400 and 400 pixels wide, light and dark; NAME-WIDTH-SCHEME-whole-N.png
is the page down to its end, or to its first 12,000 pixels, in parts. NAME.html is the page itself.

--tool draws with another installation (.../bin/compilescope), for a look at before and after.
--runs keeps the recordings there, and takes those that are there already.

It needs Chromium and the packages of `pip install -e ".[dev]"`; the run named generate needs
transformers too, and the one named gpu the file docs/screenshots/gpu.zip (a run on a GPU, written
by `compilescope runs export`). A run that lacks what it needs is left out, with a message.

Pictures of the dashboard are made by dashboard.py beside it.
"""

from __future__ import annotations

import argparse
import base64
import importlib.util
import io
import os
import pty
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PIL import Image
from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from browsing import chromium, looking  # noqa: E402

COLUMNS, ROWS = 80, 50
SCREENS = {1400: 900, 400: 800}
SCHEMES = ("light", "dark")
# Chromium draws no more than 16,384 pixels in one go.
TALLEST = 12_000
PART = 2_400
LARGEST = 200_000
GPU = "docs/screenshots/gpu.zip"


@dataclass(frozen=True)
class Shown:
    """A run to show: the command that makes it, and what must be there for it."""

    name: str
    command: tuple[str, ...]
    package: str = ""
    file: str = ""

    def lacks(self) -> str:
        if self.package and importlib.util.find_spec(self.package) is None:
            return f"{self.package} is not installed: pip install {self.package}"
        if self.file and not (ROOT / self.file).exists():
            return f"{self.file} is missing"
        return ""


XLA_LOG = "tests/logs/golden/console/xla_openxla.c02_item.log.xz"
SHOWN = (
    Shown("train_storm", ("run", "--quiet", "examples/train_storm.py")),
    Shown("generate", ("run", "--quiet", "examples/generate.py"), package="transformers"),
    Shown("crash", ("run", "--quiet", "examples/crash.py")),
    Shown("gpu", ("import", GPU), file=GPU),
    Shown("xla", ("logs", XLA_LOG), file=XLA_LOG),
)


def main() -> None:
    options = _options()
    options.output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch, chromium("hide-scrollbars") as driver:
        for shown in SHOWN:
            if options.only and shown.name not in options.only:
                continue
            if lack := shown.lacks():
                print(f"{shown.name}: left out, {lack}")
                continue
            runs = (options.runs or Path(scratch)).resolve() / shown.name
            record(shown, options.tool, runs)
            for path in pictures(shown.name, options.tool, runs, options.output, driver):
                print(f"{path} {path.stat().st_size / 1000:.0f} KB")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    default = Path(sys.executable).parent / "compilescope"
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="DIR")
    parser.add_argument("--tool", type=Path, default=default, metavar="PATH")
    names = [shown.name for shown in SHOWN]
    parser.add_argument("--only", action="append", choices=names, metavar="NAME")
    parser.add_argument("--runs", type=Path, metavar="DIR")
    options = parser.parse_args()
    # The commands below run in the repository's root.
    options.tool = Path(os.path.abspath(options.tool))
    return options


def record(shown: Shown, tool: Path, runs: Path) -> None:
    if runs.exists():
        return
    command, *arguments = shown.command
    # A program that crashes, as one of them should, hands on its exit status: not an error here.
    made = subprocess.run(
        [tool, command, "--dir", runs, *arguments], cwd=ROOT, capture_output=True, text=True
    )
    if not runs.exists():
        sys.exit(f"{shown.name}: nothing was recorded\n{made.stdout}{made.stderr}")


def pictures(name: str, tool: Path, runs: Path, folder: Path, driver: Any) -> Iterator[Path]:
    terminal = folder / f"{name}-terminal.html"
    terminal.write_text(drawn_terminal(in_terminal([tool, "show", "--dir", runs]), name))
    driver.get(terminal.resolve().as_uri())
    yield from in_parts(driver, 1000, "light", folder / f"{name}-terminal")
    terminal.unlink()
    page = folder / f"{name}.html"
    subprocess.run(
        [tool, "report", "--dir", runs, "-o", page.resolve()],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    yield page
    for width in SCREENS:
        for scheme in SCHEMES:
            stem = folder / f"{name}-{width}-{scheme}"
            with looking(driver, width, SCREENS[width], scheme):
                driver.get(page.resolve().as_uri())
                yield saved(taken(driver), Path(f"{stem}.png"))
            yield from in_parts(driver, width, scheme, Path(f"{stem}-whole"))


def in_parts(driver: Any, width: int, scheme: str, stem: Path) -> Iterator[Path]:
    """All of the page that is open, in a window so tall that nothing of it is left undrawn."""
    height, wanted = 0, SCREENS[1400]
    # What no window has reached may be drawn late, and a page grow or shrink by it.
    for _ in range(4):
        if height == wanted:
            break
        height = wanted
        with looking(driver, width, height, scheme):
            wanted = min(height_of(driver), TALLEST)
            picture = taken(driver)
    for number, top in enumerate(range(0, picture.height, PART), 1):
        box = (0, top, width, min(top + PART, picture.height))
        yield saved(picture.crop(box), Path(f"{stem}-{number}.png"))


def in_terminal(command: list[str | Path]) -> str:
    """What a program writes into a terminal of 80 columns and 50 rows, colors and all."""
    parent, child = pty.openpty()
    size = {"COLUMNS": str(COLUMNS), "LINES": str(ROWS)}
    environment = {**os.environ, **size, "TERM": "xterm-256color"}
    process = subprocess.Popen(
        command, cwd=ROOT, env=environment, stdin=child, stdout=child, stderr=child
    )
    os.close(child)
    written = b""
    try:
        while piece := os.read(parent, 65536):
            written += piece
    except OSError:
        pass  # On Linux, how a terminal says that nobody writes to it any more.
    process.wait()
    os.close(parent)
    return written.decode(errors="replace").replace("\r\n", "\n")


def drawn_terminal(ansi: str, title: str) -> str:
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    console.print(Text.from_ansi(ansi))
    drawn = console.export_svg(title=f"compilescope: {title}")
    return f'<!doctype html><meta charset="utf-8"><body style="margin:0">{drawn}'


def height_of(driver: Any) -> int:
    return int(
        driver.execute_script("return document.body.getBoundingClientRect().bottom + scrollY")
    )


def taken(driver: Any) -> Image.Image:
    picture = driver.execute_cdp_cmd("Page.captureScreenshot", {})
    return Image.open(io.BytesIO(base64.b64decode(picture["data"]))).convert("RGB")


def saved(picture: Image.Image, target: Path) -> Path:
    """In as many colors as keep it small."""
    for colors in (64, 32, 16):
        palette = _palette(picture, colors)
        picture.quantize(palette=palette, dither=Image.Dither.NONE).save(target, optimize=True)
        if target.stat().st_size < LARGEST:
            break
    return target


def _palette(picture: Image.Image, colors: int) -> Image.Image:
    """Half are the colors of the largest areas, just as they are; the others span what is left."""
    counted = picture.getcolors(picture.width * picture.height) or []
    common = [color for _, color in sorted(counted, reverse=True)[: colors // 2]]
    spanning = picture.quantize(colors // 2, Image.Quantize.MAXCOVERAGE).getpalette() or []
    palette = Image.new("P", (1, 1))
    palette.putpalette([part for color in common for part in color] + spanning[: colors // 2 * 3])
    return palette


if __name__ == "__main__":
    main()
