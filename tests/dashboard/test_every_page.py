"""Every page in a browser: nothing on the console, nothing to scroll sideways, nothing serious
for axe-core. A job, a live run, a fix that is applied and a note that is written have tests of
their own, which look at the same."""

from __future__ import annotations

from typing import Any

import pytest

from axe_checks import grave_findings
from browsing import looking
from compilescope.apps.dashboard.fields.form import all_forms
from compilescope.apps.dashboard.server.app import all_pages
from dashboard_server import Served

pytestmark = pytest.mark.browser
RUNS = (
    "/runs/000011-model",
    "/runs/000000-bench",
    "/runs/00000b-sweep",
    "/runs/00000b-sweep/jobs",
    "/runs/00000b-sweep/jobs/branching",
    "/runs/00000d-diff-mlp",
    "/runs/00000f-train",
    "/compare?a=000010-model&b=000012-ranks",
    "/compare?a=000000-bench&b=000003-bench",
    "/devices/npu-a",
    "/?edit=000011-model",
    "/?q=nothing-has-this",
)
"""Runs of each kind, and what is made of them."""
SOME_FORMS = ("run", "diff", "tune")
"""With every kind of field; the others are made of the same."""
REGISTRY = ("/registry", "/registry/GB0124", "/registry/GB0124/note")
DEFAULT = (400, "dark")
SIZES = [(1280, "light"), (400, "dark"), (1280, "dark"), (400, "light")]


def addresses(kind: str, history: Served, registry: Served, *, all_of_them: bool) -> list[str]:
    if kind == "registry":
        return [registry.base + path for path in REGISTRY]
    if kind == "runs":
        return [history.base + path for path in RUNS]
    pages = [page.link for page in all_pages() if page.title and page.link != "/registry"]
    forms = [form.id for form in all_forms() if all_of_them or form.id in SOME_FORMS]
    return [history.base + path for path in (*pages, *(f"/start/{form}" for form in forms))]


def looks() -> list[Any]:
    """By default each page of the navigation and some forms once: tests of their own open those of
    runs and of the registry."""
    return [
        pytest.param(
            *(kind, width, scheme),
            id=f"{kind}-{width}-{scheme}",
            marks=[] if (kind, width, scheme) == ("pages", *DEFAULT) else [pytest.mark.slow],
        )
        for kind in ("pages", "runs", "registry")
        for width, scheme in SIZES
    ]


@pytest.mark.parametrize(("kind", "width", "scheme"), looks())
def test_every_page_is_sound(
    driver: Any, history: Served, registry: Served, kind: str, width: int, scheme: str
) -> None:
    history.sign_in(driver)
    registry.sign_in(driver)
    with looking(driver, width, 1000, scheme):
        for address in addresses(kind, history, registry, all_of_them=(width, scheme) != DEFAULT):
            driver.get(address)
            _open_everything(driver)
            assert len(driver.find_elements("css selector", "h1")) == 1, address
            wide = driver.execute_script("return document.documentElement.scrollWidth")
            assert wide <= width, address
            assert grave_findings(driver) == [], address
            assert driver.get_log("browser") == [], address


def _open_everything(driver: Any) -> None:
    opened = "document.querySelectorAll('main details').forEach((e) => { e.open = true })"
    driver.execute_script(opened)
