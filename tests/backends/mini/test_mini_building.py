"""The library is built on demand: what can go wrong is one sentence, and nothing is left broken.

Instead of the real compiler a project of one file is built, with the same C interface.
"""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

from compilescope.backends.mini import library
from compilescope.base.errors import ToolError

pytestmark = pytest.mark.torch
CMAKE = """
cmake_minimum_required(VERSION 3.20)
project(tiny LANGUAGES CXX)
add_library(mini_capi SHARED src/tiny.cpp)
"""
SOURCE = """
#include <cstdint>
extern "C" {
int32_t mini_version() { return VERSION; }
const char* mini_error() { return ""; }
const char* mini_passes() { return "one two"; }
const char* mini_operators() { return ""; }
void* mini_compile(const char*, const char*) { return nullptr; }
int32_t mini_compile_batch(const char* const*, int32_t, const char*, void**) { return 1; }
int32_t mini_run(void*, const void* const*, void* const*) { return 1; }
void mini_free(void*) {}
const char* mini_info(void*) { return "{}"; }
const char* mini_describe(void*) { return ""; }
}
"""


@pytest.fixture
def tiny(tmp_path, monkeypatch, cxx):
    """The sources of a library that is built in a second, and a cache of its own."""
    if not shutil.which("cmake"):
        pytest.skip("no CMake")
    folder = tmp_path / "cpp"
    write_sources(folder)
    monkeypatch.setattr(library, "source_folder", lambda: folder)
    monkeypatch.setattr(library, "_loaded", {})
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("CXX", raising=False)
    return folder


def write_sources(folder, version=library.VERSION):
    (folder / "src").mkdir(parents=True, exist_ok=True)
    (folder / "CMakeLists.txt").write_text(CMAKE)
    (folder / "src" / "tiny.cpp").write_text(SOURCE.replace("VERSION", str(version)))


def _built(tmp_path):
    return sorted((tmp_path / "cache").rglob(library.library_name()))


def test_it_is_built_once_and_again_for_other_sources(tiny, tmp_path):
    assert library.load_library().passes == ("one", "two")
    [first] = _built(tmp_path)
    assert library.build_library() == first
    (tiny / "src" / "tiny.cpp").write_text(SOURCE.replace("VERSION", "1") + "// changed\n")
    assert library.build_library() != first
    assert len(_built(tmp_path)) == 2


def test_a_library_that_was_cut_short_is_built_again(tiny):
    path = library.build_library()
    path.write_bytes(path.read_bytes()[:200])
    assert library.load_library().passes == ("one", "two")


def test_a_library_of_another_version_is_refused(tiny):
    write_sources(tiny, version=99)
    with pytest.raises(ToolError, match="version 99, not 1"):
        library.load_library()


def test_no_compiler(tiny, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolError, match="needs a C\\+\\+ compiler") as error:
        library.load_library()
    assert "apt install g++" in error.value.hint


def test_a_compiler_that_is_not_there(tiny):
    with pytest.raises(ToolError, match="no C\\+\\+ compiler 'g--'"):
        library.load_library("g--")


def test_no_cmake(tiny, monkeypatch, tmp_path):
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "c++").symlink_to(shutil.which("c++") or shutil.which("g++"))
    monkeypatch.setenv("PATH", str(folder))
    with pytest.raises(ToolError, match="built with CMake") as error:
        library.load_library()
    assert "cmake" in error.value.hint


def test_a_compiler_that_fails(tiny, tmp_path):
    script = tmp_path / "c++"
    script.write_text("#!/bin/sh\necho 'error: out of ideas' >&2\nexit 3\n")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    with pytest.raises(ToolError, match="could not be built") as error:
        library.load_library(str(script))
    assert "out of ideas" in str(error.value)
    assert not _built(tmp_path)


def test_sources_that_do_not_compile(tiny, tmp_path):
    (tiny / "src" / "tiny.cpp").write_text("int x = y;\n")
    with pytest.raises(ToolError, match="could not be built") as error:
        library.load_library()
    assert "tiny.cpp" in str(error.value)
    assert not list((tmp_path / "cache").rglob(".build-*"))


def test_a_cache_that_cannot_be_written(tiny, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(ToolError, match="can't be built in") as error:
        library.load_library()
    assert "XDG_CACHE_HOME" in error.value.hint


BUILD = """
import sys
from pathlib import Path
from compilescope.backends.mini import library
library.source_folder = lambda: Path(sys.argv[1])
if len(sys.argv) > 2:
    import resource
    sys.dont_write_bytecode = True  # Python would leave parts of files.
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]),) * 2)
print(library.load_library().passes)
"""


def _start(tiny, *more):
    return subprocess.Popen(
        [sys.executable, "-c", BUILD, str(tiny), *more],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=dict(os.environ),
    )


def test_two_processes_at_once(tiny, tmp_path):
    outcomes = [process.communicate(timeout=200) for process in [_start(tiny), _start(tiny)]]
    assert [out.strip() for out, _ in outcomes] == ["('one', 'two')"] * 2
    assert sum("building" in err for _, err in outcomes) == 1
    assert len(_built(tmp_path)) == 1


@pytest.mark.skipif(sys.platform == "win32", reason="no limit on the size of files")
def test_a_full_disk(tiny, tmp_path):
    out, err = _start(tiny, "3000").communicate(timeout=200)
    assert "ToolError: The disk is full" in err
    assert not out
    assert not _built(tmp_path)


def test_the_sources_are_found():
    folder = library.source_folder()
    assert (folder / "src" / "c_api.h").is_file()
    assert Path(folder).name == "cpp"
