"""`compilescope registry update --from`, against an https server on this machine."""

from __future__ import annotations

import http.server
import json
import shutil
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from compilescope.apps.cli.main import main
from compilescope.base.errors import ToolError
from compilescope.knowledge.registry import downloads, table_download
from compilescope.knowledge.registry.table import table_file
from compilescope.knowledge.registry.table_download import source_of

ENTRY = {"Gb_type": "A type", "Context": "", "Explanation": "Words.", "Hints": ["A hint."]}
# The installed torch's table and more: the difference to it is short to print.
INSTALLED = json.loads(table_file().read_bytes())
TABLE = json.dumps({**INSTALLED, "GB9990": [ENTRY]}).encode()
MORE = {f"GB999{n}": [{**ENTRY, "Gb_type": f"Type {n}"}] for n in range(1, 9)}
NEWER = json.dumps({**INSTALLED, "GB9990": [ENTRY], **MORE}).encode()
FEW = json.dumps({"GB0124": [ENTRY]}).encode()

pytestmark = pytest.mark.skipif(not shutil.which("openssl"), reason="no openssl command")


@dataclass(frozen=True)
class Done:
    status: int
    out: str
    err: str


Run = Callable[..., Done]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    for name in ("STATE", "CACHE", "CONFIG"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    for name in ("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "SSL_CERT_FILE"):
        monkeypatch.delenv(name, raising=False)

    def call(*arguments: object) -> Done:
        monkeypatch.setattr(sys, "argv", ["compilescope", "registry", *map(str, arguments)])
        with pytest.raises(SystemExit) as left:
            main()
        printed = capsys.readouterr()
        return Done(int(left.value.code or 0), printed.out, printed.err)

    return call


class _Answers(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        self.close_connection = True
        answer = {
            "/good.json": lambda: self._send(TABLE),
            "/newer.json": lambda: self._send(NEWER),
            "/few.json": lambda: self._send(FEW),
            "/huge.json": lambda: self._send(b" " * (table_download.BIGGEST_DOWNLOAD + 1)),
            "/endless.json": self._endless,
            "/cut.json": lambda: self._send(TABLE[:-400], length=len(TABLE)),
            "/cut-unsaid.json": lambda: self._send(TABLE[:-400], length=None),
            "/cut-chunk.json": self._cut_chunk,
            "/garbage.json": lambda: self._send(b"\x00\xff" * 500),
            "/other.json": lambda: self._send(b'{"a": 1}'),
            "/empty.json": lambda: self._send(b""),
            "/page.json": lambda: self._send(b"\n<!doctype html><title>Log in</title>"),
            "/zipped.json": lambda: self._send(TABLE, headers={"Content-Encoding": "gzip"}),
            "/to-http": lambda: self._send(b"", 302, {"Location": "http://localhost/good.json"}),
            "/to-file": lambda: self._send(b"", 301, {"Location": "file:///etc/passwd"}),
            "/to-good": lambda: self._send(b"", 307, {"Location": "/good.json"}),
            "/round": lambda: self._send(b"", 302, {"Location": "/round"}),
            "/slow.json": self._slow,
        }.get(self.path.partition("?")[0])
        if answer is None:
            self._send(b"not here", 404)
        else:
            answer()

    def _send(
        self,
        body: bytes,
        code: int = 200,
        headers: dict[str, str] | None = None,
        length: int | None = -1,
    ) -> None:
        self.send_response(code)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        if length is not None:
            self.send_header("Content-Length", str(len(body) if length < 0 else length))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def _cut_chunk(self) -> None:
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.write(f"{len(TABLE):x}\r\n".encode() + TABLE[:-400])

    def _endless(self) -> None:
        self.send_response(200)
        self.end_headers()
        for _ in range(2000):
            self.wfile.write(b" " * 65536)

    def _slow(self) -> None:
        self.send_response(200)
        self.end_headers()
        for _ in range(600):
            self.wfile.write(b" ")
            time.sleep(0.05)


class _Quiet(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients that refuse a certificate leave in the middle."""


@dataclass(frozen=True)
class Server:
    url: str
    authority: Path
    port: int


def _certificate(folder: Path) -> None:
    def openssl(*words: str) -> None:
        subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)

    new = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    (folder / "san").write_text("subjectAltName=DNS:localhost\n")
    openssl(
        *("req", "-x509", *new, "-keyout", "ca.key", "-out", "ca.pem", "-days", "30"),
        *("-subj", "/CN=Test authority", "-addext", "keyUsage=critical,keyCertSign"),
    )
    openssl("req", *new, "-keyout", "key.pem", "-out", "csr.pem", "-subj", "/CN=localhost")
    openssl(
        *("x509", "-req", "-in", "csr.pem", "-CA", "ca.pem", "-CAkey", "ca.key", "-days", "30"),
        *("-CAcreateserial", "-extfile", "san", "-out", "cert.pem"),
    )


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("tls")
    _certificate(folder)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    answering = _Quiet(("127.0.0.1", 0), _Answers)
    answering.socket = context.wrap_socket(answering.socket, server_side=True)
    thread = threading.Thread(target=answering.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    port = answering.server_address[1]
    yield Server(f"https://localhost:{port}", folder / "ca.pem", port)
    answering.shutdown()
    answering.server_close()
    thread.join()


def test_a_download_is_used_from_then_on_and_can_be_taken_back(run: Run, server: Server) -> None:
    torchs = table_file().read_bytes()
    trust = ("--ca-file", server.authority)
    done = run("update", "--from", f"{server.url}/good.json?token=secret", *trust)
    assert done.status == 0, done.err
    assert (
        "1 added, 0 removed, 0 reworded" in done.out
        and "update --restore" in done.out
        and "secret" not in done.out
    )
    assert "secret" not in (downloads.current_file().parent / "origin.json").read_text()
    shown = run("show", "GB9990")
    assert "A type" in shown.out and "good.json" in shown.out
    value = json.loads(run("list", "--json").out)
    assert len(value["entries"]) == len(INSTALLED) + 1 and value["torch"] is None
    assert run("show", "GB9990", "--installed").status == 2

    value = json.loads(run("update", "--from", f"{server.url}/newer.json", *trust, "--json").out)
    assert len(value["came"]) == 8 and value["same"] == len(INSTALLED) + 1
    assert Path(value["kept"]).read_bytes() == NEWER
    assert "8 removed" in run("update", "--restore").out
    assert downloads.current_file().read_bytes() == TABLE
    assert "8 added" in run("update", "--restore").out
    again = run("update", "--from", f"{server.url}/newer.json", *trust)
    assert "No differences" in again.out
    assert "8 removed" in run("update", "--restore").out  # The same table again loses nothing.
    assert table_file().read_bytes() == torchs


def test_the_first_download_gives_way_to_the_installed_table(run: Run, server: Server) -> None:
    assert "no downloaded table" in run("update", "--restore").err
    run("update", "--from", f"{server.url}/to-good", "--ca-file", server.authority)
    assert downloads.current_file().read_bytes() == TABLE
    assert run("update", "--restore").status == 0
    assert downloads.current_file() == table_file()


def test_ids_that_only_the_installed_torch_has_are_still_shown(run: Run, server: Server) -> None:
    trust = ("--ca-file", server.authority)
    run("update", "--from", f"{server.url}/few.json", "--allow-fewer", "--json", *trust)
    shown = run("show", "GB0124", "GB0170")
    assert shown.status == 0 and "A type" in shown.out and "Data-dependent branching" in shown.out
    assert "graph break in torch 2" in shown.out


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("huge.json", "larger than 8 MB"),
        ("endless.json", "larger than 8 MB"),
        ("cut.json", "ended early"),
        ("cut-chunk.json", "ended early"),
        ("cut-unsaid.json", "not valid JSON"),
        ("garbage.json", "not valid JSON"),
        ("other.json", "not a graph-break table"),
        ("empty.json", "is empty"),
        ("page.json", "is a web page"),
        ("zipped.json", "compressed"),
        ("to-http", "redirects to 'http://localhost/good.json', which is not https"),
        ("to-file", "redirects to 'file:///etc/passwd', which is not https"),
        ("round", "answered 302"),
        ("absent.json", "answered 404 Not Found"),
        ("few.json", "has only 1 IDs"),
    ],
)
def test_what_is_no_table_changes_nothing(run: Run, server: Server, path: str, says: str) -> None:
    downloads.keep(TABLE, downloads.Origin(server.url, "", "2026-01-01", len(INSTALLED) + 1))
    trust = ("--ca-file", server.authority)
    done = run("update", "--from", f"{server.url}/{path}", *trust)
    assert done.status == 2 and says in done.err and "Traceback" not in done.err, done.err
    assert done.out == "" and downloads.current_file().read_bytes() == TABLE
    assert [p.name for p in downloads.downloads_folder().rglob("*.part")] == []


def test_a_slow_server_is_left(run: Run, server: Server) -> None:
    trust = ("--ca-file", server.authority)
    done = run("update", "--from", f"{server.url}/slow.json", *trust, "--limit", "0.3")
    assert done.status == 2 and "within 0.3 s" in done.err


def test_a_silent_server_is_left(run: Run) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"https://localhost:{silent.getsockname()[1]}/x.json"
        done = run("update", "--from", url, "--limit", "0.3")
    assert done.status == 2 and "within 0.3 s" in done.err


def test_certificates(run: Run, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    untrusted = run("update", "--from", f"{server.url}/good.json")
    assert untrusted.status == 2 and "could not be verified" in untrusted.err
    assert "--ca-file" in untrusted.err
    other = f"https://127.0.0.1:{server.port}/good.json"
    wrong = run("update", "--from", other, "--ca-file", server.authority)
    assert wrong.status == 2 and "IP address mismatch" in wrong.err
    assert not downloads.downloads_folder().exists()
    monkeypatch.setenv("SSL_CERT_FILE", str(server.authority))
    assert run("update", "--from", f"{server.url}/good.json").status == 0


def test_a_ca_file_that_is_none(run: Run, tmp_path: Path) -> None:
    bad = tmp_path / "ca.pem"
    bad.write_text("no certificate")
    done = run("update", "--from", "https://localhost/x", "--ca-file", bad)
    assert done.status == 2 and "could not be used as a CA file" in done.err
    done = run("update", "--from", "https://localhost/x", "--ca-file", tmp_path / "absent")
    assert done.status == 2 and "No such file" in done.err


TUNNELLED: list[str] = []


class _Tunnel(http.server.BaseHTTPRequestHandler):
    """A proxy that only connects."""

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_CONNECT(self) -> None:
        TUNNELLED.append(self.path)
        host, _, port = self.path.partition(":")
        with socket.create_connection((host, int(port))) as far:
            self.send_response(200)
            self.end_headers()
            back = threading.Thread(target=_pour, args=(far, self.connection), daemon=True)
            back.start()
            _pour(self.connection, far)
            back.join()


def _pour(source: socket.socket, target: socket.socket) -> None:
    try:
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        pass


def test_the_proxy_of_the_environment(
    run: Run, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    with _Quiet(("127.0.0.1", 0), _Tunnel) as proxy:
        threading.Thread(target=proxy.serve_forever, args=(0.05,), daemon=True).start()
        monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{proxy.server_address[1]}")
        monkeypatch.delenv("no_proxy", raising=False)
        monkeypatch.delenv("NO_PROXY", raising=False)
        done = run("update", "--from", f"{server.url}/good.json", "--ca-file", server.authority)
        proxy.shutdown()
    assert done.status == 0, done.err
    assert [f"localhost:{server.port}"] == TUNNELLED


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--from", "http://localhost/x"), "is not https"),
        (("--from", "file:///etc/passwd"), "neither main nor an https address"),
        (("--from", "table.json"), "neither main nor an https address"),
        (("--from", "https://me:hunter2@localhost/x"), "without a password"),
        (("--from", "https://localhost:99999/x"), "neither main nor an https address"),
        (("--from", "main", "--restore"), "exactly one"),
        ((), "exactly one"),
    ],
)
def test_mistakes_get_one_sentence(run: Run, arguments: tuple[str, ...], says: str) -> None:
    done = run("update", *arguments)
    assert done.status == 2 and says in done.err and "hunter2" not in done.err


def test_what_names_pytorchs_repository() -> None:
    place = "torch/_dynamo/graph_break_registry.json"
    root = "https://raw.githubusercontent.com/pytorch/pytorch"
    assert source_of("main").url == f"{root}/main/{place}"
    assert source_of("v2.14.0").url == f"{root}/v2.14.0/{place}"
    page = f"https://github.com/pytorch/pytorch/blob/main/{place}"
    assert source_of(page).url == f"{root}/main/{place}"
    with pytest.raises(ToolError):
        source_of("maine")


def test_a_folder_that_cannot_be_written_keeps_the_table_in_use(
    run: Run, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    done = run("update", "--from", f"{server.url}/good.json", "--ca-file", server.authority)
    assert done.status == 2 and "Cannot write" in done.err
    assert downloads.current_file() == table_file()


def test_a_spoiled_download_says_how_to_do_without_it(run: Run, server: Server) -> None:
    trust = ("--ca-file", server.authority)
    run("update", "--from", f"{server.url}/good.json", *trust)
    downloads.current_file().write_text("{")
    done = run("list")
    assert done.status == 2 and "update --restore" in done.err
    assert run("update", "--restore").status == 0 and run("list", "--json").status == 0
