"""Each family of operators against eager mode, in all dtypes, by the interpreter."""

from __future__ import annotations

import functools

import pytest

torch = pytest.importorskip("torch")

from torch.fx.experimental.proxy_tensor import make_fx  # noqa: E402

from compilescope.backends.mini.adapter import TAKEN_APART, CompiledIsland  # noqa: E402
from compilescope.backends.mini.builder import Untranslatable  # noqa: E402
from compilescope.backends.mini.translation import translate  # noqa: E402
from compilescope.instrument.torchapi.calls.operators import decompositions_for  # noqa: E402

pytestmark = pytest.mark.torch
F = torch.nn.functional
FLOATS = (torch.float32, torch.float64)
NUMBERS = (*FLOATS, torch.int64)
ALL = (*NUMBERS, torch.bool)


def _tensor(dtype, *shape):
    generator = torch.Generator().manual_seed(sum(shape) + 1)
    if dtype is torch.bool:
        return torch.rand(shape, generator=generator) > 0.5
    values = torch.randn(shape, generator=generator) * 3
    return values.round().long() if dtype is torch.int64 else values.to(dtype)


# name: (function of x and y, dtypes). x is [4, 6], y is [6].
CASES = {
    "add": (lambda x, y: x + y, ALL),
    "add scalar": (lambda x, y: x + 2, ALL),
    "add float": (lambda x, y: x + 0.5, ALL),
    "sub": (lambda x, y: x - 3 * y, NUMBERS),
    "rsub": (lambda x, y: 1 - x, NUMBERS),
    "mul": (lambda x, y: x * y, ALL),
    "div": (lambda x, y: x / (y * y + 1), NUMBERS),
    "div by int": (lambda x, y: x / 4, NUMBERS),
    "floor_div": (lambda x, y: torch.div(x, y.abs() + 1, rounding_mode="floor"), NUMBERS),
    "trunc_div": (lambda x, y: torch.div(x, -2, rounding_mode="trunc"), NUMBERS),
    "remainder": (lambda x, y: x % 3, NUMBERS),
    "fmod": (lambda x, y: torch.fmod(x, -3), NUMBERS),
    "pow": (lambda x, y: x**2 + x**3, NUMBERS),
    "pow float": (lambda x, y: x.abs() ** 1.5, FLOATS),
    "reciprocal": (lambda x, y: torch.reciprocal(x.abs() + 1), NUMBERS),
    "exp of int": (lambda x, y: torch.exp(x), ALL),
    "unary": (lambda x, y: torch.tanh(x) + torch.erf(x) + torch.sigmoid(x) + x.sin(), NUMBERS),
    "roots": (lambda x, y: torch.sqrt(x.abs()) + torch.rsqrt(x.abs() + 1), NUMBERS),
    "logs": (lambda x, y: x.abs().add(1).log() + x.abs().log1p() + x.abs().log2(), NUMBERS),
    "rounding": (lambda x, y: x.floor() + x.ceil() * 2 + x.round() * 4 + x.trunc(), NUMBERS),
    "sign": (lambda x, y: torch.sign(x), ALL),
    "extremes": (lambda x, y: torch.maximum(x, y) + torch.minimum(x, y), ALL),
    "clamp": (lambda x, y: x.clamp(-1, 2), NUMBERS),
    "compare": (lambda x, y: (x > y, x == y, x <= 1, x != 0), ALL),
    "logic": (lambda x, y: (torch.logical_and(x, y), torch.logical_not(x)), ALL),
    "bits": (lambda x, y: (x & y, x | y, x ^ y, ~x), (torch.int64, torch.bool)),
    "where": (lambda x, y: torch.where(x > 0, x, y), ALL),
    "where numbers": (lambda x, y: torch.where(x > 0, x, 0), NUMBERS),
    "masked_fill": (lambda x, y: x.masked_fill(x > 1, -1), NUMBERS),
    "isnan": (lambda x, y: (torch.isnan(x), torch.isinf(x), torch.isfinite(x)), ALL),
    "cast": (lambda x, y: (x.double(), x.float(), x.long(), x.bool()), ALL),
    "activations": (
        lambda x, y: F.gelu(x) + F.silu(x) + F.leaky_relu(x) + F.elu(x) + F.hardtanh(x),
        FLOATS,
    ),
    "gelu by tanh": (lambda x, y: F.gelu(x, approximate="tanh") + F.softplus(x), FLOATS),
    "sum": (lambda x, y: (x.sum(), x.sum(0), x.sum(-1, keepdim=True)), ALL),
    "mean": (lambda x, y: (x.mean(), x.mean(0), x.mean((0, 1), keepdim=True)), FLOATS),
    "var": (lambda x, y: (x.var(), x.std(1), x.var(0, correction=0)), FLOATS),
    "prod": (lambda x, y: (x.prod(), x.prod(1)), ALL),
    "amax": (lambda x, y: (x.amax(), x.amin(0), x.amax(-1, keepdim=True)), ALL),
    "max with place": (lambda x, y: (*x.max(1), x.argmin(0), x.argmax()), NUMBERS),
    "any": (lambda x, y: (x.any(), x.all(1), (x > 9).any(0)), ALL),
    "softmax": (lambda x, y: (F.softmax(x, -1), F.log_softmax(x, 0)), FLOATS),
    "logsumexp": (lambda x, y: torch.logsumexp(x, 1), FLOATS),
    "layer_norm": (lambda x, y: F.layer_norm(x, (6,), y, y), FLOATS),
    "matmul": (lambda x, y: (x @ x.t(), x @ y, y @ y), FLOATS),
    "addmm": (lambda x, y: torch.addmm(y[:4], x, x.t(), beta=0.5, alpha=2), FLOATS),
    "bmm": (lambda x, y: torch.bmm(x.reshape(2, 2, 6), x.reshape(2, 6, 2)), FLOATS),
    "views": (lambda x, y: (x.t(), x.reshape(2, 12), x.flatten()[3:20:2], x[None, :, 2]), ALL),
    "expand": (
        lambda x, y: y.expand(3, 6) | True if y.dtype is torch.bool else y.expand(3, 6),
        ALL,
    ),
    "squeeze": (lambda x, y: x.unsqueeze(1).squeeze(1).unsqueeze(-1), ALL),
    "split": (lambda x, y: (*x.split(4, 1), *x.unbind(0), *x.chunk(2)), ALL),
    "cat": (lambda x, y: (torch.cat([x, x[:1]]), torch.stack([y, y], 1)), ALL),
    "pad": (lambda x, y: F.pad(x, (1, 2, -1, 1), value=1), NUMBERS),
    "repeat": (lambda x, y: (x.repeat(2, 3), x.flip(0, 1), x.roll(1, 0)), ALL),
    "scatter a slice": (lambda x, y: torch.slice_scatter(x, x[:2], 0, 1, 3), ALL),
    "index": (lambda x, y: (x[torch.arange(3)], x[:, torch.arange(2) - 1]), ALL),
    "two indices": (lambda x, y: x[torch.arange(4), torch.arange(4) - 4], ALL),
    "index_select": (lambda x, y: torch.index_select(x, 1, torch.arange(3)), ALL),
    "gather": (lambda x, y: torch.gather(x, 1, torch.arange(4).view(4, 1)), ALL),
    "embedding": (lambda x, y: F.embedding(torch.arange(4).view(2, 2), x), FLOATS),
    "scatter": (lambda x, y: x.scatter(1, torch.arange(4).view(4, 1), 2), NUMBERS),
    "tril": (lambda x, y: (x.tril(), x.triu(1)), NUMBERS),
    "arange": (lambda x, y: (torch.arange(6) + y, torch.arange(0.5, 3.5, 0.5) * y), NUMBERS),
    "creation": (lambda x, y: (torch.zeros_like(x), torch.ones(2), torch.full((2,), 3)), ALL),
    "no dimensions": (lambda x, y: (x.sum() * 2, x.sum() + y, x.sum().unsqueeze(0)), ALL),
}
# Infinities and zeros of each sign, too.
SPECIAL = (float("nan"), float("inf"), -float("inf"), 0.0, -0.0, 1e30)


