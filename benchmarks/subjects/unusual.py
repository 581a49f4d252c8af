# ruff: noqa: E501 - the lines are those of programs.
"""More programs for `unchanged.py`: in places, under limits and with habits that few think of.

They come with what a shell does before it starts a program (limits, closed streams, ignored
signals), drop their rights, change their root, replace what Python and the system offer, or look
at the stack they run on.
"""

from __future__ import annotations

from subjects.subject import Subject


def _shell(before: str) -> tuple[str, ...]:
    """Words that run what follows them after some lines of shell."""
    return ("sh", "-c", f'{before}; exec "$@"', "sh")


_STATE = (
    "import os, sys\n"
    "def state(n):\n    try: return os.fstat(n).st_mode & 0o170000\n    except OSError as e: return e.errno\n"
    "found = [state(n) for n in range(3)]\nopen('state', 'w').write(f'{found} {sys.stdin} {sys.stdout} {sys.stderr}'.replace(os.getcwd(), ''))\n"
)

PLAIN: dict[str, Subject] = {
    # How it is started.
    "without-stdin": Subject(_STATE, around=_shell("exec <&-")),
    "without-stdout": Subject(_STATE, around=_shell("exec >&-")),
    "without-stderr": Subject(_STATE, around=_shell("exec 2>&-")),
    "without-streams": Subject(_STATE + "1 / 0", around=_shell("exec <&- >&- 2>&-")),
    "ignored-signals": Subject(
        "import os, signal\nfor n in (1, 2, 13, 15, 17): print(n, signal.getsignal(n))\n"
        "os.kill(os.getpid(), 15); os.kill(os.getpid(), 1); print('here')",
        around=_shell("trap '' HUP INT TERM PIPE"),
    ),
    "outer-umask": Subject(
        "import os\nopen('f', 'w').close(); os.mkdir('d'); print(oct(os.stat('f').st_mode), oct(os.stat('d').st_mode))\nos.chmod('d', 0o700)",
        around=_shell("umask 0777"),
    ),
    "outer-descriptor-limit": Subject(
        "import os, resource\nprint(resource.getrlimit(resource.RLIMIT_NOFILE)); n = 0\n"
        "try:\n    while True: os.open('/dev/null', 0); n += 1\nexcept OSError as e: print(n, e.errno)",
        around=_shell("ulimit -n 24"),
    ),
    "outer-stack-limit": Subject(
        "import resource, threading\nprint(resource.getrlimit(resource.RLIMIT_STACK))\n"
        "def deep(n): return n and deep(n - 1)\nt = threading.Thread(target=deep, args=(500,)); t.start(); t.join(); print(deep(900))",
        around=_shell("ulimit -s 1024"),
    ),
    "nice": Subject(
        "import os\nprint(os.getpriority(os.PRIO_PROCESS, 0)); os.nice(2); os.sched_setaffinity(0, {0})\n"
        "import subprocess, sys; print(subprocess.run([sys.executable, '-c', 'import os; print(os.nice(0), os.sched_getaffinity(0))'], capture_output=True).stdout)",
        around=("nice", "-n", "3"),
    ),
    "no-home": Subject(
        "import os\nprint(os.environ.get('HOME'), os.path.expanduser('~') != '~')",
        around=("env", "-u", "HOME", "-u", "USER", "-u", "LOGNAME"),
    ),
    "strange-home": Subject(
        "import os, tempfile\nprint(os.path.expanduser('~'), sorted(os.listdir('.')))\n"
        "try: tempfile.mkdtemp(dir=os.environ['TMPDIR'])\nexcept OSError as e: print(e.errno)",
        environment={
            "HOME": "/proc/no/such",
            "XDG_STATE_HOME": "/dev/null/x",
            "XDG_CACHE_HOME": "relative",
            "XDG_CONFIG_HOME": "",
            "TMPDIR": "/no/such/folder",
        },
    ),
    "read-only-folder": Subject(
        "import os\nprint(os.access('.', os.R_OK), sorted(os.listdir('.')))\nos.chmod('.', 0o755)",
        around=_shell("chmod 555 ."),
    ),
    "long-arguments": Subject(
        "import hashlib, sys\nprint(len(sys.argv), [hashlib.md5(a.encode('utf-8', 'surrogateescape')).hexdigest() for a in sys.argv[1:]])\n"
        "print(len(open('/proc/self/cmdline', 'rb').read().split(b'\\0')))",
        words=(
            "program.py",
            "x" * 100_000,
            "",
            " ",
            "a\nb",
            "\udcff\udc80",
            "--",
            "-q",
            "é",
            "\u202e",
        )
        + ("y",) * 3000,
    ),
    "large-environment": Subject(
        "import os\nprint(sum(n.startswith('MINE') for n in os.environ), len(os.environ['MINE_0']), os.environb[b'MINE_RAW'])",
        environment={**{f"MINE_{n}": "v" * 20_000 for n in range(30)}, "MINE_RAW": "\udcfe\udcff"},
    ),
    "odd-file-name": Subject(
        "",
        words=("a b\n'\"$(x)é.py", "1"),
        files={
            "a b\n'\"$(x)é.py": "import sys\nprint(sys.argv, __file__)\nraise ValueError('x')\n"
        },
    ),
    "dash-file-name": Subject(
        "", words=("./-q.py",), files={"-q.py": "import sys\nprint(sys.argv, __file__[-6:])\n"}
    ),
    "linked-file": Subject(
        "import os\nos.symlink('program.py', 'link.py')\nprint(__file__[-10:], os.path.islink('link.py'))"
    ),
    "no-suffix": Subject(
        "",
        words=("tool",),
        files={"tool": "#!/usr/bin/env python\nprint(__name__, __file__)\n1 / 0\n"},
    ),
    "latin-source": Subject(
        "",
        words=("l.py",),
        files={
            "l.py": "# -*- coding: latin-1 -*-\nprint(ascii('\u00e9'))\n1 / 0  # \u00e9\n".encode(
                "latin-1"
            )
        },
    ),
    "bad-source": Subject("", words=("b.py",), files={"b.py": b"print(1)\n# \xff\xfe\n"}),
    "null-in-source": Subject("", words=("n.py",), files={"n.py": b"print(1)\n\0\n"}),
    "compiled-file": Subject(
        "import py_compile, subprocess, sys\npy_compile.compile('m.py', 'm.pyc'); print(subprocess.run([sys.executable, 'm.pyc'], capture_output=True).stdout)\nimport os; os.remove('m.pyc')",
        files={"m.py": "print(__file__, __name__)"},
    ),
    "debugger": Subject("x = 1\nbreakpoint()\nprint(x)", stdin=b"p x + 41\nw\nc\n"),
    "pdb-module": Subject(
        "x = 2\nprint(x)", words=("-m", "pdb", "program.py"), stdin=b"n\nn\np x\nq\n"
    ),
    "doctest-module": Subject(
        "def f(x):\n    '''\n    >>> f(2)\n    5\n    '''\n    return x * 2\n",
        words=("-m", "doctest", "program.py"),
    ),
    "site-module": Subject("", words=("-m", "site", "--user-site")),
    "compileall-module": Subject("x = 1", words=("-m", "compileall", "-q", "-b", ".", "-d", "x")),
    "interactive": Subject(
        "print('first')",
        environment={"PYTHONINSPECT": "1", "PYTHONSTARTUP": ""},
        stdin=b"print(7 * 6)\n1 / 0\n",
    ),
    "hard-memory": Subject("print(len(bytearray(1 << 20)))", environment={"PYTHONMALLOC": "debug"}),
    "tracing-memory": Subject(
        "import tracemalloc\nprint(tracemalloc.is_tracing(), tracemalloc.get_traceback_limit())",
        environment={"PYTHONTRACEMALLOC": "3"},
    ),
    "byte-warnings": Subject(
        "import warnings\nprint(str(b'x') == 'x', b'a' == 'a')", flags=("-b",)
    ),
    "byte-errors": Subject("print(b'a' == 'a')", flags=("-bb",)),
    "twice-optimized": Subject(
        "def f():\n    'doc'\n    assert False\nprint(f.__doc__, f(), __debug__)", flags=("-OO",)
    ),
    "all-warnings": Subject(
        "import sys, warnings\nprint(sys.warnoptions)\ntry: warnings.warn('x', ResourceWarning)\nexcept ResourceWarning as e: print(e)\nopen(__file__)",
        flags=("-W", "error", "-X", "dev"),
    ),
    "no-bytecode": Subject(
        "import helper, os\nprint(os.path.exists('__pycache__'))",
        flags=("-B",),
        files={"helper.py": ""},
    ),
    "bytecode-elsewhere": Subject(
        "import helper, os, sys\nprint(os.path.exists('__pycache__'), os.path.isdir('cache'), sys.pycache_prefix)\nimport shutil; shutil.rmtree('cache', True)",
        environment={"PYTHONPYCACHEPREFIX": "cache"},
        files={"helper.py": ""},
    ),
    # How it ends.
    "exit-values": Subject(
        "import os, sys\nfor value in (None, True, -1, 256, 2 ** 40, 1.5, '', b'x', (1,), [], {}, ValueError('v')):\n"
        "    pid = os.fork()\n    if not pid: sys.exit(value)\n    print(repr(value), os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)\nsys.exit(-3)"
    ),
    "exit-subclass": Subject("class Stop(SystemExit):\n    code = 21\nraise Stop"),
    "own-interrupt": Subject("def f(): raise KeyboardInterrupt('mine')\nf()"),
    "exit-in-thread": Subject(
        "import sys, threading, time\nt = threading.Thread(target=sys.exit, args=(4,)); t.start(); t.join()\n"
        "late = threading.Thread(target=lambda: (time.sleep(0.2), print('late'))); late.start(); sys.exit(6)"
    ),
    "thread-hook": Subject(
        "import threading\nthreading.excepthook = lambda a: print('hooked', a.exc_type.__name__, a.thread.name)\n"
        "t = threading.Thread(target=lambda: [][0], name='n'); t.start(); t.join()"
    ),
    "error-without-words": Subject(
        "class E(Exception):\n    def __str__(self): raise ValueError('no words')\n    __repr__ = __str__\nraise E"
    ),
    "error-groups": Subject(
        "e = ExceptionGroup('several', [ValueError(1), ExceptionGroup('more', [KeyError('k')])])\ne.add_note('a note\\n\\udcff')\nraise e"
    ),
    "error-in-excepthook": Subject(
        "import sys\ndef hook(*a): raise KeyError('in the hook')\nsys.excepthook = hook\nraise ValueError('first')"
    ),
    "error-on-odd-text": Subject("raise ValueError('\\udcff\\u202e\\x1b[31m\\0')"),
    "very-long-error": Subject("raise ValueError('x' * 3_000_000)"),
    "deep-error": Subject(
        "def f(n):\n    try: f(n - 1) if n else 1 / 0\n    except Exception as e: raise ValueError(n) from e\nf(60)"
    ),
    "error-at-exit-of-thread": Subject(
        "import atexit, threading\natexit.register(lambda: 1 / 0)\natexit.register(print, 'first')\n"
        "threading.Thread(target=lambda: {}['k'], name='t').start()"
    ),
    "exit-within-atexit": Subject(
        "import atexit, sys, os\natexit.register(lambda: (print('bye', flush=True), os._exit(31)))"
    ),
    "fork-within-atexit": Subject(
        "import atexit, os\n@atexit.register\ndef last():\n    pid = os.fork()\n"
        "    if not pid: print('child', flush=True); os._exit(2)\n    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))"
    ),
    "exec-again": Subject(
        "import os, sys\nprint(sys.argv[1:], 'AGAIN' in os.environ, flush=True)\n"
        "if 'AGAIN' not in os.environ:\n    os.environ['AGAIN'] = '1'; os.execv(sys.executable, [sys.executable, *sys.argv, 'again'])\nsys.exit(8)"
    ),
    "exec-with-nothing": Subject(
        "import os, sys\nos.execve(sys.executable, ['python', '-E', '-s', '-c', 'import os, sys; print(sorted(os.environ), sys.flags.ignore_environment); sys.exit(3)'], {})"
    ),
    "cpu-limit": Subject(
        "import resource, signal, time\nsignal.signal(signal.SIGXCPU, lambda n, f: (_ for _ in ()).throw(TimeoutError('cpu')))\n"
        "used = int(time.process_time()); resource.setrlimit(resource.RLIMIT_CPU, (used + 1, used + 9))\n"
        "try:\n    while True: pass\nexcept TimeoutError as e: print(e)"
    ),
    "stops-itself": Subject(
        "import os, signal, time\nme = os.getpid(); pid = os.fork()\n"
        "if not pid: time.sleep(0.5); os.kill(me, signal.SIGCONT); os._exit(0)\n"
        "os.kill(me, signal.SIGSTOP); os.waitpid(pid, 0); print('went on')"
    ),
    "blocked-signals": Subject(
        "import os, signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, {10, 12, 15}); os.kill(os.getpid(), 12)\n"
        "print(signal.sigpending(), signal.sigwait({12}), signal.sigtimedwait({10}, 0)); os.kill(os.getpid(), 15); print('still'); raise SystemExit(2)"
    ),
    "wakeup": Subject(
        "import os, signal, socket\na, b = socket.socketpair(); a.setblocking(False); signal.set_wakeup_fd(a.fileno())\n"
        "signal.signal(10, lambda n, f: None); os.kill(os.getpid(), 10); print(b.recv(1)); print(signal.set_wakeup_fd(-1) == a.fileno())"
    ),
    "broken-pipe": Subject(
        "for n in range(200_000): print(n)",
        around=("bash", "-c", 'set -o pipefail; "$@" | head -1', "bash"),
    ),
    "loud": Subject("import os\nfor n in range(64): os.write(1 + n % 2, bytes(range(256)) * 256)"),
    "detached-streams": Subject(
        "import io, sys\nout = sys.stdout.detach(); out.write(b'raw\\n'); out.flush(); sys.stdout = io.TextIOWrapper(out, 'utf-16'); print('x')\n"
        "sys.stderr.reconfigure(errors='strict', encoding='ascii'); print('e', file=sys.stderr)"
    ),
    # What it does.
    "subinterpreter": Subject(
        "import _xxsubinterpreters as s\ni = s.create()\n"
        "s.run_string(i, 'import sys, os; print(len(sys.modules) > 5, sys.argv, sys.path[-1][-13:], flush=True)')\ns.destroy(i); print('end')"
    ),
    "patched-python": Subject(
        "import builtins, io, os, sys, threading, time\ncalls = []\n"
        # Torch 2.11 formats stacks, and linecache asks for each file of a stack, ours among them.
        "import sys\ndef by_linecache(): return sys._getframe(2).f_globals['__name__'] == 'linecache'\n"
        "def count(name, real): return lambda *a, **k: (by_linecache() or calls.append(name), real(*a, **k))[1]\n"
        "for place, names in ((os, 'open write close stat lstat fstat getpid getppid listdir mkdir remove rename fspath'), (time, 'time time_ns monotonic perf_counter'), (builtins, 'open print'), (threading, 'get_ident')):\n"
        "    for name in names.split(): setattr(place, name, count(name, getattr(place, name)))\n"
        "print('hello'); sys.stdout.write(f'{calls}\\n')\nraise SystemExit(3)"
    ),
    "broken-python": Subject(
        "import builtins, os, sys, time, json\ndef no(*a, **k): raise RuntimeError('not for you')\n"
        "for place, names in ((os, 'open stat lstat fstat getpid getcwd fsencode'), (time, 'time time_ns'), (json, 'dumps loads')):\n"
        "    for name in names.split(): setattr(place, name, no)\nprint('done'); 1 / 0"
    ),
    "emptied-python": Subject(
        "import sys\nsys.path.clear(); sys.meta_path.clear(); sys.path_hooks.clear(); sys.path_importer_cache.clear()\nprint('on')\n"
        "for name in list(sys.modules):\n    if name not in ('sys', 'builtins', '__main__', '_io', 'io', 'codecs', 'encodings', 'encodings.utf_8'): del sys.modules[name]\n"
        "try: import json\nexcept BaseException as e: print(type(e).__name__)\nraise SystemExit(9)"
    ),
    "own-names": Subject(
        "import os, signal_, logging\nprint(logging.mine, signal_.x)",
        files={
            "logging.py": "mine = 1\n",
            "signal_.py": "x = 2\n",
            "platform.py": "print('platform!')\n",
            "traceback.py": "print('traceback!')\n",
            "tempfile.py": "",
            "json/__init__.py": "mine = 3\n",
        },
    ),
    "stack-and-source": Subject(
        "import inspect, sys, traceback, __main__\ndef f(): return [(s.function, s.lineno, s.code_context) for s in inspect.stack()]\n"
        "print(f(), inspect.getsource(f), traceback.format_stack()); print(__main__.__file__, __main__.__builtins__ is __builtins__, sys._getframe().f_back)"
    ),
    "proc-self": Subject(
        "import os, sys\nread = lambda n: open('/proc/self/' + n, 'rb').read()\n"
        "print(read('cmdline').split(b'\\0')[-2:], read('comm'), sys.orig_argv[1:], os.readlink('/proc/self/exe') == os.path.realpath(sys.executable))\n"
        "status = dict(l.split(b':', 1) for l in read('status').splitlines()); print([status[n] for n in (b'SigBlk', b'SigIgn', b'SigCgt', b'Threads', b'NoNewPrivs', b'Seccomp', b'Umask', b'TracerPid')])\n"
        "print(read('oom_score_adj'), read('coredump_filter'), sorted(l.split(b'=')[0] for l in read('environ').split(b'\\0') if l and not l.startswith((b'COMPILESCOPE', b'PYTHONPATH'))))"
    ),
    "drops-rights": Subject(
        "import os\nif os.getuid() == 0: os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        "print(os.getuid() != 0)\ntry: open('f', 'w')\nexcept OSError as e: print(e.errno)\n1 / 0"
    ),
    "other-root": Subject(
        "import os\nos.mkdir('jail')\ntry: os.chroot('jail')\nexcept OSError: os.chdir('jail')\nelse: os.chdir('/')\n"
        "print(os.listdir('.')); open('f', 'w').write('1'); raise SystemExit(4)"
    ),
    "pseudo-terminal": Subject(
        "import os, pty, sys\npid, fd = pty.fork()\n"
        "if not pid: print(os.isatty(1), flush=True); os._exit(3)\n"
        "data = b''\ntry:\n    while part := os.read(fd, 99): data += part\nexcept OSError: pass\nprint(data, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))"
    ),
    "locks": Subject(
        "import fcntl, os\nf = open('lock', 'w'); fcntl.flock(f, fcntl.LOCK_EX); pid = os.fork()\n"
        "if not pid:\n    g = open('lock', 'w')\n    try: fcntl.flock(g, fcntl.LOCK_EX | fcntl.LOCK_NB)\n    except OSError as e: os._exit(e.errno)\n    os._exit(0)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))"
    ),
    "memory-files": Subject(
        "import mmap, os\nfd = os.memfd_create('m'); os.write(fd, b'abc'); print(fd, mmap.mmap(fd, 3)[:]); os.close(fd)\n"
        "print(os.eventfd(1), os.pipe(), os.open('.', os.O_RDONLY))"
    ),
    "new-session": Subject(
        "import os\npid = os.fork()\nif pid: print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])); raise SystemExit(1)\n"
        "os.setsid(); print(os.getpgrp() == os.getpid(), flush=True); os._exit(12)"
    ),
    "subreaper": Subject(
        "import ctypes, os\nctypes.CDLL(None).prctl(36, 1)\npid = os.fork()\nif not pid:\n    if os.fork() == 0: os._exit(5)\n    os._exit(6)\n"
        "print(sorted(os.waitstatus_to_exitcode(os.wait()[1]) for _ in range(2)))\ntry: os.wait()\nexcept ChildProcessError: print('none left')"
    ),
    "many-forks": Subject(
        "import os\nfor n in range(120):\n    pid = os.fork()\n    if not pid: os._exit(n % 7)\n    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == n % 7\nprint('all')"
    ),
    "fork-in-thread": Subject(
        "import os, threading\ndef work():\n    pid = os.fork()\n    if not pid: os._exit(threading.active_count())\n    out.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))\n"
        "out = []; ts = [threading.Thread(target=work) for _ in range(4)]; [t.start() for t in ts]; [t.join() for t in ts]; print(out)"
    ),
    "deleted-program": Subject(
        "import os\nos.remove('program.py'); print(os.path.exists(__file__))\ndef f(): raise ValueError('gone')\nf()"
    ),
    "rewritten-program": Subject(
        "open(__file__, 'w').write('# another\\n' * 9)\ndef f(): 1 / 0\nf()"
    ),
    "renamed-folder": Subject(
        "import os\nos.mkdir('a'); os.chdir('a'); os.rename('../a', '../b'); print(os.getcwd()[-2:]); open('f', 'w').write('x')"
    ),
}


