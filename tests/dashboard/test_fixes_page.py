"""Fixes in the dashboard: what was verified, and a button that applies it and nothing else."""

from __future__ import annotations

import itertools
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from axe_checks import grave_findings
from browsing import CONTRAST, focus_walk, looking, seen
from compilescope.record.provenance import SEALS
from compilescope.record.run import read_run
from compilescope.report.blocks import Diff, Item
from compilescope.report.document import all_sections
from compilescope.report.section import Reading
from dashboard_server import Served, serving
from stored_fixes import DIFF, NEW, OLD, store_search


@pytest.fixture(scope="module")
def fixing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A dashboard that may change programs in one folder."""
    folder = tmp_path_factory.mktemp("fixing")
    (folder / "work").mkdir()
    with serving(folder / "runs", folders=(folder / "work",)) as made:
        yield made


@pytest.fixture
def program(fixing: Served) -> Path:
    folder = fixing.home.parent / "work" / f"{next(_NUMBERS)}"
    folder.mkdir()
    path = folder / "train.py"
    path.write_text(OLD)
    return path


@pytest.fixture
def at(fixing: Served, program: Path) -> str:
    """The page of a search that fixed the program."""
    return f"/fixes/{store(fixing, program)}"


_NUMBERS = itertools.count(1)


def store(served: Served, program: Path, **fields: Any) -> str:
    return store_search(served.home, program, f"{next(_NUMBERS):06x}-train", **fields)


def plain(page: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", page)).split())


def shown(served: Served, at: str) -> str:
    """What the page's form says that it shows."""
    found = re.search(r'name="shown" value="([^"]+)"', served.client.get(at).text)
    assert found is not None
    return found[1]


def apply(served: Served, at: str, **fields: str) -> tuple[int, str]:
    answer = served.client.post(f"{at}/apply", data={"shown": shown(served, at), **fields})
    return answer.status_code, plain(answer.text)


def test_a_fix_of_somebody_else_is_shown_and_not_applied(
    fixing: Served, at: str, program: Path
) -> None:
    changes = shown(fixing, at)
    (fixing.home / at.rpartition("/")[2] / SEALS).unlink()
    page = fixing.client.get(at).text
    assert "is not known to come from your search, so it is not applied" in plain(page)
    assert "Apply to my files" not in page and f"{at}/fix.patch" in page
    answer = fixing.client.post(f"{at}/apply", data={"shown": changes, "force": "yes"})
    assert answer.status_code == 409
    assert program.read_text() == OLD


def test_the_list_says_what_was_verified_and_what_not(
    fixing: Served, at: str, program: Path
) -> None:
    reason = "the outputs differ"
    later = store(fixing, program, files={}, verdict="rejected", reason=reason)
    page = fixing.client.get("/fixes").text
    said = plain(page)
    assert "searches, newest first" in said
    assert "Verified: graph breaks 1 -> 0." in said
    assert f"No fix could be verified: {reason}." in said
    assert said.index(later) < said.index(at.rpartition("/")[2])
    assert f'href="{at}"' in page and f'href="/runs/{later}"' in page
    assert 'href="/start/fix"' in page
    for number in ("x", "0", "-1", "9" * 30):
        assert fixing.client.get("/fixes", params={"page": number}).status_code == 400


def test_no_search_yet(tmp_path: Path) -> None:
    with serving(tmp_path / "runs") as served:
        page = served.client.get("/fixes").text
    assert "No search for fixes yet" in plain(page)
    assert 'href="/start/fix"' in page


def test_a_search_that_an_earlier_version_recorded(fixing: Served, at: str) -> None:
    folder = fixing.home / at.rpartition("/")[2]
    [file] = folder.glob("events-*.jsonl")
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join(line for line in lines if "FixOutcome" not in line))
    assert "Recorded by an earlier version." in plain(fixing.client.get("/fixes").text)
    said = plain(fixing.client.get(at).text)
    assert "An earlier version of compilescope recorded this search" in said
    answer = fixing.client.post(f"{at}/apply", data={"shown": ""})
    assert answer.status_code == 400
    assert "Search again" in plain(answer.text)


