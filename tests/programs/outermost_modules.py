"""Prints what Dynamo does with each model here: `written` with torch.compile(model), or `auto`."""

import copy
import json
import sys
import threading
import traceback

import torch
import torch._dynamo
from torch import nn
from torch._dynamo.utils import counters

if sys.argv[1] == "auto":
    from compilescope.instrument.torchapi.autocompile import compile_modules

    compile_modules(("*",), "eager")


def compiled(module):
    return torch.compile(module, backend="eager") if sys.argv[1] == "written" else module


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(20, 8)
        self.lstm = nn.LSTM(8, 16, batch_first=True)
        self.out = nn.Linear(16, 5)

    def forward(self, x):
        h, _ = self.lstm(self.emb(x))
        return self.out(torch.relu(h))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 2, 3)
        self.norm = nn.BatchNorm2d(2)
        self.out = nn.Linear(72, 3)

    def forward(self, x):
        return self.out(self.norm(self.conv(x)).relu().flatten(1))


class Block(nn.Module):
    def __init__(self, speaks=False):
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.speaks = speaks

    def forward(self, x):
        if self.speaks:
            torch._dynamo.graph_break()
        return self.linear(x).relu()


class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block(), Block(speaks=True), Block()])

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


class Aside(nn.Module):
    """The middle runs with Dynamo off."""

    def __init__(self):
        super().__init__()
        self.first, self.second = Block(), Block()

    @torch._dynamo.disable
    def middle(self, x):
        return self.second(x)

    def forward(self, x):
        return self.middle(self.first(x)) + 1


class Calls(Block):
    def __call__(self, x):
        return super().__call__(x * 2) + 1


class CallsFirst(Block):
    def __call__(self, x):
        return super().__call__(x.cos())


class CallsAgain(CallsFirst):
    def __call__(self, x):
        return super().__call__(x - 1) * 3


class OnlyCalls(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Block()

    def __call__(self, x):
        return self.inner(x).sin()


class Fails(nn.Module):
    def forward(self, x):
        raise ValueError("my own mistake")


def run_recurrent():
    model = compiled(Tagger())
    for length in (6, 7, 8):
        model(torch.zeros(4, length, dtype=torch.long))


def run_train_and_eval():
    net = Net()
    model = compiled(net)
    for training in (True, False, True):
        net.train(training)
        model(torch.ones(2, 1, 8, 8)).sum().backward()


def run_sizes():
    model = compiled(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)))
    for rows in (2, 3, 4):
        model(torch.ones(rows, 4))


def run_two_of_torchs_own():
    first, second = compiled(nn.Linear(4, 4)), compiled(nn.Linear(4, 3))
    second(first(torch.ones(2, 4)))


def run_two_of_one_class():
    for model in (compiled(Block()), compiled(Block())):
        model(torch.ones(2, 4))


def run_nested():
    model = compiled(Outer())
    model(torch.ones(2, 4))


def run_with_dynamo_off_in_the_middle():
    model = compiled(Aside())
    model(torch.ones(2, 4))
    model(torch.ones(2, 4))


def run_inside_a_compiled_function():
    block = Block(speaks=True)

    @torch.compile(backend="eager")
    def step(x):
        return block(x) + 1

    step(torch.ones(2, 4))


def run_own_call():
    model = compiled(Calls())
    model(torch.ones(2, 4))
    model(torch.ones(3, 4))


def run_own_call_of_parents():
    model = compiled(CallsAgain())
    model(torch.ones(2, 4))


def run_own_call_alone():
    model = compiled(OnlyCalls())
    model(torch.ones(2, 4))


def run_own_call_inside():
    model = compiled(nn.Sequential(Calls(), OnlyCalls()))
    model(torch.ones(2, 4))
    model(torch.ones(2, 4))


def run_functional_call():
    block = Block()
    state = {name: value.detach() * 2 for name, value in block.named_parameters()}
    model = compiled(block)
    torch.func.functional_call(model, state, (torch.ones(2, 4),))


def run_with_hooks():
    outer = Outer()
    outer.register_forward_hook(lambda module, args, result: result + 1)
    outer.blocks[0].register_forward_pre_hook(lambda module, args: (args[0] * 2,))
    model = compiled(outer)
    model(torch.ones(2, 4))
    model(torch.ones(2, 4))


def run_lazy():
    model = compiled(nn.Sequential(nn.LazyLinear(4), nn.ReLU()))
    model(torch.ones(2, 4))
    alone = compiled(nn.LazyLinear(4))
    alone(torch.ones(2, 4))
    alone(torch.ones(2, 4))


def run_copied():
    block = Block()
    compiled(block)(torch.ones(2, 4))
    compiled(copy.deepcopy(block))(torch.ones(2, 4))


def run_in_threads():
    model = compiled(Outer())
    # One after the other: how often threads that compile at once do so is up to the machine.
    for _ in range(4):
        thread = threading.Thread(target=model, args=(torch.ones(2, 4),))
        thread.start()
        thread.join()


def run_parts_alone():
    outer = Outer()
    compiled(outer)(torch.ones(2, 4))
    compiled(outer.blocks[0])(torch.ones(2, 4))


def run_failing():
    model = compiled(Fails())
    try:
        model(torch.ones(2))
    except ValueError as error:
        trace = traceback.format_exception(error)
        assert not any("compilescope" in line for line in trace), trace


def seen_of(run):
    """Graphs, breaks, and the name and number of each compilation."""
    torch._dynamo.reset()
    counters.clear()
    compilations = []

    def note(args):
        compilations.append(str(args.compile_id))

    torch._dynamo.callback.on_compile_start(note)
    try:
        run()
    finally:
        torch._dynamo.callback.callback_handler.remove_start_callback(note)
    return {
        "compiled": sum(each.endswith("/0") for each in compilations),
        "recompiled": sum(not each.endswith("/0") for each in compilations),
        "stats": dict(counters["stats"]),
        "frames": dict(counters["frames"]),
        "breaks": _kinds(counters["graph_break"]),
        "unsupported": _kinds(counters["unimplemented"]),
    }


def _kinds(found):
    return sorted((words.partition("\n")[0], count) for words, count in found.items())


runs = {name[4:]: run for name, run in list(globals().items()) if name.startswith("run_")}
print(json.dumps({name: seen_of(run) for name, run in runs.items()}))
