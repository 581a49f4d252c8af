"""Puts the small compiler's sources into the package, and each folder of many small examples into
one file. All metadata is in pyproject.toml."""

import json
import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

SOURCES = Path(__file__).parent / "cpp"
TAKEN = ("CMakeLists.txt", "src", "cmake")
BUNDLED = ("registry", "rules/breaks", "rules/recompiles", "fixes/breaks", "fixes/recompiles")
"""Their `examples`, which `compilescope.bundles` reads either way."""


class BuildWithSources(build_py):
    """An editable installation finds them in the checkout."""

    def run(self) -> None:
        super().run()
        if getattr(self, "editable_mode", False):
            return
        package = Path(self.build_lib) / "compilescope"
        for name in BUNDLED:
            bundle(package / name / "examples")
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
    files = sorted(path for path in folder.rglob("*") if path.suffix in (".py", ".txt"))
    texts = {
        path.relative_to(folder).as_posix(): path.read_bytes().decode()
        for path in files
        if not path.name.startswith("refused")
    }
    folder.with_name(f"{folder.name}.json").write_text(
        json.dumps(texts, ensure_ascii=False), "utf-8"
    )
    shutil.rmtree(folder)


setup(cmdclass={"build_py": BuildWithSources})
