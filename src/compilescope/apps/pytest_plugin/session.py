"""`pytest --compilescope`: one run for the whole session, also where xdist spreads it.

The controller makes the run's folder, hands it to its workers, ends the run and tells of it; each
process that runs tests appends an event file of its own. Recording begins as soon as the tests have
imported torch, and not before: importing it for them would change the order of their imports, and
cost those who never need it.
"""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from compilescope.base.errors import ToolError
from compilescope.base.settings import read_settings
from compilescope.base.texts import visible
from compilescope.base.version import VERSION
from compilescope.record.header import RunHeader, write_header
from compilescope.record.home import create_run, new_run_id

if TYPE_CHECKING:
    from compilescope.apps.pytest_plugin.summary import Gate, GateResult
    from compilescope.apps.pytest_plugin.window import SharedJournal


@contextmanager
def once_imported(name: str, action: Callable[[], None]) -> Iterator[None]:
    """Call `action` once the module is there: now, or within the block, or never."""
    if name in sys.modules:
        action()
        yield
        return
    finder = _Arrival(name, action)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        finder.leave()


class _Arrival(MetaPathFinder):
    """Finds nothing itself: it lets the others find, and acts once their module has run."""

    def __init__(self, name: str, action: Callable[[], None]) -> None:
        self._name = name
        self._action = action

    def leave(self) -> None:
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self._name:
            return None
        for finder in sys.meta_path:
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(fullname, path, target)
            if spec is not None:
                if spec.loader is not None:
                    self._follow(spec.loader)
                return spec
        return None

    def _follow(self, loader: Loader) -> None:
        exec_module = loader.exec_module

        def exec_then_act(module: ModuleType) -> None:
            del loader.exec_module  # The loader is the module's own again.
            exec_module(module)
            # An import that failed may be tried again: only now is the waiting over.
            self.leave()
            self._action()

        loader.exec_module = exec_then_act  # type: ignore[method-assign]


_FOLDER, _TIMED = "compilescope_folder", "compilescope_timed"


