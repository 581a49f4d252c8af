"""The library is built once for the machine, and shared by all tests through the user's cache."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def library():
    if not shutil.which("cmake") or not (shutil.which("c++") or shutil.which("g++")):
        pytest.skip("no CMake or no C++ compiler")
    from compilescope.backends.mini.library import load_library

    return load_library()
