"""The site in a real browser: search finds, filters filter, and nothing hostile acts."""

from __future__ import annotations

import re
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

import browsing
from browsing import CONTRAST
from compilescope.knowledge.registry.cases import load_break_counts
from compilescope.knowledge.registry.table import load_registry
from compilescope.report.site.build import BuiltSite

pytestmark = pytest.mark.browser

PAGES = (
    "index.html",
    "gb/gb0124.html",
    "gb/gb0170.html",
    "categories.html",
    "category/scalar-extraction.html",
    "versions.html",
    "version/2.11.0.html",
    "dashboard.html",
)
ITEM = """Traceback (most recent call last):
  File "/home/me/train.py", line 12, in <module>
    out = compiled(x)
torch._dynamo.exc.Unsupported: Unsupported Tensor.item() call with capture_scalar_outputs=False
  Explanation: Dynamo does not support tracing `Tensor.item()` with \
config.capture_scalar_outputs=False.
  Hint: Set `torch._dynamo.config.capture_scalar_outputs = True` or `export \
TORCHDYNAMO_CAPTURE_SCALAR_OUTPUTS=1` to include these operations in the captured graph.

  Developer debug context: call_method TensorVariable() item () {}

from user code:
   File "/home/me/train.py", line 5, in f
    print(y.item())
"""
_LOG = "V1115 10:00:00.0 123 torch/_dynamo/symbolic_convert.py:1234] [0/0] [__graph_breaks] "
LOGGED = "\n".join(
    _LOG + line
    for line in (
        "Graph break in user code at /home/me/train.py:5",
        "Graph Break Reason: Encountered graph break when attempting to trace CALL:",
        "Data-dependent branching",
        "  Explanation: Detected data-dependent branching (e.g. `if my_tensor.sum() > 0:`). "
        "Dynamo does not support tracing dynamic control flow.",
    )
)


# The root cause comes first; the rest is what happened while it was handled.
CHAIN = f"""{ITEM}

*** While handling this graph break, another graph break occurred: ***

graph break in loop
  Explanation: torch.compile detected a graph break in a for/while loop.
"""


def look(driver: Any, address: str, scheme: str = "light", width: int = 1280) -> None:
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    driver.get("about:blank")
    driver.get_log("browser")
    driver.get(address)


def complaints(driver: Any) -> list[str]:
    return [entry["message"] for entry in driver.get_log("browser")]


def wait_until(driver: Any, script: str) -> None:
    browsing.wait_until(driver, f"return {script}")


def shown_ids(driver: Any) -> list[str]:
    return driver.execute_script(
        "return [...document.querySelectorAll('.row')].map(r => r.dataset.id)"
    )


def ask(driver: Any, words: str) -> list[str]:
    """As a paste does it: the text is there at once."""
    driver.execute_script(
        "const f = document.getElementById('find'); f.value = arguments[0];"
        "f.dispatchEvent(new Event('input', {bubbles: true}));",
        words,
    )
    # The search waits for the end of typing, then the address holds what was asked.
    asked = "new URLSearchParams(location.hash.slice(1)).get('q')"
    wait_until(driver, f"{asked} === document.getElementById('find').value")
    return shown_ids(driver)


@pytest.fixture
def home(driver: Any, built: BuiltSite) -> Any:
    look(driver, (built.folder / "index.html").as_uri())
    wait_until(driver, "document.documentElement.dataset.ready === 'yes'")
    return driver


def test_it_begins_with_what_is_met_most_often(home: Any, built: BuiltSite) -> None:
    """Without a question; another order and a question are as they were asked for."""
    met = [gb_id for gb_id in load_break_counts().ids if gb_id in built.content.by_id]
    assert shown_ids(home)[: len(met)] == met
    assert home.execute_script("return document.getElementById('counted').checkVisibility()")
    ask(home, "print")
    assert not home.execute_script("return document.getElementById('counted').checkVisibility()")
    home.find_element("id", "clear").click()
    wait_until(home, "location.hash === ''")
    choose(home, "sort", "id")
    assert shown_ids(home)[0] == "GB0000"


