"""What tests of pages in a browser share."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

from waiting import until

# The contrast of every bit of text with what is painted behind it, as WCAG 2 computes it.
CONTRAST = """
const channel = (v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
function rgba(text) {
  canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = text; canvas.fillRect(0, 0, 1, 1);
  const d = canvas.getImageData(0, 0, 1, 1).data; return [d[0], d[1], d[2], d[3] / 255];
}
function behind(element) {
  const layers = [];
  for (let up = element; up; up = up.parentElement) {
    const colour = rgba(getComputedStyle(up).backgroundColor);
    if (colour[3] > 0) layers.push(colour);
    if (colour[3] === 1) break;
  }
  let base = [255, 255, 255];
  for (const [r, g, b, a] of layers.reverse()) {
    base = [r, g, b].map((v, i) => v * a + base[i] * (1 - a));
  }
  return base;
}
const poor = [];
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const element = walker.currentNode.parentElement;
  if (!walker.currentNode.data.trim() || element.closest('script, style')) continue;
  if (!element.checkVisibility()) continue;
  const colour = rgba(getComputedStyle(element).color);
  if (colour[3] === 0) continue;
  const [a, b] = [light(colour), light(behind(element))];
  const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  if (ratio < 4.5) poor.push([element.className, walker.currentNode.data.slice(0, 30), ratio]);
}
return poor.slice(0, 10);
"""


def uncoloured(page: str) -> str:
    """Without the colours of code."""
    return re.sub(r'<b class="[a-z]">(.*?)</b>', r"\1", page)


# A page goes on moving after it has loaded: what is left out until one comes near it gets its
# size a frame later, and a place in the address scrolls there. Still is three frames alike.
_STILL = """
const done = arguments[arguments.length - 1];
let [before, alike, left] = ['', 0, 120];
const look = () => {
  const now = [scrollX, scrollY, document.documentElement.scrollHeight, innerWidth].join();
  alike = now === before ? alike + 1 : 0;
  before = now;
  if (alike >= 3 || --left === 0) done(); else requestAnimationFrame(look);
};
requestAnimationFrame(look);
"""
_BRING = "arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})"


def stand_still(driver: Any) -> None:
    """Wait until the open page no longer moves under a click or a measurement."""
    from selenium.common.exceptions import JavascriptException, TimeoutException

    if not driver.runs_scripts:
        return  # No frame is ever told.
    # A page that the next one replaces meanwhile cannot answer; the next is waited for in turn.
    with suppress(JavascriptException, TimeoutException):
        driver.execute_async_script(_STILL)


@contextmanager
def without_scripts(driver: Any) -> Iterator[None]:
    """As a reader sees a page whose browser runs no script."""
    driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    driver.runs_scripts = False
    try:
        yield
    finally:
        driver.runs_scripts = True
        driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def _patient_browser() -> Any:
    """Chrome that opens and clicks only where the page stands still."""
    from selenium import webdriver
    from selenium.webdriver.remote.webelement import WebElement

    class Element(WebElement):
        def click(self) -> None:
            # What comes near when the page scrolls there may push it away once more.
            self.parent.execute_script(_BRING, self)
            stand_still(self.parent)
            super().click()

    class Browser(webdriver.Chrome):
        _web_element_cls = Element
        runs_scripts = True

        def get(self, url: str) -> None:
            super().get(url)
            stand_still(self)

    return Browser


@contextmanager
def chromium(*arguments: str) -> Iterator[Any]:
    """A headless Chromium that keeps its console; ImportError or OSError where there is none."""
    from selenium import webdriver

    binary, driver_path = shutil.which("chromium"), shutil.which("chromedriver")
    if not (binary and driver_path):
        raise OSError("no Chromium: install the packages chromium and chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    # Without motion a page stands still when it is there: no click lands on what scrolls past.
    still = "force-prefers-reduced-motion"
    for flag in ("headless=new", "no-sandbox", "disable-gpu", "disable-dev-shm-usage", still):
        options.add_argument(f"--{flag}")
    for flag in arguments:
        options.add_argument(f"--{flag}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    service = webdriver.ChromeService(driver_path)
    with _patient_browser()(options=options, service=service) as browser:
        browser.set_script_timeout(120)  # On a busy machine axe takes longer than the usual 30 s.
        yield browser


class _Shared:
    """One browser for all files of a process: to start one takes longer than most tests."""

    def __init__(self) -> None:
        self._users = 0
        self._opened = ExitStack()
        self._browser: Any = None

    @contextmanager
    def borrowed(self) -> Iterator[Any]:
        if self._browser is None:
            self._browser = self._opened.enter_context(chromium("window-size=1280,1000"))
        self._users += 1
        try:
            yield self._browser
        finally:
            self._users -= 1
            if not self._users:
                self._browser = None
                self._opened.close()


_SHARED = _Shared()


def page_driver() -> Iterator[Any]:
    """What a fixture named `driver` yields; the reason is shown where there is no browser."""
    import pytest

    try:
        with _SHARED.borrowed() as browser:
            yield emptied(browser)
    except (ImportError, OSError) as error:
        pytest.skip(str(error))


def emptied(driver: Any) -> Any:
    """The browser without what earlier tests left in it: pages that still ask a server that is
    gone, the console, other windows, another size."""
    first, *others = driver.window_handles
    for handle in others:
        driver.switch_to.window(handle)
        driver.close()
    driver.switch_to.window(first)
    driver.execute("get", {"url": "about:blank"})
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})
    driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    driver.get_log("browser")
    return driver


def wait_until(driver: Any, condition: str) -> None:
    """Until the script `return ...` says so, on a page that is whole."""
    from selenium.common.exceptions import JavascriptException

    script = f"return document.readyState === 'complete' && (() => {{ {condition} }})()"

    def holds() -> Any:
        with suppress(JavascriptException):  # What it asks about may not be there yet.
            return driver.execute_script(script)

    until(holds)


def seen(driver: Any, selector: str) -> Any:
    """The element, once a loaded page has it: one click may lead to the next page.

    What is clicked while its page still loads can move away from under the click.
    """

    def found() -> Any:
        loaded = driver.execute_script("return document.readyState") == "complete"
        return loaded and next(iter(driver.find_elements("css selector", selector)), None)

    return until(found)


@contextmanager
def looking(driver: Any, width: int, height: int, scheme: str) -> Iterator[None]:
    """As a window of that size shows a page to a reader who prefers that color scheme."""
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
    feature = [{"name": "prefers-color-scheme", "value": scheme}]
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": feature})
    try:
        yield
    finally:
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
        driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


# How a test's message names an element.
NAMED = """
const named = (e) => {
  const id = e.id ? `#${e.id}` : '';
  const classes = [...e.classList].map((c) => `.${c}`).join('');
  const within = e.parentElement?.closest('[id]')?.id;
  const path = `${within ? `#${within} ` : ''}${e.localName}${id}${classes}`;
  return `${path} ${e.outerHTML.slice(0, 90)}`;
};
"""

# Charts are made when they come near: the whole page is shown once.
_LEAF_THROUGH = """
const done = arguments[arguments.length - 1];
const step = () => {
  const end = scrollY + innerHeight >= document.documentElement.scrollHeight - 1;
  scrollBy({top: innerHeight, behavior: 'instant'});
  requestAnimationFrame(() => requestAnimationFrame(end ? done : step));
};
step();
"""

# Before the walk: what must be reached, and how each looks without focus.
_PREPARE = """
const ACTS = 'a[href], button, input, select, textarea, summary, [tabindex], [onclick], '
  + '[role=button], [role=link], [role=tab], [role=checkbox], [role=switch], [role=treeitem]';
