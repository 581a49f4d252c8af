"""The nodes of a Ray cluster: who takes part, who can't and why, and how much room each has."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

import msgspec

from compilescope.errors import ToolError
from compilescope.model.benchmark import Machine
from compilescope.scale import ray_probe
from compilescope.scale.job import Job
from compilescope.version import VERSION

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
