"""Puts the small compiler's sources into the package. All metadata is in pyproject.toml."""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

SOURCES = Path(__file__).parent / "cpp"
TAKEN = ("CMakeLists.txt", "src", "cmake")


class BuildWithSources(build_py):
    """An editable installation finds them in the checkout."""

    def run(self) -> None:
        super().run()
        if getattr(self, "editable_mode", False):
            return
        target = Path(self.build_lib) / "compilescope" / "cpp"
        target.mkdir(parents=True, exist_ok=True)
        for name in TAKEN:
            source = SOURCES / name
            if source.is_dir():
                shutil.copytree(source, target / name, dirs_exist_ok=True)
            else:
                shutil.copy2(source, target / name)


setup(cmdclass={"build_py": BuildWithSources})
