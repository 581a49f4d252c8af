"""Puts the small compiler's sources into the package, and each folder of many small texts into
one file; gives the README to the package index with addresses that work there. All other metadata
is in pyproject.toml."""

import json
import re
import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).parent
SOURCES = ROOT / "cpp"
TAKEN = ("CMakeLists.txt", "src", "cmake")
BUNDLED = (
    "knowledge/registry/examples",
    "knowledge/registry/notes",
    "knowledge/rules/breaks/examples",
    "knowledge/rules/programs/examples",
    "knowledge/rules/recompiles/examples",
    "change/fixes/breaks/examples",
    "change/fixes/recompiles/examples",
)
"""`compilescope.base.bundles` reads them either way."""


class BuildWithSources(build_py):
    """An editable installation finds them in the checkout."""

    def run(self) -> None:
        super().run()
        if getattr(self, "editable_mode", False):
            return
        package = Path(self.build_lib) / "compilescope"
        for name in BUNDLED:
            bundle(package / name)
        target = package / "cpp"
        target.mkdir(parents=True, exist_ok=True)
        for name in TAKEN:
            source = SOURCES / name
            if source.is_dir():
                shutil.copytree(source, target / name, dirs_exist_ok=True)
            else:
                shutil.copy2(source, target / name)


def bundle(folder: Path) -> None:
    """Programs that a fix must leave alone are read by its tests only."""
    files = sorted(path for path in folder.rglob("*") if path.suffix in (".py", ".txt", ".md"))
    texts = {
        path.relative_to(folder).as_posix(): path.read_bytes().decode()
        for path in files
        if not path.name.startswith("refused")
    }
    folder.with_name(f"{folder.name}.json").write_text(
        json.dumps(texts, ensure_ascii=False), "utf-8"
    )
    shutil.rmtree(folder)


def long_description() -> str:
    """The README; what it names by a path of the checkout, it names by its address."""
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    (source,) = re.findall(r'^Source = "https://github.com/(.+)"$', project, re.M)
    pictures = f"https://raw.githubusercontent.com/{source}/main/"
    pages = f"https://github.com/{source}/blob/main/"
    text = (ROOT / "README.md").read_text("utf-8")
    text = re.sub(r'\b(src|srcset)="(?!\w+:)', rf'\1="{pictures}', text)
    # What stands between backticks is no link: `layers[0](x)`.
    parts = re.split(r"(```.*?```)", text, flags=re.S)
    parts[::2] = [re.sub(r"\]\((?!\w+:|#)", f"]({pages}", part) for part in parts[::2]]
    return "".join(parts)


setup(
    cmdclass={"build_py": BuildWithSources},
    long_description=long_description(),
    long_description_content_type="text/markdown",
)
