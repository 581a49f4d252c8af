"""The file that keeps the token is the user's alone."""

from __future__ import annotations

import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from compilescope.base.errors import ToolError
from compilescope.record.token_file import keep_token, token_path


def test_each_home_has_its_own(tmp_path: Path) -> None:
    paths = {token_path(tmp_path, tmp_path / name) for name in ("a", "b", "a/../a")}
    assert len(paths) == 2


def test_it_stays_until_a_new_one_is_asked_for(tmp_path: Path) -> None:
    path = token_path(tmp_path, tmp_path)
    first = keep_token(path)
    assert keep_token(path) == first and len(first) == 43
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    second = keep_token(path, new=True)
    assert second != first and keep_token(path) == second
    assert [found.name for found in path.parent.iterdir()] == [path.name]


def test_servers_that_start_at_once_share_one(tmp_path: Path) -> None:
    path = token_path(tmp_path, tmp_path)
    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(keep_token, [path] * 40))) == 1


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o660])
def test_a_file_that_others_can_read_is_refused(mode: int, tmp_path: Path) -> None:
    path = token_path(tmp_path, tmp_path)
    keep_token(path)
    path.chmod(mode)
    with pytest.raises(ToolError, match="Other users can read"):
        keep_token(path)
    keep_token(path, new=True)
    keep_token(path)


def test_a_file_of_somebody_else_is_refused(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give files away")
    path = token_path(tmp_path, tmp_path)
    keep_token(path)
    os.chown(path, 12345, 12345)
    with pytest.raises(ToolError, match="Other users can read"):
        keep_token(path)
    os.chown(path.parent, 12345, 12345)
    with pytest.raises(ToolError, match="Other users can write"):
        keep_token(path, new=True)


def test_a_folder_that_others_can_write_to_is_refused(tmp_path: Path) -> None:
    path = token_path(tmp_path, tmp_path)
    keep_token(path)
    path.parent.chmod(0o777)
    with pytest.raises(ToolError, match="Other users can write"):
        keep_token(path)


@pytest.mark.parametrize("content", [b"", b"short", b"a" * 2000, b"\xff" * 40, b"<script>" * 8])
def test_a_file_without_a_token_is_refused(content: bytes, tmp_path: Path) -> None:
    path = token_path(tmp_path, tmp_path)
    keep_token(path)
    path.write_bytes(content)
    with pytest.raises(ToolError, match="no valid token"):
        keep_token(path)


def test_links_pipes_and_folders_in_its_place_are_refused(tmp_path: Path) -> None:
    path = token_path(tmp_path, tmp_path)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("a" * 43)
    elsewhere.chmod(0o600)
    keep_token(path)
    for put in (lambda: path.symlink_to(elsewhere), lambda: os.mkfifo(path, 0o600)):
        path.unlink()
        put()
        with pytest.raises(ToolError):
            keep_token(path)
        assert keep_token(path, new=True) != "a" * 43
    assert elsewhere.read_text() == "a" * 43
