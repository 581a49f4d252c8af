"""A connection to a Ray cluster: one that is there, or one of our own on this machine."""

from __future__ import annotations

import contextlib
import shutil
import signal
import socket
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from compilescope.errors import ToolError
from compilescope.scale.ray_work import pack
from compilescope.settings import current_environment, offer_environment

_CONNECT_S = 5.0
"""Chosen: below the silence after which a sweep ends."""
_STORE_BYTES = 256 << 20
"""Of Ray's object store on this machine. Chosen: results are small, and Ray would take a share of
the machine's memory."""
_LONGEST_TEMPORARY = 30
"""Ray makes sockets below its folder, and a socket's path has at most 107 characters."""
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))
"""How a client of gRPC begins: a fixed line, and empty settings."""
_SETTINGS_FRAME = 4
"""The type of the frame by which a server of HTTP/2 answers that (RFC 9113)."""
_HINT = "Start a cluster with `ray start --head`, or leave out --address to run on this machine."


def import_ray() -> Any:
    """Ray, quiet: nobody asked it to report usage or to warn about its own plans."""
    offer_environment(
        {
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
            "RAY_DISABLE_IMPORT_WARNING": "1",
            # On a busy machine its default of 30 s is short.
            "RAY_raylet_start_wait_time_s": "120",
        }
    )
    try:
        import ray
    except ImportError as error:
        if error.name not in (None, "ray"):
            raise ToolError(f"Ray cannot be imported: {error}.") from None
        raise ToolError(
            "Ray is not installed.", 'Install it with: pip install "compilescope[ray]"'
        ) from None
    return ray


class RaySession:
    """Opened by `open_session`, closed once."""

    def __init__(self, ray: Any, temporary: Path, head: tuple[str, int] | None) -> None:
        self.ray = ray
        self._temporary = temporary
        self._head = head

    def head_answers(self) -> bool:
        """Ray waits for a lost head node for a minute, then ends our process: ask before it."""
        return self._head is None or _speaks_grpc(self._head)

    def close(self) -> None:
        with _own_signals():
            self.ray.shutdown()
        _speak(self.ray, True)
        shutil.rmtree(self._temporary, ignore_errors=True)


def open_session(address: str | None, slots: int | None, folder: Path | None) -> RaySession:
    """Join the cluster at `address`; None: start one here, with that many slots."""
    ray = import_ray()
    if ray.is_initialized():
        raise ToolError("This process is already connected to Ray.", "Call ray.shutdown() first.")
    head = None if address is None else _head_of(ray, address)
    temporary = Path(tempfile.mkdtemp(prefix="cs-ray-", dir=_short_folder()))
    try:
        options: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
        if folder is not None:
            archive = temporary / "files.zip"
            pack(folder, archive)
            options["runtime_env"] = {"working_dir": str(archive)}
        if address is None:
            options |= {
                "address": "local",
                "num_cpus": slots,
                "include_dashboard": False,
                "object_store_memory": _STORE_BYTES,
                "_temp_dir": str(temporary),
                # Ray's workers step back by 15; programs run as they would without it.
                "_system_config": {"worker_niceness": 0},
            }
        else:
            options["address"] = _address(address, head)
        with _own_signals():
            _connect(ray, address, options)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    if address is not None:
        # The cluster has the files now; a driver that is killed leaves nothing.
        shutil.rmtree(temporary, ignore_errors=True)
    _speak(ray, False)
    return RaySession(ray, temporary, head)


def _speak(ray: Any, does_speak: bool) -> None:
    """Despite `log_to_driver`, Ray 2.60 prints to standard output when a node dies. Our own report
    says so, and standard output may be JSON."""
    worker = ray._private.worker
    if hasattr(worker, "_worker_logs_enabled"):
        worker._worker_logs_enabled = does_speak


def _connect(ray: Any, address: str | None, options: dict[str, Any]) -> None:
    where = "on this machine" if address is None else f"at {address}"
    try:
        ray.init(**options)
    except Exception as error:  # Ray raises RuntimeError, ValueError, ConnectionError and its own.
        with contextlib.suppress(Exception):
            ray.shutdown()
        said = " ".join(str(error).split())
        if "ersion mismatch" in said:
            raise ToolError(
                f"The Ray cluster {where} has other versions: {said}",
                "Use the Python and Ray versions of the cluster.",
            ) from None
        if "ray[client]" in said:
            raise ToolError(
                "An address that begins with ray:// needs Ray's client.",
                'Install it with: pip install "ray[client]"; or give the address as host:port.',
            ) from None
        doing = "start" if address is None else "join"
        raise ToolError(f"Cannot {doing} a Ray cluster {where}: {said[:300]}") from None


def _head_of(ray: Any, address: str) -> tuple[str, int] | None:
    """Who must answer there, and does. Left to itself, Ray tries for two minutes."""
    found = _found(ray) if address == "auto" else address
    if found is None:
        raise ToolError("No Ray cluster runs on this machine.", _HINT)
    try:
        parts = urlsplit(found if "://" in found else f"//{found}")
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    if host is None or port is None:
        raise ToolError(
            f"{found!r} is not a Ray address.",
            "Give it as host:port, as ray://host:port, or as auto.",
        )
    if current_environment().get("RAY_USE_TLS", "0") not in ("", "0"):
        return None
    head = (host, port)
    if not _speaks_grpc(head):
        raise ToolError(f"No Ray cluster answers at {found}.", _HINT)
    return head


def _address(address: str, head: tuple[str, int] | None) -> str:
    """What `auto` came to: Ray might find another one a second time."""
    return f"{head[0]}:{head[1]}" if address == "auto" and head is not None else address


def _found(ray: Any) -> str | None:
    """The cluster that `auto` means: the user's variable, or the last that was started here."""
    named = current_environment().get("RAY_ADDRESS", "")
    if named and named != "auto":
        return named
    services = ray._private.services
    try:
        last = services.find_bootstrap_address(None)
        running = services.find_gcs_addresses()
    except (AttributeError, TypeError, OSError):
        raise ToolError(
            f"Ray {ray.__version__} does not say which clusters run here.",
            "Give --address as host:port.",
        ) from None
    return str(last) if last in running else next(iter(sorted(running)), None)


def _speaks_grpc(head: tuple[str, int]) -> bool:
    try:
        with socket.create_connection(head, _CONNECT_S) as connection:
            connection.settimeout(_CONNECT_S)
            connection.sendall(_PREFACE)
            answer = connection.recv(9)
    except OSError:
        return False
    return len(answer) > 3 and answer[3] == _SETTINGS_FRAME


def _short_folder() -> str:
    usual = tempfile.gettempdir()
    return usual if len(usual) <= _LONGEST_TEMPORARY or not Path("/tmp").is_dir() else "/tmp"


@contextlib.contextmanager
def _own_signals() -> Iterator[None]:
    """Ray takes SIGTERM for itself; it stays as it was."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if before is not None:
            signal.signal(signal.SIGTERM, before)
