# ruff: noqa: E501 - the lines are those of programs.
"""Programs that look at themselves: what they print and write must not depend on who watches.

Each is a text, run as `program.py` in a folder of its own. Nothing that differs between any two
runs (pids, times, addresses, the folder's name) may be printed.
"""

from __future__ import annotations

import io
import zipfile

from subjects import unusual
from subjects.subject import Subject


def _zipped(texts: dict[str, str]) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as file:
        for name, text in texts.items():
            file.writestr(name, text)
    return data.getvalue()


_NO_BYTECODE = "import sys; sys.dont_write_bytecode = True; "
"""Before a limit on the size of files: Python would leave parts of `.pyc` files in torch's folder,
which no later process can import."""

_LOOK = """import os, threading
def look():
    names = [n for n in os.listdir('/proc/self/fd') if os.path.exists('/proc/self/fd/' + n)]
    tasks = [open(f'/proc/self/task/{t}/children').read().split() for t in os.listdir('/proc/self/task')]
    print(sorted(names), sum(map(len, tasks)), [t.name for t in threading.enumerate()])
"""

PLAIN: dict[str, Subject] = {
    "status": Subject("import sys; print('out'); print('err', file=sys.stderr); sys.exit(7)"),
    "exit-words": Subject("import sys; sys.exit('the last words')"),
    "uncaught": Subject("def f():\n    raise ValueError('no')\nf()"),
    "chained": Subject(
        "try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    raise KeyError(2) from e"
    ),
    "syntax": Subject("x = = 1"),
    "os-exit": Subject("import os; os.write(1, b'x'); os._exit(5)"),
    "killed": Subject("import os, signal; os.kill(os.getpid(), signal.SIGKILL)"),
    "aborted": Subject("import os; os.abort()"),
    "real-time-signal": Subject("import os; os.kill(os.getpid(), 40)"),
    "interrupted": Subject("import os, signal; os.kill(os.getpid(), signal.SIGINT); input()"),
    "alarm": Subject(
        "import signal, time\n"
        "def h(n, f): raise TimeoutError('late')\n"
        "signal.signal(signal.SIGALRM, h); signal.alarm(1)\n"
        "try: time.sleep(60)\n"
        "except TimeoutError as e: print(e)"
    ),
    "threads": Subject(
        "import threading\n"
        "def f(n): out.append(n * n)\n"
        "out = []\n"
        "ts = [threading.Thread(target=f, args=(n,)) for n in range(8)]\n"
        "[t.start() for t in ts]; [t.join() for t in ts]; print(sorted(out))\n"
        "print(threading.active_count(), threading.current_thread().name)"
    ),
    "thread-dies": Subject(
        "import threading\nt = threading.Thread(target=lambda: 1 / 0, name='mine')\nt.start(); t.join()"
    ),
    "fork": Subject(
        "import os\npid = os.fork()\n"
        "if pid == 0:\n    open('child', 'w').write('c'); os._exit(3)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))"
    ),
    "fork-exits": Subject(
        "import atexit, os, sys\natexit.register(print, 'end', flush=True)\npid = os.fork()\n"
        "if pid: os.waitpid(pid, 0)\n"
        "sys.exit(2 if pid else 4)"
    ),
    "exec": Subject("import os, sys\nos.execv(sys.executable, [sys.executable, '-c', 'print(9)'])"),
    "subprocess": Subject(
        "import subprocess, sys\n"
        "code = 'import sys; print(sys.argv, sys.flags.isolated); sys.exit(6)'\n"
        "for more in ([], ['-I'], ['-S'], ['-E']):\n"
        "    p = subprocess.run([sys.executable, *more, '-c', code, 'x'], capture_output=True)\n"
        "    print(p.returncode, p.stdout, p.stderr)"
    ),
    "spawn": Subject(
        "import multiprocessing as mp\ndef f(x): return x * x\n"
        "if __name__ == '__main__':\n"
        "    with mp.get_context('spawn').Pool(2) as pool: print(pool.map(f, range(5)))"
    ),
    "fork-pool": Subject(
        "import multiprocessing as mp\ndef f(x): return x * x\n"
        "if __name__ == '__main__':\n"
        "    with mp.get_context('fork').Pool(2) as pool: print(pool.map(f, range(5)))"
    ),
    "asyncio": Subject(
        "import asyncio\nasync def f(n):\n    await asyncio.sleep(0); return n\n"
        "async def main(): print(await asyncio.gather(*map(f, range(3))))\nasyncio.run(main())"
    ),
    "asyncio-signal": Subject(
        "import asyncio, os, signal\n"
        "async def main():\n    done = asyncio.Event()\n"
        "    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, done.set)\n"
        "    os.kill(os.getpid(), signal.SIGUSR1); await done.wait(); print('heard')\n"
        "asyncio.run(main())"
    ),
    "atexit": Subject("import atexit\nfor n in range(3): atexit.register(print, n)\nprint('main')"),
    "atexit-raises": Subject("import atexit\n@atexit.register\ndef f(): raise ValueError('late')"),
    "excepthook": Subject(
        "import sys\nsys.excepthook = lambda k, e, t: print('mine', k.__name__, e)\nraise KeyError(1)"
    ),
    "unraisable": Subject(
        "class A:\n    def __del__(self): raise ValueError('gone')\na = A(); a.__dict__['x'] = 1\ndel a"
    ),
    "settrace": Subject(
        "import sys\nseen = []\n"
        "def tr(f, e, a):\n    seen.append((f.f_code.co_name, e)); return tr\n"
        "def g(): return 1\nsys.settrace(tr); g(); sys.settrace(None); print(seen)"
    ),
    "profile": Subject(
        "import cProfile, io, pstats\np = cProfile.Profile(); p.runcall(sorted, [2, 1])\n"
        "print(sorted(k[2] for k in pstats.Stats(p, stream=io.StringIO()).stats))"
    ),
    "warnings-as-errors": Subject(
        "import warnings\ntry: warnings.warn('w')\nexcept UserWarning as e: print(e)",
        environment={"PYTHONWARNINGS": "error"},
    ),
    "dev-mode": Subject(
        "f = open('x', 'w'); f.write('1'); del f", environment={"PYTHONDEVMODE": "1"}
    ),
    "unittest": Subject(
        "import io, sys, unittest\nclass T(unittest.TestCase):\n"
        "    def test_a(self): self.assertEqual(1, 2)\nout = io.StringIO()\n"
        "r = unittest.main(exit=False, testRunner=unittest.TextTestRunner(stream=out))\n"
        "open('t', 'w').write(out.getvalue().partition('Ran ')[0])\n"
        "sys.exit(not r.result.wasSuccessful())"
    ),
    "argparse": Subject(
        "import argparse\np = argparse.ArgumentParser()\np.add_argument('-q', action='store_true')\n"
        "p.add_argument('--dir')\np.add_argument('--json', action='store_true')\nprint(p.parse_args())",
        words=("program.py", "-q", "--dir", "d", "--json"),
    ),
    "argparse-wrong": Subject(
        "import argparse\nargparse.ArgumentParser().parse_args()", words=("program.py", "--what")
    ),
    "stdin": Subject(
        "import sys; print(sys.stdin.read()[::-1], sys.stdin.isatty())", stdin=b"ab\nc"
    ),
    "from-stdin": Subject("", words=("-", "x"), stdin=b"import sys\nprint(sys.argv)\n1 / 0\n"),
    "chdir": Subject("import os\nos.mkdir('d'); os.chdir('d'); open('f', 'w').write('1'); 1 / 0"),
    "deleted-folder": Subject(
        "import os\nos.mkdir('d'); os.chdir('d'); os.rmdir('../d')\n"
        "try: os.getcwd()\nexcept OSError as e: print(e.errno)"
    ),
    "umask": Subject(
        "import os\nprint(oct(os.umask(0o777))); open('f', 'w').close()\n"
        "print(oct(os.stat('f').st_mode)); os.chmod('f', 0o600)"
    ),
    "limits": Subject(
        "import os, resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))\nn = 0\n"
        "try:\n    while True: os.open('/dev/null', 0); n += 1\n"
        "except OSError as e: print(n, e.errno)"
    ),
    "file-size-limit": Subject(
        f"import resource\n{_NO_BYTECODE}resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))\n"
        "try: open('f', 'wb', 0).write(b'x' * 20); open('f', 'ab', 0).write(b'y')\n"
        "except OSError as e: print(e.errno)"
    ),
    "descriptors": Subject(
        "import os\nprint(sorted(os.listdir('/proc/self/fd'))[:3], open('f', 'w').fileno())"
    ),
    "closed-descriptors": Subject(
        "import os\nos.closerange(3, 256)\nf = open('results.csv', 'w'); print(f.fileno())\n"
        "f.write('a,b\\n1,2\\n3,4\\n'); f.close(); 1 / 0"
    ),
    "daemon": Subject(
        "import os, time\nif os.fork(): os.wait(); time.sleep(1); print(open('d').read()); os._exit(0)\n"
        "os.setsid()\nif os.fork(): os._exit(0)\n"
        "os.closerange(0, 256); f = os.open('d', os.O_WRONLY | os.O_CREAT, 0o644)\n"
        "os.write(f, b'daemon'); os._exit(0)"
    ),
    "encoding": Subject(
        "import sys\nprint(sys.stdout.encoding, ascii(sys.argv))\nprint('\\u00e9')",
        environment={"PYTHONIOENCODING": "ascii"},
    ),
    "utf8-off": Subject(
        "import sys, locale\nprint(sys.flags.utf8_mode, sys.stdout.encoding, sys.stdout.errors)",
        environment={"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    ),
    "import-hook": Subject(
        "import sys\nclass F:\n    def find_spec(self, name, path=None, target=None):\n"
        "        print('asked', name)\nsys.meta_path.insert(0, F())\n"
        "try: import nothing_here\nexcept ImportError as e: print(e)"
    ),
    "path": Subject(
        "import sys\nprint([p for p in sys.path if 'python' not in p][1:], len(sys.path))"
    ),
    "modules": Subject(
        "import sys\nprint([m for m in sys.modules if m in ('json', 'torch', 'msgspec')])"
    ),
    "own-msgspec": Subject(
        "import msgspec\nprint(msgspec.mine)\n1 / 0",
        files={"msgspec.py": "mine = 1\nprint('mine')\n"},
    ),
    "own-sitecustomize": Subject(
        "import sitecustomize\nprint(sitecustomize.mine, sitecustomize.__file__[-16:])",
        environment={"PYTHONPATH": "own"},
        # It runs in the launcher's Python too, which is one like any other: it must not print.
        files={"own/sitecustomize.py": "mine = 1\n"},
    ),
    "own-usercustomize": Subject(
        "import usercustomize\nprint(usercustomize.mine)",
        environment={"PYTHONPATH": "own"},
        files={"own/usercustomize.py": "mine = 2\n"},
    ),
    "no-sitecustomize": Subject("import sitecustomize"),
    "pickle": Subject(
        "import pickle\nclass A:\n    pass\nprint(pickle.dumps(A()))\n"
        "print(type(pickle.loads(pickle.dumps(A()))).__module__)"
    ),
    "hash-seed": Subject("print(hash('a'))", environment={"PYTHONHASHSEED": "7"}),
    "gc-freeze": Subject(
        "import gc\ngc.collect(); gc.freeze(); print(gc.isenabled(), gc.get_threshold())"
    ),
    "tracemalloc": Subject("import tracemalloc\nprint(tracemalloc.is_tracing())"),
    "faulthandler": Subject(
        "import faulthandler, os, signal\nfaulthandler.enable()\nos.kill(os.getpid(), signal.SIGUSR1)"
    ),
    "argv": Subject("import sys\nsys.argv[:] = ['x']; print(sys.argv, len(sys.orig_argv))"),
    "runpy": Subject(
        "import runpy\nprint(sorted(runpy.run_path('o.py'))[-1])", files={"o.py": "zz = 1"}
    ),
    "module": Subject(
        "",
        words=("-m", "pkg", "-q"),
        files={
            "pkg/__init__.py": "",
            "pkg/__main__.py": "import sys\nprint(__name__, sys.argv[1:])\n1 / 0",
        },
    ),
    "folder": Subject("", words=("d",), files={"d/__main__.py": "print(__name__, __package__)"}),
    "code": Subject("", words=("-c", "import sys; print(sys.argv, sys.path[0])", "a")),
    "optimized": Subject("assert False\nprint(__debug__)", environment={"PYTHONOPTIMIZE": "1"}),
    "unbuffered": Subject(
        "import os\nprint('a', end=''); os._exit(0)", environment={"PYTHONUNBUFFERED": "1"}
    ),
    "broken-stdout": Subject("import os, sys\nos.close(1)\nprint('x')"),
    "logging": Subject(
        "import logging\nlogging.basicConfig(); logging.warning('w'); logging.info('i')"
    ),
    "locale-error": Subject("import codecs\nprint(codecs.lookup('utf-8').name)\nb'\\xff'.decode()"),
    "descriptors-and-children": Subject(_LOOK + "look(); import subprocess; look()"),
    "manager": Subject(
        "import multiprocessing as mp\ndef f(d, i): d[i] = i * i\nif __name__ == '__main__':\n"
        "  with mp.Manager() as m:\n    d = m.dict(); ps = [mp.Process(target=f, args=(d, i)) for i in range(4)]\n"
        "    [p.start() for p in ps]; [p.join() for p in ps]\n"
        "    print(sorted(d.items()), [p.exitcode for p in ps])"
    ),
    "forkserver": Subject(
        "import multiprocessing as mp\ndef f(i): return i * i\nif __name__ == '__main__':\n"
        "  with mp.get_context('forkserver').Pool(2) as p: print(p.map(f, range(9)))"
    ),
    "futures": Subject(
        "import concurrent.futures as cf, os\ndef f(i):\n  if i == 3: os._exit(9)\n  return i\n"
        "if __name__ == '__main__':\n  with cf.ProcessPoolExecutor(2) as p:\n"
        "    try: print(list(p.map(f, range(5))))\n    except Exception as e: print(type(e).__name__)"
    ),
    "inherited-descriptors": Subject(
        "import os, subprocess, sys\nr, w = os.pipe(); os.set_inheritable(w, True)\n"
        "c = 'import os; print(sorted(map(int, os.listdir(\"/proc/self/fd\"))))'\n"
        "for more in ({'close_fds': True}, {'close_fds': False}, {'pass_fds': [w]}):\n"
        "  print(subprocess.run([sys.executable, '-c', c], capture_output=True, **more).stdout)"
    ),
    "no-child": Subject(
        "import os\ntry: os.wait()\nexcept ChildProcessError as e: print('no child', e)"
    ),
    "empty-environment": Subject(
        "import subprocess, sys\ncode = 'import os, sys; print(sorted(os.environ), sys.path)'\n"
        "print(subprocess.run([sys.executable, '-c', code], env={}, capture_output=True))"
    ),
    "safe-path": Subject(
        "import sys\nprint(sys.path[0][-12:], sys.flags.safe_path)\n"
        "try: import helper\nexcept ImportError as e: print(e)",
        environment={"PYTHONSAFEPATH": "1"},
        files={"helper.py": "print('x')"},
    ),
    "server": Subject(
        "import http.server, threading, urllib.request\n"
        "class H(http.server.BaseHTTPRequestHandler):\n"
        "  def do_GET(self): self.send_response(200); self.end_headers(); self.wfile.write(self.path.encode())\n"
        "  def log_message(self, *a): pass\n"
        "s = http.server.ThreadingHTTPServer(('127.0.0.1', 0), H)\n"
        "t = threading.Thread(target=s.serve_forever); t.start()\n"
        "for p in '/a', '/b': print(urllib.request.urlopen(f'http://127.0.0.1:{s.server_port}{p}').read())\n"
        "s.shutdown(); t.join(); print(threading.active_count())"
    ),
    "audit": Subject(
        "import sys\nseen = set()\nsys.addaudithook(lambda e, a: seen.add(e))\n"
        "open('x', 'w').close()\nimport json.tool\nprint(sorted(seen))"
    ),
    "stack-depth": Subject(
        "import sys\nf = sys._getframe(); n = 0\nwhile f: n += 1; f = f.f_back\n"
        "print(n, sys.getrecursionlimit(), sys.gettrace(), sys.excepthook is sys.__excepthook__)"
    ),
}

MORE: dict[str, Subject] = {
    "signal-state": Subject(
        "import signal\nfor n in sorted(signal.valid_signals()): print(n, signal.getsignal(n))\n"
        "print(signal.pthread_sigmask(signal.SIG_BLOCK, []), signal.getitimer(0), signal.set_wakeup_fd(-1))"
    ),
    "signals-and-threads": Subject(
        "import signal, threading\ngot = []\n"
        "def h(n, f): got.append((n, threading.current_thread().name))\n"
        "signal.signal(signal.SIGUSR1, h); main = threading.main_thread().ident\n"
        "def send(): signal.pthread_kill(main, signal.SIGUSR1)\n"
        "for _ in range(5):\n    t = threading.Thread(target=send); t.start(); t.join()\nprint(got)"
    ),
    "child-signals": Subject(
        "import os, signal, subprocess, sys\ngot = []\n"
        "signal.signal(signal.SIGCHLD, lambda n, f: got.append(n))\n"
        "print(subprocess.run([sys.executable, '-c', 'exit(4)']).returncode, len(got))\n"
        "signal.signal(signal.SIGCHLD, signal.SIG_IGN); pid = os.fork()\nif not pid: os._exit(3)\n"
        "try: os.waitpid(pid, 0)\nexcept ChildProcessError as e: print(e)"
    ),
    "file-size-signal": Subject(
        "import resource, signal\nsignal.signal(signal.SIGXFSZ, signal.SIG_DFL)\n"
        f"{_NO_BYTECODE}resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)); print('still here')\n1 / 0"
    ),
    "file-size-handler": Subject(
        "import atexit, os, resource, signal\ngot = []\natexit.register(lambda: print(got, flush=True))\n"
        "signal.signal(signal.SIGXFSZ, lambda n, f: got.append(n))\n"
        f"{_NO_BYTECODE}resource.setrlimit(resource.RLIMIT_FSIZE, (4, 4)); f = os.open('f', os.O_WRONLY | os.O_CREAT)\n"
        "try: os.write(f, b'1234'); os.write(f, b'5')\nexcept OSError as e: print(e)"
    ),
    "all-limits": Subject(
        "import resource\n"
        "for n in sorted(dir(resource)):\n"
        "    if n.startswith('RLIMIT'): print(n, resource.getrlimit(getattr(resource, n)))"
    ),
    "memory-limit": Subject(
        "import resource\npages = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize()\n"
        "resource.setrlimit(resource.RLIMIT_AS, (pages + (96 << 20),) * 2); kept = []\n"
        "try:\n    while True: kept.append(bytearray(8 << 20))\n"
        "except MemoryError: n = len(kept); kept.clear(); print('no more', n > 5)\nraise SystemExit(3)"
    ),
    "fork-and-exec": Subject(
        "import os, sys\nfor n in range(3):\n    pid = os.fork()\n"
        "    if not pid: os.execve(sys.executable, [sys.executable, '-c', f'import sys; sys.exit({n})'], {**os.environ, 'A': 'b'})\n"
        "    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))"
    ),
    "spawned": Subject(
        "import os, sys\npid = os.posix_spawn(sys.executable, [sys.executable, '-c', 'print(5)'], os.environ)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))"
    ),
    "ctypes": Subject(
        "import ctypes, os\nc = ctypes.CDLL(None); print(c.getpid() == os.getpid(), c.getppid() == os.getppid())\n"
        "name = ctypes.create_string_buffer(16); c.prctl(16, name); print(name.value[:6])\n"
        "c.puts(b'from C'); c.fflush(None)"
    ),
    "segfault": Subject("import ctypes\nprint('before', flush=True)\nctypes.string_at(0)"),
    "gc-callbacks": Subject(
        "import gc\nseen = []\nprint(gc.callbacks, gc.get_debug(), gc.garbage)\n"
        "gc.callbacks.append(lambda p, i: seen.append((p, i['generation'])))\ngc.collect(); print(seen)"
    ),
    "warning-filters": Subject(
        "import warnings\nprint(warnings.filters)\nwarnings.simplefilter('always')\n"
        "for _ in range(2): warnings.warn('twice')\nwarnings.warn('old', DeprecationWarning)"
    ),
    "logging-config": Subject(
        "import logging, logging.config, sys\nprint(logging.root.handlers, sorted(logging.root.manager.loggerDict), logging.root.level)\n"
        "logging.config.dictConfig({'version': 1, 'formatters': {'f': {'format': '%(name)s %(funcName)s %(message)s'}},\n"
        "  'handlers': {'h': {'class': 'logging.StreamHandler', 'formatter': 'f'}}, 'root': {'handlers': ['h'], 'level': 'DEBUG'}})\n"
        "def f(): logging.getLogger('a.b').debug('hello')\nf(); logging.captureWarnings(True)\nimport warnings; warnings.warn('w')"
    ),
    "replaced-streams": Subject(
        "import contextlib, io, sys\nout = io.StringIO()\n"
        "with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out): print('in'); print('err', file=sys.stderr)\n"
        "print(repr(out.getvalue()), sys.stdout is sys.__stdout__)\n"
        "sys.stderr = open('log', 'w'); sys.stdout = None; print('nowhere'); raise ValueError('to the log')"
    ),
    "closed-streams": Subject(
        "import os\nos.closerange(0, 3); f = os.open('mine', os.O_WRONLY | os.O_CREAT)\n"
        "os.write(f, b'%d' % f); raise SystemExit(5)"
    ),
    "terminal": Subject(
        "import os, sys\nprint([os.isatty(n) for n in range(3)], sys.stdout.line_buffering)\n"
        "for ask in (os.get_terminal_size, lambda: os.ttyname(0), lambda: os.tcgetpgrp(0)):\n"
        "    try: print(ask())\n    except OSError as e: print(e.errno)"
    ),
    "stdin-shared": Subject(
        "import os, subprocess, sys\nprint(os.read(0, 2))\n"
        "print(subprocess.run([sys.executable, '-c', 'print(input(), 1)'], capture_output=True).stdout)\nprint(os.read(0, 9))",
        stdin=b"abcdef\n",
    ),
    "session": Subject(
        "import os\nprint(os.getsid(0) == os.getsid(os.getppid()), os.getpgrp() == os.getpgid(os.getppid()))\n"
        "print(os.getpriority(os.PRIO_PROCESS, 0), len(os.sched_getaffinity(0)), os.sched_getscheduler(0), os.getuid(), os.getgroups())"
    ),
    "environment": Subject(
        "import os\nprint(sorted(k for k in os.environ if not k.startswith('COMPILESCOPE_') and k != 'PYTHONPATH'))\n"
        "print(os.environ['PYTHONHASHSEED'], b'PYTHONHASHSEED' in os.environb)"
    ),
    "all-modules": Subject(
        "import sys\nprint(sorted(m for m in sys.modules if m not in ('compilescope_boot', 'atexit')))"
    ),
    "interpreter": Subject(
        "import site, sys\nprint(sys.flags, sys.warnoptions, sys._xoptions, sys.getswitchinterval(), sys.getdlopenflags())\n"
        "print(site.ENABLE_USER_SITE, sys.prefix == sys.base_prefix, sys.path_hooks, sys.gettrace(), sys.getprofile())\n"
        "print(__name__, __file__, __spec__, __loader__.__class__.__name__, sorted(globals()))"
    ),
    "depth": Subject(
        "import sys\nn = 0\ndef deep():\n    global n; n += 1; deep()\n"
        "try: deep()\nexcept RecursionError as e: print(n, e)\n"
        "sys.setrecursionlimit(300)\ndef more(k): return k and more(k - 1)\nprint(more(290))\nmore(300)"
    ),
    "random": Subject(
        "import hashlib, random\nrandom.seed(7); print(random.random(), random.sample(range(99), 3))\n"
        "print(hashlib.sha256(repr(random.getstate()).encode()).hexdigest(), hash(('a', 1)))"
    ),
    "locale": Subject(
        "import locale, time\nprint(locale.setlocale(locale.LC_ALL), locale.getpreferredencoding())\n"
        "print(locale.setlocale(locale.LC_ALL, ''), time.tzname)",
        environment={"LC_ALL": "C.UTF-8", "TZ": "Asia/Tokyo"},
    ),
    "setprofile": Subject(
        "import sys, threading\nseen = []\ndef prof(f, e, a): seen.append((f.f_code.co_name, e, getattr(a, '__name__', None)))\n"
        "def work(): len([])\nthreading.setprofile(prof); t = threading.Thread(target=work); t.start(); t.join()\n"
        "threading.setprofile(None); print([s for s in seen if s[0] == 'work'])\n"
        "seen.clear(); sys.setprofile(prof); work(); sys.setprofile(None); print(seen)"
    ),
    "endings": Subject(
        "import atexit, multiprocessing.util, threading, weakref\nclass A: pass\na = A()\n"
        "weakref.finalize(a, print, 'finalized'); multiprocessing.util.Finalize(None, print, ('mp',), exitpriority=1)\n"
        "atexit.register(print, 'atexit'); t = threading.Thread(target=print, args=('thread',)); t.start()\n"
        "class B:\n    def __del__(self): print('deleted')\nb = B()"
    ),
    "all-stacks": Subject(
        "import faulthandler, sys, traceback\ndef f():\n    faulthandler.dump_traceback(all_threads=True); traceback.print_stack()\n"
        "    print(len(sys._current_frames()))\nf()"
    ),
    "exit-in-handler": Subject(
        "import atexit, os, signal, sys\natexit.register(print, 'end')\n"
        "signal.signal(signal.SIGTERM, lambda n, f: sys.exit(12)); os.kill(os.getpid(), signal.SIGTERM); print('not here')"
    ),
    "tempfiles": Subject(
        "import os, tempfile\nwith tempfile.TemporaryDirectory(dir='.') as d: print(os.listdir(d))\n"
        "with tempfile.TemporaryFile(dir='.') as f: print(f.fileno(), os.listdir('.'))"
    ),
    "dup2": Subject(
        "import os\nd = os.open('mine', os.O_WRONLY | os.O_CREAT, 0o640)\n"
        "for n in range(3, 40): n != d and os.dup2(d, n)\nos.write(39, b'12 bytes...\\n'); 1 / 0"
    ),
    "module-of-python": Subject("", words=("-m", "json.tool"), stdin=b'{"a": [1, 2]}'),
    "module-missing": Subject("", words=("-m", "no_such_module")),
    "zipapp": Subject(
        "",
        words=("app.pyz", "x"),
        files={
            "app.pyz": _zipped(
                {
                    "__main__.py": "import sys, other\nprint(sys.argv[1:], other.__file__[-16:], __package__)\n1 / 0\n",
                    "other.py": "",
                }
            )
        },
    ),
    "forkserver-dies": Subject(
        "import multiprocessing as mp, os, signal\ndef f(): os.kill(os.getpid(), signal.SIGKILL)\n"
        "if __name__ == '__main__':\n    for how in ('fork', 'spawn', 'forkserver'):\n"
        "        p = mp.get_context(how).Process(target=f); p.start(); p.join(); print(how, p.exitcode)"
    ),
    "shared-memory": Subject(
        "from multiprocessing import Value, Process, shared_memory\n"
        "def f(v): v.value += 1\nif __name__ == '__main__':\n    v = Value('i', 1); p = Process(target=f, args=(v,)); p.start(); p.join(); print(v.value)\n"
        "    s = shared_memory.SharedMemory(create=True, size=8); s.buf[:2] = b'ab'; print(bytes(s.buf[:2])); s.close(); s.unlink()"
    ),
    "asyncio-processes": Subject(
        "import asyncio, sys\nasync def main():\n"
        "    p = await asyncio.create_subprocess_exec(sys.executable, '-c', 'print(input()[::-1])', stdin=-1, stdout=-1)\n"
        "    print(await p.communicate(b'abc\\n'), p.returncode)\n"
        "    print(await asyncio.gather(*(asyncio.to_thread(pow, n, 2) for n in range(4))))\nasyncio.run(main(), debug=True)"
    ),
    "chroot-like": Subject(
        "import os\nos.mkdir('jail'); os.chdir('jail'); os.environ.clear(); print(os.listdir('.'), dict(os.environ))\n"
        "import this_is_not_here"
    ),
}
PLAIN.update(MORE)

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
    "t-descriptors-and-children": Subject(
        _LOOK + _COMPILED + "look()\nfor n in range(9): f(torch.ones(n + 2), n)\nlook()"
    ),
    "t-values": _torch("for n in range(4): print(f(torch.ones(n + 2), n).sum().item())"),
    "t-descriptors": _torch(
        "import os\nf(torch.ones(2)); os.closerange(3, 256)\n"
        "out = open('results.csv', 'w'); out.write('a,b\\n1,2\\n3,4\\n'); out.flush()\n"
        "for n in range(5): f(torch.ones(3 + n), n)\nprint(out.fileno())"
    ),
    "t-dup2": _torch(
        "import os\nf(torch.ones(2)); d = os.open('mine', os.O_WRONLY | os.O_CREAT)\n"
        "for n in range(3, 30): n != d and os.dup2(d, n)\n"
        "for n in range(4): f(torch.ones(3 + n), n)\nos.write(d, b'12 bytes..\\n')"
    ),
    "t-limits": _torch(
        "import os, resource\nf(torch.ones(2))\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (60, 60)); kept = []\n"
        "try:\n    while True: kept.append(os.open('/dev/null', 0))\n"
        "except OSError as e: print(e.errno)\n"
        "for n in range(3): print(f(torch.ones(3), n).sum().item())"
    ),
    "t-fork": _torch(
        "import os\nf(torch.ones(2)); pid = os.fork()\nprint(f(torch.ones(3), 2).sum().item(), flush=True)\n"
        "if pid: os.waitpid(pid, 0)\nelse: os._exit(0)"
    ),
    "t-daemon": _torch(
        "import os, time\nif os.fork(): os.wait(); os._exit(0)\nos.setsid()\nos.closerange(3, 256)\n"
        "out = open('d', 'w'); f(torch.ones(2), 3); out.write('x'); out.close(); os._exit(0)"
    ),
    "t-spawn": Subject(
        "import torch, torch.multiprocessing as mp\n"
        "def work(n, q): q.put(torch.compile(lambda x: x + n, backend='eager')(torch.ones(2)).tolist())\n"
        "if __name__ == '__main__':\n    c = mp.get_context('spawn'); q = c.Queue()\n"
        "    p = c.Process(target=work, args=(3, q)); p.start(); print(q.get()); p.join(); print(p.exitcode)"
    ),
    "t-loader": Subject(
        "import torch\nfrom torch.utils.data import DataLoader\n"
        "g = torch.compile(lambda x: x * 2, backend='eager')\n"
        "if __name__ == '__main__':\n"
        "    for b in DataLoader(list(range(6)), batch_size=3, num_workers=2): print(g(b).tolist())"
    ),
    "t-threads": _torch(
        "import threading\nout = []\n"
        "ts = [threading.Thread(target=lambda n=n: out.append(f(torch.ones(n + 2), n).sum().item()))"
        " for n in range(3)]\n"
        "for t in ts: t.start(); t.join()\nprint(out)"
    ),
    "t-alarm": _torch(
        "import logging, signal, time\nlogging.disable()  # torch says where it was: that is chance.\n"
        # So is whether torch swallows what is raised while it compiles: each alarm is counted.
        "class Late(Exception): pass\ngot = sent = 0\n"
        "def h(n, fr):\n    global sent\n    sent = 1\n    raise Late\n"
        "signal.signal(signal.SIGALRM, h)\n"
        "for n in range(40):\n    torch._dynamo.reset(); sent = 0\n"
        "    try:\n        signal.setitimer(signal.ITIMER_REAL, 0.001 * (n % 9 + 1))\n"
        "        for m in range(3): f(torch.ones(m + 2), m)\n"
        "        while not sent: time.sleep(0.01)\n"
        "    except Exception: pass\n    got += sent\nprint(got)"
    ),
    "t-uncaught": _torch("f(torch.ones(2))\ndef g(): raise KeyError('k')\ng()"),
    "t-compile-error": Subject(
        "import torch\n@torch.compile(backend='eager', fullgraph=True)\ndef g(x):\n"
        "    print('in the way')\n    return x\ntry: g(torch.ones(2))\n"
        "except Exception as e: print(type(e).__name__, str(e)[:60])"
    ),
    "t-settrace": _torch(
        "import sys\nseen = set()\ndef tr(fr, e, a):\n"
        "    if fr.f_code.co_filename == __file__: seen.add((fr.f_code.co_name, e))\n    return tr\n"
        "f(torch.ones(2)); sys.settrace(tr); f(torch.ones(2)); sys.settrace(None); print(sorted(seen))"
    ),
    "t-warnings": _torch(
        "import warnings\nwarnings.simplefilter('error')\nprint(f(torch.ones(3)).sum().item())\nwarnings.warn('x')"
    ),
    "t-recursion": _torch(
        "import sys\nf(torch.ones(2))\ndef deep(n): return 1 + deep(n + 1)\n"
        "try: deep(0)\nexcept RecursionError as e: print(e)\nprint(f(torch.ones(3)).sum().item())"
    ),
    "t-save": _torch(
        "torch.save({'a': f(torch.ones(2))}, 'x.pt'); print(torch.load('x.pt')['a'].tolist())"
    ),
    "t-pickle": _torch(
        "import pickle\nt = f(torch.ones(2))\nprint(vars(t), type(t), pickle.loads(pickle.dumps(t)))"
    ),
    "t-random": _torch(
        "torch.manual_seed(3)\nprint(f(torch.rand(4)).tolist(), torch.rand(2).tolist())"
    ),
    "t-module": Subject(
        "import torch\nm = torch.nn.Linear(3, 2)\nwith torch.no_grad(): [p.fill_(0.5) for p in m.parameters()]\n"
        "c = torch.compile(m, backend='aot_eager')\nc(torch.ones(2, 3)).sum().backward()\nprint(m.weight.grad)"
    ),
    "t-counters": _torch(
        "from torch._dynamo.utils import counters\nfor n in range(3): f(torch.ones(n + 2), n)\n"
        "print(sorted((k, sum(v.values())) for k, v in counters.items()))"
    ),
    "t-explain": Subject(
        "import torch\ndef g(x):\n    torch._dynamo.graph_break()\n    return x + 1\n"
        "e = torch._dynamo.explain(g)(torch.ones(2)); print(e.graph_count, e.graph_break_count)"
    ),
    "t-own-backend": Subject(
        "import torch\ndef b(gm, inputs):\n    print(len(list(gm.graph.nodes)), len(inputs)); return gm\n"
        "print(torch.compile(lambda x: x.sin() + 1, backend=b)(torch.zeros(2)).tolist())"
    ),
    "t-backend-raises": Subject(
        "import torch\ndef b(gm, inputs): raise ValueError('mine')\n"
        "try: torch.compile(lambda x: x + 1, backend=b)(torch.ones(2))\n"
        "except Exception as e: print(type(e).__name__, 'mine' in str(e))"
    ),
    "t-own-msgspec": _torch(
        "f(torch.ones(2))\nimport msgspec\nprint(msgspec.mine)\nf(torch.ones(3))",
        files={"msgspec.py": "mine = 1\nprint('imported')\n"},
    ),
    "t-own-msgspec-first": Subject(
        "import msgspec, sys\n"
        + _COMPILED
        + "f(torch.ones(2)); print(sys.modules['msgspec'].mine)\n1 / 0",
        files={"msgspec.py": "mine = 1\nprint('imported')\n"},
    ),
    "t-no-extensions": _torch(
        "print(f(torch.ones(3)).sum().item())", environment={"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    ),
    "t-metadata": _torch(
        "from importlib.metadata import entry_points\nf(torch.ones(2))\n"
        "print([e.name for e in entry_points(group='torch.backends')])"
    ),
    "t-import-fails": Subject(
        "import sys\nsys.modules['torch._C'] = None\ntry: import torch\n"
        "except BaseException as e: print(type(e).__name__)"
    ),
    "t-late-exit": _torch(
        "import atexit\natexit.register(lambda: print('last', flush=True))\nf(torch.ones(2)); raise SystemExit(9)"
    ),
    "t-asyncio": _torch(
        "import asyncio\nasync def main():\n"
        "    print((await asyncio.to_thread(f, torch.ones(2))).tolist())\nasyncio.run(main())"
    ),
    "t-umask": _torch("import os\nos.umask(0o077); f(torch.ones(2)); open('x', 'w').close()"),
    "t-deleted-folder": _torch(
        "import os\nos.mkdir('d'); os.chdir('d'); os.rmdir('../d')\nprint(f(torch.ones(3)).sum().item())"
    ),
    "t-gc": _torch("import gc\nf(torch.ones(2)); gc.collect(); gc.freeze(); print(gc.garbage)"),
    "t-weakref": _torch(
        "import gc, weakref\nclass M(torch.nn.Module):\n    def forward(self, x): return x + 1\n"
        "m = M(); c = torch.compile(m, backend='eager'); c(torch.ones(2)); r = weakref.ref(m)\n"
        "torch._dynamo.reset(); del m, c; gc.collect(); print(r() is None)"
    ),
}
TORCH.update(
    {
        "t-file-size": _torch(
            "import resource, signal\nsignal.signal(signal.SIGXFSZ, signal.SIG_DFL)\n"
            f"f(torch.ones(2)); {_NO_BYTECODE}resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))\n"
            "for n in range(5): print(f(torch.ones(3 + n), n).sum().item())\nopen('x', 'w').write('1' * 64)"
        ),
        "t-closing-thread": _torch(
            "import os, threading\nf(torch.ones(2)); going = True; mine = os.open('mine', os.O_RDWR | os.O_CREAT)\n"
            "def work():\n"
            "    while going:\n"
            "        for n in range(mine + 1, mine + 6):\n"
            "            try: os.dup2(mine, n); os.close(n)\n"
            "            except OSError: pass\n"  # EBUSY: dup2 met an open() of the other thread
            "t = threading.Thread(target=work); t.start(); failed = 0\n"
            "for n in range(12):\n"
            "    torch._dynamo.reset()\n"
            "    try: f(torch.ones(3 + n), n)\n"
            "    except OSError: failed += 1\n"
            "going = False; t.join(); print(os.fstat(mine).st_size)"
        ),
        "t-signals-and-threads": _torch(
            "import signal, threading\ngot = []\nsignal.signal(signal.SIGUSR1, lambda n, fr: got.append(n))\n"
            "main = threading.main_thread().ident\n"
            "for n in range(4):\n"
            "    t = threading.Thread(target=signal.pthread_kill, args=(main, signal.SIGUSR1))\n"
            "    t.start(); f(torch.ones(n + 2), n); t.join()\n"
            "print(len(got))"
        ),
        "t-compile-in-threads": _torch(
            "import threading\nout = {}\n"
            "def work(n): out[n] = torch.compile(lambda x: x * n + 1, backend='eager')(torch.ones(n + 1)).tolist()\n"
            "ts = [threading.Thread(target=work, args=(n,)) for n in range(4)]\n"
            "[t.start() for t in ts]; [t.join() for t in ts]; print(sorted(out.items()))"
        ),
        "t-fork-pool": _torch(
            "import multiprocessing as mp\ndef g(n): return f(torch.ones(2), n).tolist()\n"
            "if __name__ == '__main__':\n    torch.set_num_threads(1)\n"
            "    with mp.get_context('fork').Pool(2) as p: print(p.map(g, range(3)))"
        ),
        "t-exec": _torch(
            "import os, sys\nf(torch.ones(2)); os.execv(sys.executable, [sys.executable, '-c', 'import os; print(sorted(map(int, os.listdir(\"/proc/self/fd\")))[:4])'])"
        ),
        "t-segfault": _torch(
            "import ctypes\nprint(f(torch.ones(2)).tolist(), flush=True); ctypes.string_at(0)"
        ),
        "t-os-exit": _torch(
            "import os\nprint(f(torch.ones(2)).tolist(), flush=True); os._exit(11)"
        ),
        "t-streams": _torch(
            "import random\nrandom.seed(1); torch.manual_seed(5); g = torch.Generator().manual_seed(2)\n"
            "for n in range(5): print(f(torch.rand(n + 2), n).tolist(), random.random(), torch.rand(1, generator=g).item())\n"
            "print(torch.random.get_rng_state().sum().item(), torch.initial_seed())"
        ),
        "t-reset-loop": _torch(
            "for n in range(6):\n    torch._dynamo.reset(); print(f(torch.ones(n + 2), n).tolist())"
        ),
        "t-gloo": _torch(
            "import torch.distributed as dist\nfrom torch.nn.parallel import DistributedDataParallel as DDP\n"
            "dist.init_process_group('gloo', store=dist.HashStore(), rank=0, world_size=1)\n"
            "m = torch.nn.Linear(2, 1)\nwith torch.no_grad(): [p.fill_(0.25) for p in m.parameters()]\n"
            "c = torch.compile(DDP(m), backend='aot_eager'); c(torch.ones(3, 2)).sum().backward(); print(m.weight.grad.tolist())\n"
            "dist.destroy_process_group()"
        ),
        "t-autograd-function": Subject(
            "import torch\nclass Twice(torch.autograd.Function):\n"
            "    @staticmethod\n    def forward(ctx, x): ctx.save_for_backward(x); return x * 2\n"
            "    @staticmethod\n    def backward(ctx, g): return g * 3\n"
            "x = torch.ones(3, requires_grad=True)\ntorch.compile(lambda x: Twice.apply(x).sin().sum(), backend='aot_eager')(x).backward(); print(x.grad)"
        ),
        "t-stances": _torch(
            "for stance in ('default', 'force_eager', 'eager_on_recompile'):\n"
            "    with torch.compiler.set_stance(stance): print(f(torch.ones(2), 1).tolist(), f(torch.ones(5, 2), 1).tolist())\n"
            "try:\n    with torch.compiler.set_stance('fail_on_recompile'): f(torch.ones(3, dtype=torch.int32), 7)\n"
            "except Exception as e: print(type(e).__name__)"
        ),
        "t-logs": _torch(
            "torch._logging.set_logs(graph_breaks=True, recompiles=True, graph=True)\nfor n in range(3): f(torch.ones(n + 2), n)"
        ),
        "t-profile": _torch(
            "import sys\nf(torch.ones(2)); seen = []\n"
            "sys.setprofile(lambda fr, e, a: seen.append((fr.f_code.co_name, e)) if fr.f_code.co_filename == __file__ else None)\n"
            "f(torch.ones(2)); sys.setprofile(None); print(seen)"
        ),
        "t-limit": _torch(
            "torch._dynamo.config.recompile_limit = 3\nfor n in range(6): print(f(torch.ones(2), float(n)).tolist())"
        ),
        "t-modules-seen": _torch(
            "import sys, threading, signal\nf(torch.ones(2))\n"
            "ours = ('compilescope', 'msgspec'); print([m.__class__.__name__ for m in sys.meta_path if 'Import' in m.__class__.__name__][1:])\n"
            "print([t.name for t in threading.enumerate()], signal.getsignal(signal.SIGXFSZ), sys.excepthook is sys.__excepthook__, sys.path[1:] == [p for p in sys.path[1:] if 'boot' not in p])"
        ),
        "t-inductor": Subject(
            "import torch\ntorch.manual_seed(0); m = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())\n"
            "c = torch.compile(m); print(c(torch.ones(2, 4)).tolist()); c(torch.ones(3, 4)).sum().backward(); print(m[0].bias.grad)",
            environment={"TORCHINDUCTOR_COMPILE_THREADS": "1"},
        ),
    }
)
PLAIN.update(unusual.PLAIN)
TORCH.update(unusual.TORCH)
PROGRAMS = {**PLAIN, **TORCH}