def test_a_search_and_its_patch(fixing: Served, at: str, program: Path) -> None:
    said = plain(fixing.client.get(at).text)
    assert "Verified: graph breaks 1 -> 0." in said
    assert "+ y = torch.where(y.sum() > 0, y * 2, y - 1)" in said
    assert "use torch.where instead of the if Data-dependent branching verified , kept" in said
    assert "no fix is known for it" in said
    answer = fixing.client.get(f"{at}/fix.patch")
    assert answer.text == DIFF
    assert answer.headers["content-disposition"].startswith("attachment")
    subprocess.run(["git", "apply"], input=answer.content, cwd=program.parent, check=True)
    assert program.read_text() == NEW


def test_applying(fixing: Served, at: str, program: Path) -> None:
    fields = {"shown": shown(fixing, at)}
    status, said = apply(fixing, at)
    assert status == 200
    assert f"Applied. Changed: {program}" in said
    assert f"patch -R -p1 -i {at.rpartition('/')[2]}.patch" in said
    assert program.read_text() == NEW
    assert "has the fix" in said and "Apply to my files" not in said
    # Once more from a tab that was open before.
    again = fixing.client.post(f"{at}/apply", data=fields)
    assert "This fix is already applied." in plain(again.text)
    assert program.read_text() == NEW


def test_the_way_back_by_git(fixing: Served, at: str, program: Path) -> None:
    who = ["-c", "user.name=ada", "-c", "user.email=ada@example.org"]
    for words in (["init", "-q"], ["add", "."], [*who, "commit", "-qm", "first"]):
        subprocess.run(["git", *words], cwd=program.parent, check=True)
    status, said = apply(fixing, at)
    undo = f"git -C {program.parent} checkout -- train.py"
    assert status == 200 and undo in said
    subprocess.run(undo.split(), check=True)
    assert program.read_text() == OLD


def test_uncommitted_changes_need_the_box(fixing: Served, at: str, program: Path) -> None:
    for words in (["init", "-q"], ["add", "."]):
        subprocess.run(["git", *words], cwd=program.parent, check=True)
    page = plain(fixing.client.get(at).text)
    assert "has uncommitted changes" in page
    assert "Apply even though git has uncommitted changes" in page
    status, said = apply(fixing, at)
    assert status == 409 and "Nothing was written" in said and "check the box" in said
    assert program.read_text() == OLD
    assert apply(fixing, at, force="yes")[0] == 200
    assert program.read_text() == NEW


def test_a_file_that_changed(fixing: Served, at: str, program: Path) -> None:
    fields = {"shown": shown(fixing, at)}
    program.write_text(OLD + "# edited\n")
    answer = fixing.client.post(f"{at}/apply", data=fields)
    said = plain(answer.text)
    assert answer.status_code == 409
    assert f"{program} changed since the fix was verified. Nothing was written." in said
    assert "Search again" in said and "Apply to my files" not in said
    assert f'href="/start/fix?run={at.rpartition("/")[2]}"' in answer.text
    assert program.read_text() == OLD + "# edited\n"


def test_a_file_that_was_deleted(fixing: Served, at: str, program: Path) -> None:
    fields = {"shown": shown(fixing, at)}
    program.unlink()
    answer = fixing.client.post(f"{at}/apply", data=fields)
    assert answer.status_code == 409 and "no longer exists" in plain(answer.text)


def test_a_link_out_of_the_allowed_folders(
    fixing: Served, at: str, program: Path, tmp_path: Path
) -> None:
    fields = {"shown": shown(fixing, at)}
    outside = tmp_path / "outside.py"
    shutil.move(program, outside)
    program.symlink_to(outside)
    answer = fixing.client.post(f"{at}/apply", data=fields)
    assert answer.status_code == 409
    assert "is outside the folders you allowed" in plain(answer.text)
    assert outside.read_text() == OLD


def test_a_program_outside_the_allowed_folders(fixing: Served, tmp_path: Path) -> None:
    program = tmp_path / "train.py"
    program.write_text(OLD)
    run = store(fixing, program)
    page = plain(fixing.client.get(f"/fixes/{run}").text)
    assert "not allowed" in page and "Apply to my files" not in page
    [kept] = (fixing.home / run / "artifacts").iterdir()
    answer = fixing.client.post(f"/fixes/{run}/apply", data={"shown": kept.name})
    assert answer.status_code == 409
    assert program.read_text() == OLD


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"shown": "another"}, 409),
        ({}, 400),
        ({"force": "maybe"}, 400),
        ({"path": "/etc/passwd"}, 400),
    ],
)
def test_requests_that_the_page_would_not_send(
    fixing: Served, at: str, program: Path, fields: dict[str, str], status: int
) -> None:
    assert fixing.client.post(f"{at}/apply", data=fields).status_code == status
    assert program.read_text() == OLD


