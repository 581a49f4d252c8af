"""A page of another server in the browser of somebody who is signed in: nothing gets through."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver.common.by import By

from axe_checks import grave_findings
from browsing import CONTRAST, focus_walk, looking, seen
from dashboard.probing import Probe, probing
from dashboard_server import TOKEN, Served
from waiting import until

pytestmark = pytest.mark.browser

# Each attempt notes what it learned; all have ended when `ended` says so.
_PAGE = """<!doctype html><title>evil</title><body><script>
const at = "VICTIM";
const learned = {};
const attempts = [];
function attempt(name, begin) {
  attempts.push(new Promise((done) => {
    const end = (what) => { learned[name] = String(what); done(); };
    try { begin(end); } catch (error) { end("blocked: " + error.name); }
    setTimeout(() => end(learned[name] ?? "nothing"), 1000);
  }));
}
function fetched(name, path, how) {
  attempt(name, (end) => fetch(at + path, { credentials: "include", ...how })
    .then((a) => a.type === "opaque" ? end("opaque") : a.text().then((t) => end("read: " + t)))
    .catch((error) => end("blocked: " + error.name)));
}
function element(name, kind, set) {
  attempt(name, (end) => {
    const made = document.createElement(kind);
    made.onload = () => end("loaded");
    made.onerror = () => end("blocked");
    set(made);
    document.body.append(made);
  });
}
fetched("fetch", "/probe/guarded", {});
fetched("fetch open", "/probe/open", {});
fetched("fetch no-cors", "/probe/guarded", { mode: "no-cors" });
fetched("post", "/probe/act", { method: "POST", body: new URLSearchParams({ a: 1 }) });
fetched("post no-cors", "/probe/act", { method: "POST", mode: "no-cors", body: "a=1" });
fetched("post preflighted", "/probe/act",
  { method: "POST", headers: { authorization: "Bearer x" } });
attempt("beacon", (end) =>
  end(navigator.sendBeacon(at + "/probe/act", new URLSearchParams({ a: 1 }))));
