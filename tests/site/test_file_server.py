"""The preview's server as a stranger on this machine, or a page of another site, would use it."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from compilescope.report.site.preview import FileServer
from waiting import until

_PATIENCE_S = 60.0


@contextlib.contextmanager
def _serving(folder: Path, **limits: float) -> Iterator[FileServer]:
    (folder / "site").mkdir()
    (folder / "site" / "index.html").write_text("the page")
    (folder / "secret.txt").write_text("secret")
    server = FileServer(folder / "site", 0, **limits)  # type: ignore[arg-type]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _connected(server: FileServer) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.server_address[1]), _PATIENCE_S)


def _answer(server: FileServer, data: bytes) -> bytes:
    with _connected(server) as client:
        client.sendall(data.replace(b"PORT", str(server.server_address[1]).encode()))
        with contextlib.suppress(ConnectionError):
            return b"".join(iter(lambda: client.recv(65536), b""))
    return b""


def _get(path: bytes, host: bytes = b"localhost:PORT") -> bytes:
    return b"GET " + path + b" HTTP/1.1\r\nHost: " + host + b"\r\n\r\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FileServer]:
    with _serving(tmp_path_factory.mktemp("served")) as made:
        yield made


@pytest.mark.parametrize("host", [b"127.0.0.1:PORT", b"LOCALHOST:PORT", b"[::1]:PORT"])
def test_it_answers_to_its_own_names(server: FileServer, host: bytes) -> None:
    assert b"the page" in _answer(server, _get(b"/", host))


@pytest.mark.parametrize(
    "host",
    [
        *(b"evil.example:PORT", b"evil.example", b"localhost:1", b"", b"localhost:PORT.evil"),
        *(b"localhost", b"localhost.:PORT", b"evil@localhost:PORT", b"127.1:PORT", b"0.0.0.0:PORT"),
        *(b"[::ffff:127.0.0.1]:PORT", b"localhost:PORT,evil.example", b"localhost:+PORT"),
    ],
)
def test_it_answers_to_no_other_name(server: FileServer, host: bytes) -> None:
    answer = _answer(server, _get(b"/", host))
    assert b" 421 " in answer and b"the page" not in answer


def test_no_name_and_two_names(server: FileServer) -> None:
    assert b" 421 " in _answer(server, b"GET / HTTP/1.1\r\n\r\n")
    two = b"GET / HTTP/1.1\r\nHost: localhost:PORT\r\nHost: evil.example\r\n\r\n"
    assert b" 421 " in _answer(server, two)


@pytest.mark.parametrize(
    "path",
    [
        *(b"/%00", b"/index.html%00", b"/%00/x", b"/\xff", b"/%ff%fe", b"/" + b"a" * 5000),
        *(b"/../secret.txt", b"/%2e%2e/secret.txt", b"//etc/passwd", b"/..%2fsecret.txt"),
        *(b"/%ed%a0%80", b"/nul/../../secret.txt", b"http://evil.example/secret.txt"),
        *(b"/..\\secret.txt", b"/%5c..%5csecret.txt", b"/%0d%0aX:y", b"/%", b"/%zz", b"/x#y", b"*"),
    ],
)
def test_odd_paths_are_not_there(
    server: FileServer, path: bytes, capfd: pytest.CaptureFixture[str]
) -> None:
    answer = _answer(server, _get(path))
    assert answer.split()[1] in (b"400", b"404")
    assert b"secret" not in answer.partition(b"\r\n\r\n")[2]
    assert "Traceback" not in capfd.readouterr().err


def _status(answer: bytes) -> int:
    return int(answer.split()[1])


def test_pages_of_other_sites_read_nothing(server: FileServer) -> None:
    def asked(more: bytes) -> int:
        return _status(
            _answer(server, _get(b"/").replace(b"\r\n\r\n", b"\r\n" + more + b"\r\n\r\n"))
        )

    assert asked(b"Origin: http://evil.example") == 403
    assert asked(b"Origin: null") == 403
    assert asked(b"Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: no-cors") == 403
    assert asked(b"Sec-Fetch-Site: cross-site\r\nSec-Fetch-Dest: iframe") == 403
    assert asked(b"Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate") == 200
    assert asked(b"Origin: http://localhost:PORT\r\nSec-Fetch-Site: same-origin") == 200


def test_only_so_much_is_read(server: FileServer) -> None:
    lines = b"".join(b"X%d: " % number + b"y" * 6000 + b"\r\n" for number in range(90))
    head = b"GET / HTTP/1.1\r\nHost: localhost:PORT\r\n"
    with contextlib.suppress(ConnectionError):
        assert b" 200 " not in _answer(server, head + lines + b"\r\n")
    assert _status(_answer(server, head + b"X: " + b"y" * 40_000 + b"\r\n\r\n")) == 431
    assert _status(_answer(server, _get(b"/?" + b"a" * 9000))) == 414


@pytest.mark.parametrize("method", [b"POST", b"PUT", b"DELETE", b"OPTIONS", b"TRACE", b"get"])
def test_only_reading(server: FileServer, method: bytes) -> None:
    answer = _answer(server, _get(b"/").replace(b"GET", method, 1))
    assert _status(answer) == 405 and b"the page" not in answer


def test_head_answers_as_get_without_a_body(server: FileServer) -> None:
    head, _, body = _answer(server, _get(b"/").replace(b"GET", b"HEAD", 1)).partition(b"\r\n\r\n")
    assert b" 200 " in head and not body and b"Python" not in head
    refused = _answer(server, _get(b"/", b"evil.example").replace(b"GET", b"HEAD", 1))
    assert _status(refused) == 421 and refused.endswith(b"\r\n\r\n")


def test_one_connection_is_one_request(server: FileServer) -> None:
    """So nothing that follows a body is taken for another request."""
    smuggled = _get(b"/index.html")
    head = b"GET / HTTP/1.1\r\nHost: localhost:PORT\r\n"
    for more in (b"Content-Length: 3\r\n\r\nabc", b"Transfer-Encoding: xchunked\r\n\r\n", b"\r\n"):
        assert _answer(server, head + more + smuggled).count(b"HTTP/1.") == 1
    both = head + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    assert _status(_answer(server, both + smuggled)) == 400


def test_a_folder_that_is_gone(tmp_path: Path) -> None:
    with _serving(tmp_path) as server:
        (tmp_path / "site" / "index.html").unlink()
        (tmp_path / "site").rmdir()
        assert _status(_answer(server, _get(b"/"))) == 404


@pytest.mark.parametrize(
    "data",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: localhost:PORT\r\nContent-Length: 99999999999\r\n\r\n",
        b"DELETE / HTTP/1.1\r\nHost: localhost:PORT\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 500 + b"\r\n",
        b"GET / HTTP/1.1\r\nX: " + b"y" * 100_000 + b"\r\n\r\n",
        b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n",
        _get(b"/index.html") + b"\x00garbage\r\n" * 10,
    ],
)
def test_garbage_ends_in_order(
    server: FileServer, data: bytes, capfd: pytest.CaptureFixture[str]
) -> None:
    _answer(server, data)
    assert b"the page" in _answer(server, _get(b"/"))
    assert "Traceback" not in capfd.readouterr().err


def test_whoever_says_nothing_is_dropped(tmp_path: Path) -> None:
    with _serving(tmp_path, longest_s=0.2) as server:
        for said in (b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: "):
            with _connected(server) as client:
                client.sendall(said)
                with contextlib.suppress(ConnectionError):
                    while client.recv(1024):
                        pass  # Up to the patience of the socket.
        # Again, where the machine is so busy that we were too late ourselves.
        until(lambda: b"the page" in _answer(server, _get(b"/")))


def test_many_open_connections_lock_nobody_out(tmp_path: Path) -> None:
    with _serving(tmp_path, most=4) as server, contextlib.ExitStack() as stack:
        idle = [stack.enter_context(_connected(server)) for _ in range(20)]
        assert b"the page" in _answer(server, _get(b"/"))
        with contextlib.suppress(ConnectionError):
            assert idle[0].recv(1) == b""
