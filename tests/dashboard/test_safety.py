"""Requests that must not get through, tried against the real server."""

from __future__ import annotations

import asyncio
import contextlib
import re
import socket
import time
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import httpx
import pytest
from starlette.exceptions import HTTPException

from compilescope.apps.dashboard.pages import sign_in
from compilescope.apps.dashboard.server import safety
from compilescope.apps.dashboard.server.app import all_pages
from compilescope.apps.dashboard.server.page import Address
from compilescope.base.local_requests import SAFE_METHODS
from dashboard.probing import Probe, probing, status_of
from dashboard_server import TOKEN, Served, serving
from waiting import until

ADDRESSES = [address for page in all_pages() for address in page.addresses]


def _filled(address: Address) -> str:
    return re.sub(r"{(\w+)(:\w+)?}", "1", address.pattern)


def _named(address: Address) -> str:
    return f"{address.method} {address.pattern}"


@pytest.fixture(scope="module")
def probe(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Probe]:
    with probing(tmp_path_factory.mktemp("safety") / "runs") as made:
        yield made


@pytest.fixture
def fresh(probe: Probe) -> Probe:
    probe.reached.clear()
    return probe


# ---- Who may do what ----


@pytest.mark.parametrize("address", ADDRESSES, ids=_named)
def test_a_stranger_gets_to_what_is_open_and_no_further(address: Address, served: Served) -> None:
    own = {"origin": served.base, "accept": "text/html"}
    with served.stranger(headers=own) as stranger:
        answer = stranger.request(address.method, _filled(address))
        if address.anyone or address.open:
            assert answer.status_code not in (401, 500)
        else:
            assert answer.status_code == 401
            assert '<label for="token">' in answer.text


@pytest.mark.parametrize(
    "address", [a for a in ADDRESSES if a.method not in SAFE_METHODS], ids=_named
)
def test_pages_of_others_do_nothing_even_with_the_cookie(address: Address, served: Served) -> None:
    for origin in ("http://evil.example", "null", "http://127.0.0.1:1"):
        answer = served.client.request(address.method, _filled(address), headers={"origin": origin})
        assert answer.status_code == 403, origin


def test_only_reading_can_be_open() -> None:
    assert all(a.method == "GET" for a in ADDRESSES if a.open)
    assert {a.pattern for a in ADDRESSES if a.anyone} == {"/sign-in"}


def test_with_private_the_runs_need_the_token_too(tmp_path: Path) -> None:
    read = [_filled(each) for each in ADDRESSES if each.method == "GET" and not each.anyone]
    some = [path for path in read if path in ("/", "/runs.json", "/runs/1")]
    assert len(some) == 3
    for more, paths in (
        ({"private": True}, read),
        ({"hosts": ("gpu-box",)}, some),
        ({"host": "0.0.0.0"}, some),
    ):
        with serving(tmp_path / "runs", **more) as made, made.stranger() as stranger:
            for path in paths:
                assert stranger.get(path).status_code == 401, path
            assert made.client.get("/").status_code == 200


# ---- Host: a name of somebody else that leads here ----


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:{port}",
        "127.0.0.1.evil.example:{port}",
        "localhost.evil.example:{port}",
        "127.0.0.1",
        "localhost",
        "localhost:1",
        "127.0.0.1:{port}0",
        "127.0.0.1:{port}@evil.example",
        "user@127.0.0.1:{port}",
        "127.0.0.1:{port}/",
        "127.0.0.1:{port},evil.example",
        "127.1:{port}",
        "0.0.0.0:{port}",
        "2130706433:{port}",
        "[::]:{port}",
        "[::ffff:127.0.0.1]:{port}",
        "localhost.:{port}",
        "http://127.0.0.1:{port}",
        "*:{port}",
    ],
)
def test_another_name_is_refused(host: str, fresh: Probe) -> None:
    named = host.replace("{port}", str(fresh.served.options.port))
    assert fresh.ask(host=named) == 421
    assert not fresh.reached


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LocalHost", "[::1]"])
def test_names_of_the_loopback_are_ours(host: str, fresh: Probe) -> None:
    assert fresh.ask(host=f"{host}:{fresh.served.options.port}") == 200