_COMPILED = """import torch
@torch.compile(backend="eager")
def f(x, n=1):
    y = x + n
    torch._dynamo.graph_break()
    return y.sin() * n
"""


def _torch(rest: str, **more: object) -> Subject:
    return Subject(_COMPILED + rest, **more)  # type: ignore[arg-type]


TORCH: dict[str, Subject] = {
    "t-patched-python": _torch(
        "import builtins, os, threading, time\nf(torch.ones(2)); calls = []\n"
        # Torch 2.11 formats stacks, and linecache asks for each file of a stack, ours among them.
        "import sys\ndef by_linecache(): return sys._getframe(2).f_globals['__name__'] == 'linecache'\n"
        "def count(name, real): return lambda *a, **k: (by_linecache() or calls.append(name), real(*a, **k))[1]\n"
        "for place, names in ((os, 'open write close stat lstat fstat getpid getppid'), (builtins, 'open'), (threading, 'get_ident')):\n"
        "    for name in names.split(): setattr(place, name, count(name, getattr(place, name)))\n"
        "for n in range(3): f(torch.ones(n + 2), n)\nprint(sorted(calls))"
    ),
    "t-broken-python": _torch(
        "import io, os, json, linecache\nf(torch.ones(2))\ndef no(*a, **k): raise RuntimeError('not for you')\n"
        "for place, names in ((os, 'write lstat fstat getppid'), (io, 'FileIO'), (json, 'loads')):\n"
        "    for name in names.split(): setattr(place, name, no)\n"
        "for n in range(3): print(f(torch.ones(n + 2), n).tolist())"
    ),
    "t-drops-rights": _torch(
        "import os\nf(torch.ones(2))\nif os.getuid() == 0: os.setgid(65534); os.setuid(65534)\n"
        "for n in range(3): print(f(torch.ones(n + 2), n).tolist())\n1 / 0"
    ),
    "t-other-root": _torch(
        "import os\nfor n in range(2): f(torch.ones(n + 2), n)\nos.mkdir('jail')\ntry: os.chroot('jail'); os.chdir('/')\nexcept OSError: os.chdir('jail')\n"
        "for n in range(2, 5): print(f(torch.ones(n + 2), n).tolist())\nprint(os.listdir('.'))"
    ),
    "t-backend-stack": Subject(
        "import sys, torch\ndef b(gm, inputs):\n    names, fr = [], sys._getframe()\n    while fr: names.append(fr.f_code.co_name); fr = fr.f_back\n"
        "    print(names); return gm\ntorch.compile(lambda x: x.sin() + 1, backend=b)(torch.zeros(2))"
    ),
    "t-cancelled": _torch(
        "import asyncio\nasync def work(n):\n    for m in range(50): f(torch.ones(n + 2), m % 3); await asyncio.sleep(0)\n"
        "async def main():\n    ts = [asyncio.create_task(work(n)) for n in range(3)]; await asyncio.sleep(0); ts[0].cancel()\n"
        "    print([type(r).__name__ for r in await asyncio.gather(*ts, return_exceptions=True)])\nasyncio.run(main(), debug=False)"
    ),
    "t-in-atexit": _torch(
        "import atexit\natexit.register(lambda: print(f(torch.ones(3), 2).tolist(), flush=True))\nf(torch.ones(2))"
    ),
    "t-in-handler": _torch(
        "import os, signal\nsignal.signal(10, lambda n, fr: print(f(torch.ones(4), 3).tolist()))\nf(torch.ones(2)); os.kill(os.getpid(), 10); print('end')"
    ),
    "t-in-del": _torch(
        "class A:\n    def __del__(self): print(f(torch.ones(5), 2).tolist(), flush=True)\na = A(); del a\nimport gc; gc.collect()"
    ),
    "t-daemon-thread": _torch(
        "import threading, time\ndef work():\n    n = 0\n    while True: n += 1; f(torch.ones(2 + n % 3), n % 2)\n"
        "f(torch.ones(2)); threading.Thread(target=work, daemon=True).start(); time.sleep(0.3); print('main ends', flush=True)\nimport os; os._exit(3)"
    ),
    "t-fork-in-thread": _torch(
        "import os, threading\nf(torch.ones(2))\ndef work():\n    pid = os.fork()\n    if not pid: os._exit(int(f(torch.ones(3), 2).numel()))\n"
        "    out.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))\nout = []; t = threading.Thread(target=work); t.start(); t.join(); print(out)"
    ),
    "t-low-recursion": _torch(
        "import sys, logging; logging.disable(); f(torch.ones(2))\nfor limit in (120, 160, 200, 300):\n    torch._dynamo.reset(); sys.setrecursionlimit(limit)\n"
        "    try: r = f(torch.ones(3), 2).tolist()\n    except BaseException as e: r = type(e).__name__\n    sys.setrecursionlimit(1000); print(limit, r)"
    ),
    "t-disabled": _torch(
        "print(f(torch.ones(2)).tolist())", environment={"TORCH_COMPILE_DISABLE": "1"}
    ),
    "t-suppressed": Subject(
        "import torch\ntorch._dynamo.config.suppress_errors = True\ndef b(gm, i): raise ValueError('no')\n"
        "print(torch.compile(lambda x: x + 1, backend=b)(torch.ones(2)).tolist())"
    ),
}