element("image", "img", (e) => { e.src = at + "/probe/guarded?img"; });
element("script", "script", (e) => { e.src = at + "/probe/guarded?script"; });
element("style", "link", (e) => { e.rel = "stylesheet"; e.href = at + "/probe/guarded?style"; });
element("object", "object", (e) => { e.data = at + "/probe/guarded?object"; });
attempt("events", (end) => {
  const source = new EventSource(at + "/probe/guarded?events", { withCredentials: true });
  source.onmessage = (event) => end("read: " + event.data);
  source.onerror = () => { source.close(); end("blocked"); };
});
attempt("socket", (end) => {
  const socket = new WebSocket(at.replace("http", "ws") + "/probe/guarded?socket");
  socket.onopen = () => end("open");
  socket.onerror = () => end("blocked");
});
for (const kind of ["iframe", "form", "form plain", "form multipart"]) {
  attempt(kind, (end) => {
    const frame = document.createElement("iframe");
    frame.name = kind;
    frame.onload = () => {
      const own = frame.contentDocument;
      if (!own || own.body.textContent) end(own ? "read: " + own.body.textContent : "no access");
    };
    document.body.append(frame);
    if (kind === "iframe") { frame.src = at + "/probe/guarded?frame"; return; }
    const form = document.createElement("form");
    form.method = "post"; form.action = at + "/probe/act"; form.target = kind;
    form.enctype = { form: "application/x-www-form-urlencoded", "form plain": "text/plain",
      "form multipart": "multipart/form-data" }[kind];
    form.innerHTML = "<input name=a value=1>";
    document.body.append(form);
    form.submit();
  });
}
attempt("prefetch", (end) => {
  const link = document.createElement("link");
  link.rel = "prefetch"; link.href = at + "/probe/guarded?prefetch";
  document.head.append(link);
  setTimeout(() => end("nothing"), 500);
});
Promise.all(attempts).then(() => { window.ended = JSON.stringify(learned); });
</script>"""


class _Evil(BaseHTTPRequestHandler):
    victim = ""

    def do_GET(self) -> None:
        data = _PAGE.replace("VICTIM", self.victim).encode()
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def _evil(victim: str) -> Iterator[int]:
    """Another server on this machine, with a page that attacks the first."""
    handler = type("Handler", (_Evil,), {"victim": victim})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def probe(tmp_path: Path) -> Iterator[Probe]:
    with probing(tmp_path / "runs") as made:
        yield made


@pytest.mark.parametrize("site", ["127.0.0.1", "localhost"])
def test_nothing_of_another_server_gets_through(site: str, probe: Probe, driver: Any) -> None:
    """On the same name with another port, where the browser sends our cookie, and on another."""
    probe.served.sign_in(driver)
    driver.get(f"{probe.served.base}/probe/guarded")
    assert "the secret" in driver.page_source
    probe.reached.clear()
    with _evil(probe.served.base) as port:
        driver.get(f"http://{site}:{port}/")
        script = "return window.ended"
        learned = json.loads(until(lambda: driver.execute_script(script)))
    assert not probe.reached, learned
    assert "secret" not in str(learned)
    assert not [name for name, what in learned.items() if what in ("loaded", "open")]
    assert len(learned) == 18


def test_a_link_from_elsewhere_opens_and_tells_its_opener_nothing(
    probe: Probe, driver: Any
) -> None:
    probe.served.sign_in(driver)
    probe.reached.clear()
    with _evil("http://127.0.0.1:9") as port:
        driver.get(f"http://localhost:{port}/")
        driver.execute_script(
            "const link = document.createElement('a');"
            f"link.href = '{probe.served.base}/probe/guarded'; link.id = 'go'; link.text = 'go';"
            "document.body.append(link);"
        )
        driver.find_element(By.ID, "go").click()
        # The cookie stays at home, so this is a stranger: who follows the link on our page is not.
        seen(driver, "#token")
        assert not probe.reached
        driver.find_element(By.LINK_TEXT, "Continue to the page").click()
        until(lambda: "the secret" in driver.page_source)
        driver.get(f"http://localhost:{port}/")
        opened = driver.execute_async_script(
            "const done = arguments[0];"
            f"const seen = open('{probe.served.base}/');"
            "const look = () => (seen === null || seen.closed) ? done(true) : setTimeout(look, 20);"
            "look();"
        )
        assert opened


def test_the_address_works_from_a_page_of_another_site(probe: Probe, driver: Any) -> None:
    """Such as a terminal in the browser."""
    driver.delete_all_cookies()
    with _evil("http://127.0.0.1:9") as port:
        driver.get(f"http://localhost:{port}/")
        address = f"{probe.served.base}/probe/guarded?token={TOKEN}&a=b"
        driver.execute_script(f"location.href = '{address}'")
        until(lambda: "the secret" in driver.page_source)
    assert driver.current_url == f"{probe.served.base}/probe/guarded?a=b"


@pytest.mark.parametrize(
    "chosen", ["*-full", "*-hostile", pytest.param("[0-9a-f]*", marks=pytest.mark.slow)]
)
def test_the_policy_breaks_nothing_on_any_run(chosen: str, served: Served, driver: Any) -> None:
    served.sign_in(driver)
    driver.get_log("browser")
    for folder in sorted(served.home.glob(chosen)):
        driver.get(f"{served.base}/runs/{folder.name}")
        driver.execute_async_script(
            "const done = arguments[0];"
            "for (const d of document.querySelectorAll('details')) d.open = true;"
            "scrollTo(0, document.body.scrollHeight);"
            "requestAnimationFrame(() => requestAnimationFrame(done));"
        )
        assert driver.get_log("browser") == [], folder.name
        assert not driver.execute_script("return window.hurt"), folder.name


# ---- The frame ----


def test_a_person_signs_in_by_the_form(served: Served, driver: Any) -> None:
    driver.get(f"{served.base}/sign-in")
    driver.delete_all_cookies()
    driver.get(f"{served.base}/")
    driver.find_element(By.LINK_TEXT, "Sign in").click()
    field = seen(driver, "#token")
    until(lambda: driver.switch_to.active_element == field)
    field.send_keys("wrong\n")
    error = seen(driver, "#token-error")
    assert "not the token" in error.text
    driver.find_element(By.ID, "token").send_keys(f"{served.base}/?token={TOKEN}\n")
    until(lambda: driver.title.startswith("Runs"))
    assert not driver.find_elements(By.LINK_TEXT, "Sign in")


def _press(driver: Any, keys: str) -> None:
    driver.switch_to.active_element.send_keys(keys)


def test_shortcuts(served: Served, driver: Any) -> None:
    served.sign_in(driver)
    first = next(f.name for f in sorted(served.home.iterdir()) if "full" in f.name)
    driver.get(f"{served.base}/runs/{first}")
    body, dialog = (driver.find_element(By.CSS_SELECTOR, s) for s in ("body", "#shortcuts"))

    body.send_keys("?")
    assert dialog.is_displayed()
    inside = "return document.getElementById('shortcuts').contains(document.activeElement)"
    for key in ["\ue004"] * 14 + ["\ue008\ue004"] * 3:
        assert driver.execute_script(inside)
        _press(driver, key)
    _press(driver, "\ue00c")
    assert not dialog.is_displayed()

    body.send_keys("/")
    find = driver.find_element(By.ID, "find")
    assert driver.switch_to.active_element == find
    find.send_keys("g", "r", "?", "/")
    assert find.get_property("value") == "gr?/" and not dialog.is_displayed()
    assert first in driver.current_url
    driver.execute_script("document.activeElement.blur()")

    body.send_keys("g", "r")
    until(lambda: driver.title.startswith("Runs"))


@pytest.mark.parametrize(
    ("width", "scheme"), [pytest.param(1400, "dark", marks=pytest.mark.slow), (400, "light")]
)
def test_the_frame_can_be_read_and_walked(
    width: int, scheme: str, served: Served, driver: Any
) -> None:
    driver.get(f"{served.base}/sign-in")
    driver.delete_all_cookies()
    with looking(driver, width, 900, scheme):
        for path in ("/sign-in", "/nothing"):
            driver.get(served.base + path)
            assert driver.execute_script(CONTRAST) == [], path
            wide = "return document.documentElement.scrollWidth - innerWidth"
            assert driver.execute_script(wide) <= 0, path
            assert not grave_findings(driver), path
            driver.find_element(By.ID, "shortcuts-open").click()
            assert driver.execute_script(CONTRAST) == [], path
            assert not grave_findings(driver), path
        driver.get(f"{served.base}/nothing")
        walked = focus_walk(driver)
        assert not any(walked.values()), walked