def test_no_host_an_empty_one_or_two(fresh: Probe) -> None:
    own = f"127.0.0.1:{fresh.served.options.port}"
    for lines in (
        "GET /probe/open HTTP/1.1",
        "GET /probe/open HTTP/1.0",
        "GET /probe/open HTTP/1.1\r\nhost:",
        f"GET /probe/open HTTP/1.1\r\nhost: {own}\r\nhost: {own}",
        f"GET /probe/open HTTP/1.1\r\nhost: {own}\r\nhost: evil.example",
        f"GET /probe/open HTTP/1.1\r\nx-forwarded-host: {own}\r\nhost: evil.example",
    ):
        answer = fresh.say(f"{lines}\r\nconnection: close\r\n\r\n".encode())
        assert status_of(answer) in (400, 421), lines
    assert not fresh.reached


def test_an_address_as_a_proxy_gets_it_is_no_page(fresh: Probe) -> None:
    port = fresh.served.options.port
    for target in ("http://evil.example/probe/open", "evil.example:80", "*", "probe/open"):
        answer = fresh.say(
            f"GET {target} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nconnection: close\r\n\r\n".encode()
        )
        assert status_of(answer) in (400, 404), target
    assert not fresh.reached


def test_names_that_the_user_gave(tmp_path: Path) -> None:
    with probing(tmp_path / "runs", hosts=("GPU-box", "proxy.example:8443")) as probe:
        port = probe.served.options.port
        for host in ("gpu-box", f"gpu-box:{port}", "proxy.example:8443"):
            assert probe.ask(host=host) == 200, host
            for scheme in ("http", "https"):
                origin = f"{scheme}://{host}"
                assert probe.ask("POST", "/probe/act", host=host, origin=origin) == 200, origin
        for host in ("proxy.example", "proxy.example:80", "gpu-box:1", "x.gpu-box", "gpu-box.x"):
            assert probe.ask(host=host) == 421, host
        # For the loopback nobody speaks HTTPS.
        assert probe.ask("POST", "/probe/act", origin=f"https://127.0.0.1:{port}") == 403


def test_who_listens_everywhere_knows_the_address_that_was_called(tmp_path: Path) -> None:
    """A number can't be pointed elsewhere, a name can."""
    with probing(tmp_path / "runs", host="0.0.0.0") as probe:
        port = probe.served.options.port
        with socket.create_connection(("127.0.0.2", port), 60) as opened:
            opened.sendall(
                f"GET /probe/open HTTP/1.1\r\nhost: 127.0.0.2:{port}\r\n"
                f"cookie: {probe.cookie}\r\nconnection: close\r\n\r\n".encode()
            )
            assert status_of(opened.recv(1000)) == 200
        assert probe.ask(host=f"127.0.0.2:{port}") == 421
        assert probe.ask(host=f"{socket.gethostname()}.evil.example:{port}") == 421


# ---- Origin and Sec-Fetch-*: pages of others in the user's browser ----


@pytest.mark.parametrize(
    "origin",
    [
        "",
        "null",
        "http://evil.example",
        "https://127.0.0.1:{port}",
        "http://127.0.0.1",
        "http://127.0.0.1:{port}0",
        "http://127.0.0.1:1",
        "http://localhost:{port}",
        "http://127.0.0.1:{port}.evil.example",
        "http://x.127.0.0.1:{port}",
        "http://127.0.0.1:{port}/",
        "HTTP://127.0.0.1:{port}",
        "http://127.0.0.1:{port} http://evil.example",
        "file://",
        "chrome-extension://abcdef",
    ],
)
def test_another_origin_is_refused(origin: str, fresh: Probe) -> None:
    given = origin.replace("{port}", str(fresh.served.options.port))
    assert fresh.ask("POST", "/probe/act", origin=given) == 403
    if given:
        for path in ("/probe/open", "/probe/guarded"):
            assert fresh.ask("GET", path, origin=given) == 403
    assert not fresh.reached


