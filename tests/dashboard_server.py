"""A dashboard that really serves, for tests."""

from __future__ import annotations

import faulthandler
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx
import uvicorn

from compilescope.apps.dashboard.server.app import listening, server_of
from compilescope.apps.dashboard.server.options import BrowserLimits, Options

TOKEN = "a-token-for-tests"


@dataclass(frozen=True)
class Served:
    """A server that runs in a thread of this process."""

    options: Options
    server: uvicorn.Server
    client: httpx.Client
    """Knows the token, as a browser that opened the printed address does."""

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.options.port}"

    @property
    def home(self) -> Path:
        return self.options.home

    def stranger(self, **more: Any) -> httpx.Client:
        """Somebody without the token."""
        return httpx.Client(base_url=self.base, **{**_PATIENT, **more})

    def sign_in(self, driver: Any) -> None:
        driver.get(f"{self.base}/?token={TOKEN}")


# The server ends connections that nobody uses for some seconds: a busy machine may take longer from
# one request to the next, so each has its own.
_PATIENT: dict[str, Any] = {
    "timeout": 300,
    "limits": httpx.Limits(max_keepalive_connections=0),
}


@contextmanager
def serving(home: Path, *, last_words_s: int = 1, **more: Any) -> Iterator[Served]:
    """The dashboard over `home`, for as long as the block runs. `last_words_s`: how long what is
    under way may take at the end. `more`: fields of `Options`."""
    patient = BrowserLimits(drawing_seconds=1200)
    more = {"folders": (home.parent,), "token": TOKEN, "limits": patient, **more}
    opened = listening(Options(home=home, **more))
    options = replace(Options(home=home, **more), port=opened.getsockname()[1])
    server = server_of(options, last_words_s=last_words_s)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [opened]}, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.01)
    base = f"http://127.0.0.1:{options.port}"
    headers = {"accept": "text/html", "origin": base, "sec-fetch-site": "same-origin"}
    with httpx.Client(base_url=base, headers=headers, follow_redirects=True, **_PATIENT) as client:
        client.get("/", params={"token": TOKEN})
        try:
            yield Served(options, server, client)
        finally:
            server.should_exit = True
            thread.join(120)
            if thread.is_alive():
                faulthandler.dump_traceback(all_threads=True)
                thread.join(480)
            opened.close()
            assert not thread.is_alive(), "the server does not come to its end"