@functools.cache
def _decompositions():
    return decompositions_for(TAKEN_APART)


def _checked(library, function, inputs):
    def several(*given):
        found = function(*given)
        return found if isinstance(found, tuple) else (found,)

    graph = make_fx(several, decomposition_table=_decompositions())(*inputs)
    translation = translate(graph, inputs)
    compiled = library.compile(translation.text, {"backend": "interpreter"})
    given = CompiledIsland(translation, compiled).run(inputs)
    for own, wanted in zip(given, several(*inputs), strict=True):
        torch.testing.assert_close(own, wanted, equal_nan=True)


# Numbers of either size go through the same code of a family: one size of each by default.
BIGGER_SWEEP = {torch.float64: pytest.mark.slow}


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        pytest.param(name, dtype, marks=BIGGER_SWEEP.get(dtype, ()))
        for name, (_, dtypes) in CASES.items()
        for dtype in dtypes
    ],
    ids=lambda value: str(value).removeprefix("torch."),
)
def test_operators_agree_with_eager_mode(library, name, dtype):
    _checked(library, CASES[name][0], [_tensor(dtype, 4, 6), _tensor(dtype, 6)])


@pytest.mark.parametrize("name", ["add", "extremes", "compare", "where", "isnan", "amax", "roots"])
def test_numbers_that_are_none(library, name):
    x = torch.tensor([SPECIAL] * 4)
    x[1:3] = 1.0
    _checked(library, CASES[name][0], [x, torch.tensor(SPECIAL).flip(0)])