def test_two_origins_are_refused(fresh: Probe) -> None:
    port = fresh.served.options.port
    answer = fresh.say(
        f"POST /probe/act HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\norigin: {fresh.origin}\r\n"
        f"origin: http://evil.example\r\ncookie: {fresh.cookie}\r\n"
        "connection: close\r\ncontent-length: 0\r\n\r\n".encode()
    )
    assert status_of(answer) == 403 and not fresh.reached


@pytest.mark.parametrize("site", ["cross-site", "same-site", "nonsense"])
def test_what_a_browser_says_of_another_site_counts(site: str, fresh: Probe) -> None:
    assert fresh.ask("POST", "/probe/act", origin=fresh.origin, sec_fetch_site=site) == 403
    for dest in ("image", "script", "style", "empty", "video"):
        told = {"sec_fetch_site": site, "sec_fetch_mode": "no-cors", "sec_fetch_dest": dest}
        assert fresh.ask("GET", "/probe/open", **told) == 403
    for dest in ("iframe", "frame", "object", "embed"):
        told = {"sec_fetch_site": site, "sec_fetch_mode": "navigate", "sec_fetch_dest": dest}
        assert fresh.ask("GET", "/probe/open", **told) == 403
    assert not fresh.reached


def test_a_link_on_another_site_may_be_followed(fresh: Probe) -> None:
    told = {"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate"}
    assert fresh.ask("GET", "/probe/open", sec_fetch_dest="document", **told) == 200


def test_no_page_of_others_learns_what_it_may_send(fresh: Probe) -> None:
    asked = {"access_control_request_method": "POST", "access_control_request_headers": "x"}
    assert fresh.ask("OPTIONS", "/probe/act", origin="http://evil.example", **asked) == 403
    answer = fresh.served.client.post("/probe/act")
    assert not [name for name in answer.headers if name.startswith("access-control-")]


# ---- The token ----


@pytest.mark.parametrize("given", ["", "x", TOKEN[:-1], TOKEN + "x", TOKEN.upper(), "ä", "%00"])
def test_a_wrong_token_is_none(given: str, fresh: Probe) -> None:
    name = f"compilescope-{fresh.served.options.port}"
    tried = [{"cookie": f"{name}={given}"}, {"cookie": f"compilescope={TOKEN}; {name}x={TOKEN}"}]
    tried += [{"authorization": f"Bearer {given}"}, {"authorization": f"Basic {TOKEN}"}]
    # A wrong header is not made right by a cookie.
    tried.append({"authorization": f"Bearer {given}x", "cookie": fresh.cookie})
    for headers in tried:
        assert fresh.ask("GET", "/probe/guarded", token=False, **headers) == 401, headers
        assert fresh.ask("POST", "/probe/act", token=False, **headers) in (401, 403), headers
    assert not fresh.reached


def test_a_script_shows_the_token_in_a_header(fresh: Probe) -> None:
    bearer = {"authorization": f"Bearer {TOKEN}"}
    assert fresh.ask("GET", "/probe/guarded", token=False, **bearer) == 200
    assert fresh.ask("POST", "/probe/act", token=False, **bearer) == 200
    # Also a page of another site could not send it unasked; who names a foreign origin is one.
    assert fresh.ask("POST", "/probe/act", token=False, origin="http://a.b", **bearer) == 403


def test_cookies_of_others_do_not_hide_ours(fresh: Probe) -> None:
    name = f"compilescope-{fresh.served.options.port}"
    for cookie in (
        f'{name}=tossed; {fresh.cookie}; a={{"json": [1]}}; b',
        f"a@b=1; ;;=; {fresh.cookie}; {name}=tossed",
    ):
        assert fresh.ask("GET", "/probe/guarded", token=False, cookie=cookie) == 200


def test_the_address_with_the_token_signs_in(probe: Probe) -> None:
    with probe.served.stranger() as browser:
        answer = browser.get("/probe/guarded", params={"token": TOKEN, "a": "1 2", "b": ""})
        assert answer.status_code == 303
        assert answer.headers["location"] == "/probe/guarded?a=1+2&b="
        cookie = answer.headers["set-cookie"].lower()
        assert "httponly" in cookie and "samesite=strict" in cookie and "domain" not in cookie
        assert cookie.startswith(f"compilescope-{probe.served.options.port}=")
        assert TOKEN not in answer.text
        assert browser.get(answer.headers["location"]).text == "the secret"


