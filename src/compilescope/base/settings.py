"""The one place that reads the environment.

The launcher hands its options to the program's processes through `COMPILESCOPE_*` variables;
`Settings` is what they say, `child_environment` is how they are said.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from compilescope.base.errors import ToolError
from compilescope.base.package import PACKAGE

CLEANER = "COMPILESCOPE_CLEANER"
"""As in `cleaner_process`, which stands alone and few commands need."""
JOURNALS = "journals"
"""The folder, within the user's state, that says which files are being replaced as a set."""
DEFAULT_DIR = ".compilescope"
_OURS = "COMPILESCOPE_"
_MINI = "COMPILESCOPE_MINI_"
"""Settings of a backend: they change what a program computes, so its other processes keep them."""
MADE_RUNS = "COMPILESCOPE_MADE_RUNS"
"""Names a file: whoever started a command learns from it which runs were made. Kept by whatever
commands start in turn."""

AUTO_RUN = "COMPILESCOPE_AUTO_RUN"
"""0: a program that uses our backends without `compilescope run` leaves no run."""


class Settings(NamedTuple):
    """What the environment asks of this process."""

    home: Path = Path(DEFAULT_DIR)
    """Where runs live."""
    run_dir: Path | None = None
    """The run this process belongs to; None outside `compilescope run`."""
    ir: bool = False
    """Record Inductor's IR before and after fusion."""
    calls: bool = False
    """Record the ATen operators behind each node of Dynamo's graphs."""
    launcher_pid: int | None = None
    """The process that started the program."""
    time: bool = False
    """Measure the time inside and outside compiled graphs."""
    profile: int = 0
    """Have torch's profiler record so many steps in steady state."""
    compile_names: tuple[str, ...] = ()
    """Modules to compile for the program: class names, or "*" for every outermost module."""
    compile_backend: str | None = None
    """The backend for those; None is torch's default."""
    failure_keeper: str = ""
    """`module:function`, called with the run's folder and the error of each failed compilation."""


def read_settings(environment: Mapping[str, str] | None = None) -> Settings:
    env = os.environ if environment is None else environment
    run_dir = env.get("COMPILESCOPE_RUN")
    launcher = env.get("COMPILESCOPE_LAUNCHER", "")
    names = env.get("COMPILESCOPE_COMPILE", "")
    return Settings(
        home=Path(env.get("COMPILESCOPE_DIR") or DEFAULT_DIR),
        run_dir=Path(run_dir) if run_dir else None,
        ir=env.get("COMPILESCOPE_IR") == "1",
        calls=env.get("COMPILESCOPE_CALLS") == "1",
        launcher_pid=int(launcher) if launcher.isdigit() else None,
        time=env.get("COMPILESCOPE_TIME") == "1",
        profile=int(env.get("COMPILESCOPE_PROFILE") or 0),
        compile_names=tuple(name for name in names.split(",") if name),
        compile_backend=env.get("COMPILESCOPE_COMPILE_BACKEND") or None,
        failure_keeper=env.get("COMPILESCOPE_FAILURE_KEEPER", ""),
    )


