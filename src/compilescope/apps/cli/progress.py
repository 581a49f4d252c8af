"""A long command, for who waits: a bar at a terminal, else a line now and then; and on SIGTERM or
SIGHUP it ends as on Ctrl-C, cleaned up, with its results kept.

On stderr only: stdout is for the answer.

After `kill -9`, `processes.cleaner_process` cleans up.
"""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from queue import SimpleQueue
from typing import IO, TYPE_CHECKING, Any

from compilescope.apps.cli.options import has_colour
from compilescope.apps.cli.streams import exact
from compilescope.base.texts import one_line

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress


PATIENCE_S = 1.0
"""Work shorter than this draws no bar. Chosen: it would flicker."""
EVERY_S = 10.0
"""Without a terminal: the pause before each line, the first one included. Chosen: a CI log shows
life and is not filled."""
_REFRESH_S = 0.1
"""Chosen: the spinner moves smoothly enough."""
_BAR_WIDTH = 20
"""Columns. Chosen: it leaves room for words on a line of eighty."""


class CurrentWork:
    """What is being done now, as its doer says it."""

    def __init__(self, command: str, doing: str = "") -> None:
        self._command = command
        self._doing = doing
        self._count = ""
        self._news = ""
        self.share: float | None = None
        """How much of it is done, from 0 to 1; None where that is unknown."""
        self.begun = time.monotonic()
        self.said: SimpleQueue[str] = SimpleQueue()
        """Lines that are to stay, for who shows this."""
        self.woken = threading.Event()
        """There is something to show before its time."""

    def show(self, doing: str, done: int = 0, total: int = 0) -> None:
        """`total` is 0 where it is unknown."""
        self._doing = doing
        self.count(done, total)

    def count(self, done: int, total: int) -> None:
        self._count = f"{done} of {total}" if total else ""
        self.share = done / total if total else None

    def percent(self, done: int, total: int) -> None:
        """For what no person counts, such as bytes."""
        self.share = done / total if total else 1.0
        self._count = f"{self.share:.0%}"

    def shrink(self, words: str, share: float) -> None:
        """`words` say how much is done."""
        self._doing, self._count, self.share = words, "", share

    def tell(self, news: str) -> None:
        """What came of a step: the next line says it, where lines are written."""
        self._news = news

    def say(self, news: str) -> None:
        """A line of its own, at once, which stays."""
        self.said.put(self._line(one_line(news)))
        self.woken.set()

    def words(self) -> str:
        return one_line(": ".join(filter(None, (self._count, self._doing))))

    def line(self) -> str:
        words, self._news = one_line(self._news) or self.words(), ""
        return self._line(words)

    def _line(self, words: str) -> str:
        return f"compilescope: {self._command}: {words}, {duration(time.monotonic() - self.begun)}"


def duration(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


@contextmanager
def working(
    command: str, doing: str = "", *, patience_s: float = PATIENCE_S, every_s: float = EVERY_S
) -> Iterator[CurrentWork]:
    """Show how the work inside goes. The terminal is as it was when this ends, however it ends."""
    work, ended = CurrentWork(command, doing), threading.Event()
    # A thread: a step that takes minutes says nothing meanwhile.
    watcher = threading.Thread(
        target=_watch, args=(work, sys.stderr, ended, patience_s, every_s), daemon=True
    )
    watcher.start()
    try:
        yield work
    finally:
        ended.set()
        work.woken.set()
        watcher.join()


def _watch(
    work: CurrentWork,
    stream: IO[str] | None,
    ended: threading.Event,
    patience_s: float,
    every_s: float,
) -> None:
    if stream is None:
        return
    with suppress(OSError, ValueError):  # Nobody reads stderr any more.
        if stream.isatty() and not ended.wait(patience_s):
            console = _console(stream)
            if not console.is_dumb_terminal:
                _draw(work, console, ended)
        while not ended.is_set():
            if not work.woken.wait(every_s):
                print(work.line(), file=stream, flush=True)
            work.woken.clear()
            _print_said(work, stream)
        _print_said(work, stream)


def _print_said(work: CurrentWork, stream: IO[str]) -> None:
    while not work.said.empty():
        print(work.said.get(), file=stream, flush=True)


def _console(stream: IO[str]) -> Console:
    from rich.console import Console

    return Console(file=exact(stream), force_terminal=True, no_color=not has_colour(stream))


def _draw(work: CurrentWork, console: Console, ended: threading.Event) -> None:
    from rich.text import Text

    bar = _bar(console)
    bar.add_task(work.words(), total=None)
    task = bar.tasks[0]
    task.start_time = work.begun
    with bar:
        while True:
            # Not by update(), which cannot make a known total unknown again.
            task.total = None if work.share is None else 1.0
            task.description, task.completed = work.words(), work.share or 0.0
            while not work.said.empty():
                console.print(Text(work.said.get()), soft_wrap=True)  # Above the bar.
            bar.refresh()
            if ended.wait(_REFRESH_S):
                return


def _bar(console: Console) -> Progress:
    # Imported here: most commands end before anything is drawn.
    from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, Task, TextColumn
    from rich.table import Column
    from rich.text import Text

    spinner, bar = SpinnerColumn(), BarColumn(_BAR_WIDTH)

    class Sign(ProgressColumn):
        """A spinner, or a bar where it is known how much there is to do."""

        def render(self, task: Task) -> object:  # type: ignore[override]
            return (spinner if task.total is None else bar).render(task)

    class Elapsed(ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text(duration(task.elapsed or 0.0), style="progress.elapsed")

    rest = Column(ratio=1, no_wrap=True, overflow="ellipsis")
    # What the program prints stays where the program sends it: no redirection.
    return Progress(
        Sign(),
        Elapsed(),
        TextColumn("{task.description}", markup=False, table_column=rest),
        console=console,
        auto_refresh=False,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
        expand=True,
    )


def _is_heard(name: str) -> bool:
    """What is ignored from the start stays so: that is what `nohup` is for."""
    number = getattr(signal, name, None)
    return number is not None and signal.getsignal(number) != signal.SIG_IGN


def on_end_signals(do: Callable[[int], object]) -> dict[int, Any]:
    """Where a polite end is asked for, `do` is called with the signal. Gives the handlers that were
    there before."""
    names = [name for name in ("SIGTERM", "SIGHUP") if _is_heard(name)]
    numbers: list[int] = [getattr(signal, name) for name in names]
    try:
        return {each: signal.signal(each, lambda number, _: do(number)) for each in numbers}
    except ValueError:
        return {}  # Not the main thread: whoever runs us sees to it.


@contextmanager
def ended_in_order(*, pausing: bool = False) -> Iterator[None]:
    """A polite end (`kill`) cleans up and keeps what there is, as Ctrl-C does. After `kill -9` the
    cleaner does. With `pausing`, Ctrl-Z stops what the command runs too: for those that keep the
    time of all that by `deadline.clock`."""
    from compilescope.base.processes.cleaner import leaving_nothing
    from compilescope.base.processes.pause import stopping_together

    def leave(number: int) -> None:
        raise SystemExit(128 + number)

    before = on_end_signals(leave)
    try:
        with leaving_nothing() as spared, stopping_together(spared) if pausing else nullcontext():
            yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        sys.stdout.flush()