def test_who_comes_from_another_site_is_led_on_by_a_page_of_ours(probe: Probe) -> None:
    """A redirect would be followed without the cookie that it sets."""
    with probe.served.stranger(headers={"sec-fetch-site": "cross-site"}) as browser:
        answer = browser.get("/probe/guarded", params={"token": TOKEN, "a": '"><script>'})
        assert answer.status_code == 200 and "set-cookie" in answer.headers
        assert 'content="0;url=/probe/guarded?a=%22%3E%3Cscript%3E"' in answer.text


@pytest.mark.parametrize(
    "path",
    ["//evil.example", "///evil.example/", "/%2fevil.example", "/%2f%2fevil.example/x", "//"],
)
def test_signing_in_leads_to_no_other_server(path: str, probe: Probe) -> None:
    port = probe.served.options.port
    said = f"GET {path}?token={TOKEN} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", port), 60) as opened:
        opened.sendall(said.encode())
        answer = opened.recv(10000).decode()
    location = re.search(r"(?i)^location: (.*)\r$", answer, re.MULTILINE)
    assert location is not None and re.match(r"/(?![/\\])", location[1])


@pytest.mark.parametrize(
    ("wanted", "path"),
    [
        ("/runs/a?b=c&d=%2F", "/runs/a?b=c&d=%2F"),
        ("/", "/"),
        ("", "/"),
        ("runs", "/"),
        ("//evil.example/x", "/"),
        ("/\\evil.example", "/"),
        ("\\\\evil.example", "/"),
        ("http://evil.example/", "/"),
        ("javascript:alert(1)", "/"),
        ("/\t/evil.example", "/"),
        ("/a\r\nset-cookie: x=y", "/"),
        ("/a\0", "/"),
        ("/ä", "/"),
        ("///evil.example", "/evil.example"),
        ("http:///evil.example", "/"),
    ],
)
def test_a_local_path(wanted: str, path: str) -> None:
    assert safety.local_path(wanted) == path


def test_the_token_in_an_address_counts_for_get_alone(fresh: Probe) -> None:
    for method in ("HEAD", "POST", "PUT"):
        path = f"/probe/guarded?token={TOKEN}"
        status = fresh.ask(method, path, token=False, origin=fresh.origin)
        assert status in (401, 405), method
    path = f"/probe/act?token={TOKEN}"
    assert fresh.ask("POST", path, token=False, origin=fresh.origin) == 401
    for query in ("token=wrong", f"token={TOKEN}&token=wrong", "token="):
        assert fresh.ask("GET", f"/probe/guarded?{query}", token=False) == 403
        assert fresh.ask("GET", f"/probe/guarded?{query}") == 403
    assert not fresh.reached


def test_a_token_that_works_once(tmp_path: Path) -> None:
    with serving(tmp_path / "runs", once="for-the-browser") as made:
        with made.stranger() as browser:
            answer = browser.get("/", params={"token": "for-the-browser"})
            assert answer.status_code == 303 and "for-the-browser" not in str(answer.headers)
        with made.stranger() as other:
            assert other.get("/", params={"token": "for-the-browser"}).status_code == 403
    with serving(tmp_path / "runs") as made, made.stranger() as other:
        assert other.get("/", params={"token": ""}).status_code == 403


# ---- The sign-in page ----


def test_signing_in_by_the_form(probe: Probe) -> None:
    own = {"origin": probe.origin, "accept": "text/html"}
    for text in (TOKEN, f"  {TOKEN}\n", f"{probe.origin}/?token={TOKEN}"):
        with probe.served.stranger(headers=own) as browser:
            asked = browser.get("/probe/guarded", params={"a": "1"})
            assert asked.status_code == 401 and "compilescope serve" in asked.text
            back = re.search(r'name="next" value="([^"]*)"', asked.text)
            assert back is not None and back[1] == "/probe/guarded?a=1"
            answer = browser.post("/sign-in", data={"token": text, "next": back[1]})
            assert (answer.status_code, answer.headers["location"]) == (303, back[1])
            assert browser.get(back[1]).text == "the secret"
            assert browser.get("/sign-in").headers["location"] == "/"