def test_search_finds_item(home: Any) -> None:
    for words in ("item", "GB0124", "gb124", "124", ITEM, "loss.item()", ".item()"):
        assert ask(home, words)[0] == "GB0124", words
        assert complaints(home) == [], words


def test_search_ranks(home: Any) -> None:
    for words, first in (
        (LOGGED, "GB0170"),
        ("Data-dependent branching", "GB0170"),
        ("data-dependent BRANCHING with non-constant", "GB0035"),
        ("Attempted to call function marked as skipped", "GB0007"),
        (
            "please visit: https://pytorch.github.io/compile-graph-break-site/gb/gb0059.html",
            "GB0059",
        ),
        ("torch._dynamo.graph_break()", "GB0025"),
        (CHAIN, "GB0124"),
        ("Data-dependent branching\n  File gb0059.py, line 3, in f", "GB0170"),
    ):
        assert ask(home, words)[0] == first, words


def test_search_by_category_and_symptom(home: Any) -> None:
    assert {"GB0124", "GB0109"} <= set(ask(home, "scalar-extraction"))
    ask(home, "Could not guard on data-dependent expression Eq(u0, 1)")
    assert "Branch on a tensor's value" in home.find_element("id", "suggestions").text
    ask(home, "print in forward")
    assert any(gb_id in shown_ids(home)[:3] for gb_id in ("GB0059", "GB0291"))
    assert ask(home, "xyzzyplugh") == []
    assert home.find_element("id", "found").text.startswith("0 of")


def test_typing_filters_sorting_and_the_way_back(home: Any, built: BuiltSite) -> None:
    total = len(built.content.pages)
    find = home.find_element("id", "find")
    find.send_keys("hook")
    wait_until(home, "location.hash === '#q=hook'")
    few = home.find_element("id", "found").text
    assert few.endswith(f"of {total}") and shown_ids(home)
    assert find.get_attribute("value") == "hook"
    find.send_keys("\ue00c")  # Escape.
    wait_until(home, "location.hash === ''")
    choose(home, "category", "logging")
    assert shown_ids(home) == ["GB0291", "GB0296"]
    choose(home, "category", "")
    choose(home, "has", "fixed")
    fixed = {p.gb_id for p in built.content.pages if p.example and p.example.has_fixed}
    assert set(shown_ids(home)) <= fixed and home.find_element("id", "found").text.startswith(
        str(len(fixed))
    )
    choose(home, "has", "")
    choose(home, "sort", "newest")
    versions = (page.since for page in built.content.pages if page.since)
    newest = max(versions, key=lambda version: tuple(map(int, version.split("."))))
    assert built.content.by_id[shown_ids(home)[0]].since == newest
    choose(home, "sort", "type")
    titles = [built.content.by_id[gb_id].title.lower() for gb_id in shown_ids(home)]
    assert titles == sorted(titles)
    home.execute_script("document.getElementById('more').click()")
    assert len(shown_ids(home)) == total
    home.find_element("id", "clear").click()
    find.send_keys("nonzero\n")
    wait_until(home, "location.pathname.endsWith('/gb/gb0036.html')")
    home.back()
    wait_until(home, "document.documentElement.dataset.ready === 'yes'")
    assert home.find_element("id", "find").get_attribute("value") == "nonzero"
    assert complaints(home) == []


def choose(driver: Any, field: str, value: str) -> None:
    driver.execute_script(
        "const f = document.getElementById(arguments[0]); f.value = arguments[1];"
        "f.dispatchEvent(new Event('change', {bubbles: true}));",
        field,
        value,
    )


def test_the_small_search_leads_home(driver: Any, built: BuiltSite) -> None:
    look(driver, (built.folder / "gb" / "gb0170.html").as_uri())
    driver.find_element("css selector", ".jump input").send_keys("item\n")
    wait_until(driver, "document.documentElement.dataset.ready === 'yes'")
    assert shown_ids(driver)[0] == "GB0124"
    assert complaints(driver) == []


