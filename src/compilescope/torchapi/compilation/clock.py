"""How often something was compiled in this process, and how long that took: loading what an
earlier process compiled (`torch.compiler.load_cache_artifacts`) counts too.

Where torch lacks the place that every compilation passes, nothing is counted; who asks for steady
state then has only the steps' own times to go by.
"""

from __future__ import annotations

import functools
import threading
import time
from typing import Any


class CompilationClock:
    """Counts from `install` on, for good: the process is there for nothing else."""

    def __init__(self) -> None:
        self.count = 0
        self.seconds = 0.0
        self._local = threading.local()

    def install(self) -> bool:
        """False where this torch has no place that every compilation passes."""
        self._count_loading()
        return self._count_compiling()

    def _count_loading(self) -> None:
        import torch

        load: Any = getattr(torch.compiler, "load_cache_artifacts", None)
        if load is None:
            return

        @functools.wraps(load)
        def timed(*args: Any, **kwargs: Any) -> Any:
            begun = time.perf_counter()
            try:
                return load(*args, **kwargs)
            finally:
                self.seconds += time.perf_counter() - begun

        torch.compiler.load_cache_artifacts = timed

    def _count_compiling(self) -> bool:
        try:
            from torch._dynamo import metrics_context
        except ImportError:
            return False
        context: Any = getattr(metrics_context, "MetricsContext", None)
        if context is None:
            return False
        enter, leave = context.__enter__, context.__exit__

        @functools.wraps(enter)
        def begin(self_: Any) -> Any:
            self.count += 1
            depth = getattr(self._local, "depth", 0)
            self._local.depth = depth + 1
            if not depth:
                self._local.begun = time.perf_counter()
            return enter(self_)

        @functools.wraps(leave)
        def end(self_: Any, *error: Any) -> Any:
            depth = self._local.depth = max(getattr(self._local, "depth", 1) - 1, 0)
            if not depth:
                self.seconds += time.perf_counter() - getattr(self._local, "begun", 0.0)
            return leave(self_, *error)

        context.__enter__, context.__exit__ = begin, end
        return True