def test_a_form_with_a_wrong_token(probe: Probe, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sign_in, "_DELAY_S", 0.0)
    own = {"origin": probe.origin, "accept": "text/html"}
    with probe.served.stranger(headers=own) as browser:
        for number in range(30):
            form = {"token": f"guess{number}", "next": "//evil.example"}
            answer = browser.post("/sign-in", data=form)
            assert answer.status_code == 403 and "not the token" in answer.text
            assert "set-cookie" not in answer.headers and "evil" not in answer.text
        # Nobody was locked out by that.
        assert browser.post("/sign-in", data={"token": TOKEN}).status_code == 303


def test_other_sites_sign_nobody_in(fresh: Probe) -> None:
    for origin in ("", "null", "http://evil.example"):
        assert fresh.ask("POST", "/sign-in", origin=origin) == 403


def test_for_a_script_refusals_are_data(probe: Probe) -> None:
    with probe.served.stranger() as script:
        answer = script.get("/probe/guarded")
        assert answer.status_code == 401 and answer.headers["www-authenticate"] == "Bearer"
        assert set(answer.json()) == {"error", "hint"}
        assert script.get("/nothing").json()["error"] == "There is no such page."


# ---- Bodies, methods, addresses ----


def test_a_body_has_a_limit(fresh: Probe) -> None:
    own = {"origin": fresh.origin}
    client = fresh.served.client
    assert client.post("/probe/act", data={"a": "x" * 900}, headers=own).status_code == 200
    answer = client.post("/probe/act", data={"a": "x" * 1100}, headers=own)
    assert answer.status_code == 413 and "1,000 bytes" in answer.text
    fresh.reached.clear()

    def endless() -> Iterator[bytes]:
        for _ in range(50):
            yield b"a" * 100

    kind = {"content-type": "application/x-www-form-urlencoded", **own}
    answer = client.post("/probe/act", content=endless(), headers=kind)
    assert answer.status_code == 413
    assert not fresh.reached


@pytest.mark.parametrize(
    "length", ["999999999999", "9" * 400, "-1", "0x10", "1e3", "+5", "5, 6", "abc", ""]
)
def test_a_length_that_is_none(length: str, fresh: Probe) -> None:
    port = fresh.served.options.port
    answer = fresh.say(
        f"POST /probe/act HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\norigin: {fresh.origin}\r\n"
        f"cookie: {fresh.cookie}\r\ncontent-length: {length}\r\n"
        "connection: close\r\n\r\nabcde".encode()
    )
    assert status_of(answer) in (400, 413)
    assert not fresh.reached


