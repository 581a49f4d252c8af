"""A Ray cluster: the connection to one that is there, or to one of our own on this machine; its
nodes, who takes part, who can't and why, and how much room each has.
"""

from __future__ import annotations

import contextlib
import shutil
import signal
import socket
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from compilescope.base.errors import ToolError
from compilescope.base.settings import current_environment, offer_environment
from compilescope.base.version import VERSION
from compilescope.record.benchmark import Machine
from compilescope.scale.jobs import ray_probe
from compilescope.scale.jobs.job import Job
from compilescope.scale.jobs.ray_work import pack

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


_PROBE_S = 60.0
"""For a node to say what it is. Chosen: it has to start a worker and import first.
docs/guides/sweep-ray.md says it to users."""
_ID = 6
"""Characters of a node's id that tell nodes of one host apart."""
_GRAIN = 4
"""Digits to which Ray counts parts of a CPU."""


class RayNode:
    """A node that answered, or did not in time."""

    def __init__(self, id: str, resources: dict[str, float], machine: Machine, unfit: str) -> None:
        self.id = id
        self.cpus = resources.get("CPU", 0.0)
        self.gpus = resources.get("GPU", 0.0)
        self.machine = machine
        self.unfit = unfit
        """Why no job may run there; empty: jobs may."""
        self.is_alive = True
        self._free_cpus = self.cpus
        self._free_gpus = self.gpus

    @property
    def is_usable(self) -> bool:
        return self.is_alive and not self.unfit

    @property
    def load(self) -> float:
        return 1 - self._free_cpus / self.cpus if self.cpus else 0.0

    def could_hold(self, job: Job) -> bool:
        """If nothing else ran there."""
        return cpus_of(job) <= self.cpus and job.gpus <= self.gpus

    def has_room(self, job: Job) -> bool:
        return cpus_of(job) <= self._free_cpus and job.gpus <= self._free_gpus

    def take(self, job: Job) -> None:
        self._free_cpus = round(self._free_cpus - cpus_of(job), _GRAIN)
        self._free_gpus = round(self._free_gpus - job.gpus, _GRAIN)

    def give_back(self, job: Job) -> None:
        self._free_cpus = round(self._free_cpus + cpus_of(job), _GRAIN)
        self._free_gpus = round(self._free_gpus + job.gpus, _GRAIN)


def cpus_of(job: Job) -> float:
    """A job that asks for nothing still takes a place."""
    return job.cpus if job.cpus or job.gpus else 1


