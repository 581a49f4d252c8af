"""The index's end of the process that reads runs: started when there is work, ended when not."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from compilescope.dashboard.runs.entry import RunEntry
from compilescope.dashboard.runs.reader import KnownRun, ReadRequest

LONGEST_S = 120.0
"""That a few runs may take. Chosen: it ends what hangs."""
_LAST_S = 2.0
"""For it to end by itself. Chosen: then it is killed."""

_decoder = msgspec.json.Decoder(str | RunEntry | None)


class Failed(msgspec.Struct, frozen=True):
    """The process ended, or was ended, while it read this run."""

    name: str
    """Empty: it did not even begin."""
    reason: str


class ReaderClient:
    """Used by one thread."""

    def __init__(self, home: Path, longest_s: float) -> None:
        self._home = home
        self._longest_s = longest_s
        self._process: subprocess.Popen[bytes] | None = None

    def read(self, runs: Sequence[KnownRun]) -> Iterator[RunEntry | Failed]:
        """Entries of those that differ from what is known."""
        try:
            process = self._started()
        except OSError as error:
            yield Failed("", f"Runs can't be read: {error.strerror}.")
            return
        late = threading.Event()

        def end() -> None:
            late.set()
            process.kill()

        timer = threading.Timer(self._longest_s, end)
        timer.daemon = True
        timer.start()
        try:
            yield from self._answers(process, runs, late)
        finally:
            timer.cancel()

    def _answers(
        self, process: subprocess.Popen[bytes], runs: Sequence[KnownRun], late: threading.Event
    ) -> Iterator[RunEntry | Failed]:
        assert process.stdin is not None and process.stdout is not None
        with contextlib.suppress(OSError):
            process.stdin.write(
                msgspec.json.encode(ReadRequest(str(self._home), tuple(runs))) + b"\n"
            )
            process.stdin.flush()
        at = ""
        while True:
            try:
                answer = _decoder.decode(process.stdout.readline())
            except msgspec.DecodeError:
                self.close()
                why = (
                    f"reading it took more than {self._longest_s:.0f} s"
                    if late.is_set()
                    else "reading it failed"
                )
                yield Failed(at, f"Its figures can't be computed: {why}.")
                return
            if answer is None:
                return
            if isinstance(answer, str):
                at = answer
            else:
                yield answer

    def close(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        for pipe in (process.stdin, process.stdout):
            with contextlib.suppress(OSError):
                if pipe is not None:
                    pipe.close()
        try:
            process.wait(_LAST_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def stop(self) -> None:
        """From another thread: whoever waits for an answer gets none."""
        process = self._process
        if process is not None:
            process.kill()

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self.close()
            self._process = subprocess.Popen(
                [sys.executable, "-m", "compilescope.dashboard.runs.reader"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
        return self._process