def test_a_body_that_never_ends_is_given_up(fresh: Probe, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(safety, "BODY_S", 0.1)
    head = (
        f"POST /probe/act HTTP/1.1\r\nhost: 127.0.0.1:{fresh.served.options.port}\r\n"
        f"origin: {fresh.origin}\r\ncookie: {fresh.cookie}\r\n"
        "content-type: application/x-www-form-urlencoded\r\nconnection: close\r\n"
    )
    for more in (
        "content-length: 500\r\n\r\na=b",
        "transfer-encoding: chunked\r\n\r\n3\r\na=b\r\n",
    ):
        assert status_of(fresh.say((head + more).encode())) == 408, more
    assert not fresh.reached


def test_two_requests_in_one(fresh: Probe) -> None:
    """A length that lies hides no second request with the rights of the first."""
    port = fresh.served.options.port
    hidden = f"POST /probe/act HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\ncontent-length: 0\r\n\r\n"
    head = (
        f"POST /probe/act HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\norigin: {fresh.origin}\r\n"
        f"cookie: {fresh.cookie}\r\n"
    )
    for more in (
        f"content-length: 0\r\n\r\n{hidden}",
        f"content-length: 0\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n{hidden}",
        f"transfer-encoding: chunked\r\ntransfer-encoding: identity\r\n\r\n0\r\n\r\n{hidden}",
        f"transfer-encoding: xchunked\r\n\r\n0\r\n\r\n{hidden}",
    ):
        fresh.reached.clear()
        with socket.create_connection(("127.0.0.1", port), 60) as opened:
            opened.sendall((head + more).encode())
            opened.shutdown(socket.SHUT_WR)
            answer = b""
            while part := opened.recv(65536):
                answer += part
        assert len(fresh.reached) <= 1, more
        assert len(re.findall(rb"HTTP/1.1 200", answer)) <= 1


def test_a_length_given_in_two_ways_ends_the_connection(fresh: Probe) -> None:
    """A proxy may believe the other one: what follows is nobody's request."""
    port = fresh.served.options.port
    head = f"HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n"
    both = "content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n"
    answer = fresh.say(f"GET /probe/open {head}{both}GET /probe/open {head}\r\n".encode())
    assert re.findall(rb"HTTP/1.1 (\d+)", answer) == [b"400"]
    assert not fresh.reached


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/json", "application/xml", "x", "multipart/mixed"]
)
def test_a_body_of_another_kind(kind: str, fresh: Probe) -> None:
    headers = {"origin": fresh.origin, "content-type": kind}
    answer = fresh.served.client.post("/probe/act", content=b"{}", headers=headers)
    assert answer.status_code == 415 and not fresh.reached


def test_forms_that_are_broken_or_bombs(fresh: Probe) -> None:
    client, own = fresh.served.client, {"origin": fresh.origin}
    many = "&".join(f"a{n}=" for n in range(300))
    for kind, body in (
        ("multipart/form-data", b"x"),
        ("multipart/form-data; boundary=", b"x"),
        ("multipart/form-data; boundary=b", b"--b\r\nnonsense"),
        ("multipart/form-data; boundary=b", b"--b\r\ncontent-disposition: form-data\r\n\r\n"),
        ("application/x-www-form-urlencoded", b"\xff\xfe=%zz&=%00;;"),
        ("application/x-www-form-urlencoded; charset=utf-16", b"a=b"),
        ("application/x-www-form-urlencoded", many.encode()[:999]),
    ):
        answer = client.post("/probe/act", content=body, headers={**own, "content-type": kind})
        assert answer.status_code in (200, 400), (kind, body)
    answer = client.post("/sign-in", data={f"a{n}": "" for n in range(50)}, headers=own)
    assert answer.status_code == 400


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "TRACE", "CONNECT", "OPTIONS", "ODD"])
def test_other_methods(method: str, fresh: Probe) -> None:
    for path in ("/probe/open", "/probe/act", "/"):
        status = fresh.ask(method, path, origin=fresh.origin)
        assert status in (400, 405), path
    assert not fresh.reached


def test_head_answers_as_get_without_a_body(fresh: Probe) -> None:
    with fresh.served.stranger() as stranger:
        answer = stranger.head("/probe/open")
        assert answer.status_code == 200 and answer.content == b""
        assert stranger.head("/probe/guarded").status_code == 401
        assert stranger.head("/probe/act").status_code == 405


@pytest.mark.parametrize(
    "path",
    [
        "/runs/..%2f..%2fetc",
        "/runs/..%2F..%2F..%2Fetc%2Fpasswd",
        "/runs/%2e%2e",
        "/runs/%2e%2e/%2e%2e/etc/passwd",
        "/runs/%252e%252e%252fetc",
        "/runs/..%5c..%5cetc",
        "/runs/../../etc/passwd",
        "/runs/%2fetc%2fpasswd",
        "/runs/.",
        "/runs/.jobs",
        "/runs/x%00",
        "/runs/x%0d%0aset-cookie:%20a=b",
        "/runs/x%0a",
        "/runs/%ff%fe",
        "/runs/~root",
        "/assets/..%2fshell.py",
        "/assets/../page_frame.py",
        "/assets/%2e%2e%2f%2e%2e%2fshell.py",
        "/.env",
        "/%00",
        "/probe/open/..%2fguarded",
    ],
)
def test_no_address_leads_out(path: str, fresh: Probe) -> None:
    answer = fresh.say(
        f"GET {path} HTTP/1.1\r\nhost: 127.0.0.1:{fresh.served.options.port}\r\n"
        f"cookie: {fresh.cookie}\r\nconnection: close\r\n\r\n".encode()
    )
    assert status_of(answer) in (400, 404)
    assert b"root:" not in answer and b"import " not in answer
    assert b"set-cookie" not in answer.partition(b"\r\n\r\n")[0]
    assert not fresh.reached