def child_environment(settings: Settings, boot: Path) -> dict[str, str]:
    """The environment for a program under capture: ours, with `boot` first on its path."""
    env = dict(os.environ)
    assert settings.run_dir is not None
    env["COMPILESCOPE_RUN"] = str(settings.run_dir)
    env["COMPILESCOPE_LAUNCHER"] = str(os.getpid())
    if settings.ir:
        env["COMPILESCOPE_IR"] = "1"
    if settings.calls:
        env["COMPILESCOPE_CALLS"] = "1"
    if settings.time:
        env["COMPILESCOPE_TIME"] = "1"
    if settings.profile:
        env["COMPILESCOPE_PROFILE"] = str(settings.profile)
        # Kineto tells its beginning and its end on the program's stderr otherwise (torch 2.13).
        env.setdefault("KINETO_LOG_LEVEL", "99")
        # Else the profiler cannot tell one kernel of generated C++ from another.
        env.setdefault("TORCHINDUCTOR_CPP_ENABLE_KERNEL_PROFILE", "1")
    if settings.compile_names:
        env["COMPILESCOPE_COMPILE"] = ",".join(settings.compile_names)
    if settings.compile_backend:
        env["COMPILESCOPE_COMPILE_BACKEND"] = settings.compile_backend
    if settings.failure_keeper:
        env["COMPILESCOPE_FAILURE_KEEPER"] = settings.failure_keeper
    # An empty entry would put the current folder on the path, which the program did not have.
    before = env.get("PYTHONPATH")
    env["PYTHONPATH"] = f"{boot}{os.pathsep}{before}" if before else str(boot)
    return env


def current_environment() -> dict[str, str]:
    """All variables as they are now."""
    return dict(os.environ)


def environment_with_packages(folder: Path) -> dict[str, str]:
    """As it is now, with a folder of packages behind all others of PYTHONPATH."""
    before = os.environ.get("PYTHONPATH")
    path = f"{before}{os.pathsep}{folder}" if before else str(folder)
    return {**os.environ, "PYTHONPATH": path}


def set_variable(name: str, value: str | None) -> None:
    """For this process and those that it starts; None: it is not set."""
    os.environ.pop(name, None)
    if value is not None:
        os.environ[name] = value


def offer_environment(defaults: Mapping[str, str]) -> None:
    """For libraries that read their settings there: these, where the user has set none."""
    for name, value in defaults.items():
        os.environ.setdefault(name, value)


def take_environment(environment: Mapping[str, str]) -> None:
    """Of a forked process that becomes a program: these variables, and no others."""
    for name in set(os.environ) - set(environment):
        del os.environ[name]
    os.environ.update(environment)
    if "COMPILESCOPE_LAUNCHER" in environment:
        # Who is the program itself, and who one of its children, is told by the parent.
        os.environ["COMPILESCOPE_LAUNCHER"] = str(os.getppid())


def read_trial(environment: Mapping[str, str] | None = None) -> Path | None:
    """What is asked of a process of a program whose versions are tried; None elsewhere."""
    env = os.environ if environment is None else environment
    value = env.get("COMPILESCOPE_TRIAL")
    return Path(value) if value else None


def trial_environment(
    settings: Settings, boots: Sequence[Path], trial: Path, seed: int, more: Mapping[str, str]
) -> dict[str, str]:
    """The environment for such a process: `more` beside ours, the `boots` first on its path. It is
    under capture where the settings name a run."""
    if settings.run_dir is not None:
        env = child_environment(settings, boots[-1])
        boots = boots[:-1]
    else:
        env = {name: value for name, value in os.environ.items() if not _is_private(name)}
        if settings.compile_backend:
            env["COMPILESCOPE_COMPILE_BACKEND"] = settings.compile_backend
    env.update((name, value) for name, value in more.items() if not name.startswith(_OURS))
    env["COMPILESCOPE_TRIAL"] = str(trial)
    env[AUTO_RUN] = "0"
    env["PYTHONHASHSEED"] = str(seed % 2**32)
    for boot in reversed(boots):
        before = env.get("PYTHONPATH")
        env["PYTHONPATH"] = f"{boot}{os.pathsep}{before}" if before else str(boot)
    return env


def _is_private(name: str) -> bool:
    return name.startswith(_OURS) and not name.startswith((_MINI, MADE_RUNS, CLEANER))


