"""`make release`: is this commit ready to be a version? If so, builds it, and never uploads.

Run in the repository: `python .ci/release.py [--check] TORCH...`, the versions of torch that the
tests must have passed with. All that is missing is listed at once.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

DIST = Path("dist")
MOST_BYTES = 3_100_000
"""Of the wheel, as tests/packaging has it."""


def problems(matrix: list[str]) -> Iterator[str]:
    version = _version()
    if _git("status", "--porcelain"):
        yield "The tree has changes that are not committed."
    if _git("tag", "--list", f"v{version}"):
        yield f"v{version} is tagged already: raise VERSION in src/compilescope/base/version.py."
    heading = next(re.finditer(r"^## (.*)$", Path("CHANGELOG.md").read_text(), re.M), None)
    wanted = rf"{re.escape(version)} \(\d{{4}}-\d\d-\d\d\)"
    if heading is None or not re.fullmatch(wanted, heading[1]):
        found = heading[1] if heading else "nothing"
        yield f"CHANGELOG.md begins with {found!r} instead of '{version} (YEAR-MONTH-DAY)'."
    for torch in matrix:
        if _tested(torch) != _git("rev-parse", "HEAD"):
            yield f"The tests did not pass at this commit with torch {torch}: {_make(torch)}"


def _version() -> str:
    found = re.search(r'VERSION = "(.+)"', Path("src/compilescope/base/version.py").read_text())
    assert found is not None
    return found[1]


def _is_default(torch: str) -> bool:
    return f"torch=={torch}" in Path("constraints.txt").read_text().split()


def _make(torch: str) -> str:
    return "make test" if _is_default(torch) else f"make test TORCH={torch}"


def _tested(torch: str) -> str:
    """The commit that `make test` noted in the environment of this torch."""
    environment = ".venv" if _is_default(torch) else f".venv-{torch}"
    note = Path(environment, ".tested")
    return note.read_text().strip() if note.is_file() else ""


def build() -> None:
    """The sdist of the tree, the wheel of the sdist; both must read well on PyPI."""
    shutil.rmtree(DIST, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "build", "--outdir", DIST], check=True)
    made = sorted(map(str, DIST.iterdir()))
    subprocess.run([sys.executable, "-m", "twine", "check", "--strict", *made], check=True)
    (wheel,) = DIST.glob("*.whl")
    if wheel.stat().st_size >= MOST_BYTES:
        sys.exit(f"{wheel} has {wheel.stat().st_size:,} bytes; {MOST_BYTES:,} is the limit.")


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def main() -> None:
    matrix = [word for word in sys.argv[1:] if word != "--check"]
    found = list(problems(matrix))
    for problem in found:
        print(problem)
    if found:
        sys.exit(1)
    version = _version()
    if "--check" in sys.argv:
        print(f"{version} can be built.")
        return
    build()
    print(f"\n{version} is in {DIST}/. Nothing was uploaded. To publish it:")
    print(f"  git tag v{version} && git push origin v{version}")
    print(f"  {sys.executable} -m twine upload {DIST}/*")


if __name__ == "__main__":
    main()