@pytest.mark.parametrize("run", ["nope", "%2e%2e", "..%2f..%2fetc", ".jobs", "x%00y"])
def test_runs_that_are_not_there(fixing: Served, run: str) -> None:
    for path in (f"/fixes/{run}", f"/fixes/{run}/fix.patch"):
        assert fixing.client.get(path).status_code in (400, 404)
    answer = fixing.client.post(f"/fixes/{run}/apply", data={"shown": ""})
    assert answer.status_code in (400, 404)


def test_who_has_no_token_changes_nothing(fixing: Served, at: str, program: Path) -> None:
    fields = {"shown": shown(fixing, at)}
    with fixing.stranger(headers={"origin": fixing.base}) as stranger:
        assert stranger.get("/fixes").status_code == 200
        assert stranger.get(at).status_code == 401
        assert stranger.post(f"{at}/apply", data=fields).status_code == 401
    elsewhere = {"origin": "http://evil.example", "sec-fetch-site": "cross-site"}
    assert fixing.client.post(f"{at}/apply", data=fields, headers=elsewhere).status_code == 403
    assert program.read_text() == OLD


def test_what_is_shown_is_what_would_be_written(fixing: Served, program: Path) -> None:
    """A run from elsewhere may tell of a harmless change and hold another."""
    evil = OLD + "import os; os.system('evil')\n"
    run = store(fixing, program, files={str(program): evil})
    said = plain(fixing.client.get(f"/fixes/{run}").text)
    assert "+import os; os.system('evil')" in said


def test_it_is_in_the_report_of_its_run(fixing: Served, at: str, program: Path) -> None:
    section = next(each for each in all_sections() if each.id == "fixes")
    run = read_run(fixing.home / at.rpartition("/")[2])
    blocks = section.build(Reading(run, full=True, page=True))
    assert [block.text for block in blocks if isinstance(block, Diff)] == [DIFF]
    assert sum(isinstance(block, Item) for block in blocks) == 2


@pytest.mark.browser
@pytest.mark.parametrize(
    ("width", "scheme"), [pytest.param(1280, "light", marks=pytest.mark.slow), (400, "dark")]
)
def test_applying_in_a_browser(
    driver: Any, fixing: Served, at: str, program: Path, width: int, scheme: str
) -> None:
    fixing.sign_in(driver)

    def check() -> None:
        assert grave_findings(driver) == []
        assert driver.execute_script(CONTRAST) == []
        wide = "return document.documentElement.scrollWidth - innerWidth"
        assert driver.execute_script(wide) <= 0

    with looking(driver, width, 900, scheme):
        driver.get(f"{fixing.base}/fixes")
        check()
        seen(driver, f'a[href="{at}"]').click()
        assert "torch.where" in seen(driver, "pre.diff .added").text
        check()
        seen(driver, "#apply button.primary").click()
        applied = seen(driver, "#applied").text
        assert "Applied." in applied and str(program) in applied
        assert not driver.find_elements("css selector", "#apply button.primary")
        check()
        assert not any(focus_walk(driver).values())
    assert program.read_text() == NEW
    assert driver.get_log("browser") == []


@pytest.mark.slow
@pytest.mark.torch
def test_a_real_fix_is_applied_and_the_break_is_gone(fixing: Served, program: Path) -> None:
    tool = [sys.executable, "-m", "compilescope"]
    home = str(program.parent / "runs")

    def run(*words: str) -> str:
        done = subprocess.run(
            [*tool, *words], cwd=program.parent, capture_output=True, text=True, check=True
        )
        return done.stdout

    run("fix", "--no-time", "--dir", home, "train.py")
    with serving(Path(home), folders=(program.parent,)) as served:
        [at] = set(re.findall(r'href="(/fixes/[^"]+)"', served.client.get("/fixes").text))
        assert apply(served, at)[0] == 200
    assert "torch.where" in program.read_text()
    run("run", "--dir", home, "train.py")
    assert '"sites": []' in run("show", "--json", "--dir", home)