def job_environment(made_runs: Path, before: Mapping[str, str] | None = None) -> dict[str, str]:
    """For a command whose output goes into a file as it comes, without colors. `before`: the
    environment before `leaving_nothing`; the command then ends with us."""
    env = {
        name: value
        for name, value in (os.environ if before is None else before).items()
        if name not in ("FORCE_COLOR", "CLICOLOR_FORCE", "COMPILESCOPE_DIR", CLEANER)
    }
    if before is not None and CLEANER in os.environ:
        env[CLEANER] = os.environ[CLEANER]
    plain = {"NO_COLOR": "1", "TERM": "dumb", "COLUMNS": "100", "PYTHONUNBUFFERED": "1"}
    return {**env, **plain, "PYTHONIOENCODING": "utf-8", MADE_RUNS: str(made_runs)}


def made_runs_file() -> Path | None:
    """Where the folders of new runs are to be noted; None: nobody asked."""
    value = os.environ.get(MADE_RUNS)
    return Path(value) if value else None


def env_rank() -> int:
    """The rank that torchrun gave this process; 0 where nobody did."""
    value = os.environ.get("RANK", "")
    return int(value) if value.isdigit() else 0


def env_ranks() -> int:
    """How many torchrun started; 1 where nobody did."""
    value = os.environ.get("WORLD_SIZE", "")
    return int(value) if value.isdigit() else 1


def env_machines() -> str:
    """How many machines torchrun is told to run ranks on, where its command does not say so."""
    return os.environ.get("PET_NNODES", "1")


def is_rank() -> bool:
    """Is this one of the processes that torchrun starts?"""
    return "LOCAL_RANK" in os.environ and "RANK" in os.environ


def current_test() -> str | None:
    """The pytest node that runs now, as pytest tells it."""
    value = os.environ.get("PYTEST_CURRENT_TEST")
    return value.rsplit(" (", 1)[0] if value else None


def wants_colour() -> bool | None:
    """False under NO_COLOR, True under FORCE_COLOR, None to look at the terminal."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return None


def in_github_actions() -> bool:
    """Does a GitHub workflow read our output?"""
    return os.environ.get("GITHUB_ACTIONS") == "true"


def github_workspace() -> str:
    """The folder of the checkout in a GitHub workflow; empty elsewhere."""
    return os.environ.get("GITHUB_WORKSPACE", "")


class MockSettings(NamedTuple):
    """What the environment asks of the mock backends."""

    strict: bool | None = None
    """MOCK_STRICT: raise at a violation; else warn and go on. None: not said."""
    alignment: int | None = None
    """MOCK_ALIGNMENT: the sizes of every tensor must be multiples of it. None: not said."""
    alignment_dims: str = "all"
    """MOCK_ALIGNMENT_DIMS: which dimensions that is about, as it was written."""
    max_memory: str = ""
    """MOCK_MAX_MEMORY: bytes that one tensor may have, as it was written; empty: not said."""
    max_peak_memory: str = ""
    """MOCK_MAX_PEAK_MEMORY: bytes that a graph may need at its peak, likewise."""

    @property
    def has_rules(self) -> bool:
        """Does one of them say what to check?"""
        return self.alignment is not None or bool(self.max_memory or self.max_peak_memory)


_YES, _NO = ("1", "true", "yes", "on"), ("0", "false", "no", "off")


def read_mock_settings(environment: Mapping[str, str] | None = None) -> MockSettings:
    env = os.environ if environment is None else environment
    strict = env.get("MOCK_STRICT", "").strip().lower()
    if strict and strict not in (*_YES, *_NO):
        raise ToolError(
            f"MOCK_STRICT is {env['MOCK_STRICT']!r}; it must be 1 or 0.",
            hint="1 raises on a violation, 0 warns and continues.",
        )
    alignment = env.get("MOCK_ALIGNMENT", "").strip()
    if alignment and not (alignment.isdecimal() and 1 <= int(alignment[:20]) < 2**31):
        raise ToolError(
            (
                f"MOCK_ALIGNMENT is {env['MOCK_ALIGNMENT']!r}; it must be a whole number of at "
                "least 1."
            ),
            hint="Every size must be a multiple of it; 1 allows any size. For the last dimension "
            "only, set MOCK_ALIGNMENT_DIMS=last.",
        )
    return MockSettings(
        strict in _YES if strict else None,
        int(alignment) if alignment else None,
        env.get("MOCK_ALIGNMENT_DIMS", "").strip() or "all",
        env.get("MOCK_MAX_MEMORY", "").strip(),
        env.get("MOCK_MAX_PEAK_MEMORY", "").strip(),
    )


def mock_variables() -> dict[str, str]:
    """The MOCK_* variables as they are, for a process that shall check the same."""
    return {name: value for name, value in os.environ.items() if name.startswith("MOCK_")}


_OF_COMPILER = ("TORCHINDUCTOR_", "TORCHDYNAMO_", "TORCH_COMPILE_", "AOT_", "TRITON_", "XLA_")
_NOT_OF_RESULT = (
    "CACHE",
    "DEBUG",
    "LOG",
    "TRACE",
    "DIR",
    "VERBOSE",
    "PROFILE",
    "THREADS",
    "WORKER",
)
"""Words of variables that say where things go and what is told, not what is computed."""


def compiler_variables() -> dict[str, str]:
    """Variables that change what the compiler makes: a script for another machine sets them."""
    return {
        name: value
        for name, value in sorted(os.environ.items())
        if name.startswith(_OF_COMPILER) and not any(word in name for word in _NOT_OF_RESULT)
    }


class MiniSettings(NamedTuple):
    """What the environment asks of the small compiler."""

    off: tuple[str, ...] = ()
    """COMPILESCOPE_MINI_OFF: passes that don't run."""
    planted: str = ""
    """COMPILESCOPE_MINI_PLANT: the pass that makes its documented mistake."""
    threads: int = 0
    """COMPILESCOPE_MINI_THREADS: of generated loops; 0: as many as torch uses."""
    compiler: str = ""
    """COMPILESCOPE_MINI_CXX: the C++ compiler's name or path."""
    kernels: str = ""
    """COMPILESCOPE_MINI_KERNELS: the folder for what it compiles; empty: in the user's cache."""


