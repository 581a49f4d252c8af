"""The programs that each source fix is tried on; and why some fixes have none."""

from __future__ import annotations

from fixes.properties.proposed import Case


def _program(lines: str) -> str:
    return f"import torch\n\n\n{lines.strip()}\n"


_CAUGHT = """try:
        torch.compile(f, backend="eager")(*given)
    except ValueError:
        pass"""
_COMPILED = 'g = torch.compile(f, backend="eager")'
_THREE_TIMES = """g = torch.compile(f, backend="eager")
    for _ in range(3):
        g(*given)"""

CASES: tuple[Case, ...] = (
    Case("where-for-if", 0),
    Case("where-for-if", 2, ("whole:float", "still:float")),
    Case(
        "where-for-if",
        _program("""
def f(x, scale):
    if scale.sum() > 0:
        x = x * scale
    return x + 1
"""),
        ("whole:any", "one:any"),
    ),
    Case(
        "where-for-if",
        _program("""
def f(x, y):
    if any(each.abs().max() > 2 for each in (x, y)):
        y = y * 2
    return y + 1
"""),
        ("whole:any", "whole:any"),
    ),
    Case(
        "where-for-if",
        _program("""
def f(x, y):
    if x.sum() > 0:
        parts = [x, y * 2]
    else:
        parts = [x + 1, y]
    return torch.cat(parts)
"""),
        ("whole:any", "whole:any"),
    ),
    Case(
        "where-for-if",
        _program("""
def f(x):
    peak = x.abs().max().item()
    if peak > 0.7:
        x = x * peak
    return x * 3
"""),
        ("whole:any",),
    ),
    Case(
        "where-for-if",
        _program("""
def f(x):
    spread = x.std().item()
    if spread < 0.5:
        spread = 1.0
    return x * spread
"""),
        ("whole:float",),
    ),
    Case(
        "where-for-if",
        _program("""
def f(x, y):
    parts = [x + 1, y * 2]
    if x.sum() > 0:
        half = y.mean() * 0.5
        parts = [p * half for p in parts]
    return torch.cat(parts)
"""),
        ("whole:float", "whole:float"),
    ),
    Case(
        "where-for-if",
        _program("""
def f(x, y):
    total = y.sum()
    loss = (x * y).sum()
    if total == 0:
        loss = loss * 0.5
    else:
        loss = loss / total
    return loss
"""),
        ("whole:float", "whole:float"),
    ),
    Case(
        "where-for-if",
        _program("""
def f(x, y):
    z = y * 2
    if x.min() > 0:
        z = x.log() + (x + y.abs()).sqrt()
    return z
"""),
        ("whole:float", "whole:float"),
    ),
    Case(
        "where-for-conditional",
        _program("""
def f(x, y):
    return x / y.sum() if y.sum() > 0 else x * 2
"""),
        ("whole:float", "whole:float"),
    ),
    Case("where-for-return", 0),
    Case(
        "where-for-return",
        _program("""
def f(x, y):
    total = y.sum()
    if total <= 0:
        return x * 2
    return x.div(total)
"""),
        ("whole:float", "whole:float"),
    ),
    Case("where-for-return", 1, ("any", "any")),
    Case("where-for-return", 2),
    Case(
        "where-for-return",
        _program("""
def f(x, y):
    if (x > y).any():
        return x * y
    return x - y
"""),
        ("any", "any"),
    ),
    Case("where-for-conditional", 0, ("any", "any")),
    Case("where-for-conditional", 1),
    Case(
        "where-for-conditional",
        _program("""
def f(x, y):
    return y + 1 if all([x.isfinite().all(), not y.isnan().any()]) else y - 1
"""),
        ("any", "any"),
    ),
    Case(
        "where-for-conditional",
        _program("""
def f(x, y):
    return x + (1 - (2 if y.sum() > 0 else 3)) * y
"""),
        ("any", "any"),
    ),
    Case("cond-for-conditional", 0, ("whole:any", "whole:any"), draws=4),
    Case(
        "cond-for-if",
        _program("""
def f(x, y):
    if x.min() > 0:
        z = x.log().cumsum(0)
    else:
        z = y.sqrt() - 1
    return z * 2
"""),
        ("whole:any", "whole:any"),
        draws=4,
    ),
    Case(
        "cond-for-return",
        _program("""
def f(x):
    if x.abs().max() < 2:
        return x / 2
    y = torch.cumsum(x, -1)
    return y.sqrt()
"""),
        draws=4,
    ),
    Case("masked-store", 0),
    Case("masked-store", 1),
    Case(
        "masked-store",
        _program("""
def f(x, mask, by):
    y = x.clone()
    y[mask] *= by.sum()
    return y
"""),
        ("whole:any", "whole:bool", "one:any"),
    ),
    Case(
        "masked-store",
        _program("""
def f(x, mask):
    y = x + 0
    y[mask] = x[mask] * 3 - 1
    return y
"""),
        ("whole:any", "whole:bool"),
    ),
    Case(
        "where-for-if",
        _program("""
def f(x, y):
    x, y = x.detach().clone(), y.detach().clone()
    parts = [x, y, x]
    size = x.norm() + y.norm()
    if size > 2:
        for part in parts:
            part.mul_(y.mean() / (size + 1)).add_(2)
    return x + 1, size
"""),
        ("any", "any"),
        run=f"{_COMPILED}; g(*given); g(given[0] * 0 + 9, given[1])",
    ),
    Case(
        "where-for-if",
        _program("""
def f(x, y):
    x, low = x.detach().clone(), y.detach() - 1
    parts = (x, low)
    if x.sum() > y.sum():
        for part in parts:
            part /= x.abs().max() + 1
    else:
        for part in parts:
            part += 1
    return x, low
"""),
        ("whole:any", "whole:any"),
        run=f"{_COMPILED}; g(*given); g(given[0] * 0 + 9, given[1]); g(given[0] * 0 - 9, given[1])",
    ),
    Case(
        "run-when-empty",
        0,
        ("any", "index"),
        run="f(given[0], given[1]); f(given[0], torch.full_like(given[1], 2))",
    ),
    Case(
        "run-when-empty",
        _program("""
def f(x, mask):
    y = x + 0
    if mask.any():
        part = x[mask] * 2
        y[mask] = part - x[mask]
    return y * 2
"""),
        ("whole:any", "whole:bool"),
        run=f"{_COMPILED}; g(*given); g(given[0], torch.ones_like(given[1]))",
    ),
    Case(
        "run-when-empty",
        _program("""
def f(x, y):
    rows = torch.where(y > 1)[0]
    out = x.clone()
    if rows.numel() > 0:
        out.index_add_(0, rows, torch.exp(x[rows]) / 2)
    return out
"""),
        ("whole:any", "whole:any"),
        run=f"{_COMPILED}; g(*given); g(given[0], given[1] * 0 + 2)",
    ),
    Case(
        "run-when-empty",
        _program("""
def f(x, y, weight):
    mask = torch.nn.functional.one_hot((y > 1).long().flatten(), 3).t()
    out = torch.zeros_like(x)
    for k in (mask.sum(dim=-1) > 0).nonzero():
        k = k[0]
        rows = torch.where(mask[k])[0]
        out.index_add_(0, rows, x[rows] * weight[rows])
    return out
"""),
        ("vector:any", "vector:any", "vector:any"),
    ),
    Case(
        "run-when-empty",
        _program("""
def f(x, y):
    values, chosen = torch.topk(x, 2, dim=-1)
    chosen = chosen.flatten()
    out = torch.zeros_like(chosen, dtype=torch.float64)
    for k in chosen.unique().tolist():
        rows = torch.where(chosen == k)[0]
        out.index_add_(0, rows, out[rows] + 3)
    return out, values, y
"""),
        ("whole:any", "whole:any"),
    ),
    Case(
        "run-when-empty",
        _program("""
def f(x, weight):
    chosen = x.argmax(dim=0)
    out = chosen * 0 + weight.sum()
    for k in torch.unique(chosen):
        out[chosen == k] = out[chosen == k] * 2
    return out
"""),
        ("whole:any", "vector:any"),
    ),
    Case(
        "flag-when-empty",
        _program("""
def layer(x, picked, any_picked):
    x = x + 0
    if any_picked:
        idx = picked.nonzero(as_tuple=True)
        x[idx] = x[idx] * 2
    return x


def f(x, y):
    picked = y > 1
    any_picked = picked.sum().item() > 0
    x = layer(x, picked, any_picked)
    return layer(x, picked, any_picked)
"""),
        ("vector:any", "vector:any"),
        run=f"{_COMPILED}; g(*given); g(given[0], given[1] * 0 + 2)",
    ),
    Case(
        "one-more-row",
        _program("""
class Net(torch.nn.Module):
    def forward(self, x, y):
        out = x + 0
        idx = torch.where(y > 1)[0]
        if len(idx) > 0:
            part = x[idx].clamp(min=0)
            out[idx] = part * 2 - x[idx]
        return out


net = Net().eval()


def f(x, y):
    return net(x, y)
"""),
        ("whole:float", "whole:any"),
        run=f"{_COMPILED}; g(*given); g(given[0], given[1] * 0 + 2)",
    ),
    Case(
        "function-operator",
        _program("""
def filled(x, y):
    out = torch.zeros(x.shape, dtype=torch.float64).add(1)
    counts = y.long() * 2
    flat = torch.zeros_like(x, dtype=torch.long)
    for place in torch.nonzero(x):
        if place.sum() > 1:
            out[tuple(place)] = place.sum()
        flat += 1
    return out, counts.abs()


def f(x, y):
    out, counts = filled(x, y)
    return out * 2, counts + 1
"""),
        ("whole:bool", "whole:index"),
        draws=10,
    ),
    Case(
        "list-for-tensor",
        _program("""
def f(x, y):
    sizes = [each.unsqueeze(0).flatten(1).shape for each in (x, y)]
    shapes = torch.as_tensor(sizes)
    scale = x.double().mean()
    found = [scale.view(1)]
    start = 0
    for rows, columns in shapes:
        found.append(torch.linspace(0.5, columns - 0.5, columns) / (scale * columns))
        found.append(x.flatten()[start : start + rows * columns].view(rows, -1).double().sum(1))
        start += rows
    return torch.cat(found), shapes
"""),
        ("whole:any", "any"),
    ),
    Case(
        "number-for-size",
        _program("""
def f(x, y):
    counts = (x > 0).long().flatten()
    most = counts.sum()
    places = torch.arange(most) < counts.unsqueeze(-1)
    return y.new_zeros(2, most + 1), places, y[:most], torch.full((most, 2), 3)
"""),
        ("whole:any", "whole:any"),
    ),
    Case(
        "number-for-size",
        _program("""
def counted(x):
    most = x.long().amax().abs()
    return most, x.flatten()


def f(x, weight):
    if (x > 1).any().item():
        weight = weight * 2
    most, flat = counted(x)
    kept = flat.narrow(0, 0, most)
    return kept, weight, torch.zeros(2 * most, 2)
"""),
        ("whole:any", "whole:any"),
    ),
    Case("masked-reduction", 0),
    Case("masked-reduction", 1),
    Case("masked-reduction", 2),
    Case("masked-reduction", 3, ("any", "bool")),
    Case("masked-reduction", 4),
    Case(
        "masked-reduction",
        _program("""
def f(x, mask):
    return (~x[mask]).sum()
"""),
        ("whole:bool", "whole:bool"),
    ),
    Case(
        "masked-reduction",
        _program("""
def f(x, mask):
    picked = x.masked_select(mask)
    return picked.sum() / picked.numel() + picked.prod()
"""),
        ("any", "bool"),
    ),
    Case(
        "masked-reduction",
        _program("""
def f(x, y):
    return (torch.sqrt(x[y > 1]) * y[y > 1]).mean()
"""),
        ("whole:any", "whole:any"),
    ),
    Case("masked-loop", 0, ("any", "one:any"), call="settle"),
    Case("masked-loop", 1),
    Case("tensor-logic", 0, ("any", "any")),
    Case(
        "running-best",
        _program("""
def f(x, y):
    each_way = [x + y, x - y, y + x]
    best = max(each_way, key=lambda t: t.sum())
    return best * 2
"""),
        ("still:any", "still:any"),
    ),
    Case("tensor-for-number", 0),
    Case("tensor-for-number", 1),
    Case(
        "tensor-for-number",
        _program("""
def f(x, y):
    low = y.min().item()
    return (x - low) * 2
"""),
        ("any", "any"),
    ),
    Case(
        "tensor-for-number",
        _program("""
def peak(y):
    return y.abs().max().item()


def f(x, y):
    high = peak(y)
    return x - 2 * high
"""),
        ("any", "any"),
    ),
    Case("unbind-for-tolist", 0, ("any", "vector:any")),
    Case("unbind-for-tolist", 1, ("any", "vector:any")),
    Case("converted-after", 0),
    Case("converted-after", 1, ("any", "any")),
    Case("number-for-output", 0, ("any",)),
    Case("async-assert", 0),
    Case("async-assert", 2, ("vector:any",)),
    Case("async-assert", 3, ("any", "any")),
    Case("clone-for-deepcopy", 0, ("still:any",)),
    Case("clone-for-deepcopy", 1, ("still:any",)),
    Case("requires-grad-after", 0, ("any",)),
    Case("leaf-for-grad-fn", 0),
    Case("functional-for-autograd", 0, ("float",)),
    Case("math-for-numpy", 0),
    Case("searchsorted-for-digitize", 0, ("still:float",)),
    Case("searchsorted-for-digitize", 1, ("still:float",)),
    Case("scipy-operator", 0),
    Case("grad-mode-inside", 0),
    Case("register-buffer", 0),
    Case("uniform-for-random", 0),
    Case("uniform-for-random", 1),
    Case("device-given", 0),
    Case("class-at-top", 0),
    Case("numpy-at-top", 0),
    Case("print-in-graph", 0),
    Case("print-while-eager", 0),
    Case("housekeeping-while-eager", 0),
    Case("bar-while-eager", 0),
    Case("nonstrict-part", 0),
    Case("explicit-break-removed", 0),
    Case("with-outside", 0, call="sample"),
    Case("value-from-outside", 0),
    Case("value-read-first", 0, ("whole:any", "whole:bool"), draws=4),
    Case("value-read-first", 1, ("any", "any"), call="Pooled()", draws=4),
    Case(
        "index-by-view",
        0,
        ("any", "any", "one:index"),
        run="f(given[0], given[1], given[2]); f(given[0], given[1], given[2] + 1)",
    ),
    Case("while-loop", 1, call="root", draws=3),
    Case("copy-method", 0),
    Case(
        "report-in-graph",
        _program("""
def f(x):
    loss = (x * 2).sum()
    if torch.isnan(loss):
        print("nan")
    return loss
"""),
    ),
    Case(
        "grad-mode-called",
        _program("""
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.quiet = torch.no_grad()

    def forward(self, x):
        with self.quiet:
            y = x * 2
        return y + x
"""),
        call="Net()",
    ),
    Case(
        "contiguous-argument",
        _program("""
@torch.compile(backend="eager")
def g(x):
    return (x * 2).sum(0)


def f(x):
    return g(x)
"""),
        ("float32",),
        run="f(given[0]); f(torch.ones(3, 3).t())",
    ),
    Case(
        "separate-argument",
        _program("""
@torch.compile(backend="eager")
def g(x, y):
    return x * y


def f(x, y):
    g(x, x)
    return g(x, y)
"""),
        ("whole:any", "whole:any"),
        run="f(given[0], given[1])",
    ),
    Case(
        "with-for-exit-stack",
        """
import contextlib
import torch


def f(x):
    with contextlib.ExitStack() as stack:
        stack.enter_context(torch.no_grad())
        y = x * 2
    return y + x
""",
    ),
    Case("warn-when-compiled", 0),
    Case(
        "pure-call-once",
        """
import hashlib
import torch


def f(x, name="first"):
    seed = int(hashlib.md5(name.encode()).hexdigest()[:4], 16)
    return x + seed
""",
    ),
    Case("import-at-top", 0),
    Case(
        "threshold-first",
        _program("""
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.drop = 0.0

    def forward(self, x):
        for _ in range(2):
            chance = torch.rand([])
            if self.training and (chance < self.drop):
                continue
            x = x * 2
        return x
"""),
        call="Net()",
    ),
    Case(
        "module-unscripted",
        _program("""
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.head = torch.jit.script(torch.nn.ReLU())

    def forward(self, x):
        return self.head(x) * 2
"""),
        call="Net()",
    ),
    Case(
        "log-outside",
        _program("""
def f(x):
    error = (x * 2 - 1).square()
    loss = error.mean()
    if x.ndim > 0:
        largest = error.max()
        print("loss", loss.item(), "largest", largest.item())
    return loss
"""),
    ),
    Case(
        "outside-of-compiled",
        _program("""
def f(x):
    if (x < -1).any():
        raise ValueError("too low")
    return (x + 1).sqrt() * 2
"""),
        run=_CAUGHT,
    ),
    Case(
        "outside-of-compiled",
        _program("""
def check(x, y):
    if x.sum() < y.sum():
        raise ValueError("too low")


def f(x, y):
    check(x, y)
    return x * y - 1
"""),
        ("any", "any"),
        run=_CAUGHT,
    ),
    Case(
        "outside-of-compiled",
        _program("""
def check(y):
    if y.isnan().any():
        raise ValueError("not a number")


def f(x):
    y = x.log()
    check(y)
    return y + 1
"""),
        run=_CAUGHT,
    ),
    Case(
        "default-outside",
        _program("""
def f(x, mask=None):
    if mask is None:
        mask = torch.zeros_like(x)
    return (x * mask).sum() + x


def both(x, mask):
    return f(x), f(x, mask)
"""),
        ("any", "any"),
        call="both",
        run="""g = torch.compile(f, backend="eager")
    with torch.no_grad():
        g(given[0]), g(*given)""",
    ),
    Case(
        "converted-after",
        _program("""
class Metric:
    def __init__(self):
        self.total = 0

    def update(self, value):
        self.total += value.sum().item()


metric = Metric()


def f(x):
    y = x + 1
    metric.update(y)
    return y * y


def counted(x):
    metric.total = 0
    return f(x), metric.total
"""),
        call="counted",
        run=_THREE_TIMES,
    ),
    Case(
        "append-outside",
        _program("""
log = []


def f(x):
    y = x * 2
    log.append(y.sum())
    return y + x


def logged(x):
    log.clear()
    return f(x), list(log)
"""),
        call="logged",
        run=_THREE_TIMES,
    ),
    Case(
        "append-outside",
        _program("""
class Log:
    def __init__(self):
        self.kept = []

    def keep(self, value):
        self.kept.append(value.detach())


log = Log()


def f(x):
    y = x * x
    log.keep(y)
    return y.sum() + 1


def logged(x):
    log.kept = []
    return f(x), log.kept
"""),
        call="logged",
        run=_THREE_TIMES,
    ),
    Case(
        "join-outside",
        _program("""
def f(x, past):
    y = x * 2
    return y + torch.stack(past).sum(0) * len(past)


def mixed(x):
    return f(x, [x, x + 1])
"""),
        ("whole:any",),
        call="mixed",
        run="""g = torch.compile(f, backend="eager")
    for n in range(1, 4):
        g(given[0], [given[0] + k for k in range(n)])""",
    ),
    Case(
        "join-as-it-grows",
        _program("""
def f(x, past):
    past.append(x * 2)
    return torch.cat(past).sum(0)


def grown(x):
    past = []
    return f(x, past), f(x + 1, past), f(x - 1, past), torch.cat(past)
"""),
        ("whole:any",),
        call="grown",
        run="""past = []
    g = torch.compile(f, backend="eager")
    for n in range(4):
        g(given[0] + n, past)""",
    ),
    Case(
        "append-outside",
        _program("""
seen = {}


def f(x, name):
    y = x * 2
    seen[name] = y.sum()
    return y + x


def noted(x):
    seen.clear()
    return f(x, "a"), dict(seen)
"""),
        call="noted",
        run="""g = torch.compile(f, backend="eager")
    for name in ("a", "b", "c"):
        g(given[0], name)""",
    ),
    Case(
        "number-outside",
        _program("""
def f(x, scale):
    if scale == 1.0:
        return x * 2
    size = round(scale, 1)
    return x * size + x / (scale + 1)


def scaled(x):
    return f(x, 1.0), f(x, 2.25)
"""),
        call="scaled",
        run="""g = torch.compile(f, backend="eager", dynamic=False)
    for scale in (1.0, 1.5, 2.25, 3.0):
        g(given[0], scale)""",
    ),
)

LEFT_OUT = {
    "compile-parts": "test_parts.py has functions of all shapes, and every line of each",
    "compile-modules": "it changes what is compiled, and no line of what runs",
    "disable-helper": "it changes what is compiled, and no line of what runs",
    "bool-for-comparison": "it changes how Dynamo sees a bool, and no value",
    "converted-argument": "it changes calls with values that the program itself makes",
    "mark-dynamic": "it adds a call that only Dynamo looks at",
    "mark-unbacked": "it adds a call that only Dynamo looks at",
    "no-grad-around": "it changes calls with values that the program itself makes",
    "tensor-argument": "it states that a number becomes a tensor",
    "tensor-argument-rounded": "it states that a number becomes a tensor",
    "tensor-learning-rate": "it changes how an optimizer is made and set, which take no tensor",
    "size-given": "its inputs fit each other: drawn by themselves they raise, before and after",
    "where-for-buffer": "what it changes are buffers of a module, which outlive the call",
    "torch-random": "it states that other random numbers are drawn",
}
"""Source fixes without a program, and why."""