def test_too_much_of_anything_is_refused(fresh: Probe) -> None:
    port = fresh.served.options.port
    long = "a" * 100_000
    head = f"GET /probe/open HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n"
    for said in (
        f"GET /{long} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n\r\n",
        f"GET /probe/open?{long} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n\r\n",
        f"{head}x: {long}\r\n\r\n",
        f"{head}cookie: {long}\r\n\r\n",
        head + "".join(f"x{n}: y\r\n" for n in range(20_000)) + "\r\n",
        f"GET /probe/open HTTP/1.1\r\nhost: {long}\r\n\r\n",
        long,
        "\0\1\2\r\n\r\n",
        f"{head}x y: z\r\n\r\n",
        f"{head}x: a\0b\r\n\r\n",
    ):
        with socket.create_connection(("127.0.0.1", port), 60) as opened:
            try:
                opened.sendall(said.encode())
                answer = opened.recv(1000)
            except (ConnectionResetError, BrokenPipeError):
                continue
        assert status_of(answer) in (400, 414, 421, 431), said[:60]
    assert fresh.ask() == 200


def test_a_connection_that_asks_for_nothing_is_dropped(tmp_path: Path) -> None:
    from compilescope.apps.dashboard.server.options import BrowserLimits

    with probing(tmp_path / "runs", limits=BrowserLimits(stalled_s=0.2)) as probe:
        port = probe.served.options.port
        for said in (b"", b"GET / HTTP/1.1\r\nhost: 127.0.0.1"):
            with socket.create_connection(("127.0.0.1", port), 60) as opened:
                opened.sendall(said)
                with contextlib.suppress(ConnectionResetError):
                    assert opened.recv(1000) == b""
        said = f"POST / HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\ncontent-length: 999999\r\n\r\n"
        with contextlib.ExitStack() as stack:
            answer = b""
            while not answer:  # On a busy machine we may be dropped before we have asked.
                opened = stack.enter_context(socket.create_connection(("127.0.0.1", port), 60))
                with contextlib.suppress(ConnectionError):
                    opened.sendall(said.encode())
                    answer = opened.recv(1000)
            assert status_of(answer) == 403
            with pytest.raises((ConnectionResetError, BrokenPipeError)):
                while True:  # Byte by byte, so that it never says nothing for long.
                    opened.sendall(b"x")
                    time.sleep(0.02)