def read_mini_settings(environment: Mapping[str, str] | None = None) -> MiniSettings:
    env = os.environ if environment is None else environment

    def value(name: str) -> str:
        return env.get(f"{_MINI}{name}", "").strip()

    threads = value("THREADS") or "0"
    if not threads.isdecimal() or int(threads[:20]) >= 2**15:
        raise ToolError(
            f"{_MINI}THREADS is {threads!r}; it must be a number of threads.",
            hint="0 uses as many as torch does.",
        )
    names = (name.strip() for name in value("OFF").split(","))
    return MiniSettings(
        tuple(filter(None, names)), value("PLANT"), int(threads), value("CXX"), value("KERNELS")
    )


def named_cxx() -> str:
    """The C++ compiler that $CXX names; empty where it names none."""
    return os.environ.get("CXX", "").strip()


def cache_folder() -> Path:
    """Where what can be made again is kept for this user."""
    return _own_folder(os.environ.get("XDG_CACHE_HOME"), ".cache")


def state_folder() -> Path:
    """Where what must outlive a process is kept for this user."""
    return _own_folder(os.environ.get("XDG_STATE_HOME"), ".local/state")


def config_folder() -> Path:
    """Where this user writes down what holds for all projects."""
    return _own_folder(os.environ.get("XDG_CONFIG_HOME"), ".config")


def _own_folder(named: str | None, usual: str) -> Path:
    """A folder of this user's. The rules for these variables say that a relative one counts for
    nothing: it would be another folder in each place. A user without a home has none, and what is
    below this file cannot be written: better than a folder named `~` where the program runs."""
    if named and os.path.isabs(named):
        return Path(named) / "compilescope"
    home = os.path.expanduser("~")
    return Path(home if os.path.isabs(home) else os.devnull) / usual / "compilescope"


