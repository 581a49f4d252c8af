"""Forms and jobs as a browser has them: start, watch, stop, start again."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import httpx
import pytest

from axe_checks import grave_findings
from browsing import CONTRAST, focus_walk, looking
from compilescope.apps.dashboard.fields.form import all_forms
from compilescope.apps.dashboard.jobs.job import CommandJob
from compilescope.apps.dashboard.jobs.service import Jobs
from compilescope.apps.dashboard.server.options import BrowserLimits
from dashboard_server import Served, serving
from waiting import until

SLOW = "import time\nprint('first line', flush=True)\ntime.sleep(600)"
STUBBORN = (
    "import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"
    "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    "print('\\x1b[31mfirst <b>line</b>\\x1b[0m', flush=True)\nwhile True: time.sleep(600)"
)
TORCH = (
    "import torch\n\n@torch.compile(backend='eager')\ndef f(x):\n    y = x + 1\n"
    "    print('in the middle')\n    return y * 2\n\nprint(f(torch.ones(2)).sum())\n"
)


@pytest.fixture
def work(tmp_path: Path) -> Iterator[Served]:
    """A dashboard over an empty folder of runs, beside programs that may be started."""
    for name, text in {"slow": SLOW, "stubborn": STUBBORN, "small": TORCH, "hello": ""}.items():
        (tmp_path / f"{name}.py").write_text(text)
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "inner.py").write_text("print('inner')")
    with serving(tmp_path / ".compilescope", folders=(tmp_path,)) as served:
        yield served
        jobs = Jobs(served.home, BrowserLimits())
        for job in jobs.all():
            if not job.is_over:
                jobs.stop(job.id, kill=True)
                over(served, job.id)


def over(served: Served, job: str) -> CommandJob:
    jobs = Jobs(served.home, BrowserLimits())
    until(lambda: jobs.find(job).is_over)
    return jobs.find(job)


def job_of(answer: httpx.Response) -> str:
    # The page of a job may lead on to its run at once.
    first = [*answer.history, answer][0]
    place = first.headers.get("location", answer.url.path)
    found = re.match(r"/jobs/([\w-]+)", place)
    assert found is not None, answer.text
    return found[1]


def text_of(page: str) -> str:
    return unescape(re.sub(r"<[^>]+>", "", page))


def events(served: Served, job: str, after: str = "") -> Iterator[tuple[str, str, Any]]:
    """Id, kind and data of each, until the server ends them."""
    headers = {"last-event-id": after} if after else {}
    with served.client.stream("GET", f"/jobs/{job}/events", headers=headers) as answer:
        assert answer.status_code == 200
        found: dict[str, str] = {}
        for line in answer.iter_lines():
            name, _, value = line.partition(": ")
            if line:
                found[name] = value
            elif "data" in found:
                yield found["id"], found["event"], json.loads(found["data"])
                found = {}


def test_every_form_is_reached_and_shows_its_line(work: Served) -> None:
    page = work.client.get("/start").text
    for form in all_forms():
        assert f'href="/start/{form.id}"' in page
        shown = work.client.get(f"/start/{form.id}")
        assert shown.status_code == 200
        line = work.client.get(f"/start/{form.id}/command").json()["line"]
        assert f"compilescope {form.command[0]}" in line
        assert line in text_of(shown.text)
        # Nothing was typed: nothing is wrong yet.
        assert 'aria-invalid="true"' not in shown.text
        # Every control has a label, and what describes it is there.
        for name in re.findall(r'<(?:input|select)[^>]* id="([\w-]+)"', shown.text):
            assert f'<label for="{name}"' in shown.text, name
        described = re.findall(r'aria-describedby="([^"]+)"', shown.text)
        for name in " ".join(described).split():
            assert f'id="{name}"' in shown.text, name
    for address in ("/start", "/start/run", "/start/run/command", "/start/run/browse", "/jobs"):
        assert work.stranger().get(address).status_code == 401, address


def test_a_form_is_filled_in_by_its_address(work: Served) -> None:
    given = {"script": "hello.py", "arguments": "--name 'a <b>'", "compile_all": "on"}
    page = work.client.get("/start/run", params=given).text
    assert 'value="--name &#39;a &lt;b&gt;&#39;"' in page
    assert re.search(r'name="compile_all" value="on" checked', page)
    assert f"--compile-all {work.home.parent}/hello.py --name 'a <b>'" in text_of(page)
    answer = work.client.get("/start/run", params={"backend": "--x", "script": "nope.py"})
    assert answer.status_code == 200
    assert "There is no file or folder nope.py." in text_of(answer.text)
    assert work.client.get("/start/run", params={"shell": "x"}).status_code == 400
    assert work.client.get("/start/nothing").status_code == 404


def test_errors_stand_beside_their_fields_and_nothing_starts(work: Served) -> None:
    given = {"script": "../x.py", "arguments": "'open <script>", "compile": "Net"}
    answer = work.client.post("/start/run", data=given)
    assert answer.status_code == 400
    assert "2 fields need another look. Nothing was started." in text_of(answer.text)
    for name in ("script", "arguments"):
        control = re.search(rf'<input[^>]*name="{name}"[^>]*>', answer.text)
        assert control is not None
        assert f"error-{name}" in control[0] and 'aria-invalid="true"' in control[0]
        said = re.search(rf'id="error-{name}" data-error>([^<]+)<', answer.text)
        assert said is not None and said[1]
    assert 'value="&#39;open &lt;script&gt;"' in answer.text
    assert 'value="Net"' in answer.text
    assert not Jobs(work.home, BrowserLimits()).all()
    assert work.client.post("/start/run", data={"shell": "x"}).status_code == 400
    foreign = {"origin": "http://evil.example"}
    sent = work.client.post("/start/run", data={"script": "hello.py"}, headers=foreign)
    assert sent.status_code == 403
    stranger = work.stranger(headers={"origin": work.base})
    assert stranger.post("/start/run", data={"script": "hello.py"}).status_code == 401
    assert not Jobs(work.home, BrowserLimits()).all()


def test_scripts_are_found_by_browsing(work: Served) -> None:
    page = work.client.get("/start/run/browse?arguments=--keep+me&_field=script").text
    inner = re.search(r'href="([^"]+)">sub/<', page)
    assert inner is not None
    page = work.client.get(unescape(inner[1])).text
    chosen = re.search(r'href="([^"]+)">inner.py<', page)
    assert chosen is not None
    page = work.client.get(unescape(chosen[1])).text
    assert f'value="{work.home.parent}/sub/inner.py"' in page
    assert 'value="--keep me"' in page
    for folder in ("/", "/etc", "..", "sub/../.."):
        answer = work.client.get("/start/run/browse", params={"_folder": folder})
        assert answer.status_code == 400, folder
    assert work.client.get("/start/run/browse?_field=arguments").status_code == 400


def test_after_start_the_page_of_the_run_opens_while_it_runs(work: Served) -> None:
    answer = work.client.post("/start/run", data={"script": "slow.py"}, follow_redirects=False)
    place = answer.headers["location"]
    job = job_of(answer)
    assert place == f"/jobs/{job}?live=1"
    until(lambda: "/runs/" in work.client.get(place).url.path)
    assert work.client.get(f"/jobs/{job}").url.path == f"/jobs/{job}"
    work.client.post(f"/jobs/{job}/stop")
    over(work, job)
    # What is over has nothing to watch.
    assert work.client.get(place).url.path == f"/jobs/{job}"


def test_a_job_is_watched_over_a_restart_and_stopped(work: Served) -> None:
    form = {"script": "slow.py", "arguments": "a 'b c'"}
    job = job_of(work.client.post("/start/run", data=form))
    seen = []
    for at, kind, data in events(work, job):
        seen.append((at, kind, data))
        if kind == "output" and "first line" in data["text"]:
            break
    assert seen[0][1] == "state" and seen[0][2]["label"] == "Running"
    last = seen[-1][0]
    # Another server over the same folder: it goes on where the first one ended.
    with serving(work.home, folders=(work.home.parent,)) as again:
        page = again.client.get(f"/jobs/{job}").text
        assert "first line" in page and f'data-after="{last}"' in page
        assert "a 'b c'" in text_of(page)
        until(lambda: again.client.get(f"/jobs/{job}").text.count('href="/runs/'))
        again.client.post(f"/jobs/{job}/stop")
        rest = list(events(again, job, after=last))
    assert "first line" not in "".join(data["text"] for _, kind, data in rest if kind == "output")
    assert rest[-1][2]["over"] is True
    assert rest[-1][2]["state"] == "stopped"
    ended = over(work, job)
    assert len(ended.runs) == 1
    page = work.client.get(f"/jobs/{job}").text
    assert f'href="/runs/{ended.runs[0]}"' in page
    assert f'href="/start/run?{"script=slow.py"}' in page
    listed = work.client.get("/jobs").text
    assert f'href="/jobs/{job}"' in listed and "Stopped" in listed
    whole = work.client.get(f"/jobs/{job}/output")
    assert whole.headers["content-type"] == "text/plain; charset=utf-8"
    assert whole.text.startswith("first line\n")


def test_limits_of_jobs_and_what_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(SLOW)
    limits = BrowserLimits(jobs=0, waiting=1)
    with serving(tmp_path / "home", folders=(tmp_path,), limits=limits) as served:
        job = job_of(served.client.post("/start/run", data={"script": "slow.py"}))
        assert "Waiting" in served.client.get(f"/jobs/{job}").text
        answer = served.client.post("/start/run", data={"script": "slow.py"})
        assert answer.status_code == 429
        assert "1 job is waiting already." in answer.text
        assert served.client.post("/upload?name=a.log", content=b"x").status_code == 429
        answer = served.client.post(f"/jobs/{job}/stop")
        assert "Stopped before it started." in answer.text
        for address in ("/jobs/x", "/jobs/20260101-000000-abcdef", f"/jobs/{job}/files/0"):
            assert served.client.get(address).status_code == 404
        assert served.client.get(f"/jobs/{job}/events?after=-1").status_code == 400


def test_a_file_that_a_job_wrote_can_be_read(work: Served) -> None:
    jobs = Jobs(work.home, BrowserLimits(jobs=0))
    inside, outside = work.home.parent / "repro.py", work.home.parent.parent / "secret.py"
    inside.write_text("print('<script>')")
    outside.write_text("secret")
    job = jobs.start(["list"], work.home.parent, writes=[str(inside), str(outside)], title="minify")
    jobs.stop(job.id)
    page = work.client.get(f"/jobs/{job.id}").text
    assert f'href="/jobs/{job.id}/files/0"' in page and "secret.py" not in page
    assert "print(&#39;&lt;script&gt;&#39;)" in work.client.get(f"/jobs/{job.id}/files/0").text
    assert work.client.get(f"/jobs/{job.id}/files/1").status_code == 404


@pytest.mark.slow
@pytest.mark.torch
def test_a_real_program_from_the_form_to_its_run(work: Served) -> None:
    form = {"script": "small.py", "limit_minutes": "10"}
    job = over(work, job_of(work.client.post("/start/run", data=form)))
    assert (job.state, job.exit_status) == ("ended", 0), job.outcome
    page = work.client.get(f"/jobs/{job.id}")
    assert "The program finished." in page.text
    assert "in the middle" in page.text
    [run] = job.runs
    report = text_of(work.client.get(f"/runs/{run}").text)
    assert "small.py" in report and "graph break" in report.lower()


# What a button says is there for two seconds only: everything that it ever says is kept.
_NOTE_TEXTS = """
const element = document.querySelector(arguments[0]);
window.texts = [];
const note = () => window.texts.push(element.textContent);
new MutationObserver(note).observe(element, {childList: true, characterData: true, subtree: true});
"""


def press(driver: Any, selector: str) -> None:
    driver.execute_script("document.querySelector(arguments[0]).click()", selector)


def fill_in(driver: Any, name: str, text: str) -> None:
    control = driver.find_element("name", name)
    control.clear()
    control.send_keys(text)


@pytest.mark.browser
@pytest.mark.parametrize(
    ("width", "scheme"), [pytest.param(1280, "light", marks=pytest.mark.slow), (400, "dark")]
)
def test_fill_in_copy_start_watch_stop_kill(
    work: Served, driver: Any, width: int, scheme: str
) -> None:
    origin = {"origin": work.base, "permissions": ["clipboardReadWrite"]}
    driver.execute_cdp_cmd("Browser.grantPermissions", origin)

    def shown(selector: str) -> str:
        return driver.execute_script(
            "return document.querySelector(arguments[0])?.textContent ?? ''", selector
        )

    def visible(selector: str) -> bool:
        return driver.execute_script(
            "return Boolean(document.querySelector(arguments[0])?.checkVisibility())", selector
        )

    with looking(driver, width, 900, scheme):
        work.sign_in(driver)
        driver.get(f"{work.base}/start/run")
        fill_in(driver, "arguments", "'open")
        until(lambda: "balanced" in shown("#error-arguments"))
        # What nobody has touched is not wrong yet.
        assert shown("#error-script") == ""
        fill_in(driver, "script", "stubborn.py")
        fill_in(driver, "arguments", "--lr 0.1")
        press(driver, "[name=time]")
        script = work.home.parent / "stubborn.py"
        wanted = f"--dir {work.home} --time {script} --lr 0.1"
        until(lambda: shown("#command-line").endswith(wanted))
        assert shown("#error-arguments") == ""
        driver.execute_script(_NOTE_TEXTS, "button[data-copy=command-line]")
        press(driver, "button[data-copy=command-line]")
        told = "return window.texts.some((text) => ['Copied', 'Press Ctrl+C'].includes(text))"
        until(lambda: driver.execute_script(told))
        assert driver.execute_script("return document.documentElement.scrollWidth") <= width
        assert driver.execute_script(CONTRAST) == []
        driver.find_element("css selector", "[data-start]").click()
        # The page of the job leads on to that of the run; the job has a page all the same.
        until(lambda: "/runs/" in driver.current_url)
        (job,) = [each for each in Jobs(work.home, BrowserLimits()).all() if not each.is_over]
        driver.get(f"{work.base}/jobs/{job.id}")
        # Text, never HTML.
        until(lambda: "first <b>line</b>\n" in shown("#output"))
        assert not driver.find_elements("css selector", "#output b")
        until(lambda: visible("[data-runs] a"))
        assert shown("[data-label]") == "Running"
        assert driver.execute_script("return document.documentElement.scrollWidth") <= width
        assert driver.execute_script(CONTRAST) == []
        assert grave_findings(driver) == []
        assert not visible("[data-kill] button")
        press(driver, "[data-stop] button")
        until(lambda: shown("[data-label]") == "Stopping")
        # Not at once: a second click must not kill.
        until(lambda: visible("[data-kill] button"))
        press(driver, "[data-kill] button")
        until(lambda: shown("[data-label]") == "Stopped")
        until(lambda: "killed by SIGKILL" in shown("[data-outcome]"))
        link = driver.find_element("link text", "Start again")
        driver.get(link.get_attribute("href"))
        assert shown("#command-line").endswith(wanted)
        driver.get(f"{work.base}/jobs")
        assert "run stubborn.py" in shown("main")
        assert driver.execute_script("return document.documentElement.scrollWidth") <= width


@pytest.mark.slow
@pytest.mark.browser
def test_errors_of_a_sent_form_and_the_keyboard(work: Served, driver: Any) -> None:
    work.sign_in(driver)
    for width in (1280, 400):
        with looking(driver, width, 900, "light"):
            driver.get(f"{work.base}/start/fix")
            driver.find_element("name", "budget")
            driver.execute_script("document.querySelector('[name=budget]').value = 'soon'")
            driver.find_element("css selector", "[data-start]").click()
            until(lambda: "Nothing was started" in driver.page_source)
            # Focus is on the first field that is wrong.
            assert driver.execute_script("return document.activeElement.name") == "script"
            wrong = driver.find_element("name", "budget")
            assert wrong.is_displayed() and wrong.get_attribute("aria-invalid") == "true"
            assert driver.find_element("id", "error-budget").text
            assert grave_findings(driver) == []
            driver.get(f"{work.base}/start/fix?budget=2m&safe_only=on")
            walked = focus_walk(driver)
            assert walked == {"trapped": "", "missed": [], "unmarked": [], "out_of_sight": []}
