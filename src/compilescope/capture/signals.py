"""Hands signals on to the program: those meant for it, and each of them once.

A signal typed at the terminal, or sent to the whole process group, reaches the program by itself.
One sent to the launcher alone must be handed on. The kernel says which were typed; for the rest
a canary, a silent process of the same group, shows whether it got the signal too.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from types import TracebackType

_NAMES = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2")
_FROM_KERNEL = 128  # si_code of a signal typed at the terminal, on Linux
_GROUP_DELAY_S = 0.05


class SignalRelay:
    """Holds back the launcher's signals from before the program starts until it has ended."""

    def __init__(self) -> None:
        self._signals = {getattr(signal, name) for name in _NAMES if hasattr(signal, name)}
        self._before: set[signal.Signals] = set()
        self._canary: _Canary | None = None

    def __enter__(self) -> SignalRelay:
        self._before = signal.pthread_sigmask(  # type: ignore[assignment]
            signal.SIG_BLOCK, self._signals | {signal.SIGCHLD}
        )
        if os.path.isdir("/proc/self"):
            self._canary = _Canary()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._canary is not None:
            self._canary.release()
        # What came too late to be handed on must not end us before the header is written.
        for number in self._signals & set(signal.sigpending()):
            signal.sigwait({number})
        self.restore_mask()

    def restore_mask(self) -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, self._before)

    def wait(self, process: subprocess.Popen[bytes]) -> int:
        """The program's status, once it has ended."""
        if not hasattr(signal, "sigtimedwait"):
            self.restore_mask()
            return _wait_without_senders(process, self._signals)
        while process.poll() is None:
            info = signal.sigtimedwait(self._signals | {signal.SIGCHLD}, 0.5)
            if info is None or info.si_signo == signal.SIGCHLD or info.si_code == _FROM_KERNEL:
                continue
            if self._canary is None or not self._canary.heard(info.si_signo):
                process.send_signal(info.si_signo)
        return process.returncode


class _Canary:
    """A process of our group that gets what the group gets, and keeps it pending."""

    def __init__(self) -> None:
        reading, self._writing = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            # All it ever does: wait for the launcher to let go of the pipe, or to die.
            os.close(self._writing)
            os.read(reading, 1)
            os._exit(0)
        os.close(reading)

    def heard(self, number: int) -> bool:
        """Did the whole group get this signal?"""
        time.sleep(_GROUP_DELAY_S)  # The kernel signals the members of a group one by one.
        try:
            with open(f"/proc/{self._pid}/status") as status:
                masks = [line for line in status if line.startswith(("SigPnd", "ShdPnd"))]
        except OSError:
            return False
        got = any(int(mask.split()[1], 16) >> (number - 1) & 1 for mask in masks)
        if got:
            # Pending signals of one kind do not add up: begin anew for the next.
            self.release()
            self.__init__()  # type: ignore[misc]
        return got

    def release(self) -> None:
        os.close(self._writing)
        os.waitpid(self._pid, 0)


def _wait_without_senders(process: subprocess.Popen[bytes], signals: set[signal.Signals]) -> int:
    """Where a signal's sender cannot be known: leave Ctrl-C to the terminal, hand on the rest."""
    for number in signals - {signal.SIGINT}:
        signal.signal(number, lambda received, _: process.send_signal(received))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    return process.wait()