@pytest.mark.parametrize("name", ["add", "where", "sum", "views", "compare", "any", "cast"])
def test_inputs_are_read_by_their_strides(library, name):
    x, y = _tensor(torch.float32, 12, 8), _tensor(torch.float32, 24)
    _checked(library, CASES[name][0], [x[1:, ::2].t()[:, :6], y[2::4]])
    _checked(library, CASES[name][0], [x[0, :6].expand(4, 6), y[:1].expand(6)])


@pytest.mark.parametrize("name", ["add", "sum", "any", "compare", "cast", "squeeze"])
def test_tensors_without_elements(library, name):
    _checked(library, CASES[name][0], [torch.empty(0, 6), torch.randn(6)])


def test_promotion_is_torchs(library):
    values = [_tensor(dtype, 3) for dtype in ALL] + [_tensor(dtype).reshape(()) for dtype in ALL]
    for x in values:
        for y in [*values, 2, 0.5, True]:
            _checked(library, lambda x, y: (x * y, torch.eq(x, y)), [x, y]) if isinstance(
                y, torch.Tensor
            ) else _checked(library, lambda x, y=y: (x * y, torch.eq(x, y)), [x])


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (lambda x: x.long() // 0, "zero"),
        (lambda x: x[:, :1].long() ** -1, "negative powers"),
        (lambda x: x[x.long()[0], :, None, x.long()[0]], "gap"),
        (lambda x: x.half(), "float16"),
    ],
)
def test_what_has_no_words_is_refused(function, why):
    x = torch.ones(1, 4, 1, 4)
    graph = torch.fx.GraphModule({}, torch.fx.Graph())
    try:
        graph = make_fx(lambda x: (function(x),), tracing_mode="fake")(x)
    except (RuntimeError, IndexError, ZeroDivisionError):
        pytest.skip("this torch does not trace it")
    with pytest.raises(Untranslatable, match=why):
        translate(graph, [x])


def test_an_index_out_of_range_is_an_error(library):
    graph = make_fx(lambda x, i: (x[i],))(torch.randn(4), torch.tensor([1]))
    inputs = [torch.randn(4), torch.tensor([4])]
    translation = translate(graph, inputs)
    for off in ("", ",".join(library.passes)):
        made = library.compile(translation.text, {"backend": "interpreter", "off": off})
        with pytest.raises(IndexError, match="index"):
            CompiledIsland(translation, made).run(inputs)