const scrolls = (e) => {
  const style = getComputedStyle(e);
  const along = (how, inner, outer) => /auto|scroll/.test(how) && inner > outer + 1;
  return along(style.overflowX, e.scrollWidth, e.clientWidth)
    || along(style.overflowY, e.scrollHeight, e.clientHeight);
};
const usable = (e) => e.checkVisibility({visibilityProperty: true}) && !e.disabled
  && e.getAttribute('aria-hidden') !== 'true';
window.bars = {
  usable,
  // A place that a link leads to may take focus from scripts alone: there is nothing to do at it.
  acts: [...document.querySelectorAll(ACTS)].filter((e) => usable(e)
    && !(e.tabIndex < 0 && !e.matches('a, button, input, select, textarea, summary, [role]'))),
  boxes: [...document.body.querySelectorAll('*')].filter((e) => usable(e) && scrolls(e)),
  queue: [], reached: new Set(), unmarked: new Set(), hidden: new Set(), looks: new Map(),
};
window.bars.look = (e) => {
  const s = getComputedStyle(e);
  return [s.outlineStyle === 'none' ? '' : s.outline, s.boxShadow, s.border, s.backgroundColor,
    s.textDecoration, s.color].join('|');
};
for (const e of [...bars.acts, ...bars.boxes]) bars.looks.set(e, bars.look(e));
getSelection().removeAllRanges(); document.activeElement.blur();
scrollTo({top: 0, behavior: 'instant'});
return bars.acts.length + bars.boxes.length;
"""

# After each key: where focus is, whether that can be seen, whether it has been there before.
_ARRIVE = """
const done = arguments[arguments.length - 1];
const in_sight = (e) => {
  const box = [...e.getClientRects()].find((r) => r.width > 0 && r.height > 0);
  const [left, top] = box ? [Math.max(box.left, 0), Math.max(box.top, 0)] : [0, 0];
  const [right, bottom] = box
    ? [Math.min(box.right, innerWidth), Math.min(box.bottom, innerHeight)] : [0, 0];
  const hit = right - left > 0.5 && bottom - top > 0.5
    && document.elementFromPoint((left + right) / 2, (top + bottom) / 2);
  // Bars of a chart may share a place: the outline shows around them all.
  const lane = e.parentElement === document.body ? e : e.parentElement;
  return hit && (hit.contains(e) || lane.contains(hit)
    || hit.closest('label')?.control === e);
};
requestAnimationFrame(() => requestAnimationFrame(() => {
  const e = document.activeElement;
  if (!e || e === document.body || e === document.documentElement) return done('out');
  const stays = e === bars.last;
  bars.last = e;
  if (bars.reached.has(e)) return done(stays ? 'stuck' : 'again');
  bars.reached.add(e); bars.queue.push(e);
  if (bars.looks.get(e) === bars.look(e)) bars.unmarked.add(e);
  // What it scrolls to may get its size some frames later.
  const look = (left) => {
    if (in_sight(e)) return done('on');
    if (left) return requestAnimationFrame(() => look(left - 1));
    bars.hidden.add(e);
    done('on');
  };
  look(60);
}));
"""

ARROWS = {"ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}

# Widgets that are one stop, with arrow keys inside: where to begin for what Tab did not reach.
_STOPS = """
const beside = (e) => {
  for (let up = e.parentElement; up && !up.matches('main, body, section'); up = up.parentElement) {
    const stop = [...bars.reached].find((other) => up.contains(other) && other !== up);
    if (stop) return stop;
  }
};
const missed = bars.acts.filter((e) => !bars.reached.has(e) && bars.usable(e));
bars.queue = [...new Set(missed.map(beside))].filter(Boolean);
"""

_REPORT = (
    NAMED
    + """