class SessionPlugin:
    """Records the session and says what it lost."""

    NAME = "compilescope-session"

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._worker_input: dict[str, Any] | None = getattr(config, "workerinput", None)
        self._hooks = ExitStack()
        self._folder: Path | None = None
        self._header: RunHeader | None = None
        self._fault = ""
        self._gate: Gate | None = None
        self._checked: GateResult | None = None
        self.journal: SharedJournal | None = None
        """Where this process writes; None before torch is there, and where it writes nothing."""
        if config.getoption("compilescope_check") and self._recorded_already:
            raise pytest.UsageError(
                "--compilescope-check does not work under `compilescope run`; use "
                "`compilescope check --pytest`."
            )

    @property
    def _recorded_already(self) -> bool:
        """`compilescope run --pytest` records us: a second record would say nothing new."""
        return read_settings().run_dir is not None

    @property
    def _runs_tests(self) -> bool:
        option = self._config.option
        asked = ("collectonly", "showfixtures", "show_fixtures_per_test")
        return not any(getattr(option, name, False) for name in asked)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self) -> None:
        if self._recorded_already or not self._runs_tests:
            return
        if self._worker_input is not None:
            folder = Path(self._worker_input.get(_FOLDER, ""))
            if not folder.is_dir():
                self._config.issue_config_time_warning(
                    pytest.PytestWarning(
                        f"compilescope: this worker records nothing, because {folder} does not "
                        "exist"
                    ),
                    stacklevel=2,
                )
                return
            self._folder = folder
        else:
            self._gate = self._read_gate()
            self._folder = self._create_run()
            if self._config.pluginmanager.has_plugin("dsession"):
                return  # The workers run the tests.
        self._hooks.enter_context(once_imported("torch", self._begin))

    def _read_gate(self) -> Gate | None:
        if not self._config.getoption("compilescope_check"):
            return None
        from compilescope.apps.pytest_plugin.summary import read_gate

        try:
            return read_gate(self._config.rootpath)
        except ToolError as error:
            raise pytest.UsageError(f"compilescope: {error.message} {error.hint}") from None

    @property
    def _timed(self) -> bool:
        if self._worker_input is not None:
            return bool(self._worker_input.get(_TIMED))
        return self._gate is not None and self._gate.timed

    def _create_run(self) -> Path:
        given = self._config.getoption("compilescope_dir")
        home = Path(given) if given else read_settings().home
        self._header = RunHeader(
            run=new_run_id("pytest"),
            tool=VERSION,
            command=("pytest", *map(str, self._config.invocation_params.args)),
            cwd=os.getcwd(),
            root=str(self._config.rootpath),
            host=socket.gethostname(),
            started_ns=time.time_ns(),
            launcher_pid=os.getpid(),
            main_pid=os.getpid(),
        )
        try:
            # Absolute: tests may change the current folder.
            return create_run(home.absolute(), self._header)
        except ToolError as error:
            raise pytest.UsageError(
                f"compilescope: {error.message} Choose another folder with --compilescope-dir."
            ) from None

    def _begin(self) -> None:
        try:
            from compilescope.apps.pytest_plugin.window import SharedJournal
            from compilescope.instrument.recorder.journal import DiskJournal
            from compilescope.instrument.recorder.session import recording

            assert self._folder is not None
            journal = SharedJournal(DiskJournal(self._folder))
            self._hooks.enter_context(recording(journal, time=self._timed))
            self.journal = journal
        except Exception as error:
            # The border of a hook: we are inside the user's `import torch`.
            self._fault = f"{type(error).__name__}: {error}"

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """xdist makes a worker."""
        if self._folder is not None:
            node.workerinput.update({_FOLDER: str(self._folder), _TIMED: self._timed})

    def pytest_report_header(self) -> str | None:
        if self._header is None or self._folder is None:
            return None
        return f"compilescope: recording into {_shown(self._folder)}"

    # The innermost wrapper: after xdist has ended its workers, before the terminal's summary.
    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None, object, object]:
        try:
            return (yield)
        finally:
            self._hooks.close()
            self.journal = None
            if self._header is not None and self._folder is not None:
                self._end(session, self._folder, self._header)

    def _end(self, session: pytest.Session, folder: Path, header: RunHeader) -> None:
        # The status of the tests alone: a check that fails does not make their record doubtful.
        status = int(session.exitstatus)
        header = msgspec.structs.replace(header, ended_ns=time.time_ns(), exit_status=status)
        self._header = header
        # A full disk must not cost the session its exit status.
        with suppress(OSError):
            write_header(folder, header)
        if self._gate is not None:
            self._checked = self._check(folder, header, self._gate)
            if not self._checked.passed and status == pytest.ExitCode.OK:
                session.exitstatus = pytest.ExitCode.TESTS_FAILED
                self._tell_without_terminal(self._checked.reason)

    def _check(self, folder: Path, header: RunHeader, gate: Gate) -> GateResult:
        from compilescope.apps.pytest_plugin.summary import GateResult, check_run, unusual_home
        from compilescope.record.run import read_run
        from compilescope.report.section import Reading

        try:
            reading = Reading(read_run(folder, header=header))
        except ToolError as error:
            return GateResult(False, error.message)
        return check_run(reading, gate, unusual_home(folder, header))

    def _tell_without_terminal(self, reason: str) -> None:
        """Where no summary is printed, a failed check must still give its reason."""
        reporter = self._config.pluginmanager.get_plugin("terminalreporter")
        if reporter is None or getattr(reporter, "no_summary", False):
            sys.stderr.write(f"compilescope: {visible(reason)}\n")

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        from compilescope.apps.pytest_plugin.summary import write_summary

        if self._recorded_already:
            terminalreporter.write_sep("=", "compilescope")
            terminalreporter.write_line("Recorded by `compilescope run`; see its report below.")
        elif self._header is not None and self._folder is not None:
            write_summary(
                terminalreporter, self._folder, self._header, self._checked, fault=self._fault
            )


def _shown(folder: Path) -> str:
    with suppress(ValueError):
        return str(folder.relative_to(Path.cwd()))
    return str(folder)