class Nodes:
    """The cluster's nodes as they come and go; each is probed before it is used."""

    def __init__(self, ray: Any) -> None:
        self._ray = ray
        self._known: dict[str, RayNode] = {}
        self._probes: dict[str, tuple[Any, dict[str, float], str, float]] = {}
        """Under way: the answer to come, resources, host and when it was asked."""

    @property
    def usable(self) -> list[RayNode]:
        return [node for node in self._known.values() if node.is_usable]

    def look(self, *, wait_s: float = 0.0) -> None:
        """See who came and who died; wait that long for the answers of new ones."""
        listed = {each["NodeID"]: each for each in self._ray.nodes()}
        for id, node in self._known.items():
            node.is_alive = bool(listed.get(id, {}).get("Alive", False))
        for id, each in listed.items():
            resources = each.get("Resources", {})
            # A head node is often given no CPUs, so that it runs nothing.
            has_room = resources.get("CPU", 0) or resources.get("GPU", 0)
            if each["Alive"] and has_room and id not in self._known and id not in self._probes:
                self._probes[id] = self._ask(id), resources, each["NodeManagerHostname"], _now()
        for id in [id for id in self._probes if not listed.get(id, {}).get("Alive", False)]:
            del self._probes[id]
        self._hear(wait_s)

    def probe_all(self) -> None:
        """At the start. A ToolError where no node can run a job."""
        self.look(wait_s=_PROBE_S)
        if self.usable:
            return
        named = [f"{each.name}: {each.problem}" for each in self.machines()]
        if not named:
            raise ToolError(
                "The Ray cluster has no node with CPUs.", "Add a node with `ray start --address`."
            )
        raise ToolError(
            f"No node of the Ray cluster can run the jobs. {' '.join(named)}",
            "Install torch and the same version of compilescope on its nodes.",
        )

    def machines(self) -> tuple[Machine, ...]:
        usual = self._usual_torch()
        found = []
        for node in self._known.values():
            problem = node.unfit or _difference(node.machine.torch, usual)
            if not node.is_alive:
                problem = f"Died during the sweep. {problem}".strip()
            found.append(msgspec.structs.replace(node.machine, problem=problem))
        return tuple(sorted(found, key=lambda each: each.name))

    def _usual_torch(self) -> str:
        """The most common one; of equally common ones, the first node's."""
        fit = Counter(node.machine.torch for node in self._known.values() if not node.unfit)
        return fit.most_common(1)[0][0] if fit else ""

    def _ask(self, id: str) -> Any:
        self._ray.cloudpickle.register_pickle_by_value(ray_probe)
        try:
            look = self._ray.remote(num_cpus=0, max_retries=1)(ray_probe.look)
            return look.options(scheduling_strategy=only_on(self._ray, id)).remote()
        finally:
            self._ray.cloudpickle.unregister_pickle_by_value(ray_probe)

    def _hear(self, wait_s: float) -> None:
        if not self._probes:
            return
        waiting = [probe[0] for probe in self._probes.values()]
        ready, _ = self._ray.wait(waiting, num_returns=len(waiting), timeout=wait_s)
        for id, (answer, resources, host, asked) in list(self._probes.items()):
            if answer in ready:
                facts = self._answered(answer, host)
            elif _now() - asked >= _PROBE_S:
                facts = {"host": host, "error": f"It did not answer within {_PROBE_S:g} s."}
            else:
                continue
            del self._probes[id]
            self._known[id] = self._node(id, resources, facts)

    def _answered(self, answer: Any, host: str) -> dict[str, str]:
        try:
            return dict(self._ray.get(answer))
        except self._ray.exceptions.RayError as error:
            return {"host": host, "error": f"It cannot run a Ray task: {first_line(error)}"}

    def _node(self, id: str, resources: dict[str, float], facts: dict[str, str]) -> RayNode:
        taken = {node.machine.name for node in self._known.values()}
        host = facts["host"]
        name = f"{host}/{id[:_ID]}" if host in taken else host
        if "machine" in facts:
            decoded = msgspec.json.decode(facts["machine"], type=Machine)
            machine = msgspec.structs.replace(decoded, name=name)
        else:
            machine = Machine(
                name=name, python=facts.get("python", ""), torch=facts.get("torch", "")
            )
        return RayNode(id, resources, machine, _unfit(facts))


def only_on(ray: Any, node_id: str) -> Any:
    """There, or not at all."""
    strategies = ray.util.scheduling_strategies
    return strategies.NodeAffinitySchedulingStrategy(node_id=node_id, soft=False)


def first_line(error: BaseException) -> str:
    """The first line of what Ray says, which is long."""
    return next((line.strip() for line in str(error).splitlines() if line.strip()), "")[:300]


def _unfit(facts: dict[str, str]) -> str:
    if "python" not in facts:
        return f"Takes no part. {facts['error']}"
    if not facts.get("compilescope"):
        return "Takes no part: compilescope is not installed there."
    if facts["compilescope"] != VERSION:
        return f"Takes no part: it has compilescope {facts['compilescope']}, and this is {VERSION}."
    if "machine" not in facts:
        return f"Takes no part: compilescope does not work there ({facts['error']})."
    if not facts["torch"]:
        return "Takes no part: torch is not installed there."
    return ""


def _difference(torch: str, usual: str) -> str:
    if torch == usual:
        return ""
    return f"torch {torch}; the other nodes have {usual}: findings may differ for that reason."


def _now() -> float:
    return time.monotonic()
