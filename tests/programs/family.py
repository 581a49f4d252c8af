"""A process and its children: each compiles a function of its own, but for those that must not."""

import json
import multiprocessing
import os
import subprocess
import sys

import torch

TORCHLESS = "import os; print(os.getpid())"
COMPILING = """
import os, torch
def in_subprocess(x):
    return x + 3
torch.compile(in_subprocess, backend="eager")(torch.ones(2))
print(os.getpid())
"""


def in_parent(x):
    return x - 1


def in_fork(x):
    return x + 1


def in_forked_worker(x):
    return x + 2


def in_spawned_worker(x):
    return x + 4


def compile_and_call(function):
    torch.compile(function, backend="eager")(torch.ones(2))


class Numbers(torch.utils.data.Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        return os.getpid()


def main():
    compile_and_call(in_parent)
    pids = {"in_parent": os.getpid()}
    pids["in_fork"] = child = os.fork()
    if child == 0:
        compile_and_call(in_fork)
        os._exit(0)
    os.waitpid(child, 0)
    methods = {"fork": in_forked_worker}
    if "spawn" in sys.argv:
        methods["spawn"] = in_spawned_worker
    for method, function in methods.items():
        context = multiprocessing.get_context(method)
        process = context.Process(target=compile_and_call, args=(function,))
        process.start()
        process.join()
        assert process.exitcode == 0
        pids[function.__name__] = process.pid
    loader = torch.utils.data.DataLoader(Numbers(), num_workers=2)
    loaders = {int(pid) for batch in loader for pid in batch}
    assert os.getpid() not in loaders
    say = [sys.executable, "-c"]
    pids["in_subprocess"] = int(subprocess.check_output([*say, COMPILING]))
    torchless = int(subprocess.check_output([*say, TORCHLESS]))
    print(json.dumps({"compiling": pids, "silent": [*loaders, torchless]}))


if __name__ == "__main__":
    main()
