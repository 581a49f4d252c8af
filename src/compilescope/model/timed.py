"""Bodies of what a timed run measured: calls of graphs and of regions."""

from compilescope.model.body import EventBody
from compilescope.model.stack import CodeRef


class GraphTime(EventBody, frozen=True):
    """Steady-state calls of one compiled graph since the last such event; they add up.

    Host time. A GPU works on after its kernels are launched, so there this is the time to launch
    them, unless launches block (CUDA_LAUNCH_BLOCKING=1).
    """

    graph: str
    """The compile id."""
    calls: int
    inside_ns: int
    after_ns: int = 0
    """Outside all graphs, from the end of this one up to the next one or to the end of the region's
    call. Only where a break ended it; what follows other graphs is added to the last such one."""
    frame: CodeRef | None = None
    captured: str | None = None
    """Id of the event that has the graph."""


class RegionTime(EventBody, frozen=True):
    """Calls into one compiled region since the last such event; they add up. Host time."""

    region: CodeRef
    calls: int
    """In steady state: nothing compiled while they ran."""
    total_ns: int
    inside_ns: int
    """In compiled graphs."""
    entry_ns: int = 0
    """Outside graphs with no break before it in that call: guard checks, and frames run eagerly."""
    warmup_calls: int = 0
    """Calls during which something was compiled, here or in another thread."""
    warmup_ns: int = 0