def test_connections_that_ask_for_nothing_make_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else whoever opens as many as there may be files keeps everybody out."""
    monkeypatch.setattr("compilescope.apps.dashboard.server.app.most_connections", lambda: 8)
    with probing(tmp_path / "runs") as probe, contextlib.ExitStack() as stack:
        address = ("127.0.0.1", probe.served.options.port)
        idle = [stack.enter_context(socket.create_connection(address, 60)) for _ in range(30)]
        assert probe.ask() == 200
        assert len(probe.served.server.server_state.connections) <= 9
        with contextlib.suppress(ConnectionResetError):
            assert idle[0].recv(1) == b""
        idle[-1].sendall(b"GET /assets/x HTTP/1.1\r\nhost: x\r\n\r\n")
        assert idle[-1].recv(12) == b"HTTP/1.1 421", "who came last may still ask"


# ---- What leaves ----


def test_every_answer_has_its_headers(probe: Probe) -> None:
    def checked(answer: httpx.Response, status: int) -> None:
        assert answer.status_code == status, answer.url
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy and "script-src 'self';" in policy
        assert "frame-ancestors 'none'" in policy and "unsafe-eval" not in policy
        assert "script-src 'unsafe-inline'" not in policy and "style-src 'self';" in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["cross-origin-opener-policy"] == "same-origin"
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"
        assert answer.headers["referrer-policy"] == "same-origin"
        assert "server" not in answer.headers
        if "/assets/" not in str(answer.url):
            assert answer.headers["cache-control"] == "no-store"

    client = probe.served.client
    checked(client.get("/"), 200)
    checked(client.get("/nothing"), 404)
    checked(client.get("/assets/nothing.css"), 404)
    checked(client.get("/probe/bug"), 500)
    checked(client.get("/probe/open", headers={"origin": "http://evil.example"}), 403)
    checked(client.get("/probe/open", headers={"host": "evil.example"}), 421)
    checked(client.post("/probe/open"), 405)
    asset = re.search(r'href="(/assets/dashboard[^"]*)"', client.get("/").text)
    assert asset is not None
    checked(client.get(asset[1]), 200)


class _Tags(HTMLParser):
    """Finds what the policy would forbid."""

    def __init__(self) -> None:
        super().__init__()
        self.wrong: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        packed = (given.get("type") or "").startswith("application/")
        if tag == "script" and not packed and not (given.get("src") or "").startswith("/assets/"):
            self.wrong.append(str(self.get_starttag_text()))
        leads = [given.get(name) or "" for name in ("href", "src", "action", "formaction")]
        if any(lead.strip().lower().startswith(("javascript:", "//")) for lead in leads):
            self.wrong.append(str(self.get_starttag_text()))
        if tag in ("style", "iframe", "object", "embed", "base"):
            self.wrong.append(tag)
        if any(name.startswith("on") for name in given):
            self.wrong.append(str(self.get_starttag_text()))


def test_no_page_has_a_script_or_a_handler_in_it(served: Served) -> None:
    pages = ["/", "/sign-in", "/nothing"]
    pages += [f"/runs/{folder.name}" for folder in served.home.iterdir() if folder.is_dir()]
    with served.stranger(headers={"accept": "text/html"}) as stranger:
        for page in pages:
            answer = stranger.get(page)
            assert answer.status_code == (404 if page == "/nothing" else 200), page
            tags = _Tags()
            tags.feed(answer.text)
            assert not tags.wrong, page


def test_a_bug_is_printed_and_the_page_says_so(
    probe: Probe, capfd: pytest.CaptureFixture[str]
) -> None:
    answer = probe.served.client.get("/probe/bug")
    assert answer.status_code == 500
    assert "Something went wrong in compilescope." in answer.text
    assert "ZeroDivisionError" not in answer.text
    said = ""

    def printed() -> bool:
        # After the answer: the browser does not wait for it.
        nonlocal said
        said += capfd.readouterr().err
        return "ZeroDivisionError: a bug of ours" in said

    until(printed)


def test_what_strangers_send_is_not_logged(fresh: Probe, capfd: pytest.CaptureFixture[str]) -> None:
    fresh.say(b"nonsense\r\n\r\n")
    fresh.ask(host="evil.example")
    fresh.ask(connection="upgrade", upgrade="websocket", sec_websocket_version="13")
    with socket.create_connection(("127.0.0.1", fresh.served.options.port), 60) as opened:
        opened.sendall(b"POST /sign-in HTTP/1.1\r\ncontent-le")
    assert capfd.readouterr().err == ""


def test_a_body_that_comes_a_byte_at_a_time_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """No pause of it is long, yet it would never end."""
    monkeypatch.setattr(safety, "BODY_S", 0.2)

    async def dripping() -> dict[str, object]:
        await asyncio.sleep(0.01)
        return {"type": "http.request", "body": b"x", "more_body": True}

    async def read() -> None:
        receive = safety.limited(dripping, 1 << 20, HTTPException(413))
        while True:
            await receive()

    with pytest.raises(HTTPException) as raised:
        asyncio.run(read())
    assert raised.value.status_code == 408