const far = bars.acts.filter((e) => !bars.reached.has(e) && e.isConnected && bars.usable(e));
const boxes = bars.boxes.filter((e) => e.isConnected && !bars.reached.has(e)
  && ![...bars.reached].some((r) => e.contains(r)));
const names = (elements) => [...elements].slice(0, 10).map(named);
return {trapped: bars.stuck ? named(bars.stuck) : '',
  missed: names([...far, ...boxes]), unmarked: names(bars.unmarked),
  out_of_sight: names(bars.hidden)};
"""
)


def focus_walk(driver: Any) -> dict[str, Any]:
    """Tab from the top of the open page to its end; arrows inside what is one stop.

    The answer names where Tab got stuck, what no key reached, what does not show its focus, and
    what had focus out of sight.
    """
    driver.execute_async_script(_LEAF_THROUGH)
    stops = driver.execute_script(_PREPARE)
    arrived = "on"
    for _ in range(stops + 20):
        press(driver, "Tab", 9)
        arrived = driver.execute_async_script(_ARRIVE)
        if arrived != "on":
            break
    # Out of the page's end, or around to its beginning: either way past everything.
    around = driver.execute_script("return document.activeElement === [...bars.reached][0]")
    trapped = arrived in ("on", "stuck") or (arrived == "again" and not around)
    driver.execute_script("bars.stuck = arguments[0] ? bars.last : null", trapped)
    driver.execute_script(_STOPS)
    while driver.execute_script("return Boolean(bars.from = bars.queue.shift())"):
        for key, code in ARROWS.items():
            driver.execute_script("bars.last = bars.from; bars.from.focus()")
            press(driver, key, code)
            driver.execute_async_script(_ARRIVE)
    return dict(driver.execute_script(_REPORT))


def press(driver: Any, key: str, code: int) -> None:
    """A key as a keyboard sends it: the browser itself moves focus."""
    event = {"key": key, "code": key, "windowsVirtualKeyCode": code}
    driver.execute_cdp_cmd("Input.dispatchKeyEvent", {"type": "rawKeyDown", **event})
    driver.execute_cdp_cmd("Input.dispatchKeyEvent", {"type": "keyUp", **event})


def loaded(driver: Any, page: str) -> dict[str, float]:
    """What Chromium measures of loading a page: Performance.getMetrics, in a tab of its own."""
    before = driver.current_window_handle
    driver.switch_to.new_window("tab")
    try:
        driver.execute_cdp_cmd("Performance.enable", {})
        # Not by get(), whose waiting is a script: it would count itself.
        driver.execute("get", {"url": page})
        time.sleep(0.5)  # For what the page does after it has loaded.
        found = driver.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
        paint = driver.execute_script(
            "return performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0"
        )
    finally:
        driver.close()
        driver.switch_to.window(before)
    metrics = {entry["name"]: entry["value"] for entry in found}
    return {**metrics, "FirstContentfulPaint": paint / 1000}