@pytest.mark.parametrize(
    ("scheme", "width", "names"),
    [
        # By default every page once.
        pytest.param("light", 1280, PAGES[::2], id="some in the light"),
        pytest.param("dark", 390, PAGES[1::2], id="others in the dark"),
        *(
            pytest.param(*each, PAGES, id=f"all-{each[0]}-{each[1]}", marks=pytest.mark.slow)
            for each in (("light", 1280), ("dark", 390), ("light", 390), ("dark", 1280))
        ),
    ],
)
def test_pages_fit_are_readable_and_silent(
    driver: Any, built: BuiltSite, scheme: str, width: int, names: tuple[str, ...]
) -> None:
    grounds = set()
    for name in names:
        look(driver, (built.folder / name).as_uri(), scheme, width)
        wide = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert driver.execute_script(wide) == 0, name
        assert driver.execute_script(CONTRAST) == [], name
        grounds.add(driver.execute_script("return getComputedStyle(document.body).backgroundColor"))
        assert len(driver.find_elements("css selector", "h1")) == 1
        assert complaints(driver) == [], name
    [ground] = grounds
    assert (sum(map(int, re.findall(r"\d+", ground)[:3])) < 200) == (scheme == "dark")


def test_a_hostile_table_does_nothing(driver: Any, hostile: Path) -> None:
    for name in (
        "index.html",
        "gb/gb0001.html",
        "gb/gb0002.html",
        "gb/gb0003.html",
        "dashboard.html",
    ):
        look(driver, (hostile / name).as_uri(), width=390)
        assert driver.execute_script("return window.hurt") is None
        assert driver.find_elements("css selector", "img") == []
        wide = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert driver.execute_script(wide) == 0, name
        assert complaints(driver) == [], name
    look(driver, (hostile / "index.html").as_uri())
    assert ask(driver, "<script>window.hurt=1</script>")[0] == "GB0001"
    assert ask(driver, "toString")[0] == "GB0004"
    assert ask(driver, "constructor")[0] == "GB0001"
    assert driver.execute_script("return window.hurt") is None
    assert complaints(driver) == []


def test_it_works_below_a_path_of_a_server(driver: Any, built: BuiltSite) -> None:
    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(
        ("127.0.0.1", 0), partial(Quiet, directory=str(built.folder.parent))
    )
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        root = f"http://127.0.0.1:{server.server_address[1]}/{built.folder.name}/"
        look(driver, f"{root}#q=item")
        wait_until(driver, "document.documentElement.dataset.ready === 'yes'")
        assert shown_ids(driver)[0] == "GB0124"
        driver.find_element("css selector", ".row .name").click()
        wait_until(driver, "location.pathname.endsWith('/site/gb/gb0124.html')")
        driver.find_element("link text", "Dashboard").click()
        wait_until(driver, "location.pathname.endsWith('/site/dashboard.html')")
        assert complaints(driver) == []
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.mark.slow
def test_every_message_finds_its_page(home: Any) -> None:
    """For each id the message that PyTorch would print, with something in every gap and no link."""
    fills = ["TensorVariable()", "foo", "<class 'int'>", "[1, 2]", "my_function", "0x7f"]
    for number, entry in enumerate(load_registry()):
        variant = entry.variants[0]
        title = variant.gb_type if variant.gb_type in entry.titles else entry.title

        def fill(text: str, start: int = number) -> str:
            parts = re.split(r"<[^<>]{1,60}>|\{[^{}]*\}", text)
            return "".join(p + fills[(start + n) % 6] for n, p in enumerate(parts[:-1])) + parts[-1]

        lines = [
            "Traceback (most recent call last):",
            f"torch._dynamo.exc.Unsupported: {fill(title)}",
        ]
        lines += [f"  Explanation: {fill(variant.explanation)}"] if variant.explanation else []
        lines += [f"  Hint: {fill(hint)}" for hint in variant.hints]
        lines += [
            "",
            f"  Developer debug context: {fill(variant.context)}",
            "",
            "from user code:",
            "    x.item()",
        ]
        found = home.execute_script("return registrySearch(arguments[0])", "\n".join(lines))
        assert found[0] == entry.gb_id, "\n".join(lines)