def registry_site(environment: Mapping[str, str] | None = None) -> str:
    """Where the registry is published as a site; empty where nobody says."""
    env = os.environ if environment is None else environment
    return env.get("COMPILESCOPE_REGISTRY_SITE", "").strip()


def fresh_environment() -> dict[str, str]:
    """For a process that is no part of the program under capture, though started by it."""
    private = ("MOCK_", "TORCH_LOGS", "TORCH_TRACE", "TORCH_COMPILE_DEBUG")
    env = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(private) and not _is_private(name)
    }
    boots = os.path.join(PACKAGE, "instrument", "recorder", "boot")
    before = env.get("PYTHONPATH", "").split(os.pathsep)
    kept = [entry for entry in before if entry and not entry.startswith(boots)]
    env["PYTHONPATH"] = os.pathsep.join([*kept, os.path.dirname(PACKAGE)])
    return {**env, AUTO_RUN: "0"}


def bench_environment(caches: Path) -> dict[str, str]:
    """For a process of a benchmark: as a fresh one, with all compiler caches on and in a folder."""
    env = fresh_environment()
    for name in ("TORCHINDUCTOR_FORCE_DISABLE_CACHES", "TORCH_COMPILE_FORCE_DISABLE_CACHES"):
        env.pop(name, None)
    env["TORCHINDUCTOR_FX_GRAPH_CACHE"] = env["TORCHINDUCTOR_AUTOGRAD_CACHE"] = "1"
    env["TORCHINDUCTOR_CACHE_DIR"] = str(caches / "inductor")
    env["TRITON_CACHE_DIR"] = str(caches / "triton")
    env[f"{_MINI}KERNELS"] = str(caches / "mini")
    return env


class ModelVariables:
    """What the environment says of language models; `explain.server` makes a choice of it.

    No value stands in its repr, so that no log or traceback shows a key. It is no dataclass: making
    one takes as long as importing four modules, and every command imports this one.
    """

    timeout_s = 60.0
    """From the question to the last word of the answer."""

    def __init__(
        self,
        *,
        model: str | None = None,
        url: str | None = None,
        key: str | None = None,
        openai_url: str | None = None,
        openai_key: str | None = None,
        gemini_key: str | None = None,
        timeout_s: float = timeout_s,
        cache_dir: Path | None = None,
    ) -> None:
        self.model = model
        self.url = url
        self.key = key
        self.openai_url = openai_url
        self.openai_key = openai_key
        self.gemini_key = gemini_key
        self.timeout_s = timeout_s
        self.cache_dir = cache_folder() / "llm" if cache_dir is None else cache_dir
        """Where answers are kept."""


def read_model_variables(environment: Mapping[str, str] | None = None) -> ModelVariables:
    env = os.environ if environment is None else environment

    def value(name: str) -> str | None:
        return env.get(name, "").strip() or None

    return ModelVariables(
        model=value("COMPILESCOPE_LLM_MODEL"),
        url=value("COMPILESCOPE_LLM_URL"),
        key=value("COMPILESCOPE_LLM_KEY"),
        openai_url=value("OPENAI_BASE_URL"),
        openai_key=value("OPENAI_API_KEY"),
        gemini_key=value("GEMINI_API_KEY"),
        timeout_s=_read_timeout(value("COMPILESCOPE_LLM_TIMEOUT")),
        cache_dir=_own_folder(value("XDG_CACHE_HOME"), ".cache") / "llm",
    )


def _read_timeout(text: str | None) -> float:
    if text is None:
        return ModelVariables.timeout_s
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    # Queues refuse to wait longer than a C long of nanoseconds; a day is long enough.
    if 0 < seconds <= 86400:
        return seconds
    raise ToolError(
        f"COMPILESCOPE_LLM_TIMEOUT is {text!r}; it must be a number of seconds, at most a day.",
        hint="Set it to a value such as 60, or unset it.",
    )
