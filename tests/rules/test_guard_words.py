"""Which rule explains which failed guard, and that its words name what is the user's own."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import structs

from builders import ROOT
from compilescope.base.plugins import discover
from compilescope.knowledge.findings.recompiles import RecompileFinding
from compilescope.knowledge.rules import recompiles as guards
from compilescope.knowledge.rules.causes.explanations import told_of
from compilescope.knowledge.rules.causes.rule import GuardRule, RecompileCase
from compilescope.knowledge.rules.recompiles import _subjects as subjects
from compilescope.knowledge.source.spots import Place, SourceSpot
from compilescope.record.stack import CodeRef
from rules.written_by_fixes import said_by_a_fix

RULES = sorted(discover(guards, "RULE", GuardRule), key=lambda rule: rule.order)


def miss(
    subject: str,
    expected: str = "",
    actual: str = "",
    kind: str = "EQUALS_MATCH",
    *,
    guard: str = "",
    source: str = "",
    program: str = "",
    function: str = "forward",
    resumed_at: int | None = None,
) -> RecompileCase:
    """A failed guard, as if made by `source`, a line of `program`."""
    finding = RecompileFinding(
        guard=guard or f"{subject} == {expected}",
        subject=subject,
        expected=expected,
        actual=actual,
        guard_kind=kind,
        compiled=CodeRef(f"{ROOT}/model.py", 7, function, resumed_at),
        limit_hit=False,
        is_placed=bool(source),
        file=f"{ROOT}/model.py",
        line=8 if source else 7,
        function=function,
        source=source,
        fingerprint="",
        because=("0.1",),
    )
    return RecompileCase(finding, spot(program or source, source))


def spot(program: str, source: str) -> SourceSpot:
    """The place of a line in a program."""
    place = Place(f"{ROOT}/model.py", 8, source=source)
    try:
        tree = ast.parse(program)
    except (SyntaxError, ValueError):
        return SourceSpot(place)
    stack: list[tuple[ast.AST, tuple[ast.AST, ...]]] = [(tree, ())]
    while stack:
        node, around = stack.pop()
        if isinstance(node, ast.stmt) and source and ast.unparse(node).startswith(source):
            kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
            function = next((each for each in around if isinstance(each, kinds)), None)
            return SourceSpot(place, None, node, function, around)
        stack.extend((child, (node, *around)) for child in ast.iter_child_nodes(node))
    return SourceSpot(place)


def rule_of(case: RecompileCase) -> GuardRule:
    return next(rule for rule in RULES if rule.applies(case))


def words(case: RecompileCase) -> str:
    rule = rule_of(case)
    return "\n".join([rule.why(case), *(remedy.text for remedy in rule.remedies(case))])


TENSOR = "Tensor(shape=(1, 8, 16), dtype=torch.float32)"
CACHE = "kwargs['past_key_values'].layers[0].keys"
BLOCK = "self._modules['layer']._modules['0']._modules['SelfAttention']"
BACKEND = (
    "BACKEND_MATCH failure: torch.compile detected different backend callables. Cached backend: "
    "_TorchCompileWrapper(compiler='eager', dynamic=None) (id=0x7f). New backend: "
    "_TorchCompileWrapper(compiler='inductor', dynamic=None) (id=0x8f). If this is unexpected"
)
NO_AUTOCAST = "{'cached_enabled': True, 'dtype': [15, 5], 'enabled': [False, False]}"
AUTOCAST = "{'cached_enabled': True, 'dtype': [15, 5], 'enabled': [True, False]}"


@dataclass(frozen=True)
class Case:
    """A failed guard, the rule that should explain it, and words that should stand in its text."""

    rule: str
    miss: RecompileCase
    says: tuple[str, ...] = ()


CASES = [
    # As real models make them.
    Case(
        "size-change",
        miss(f"{CACHE}.size()[2]", "7", "8", "TENSOR_MATCH"),
        ("`past_key_values.layers[0].keys`", "dimension 2", "7", "8"),
    ),
    Case(
        "module-flag",
        miss(f"{BLOCK}.has_relative_attention_bias", "True", "False", "TRUE_MATCH"),
        ("self.layer[0].SelfAttention.has_relative_attention_bias", "True", "False"),
    ),
    Case("none-or-value", miss("args[2]", "None", TENSOR, "NONE_MATCH"), ("args[2]", TENSOR)),
    Case(
        "none-or-value",
        miss("kwargs['attention_mask']", "None", TENSOR, "NONE_MATCH"),
        ("`attention_mask`", "keyword argument"),
    ),
    Case("none-or-value", miss("type(mask)", "Tensor", "NoneType", "TENSOR_MATCH"), ("`mask`",)),
    Case(
        "none-or-value",
        miss("type(self._parameters['bias'])", "Parameter", "NoneType", "TENSOR_MATCH"),
        ("`self.bias`", "instance"),
    ),
    Case(
        "module-class",
        miss(
            "type(self._modules['layer']._modules['1'])",
            "transformers.models.t5.modeling_t5.T5LayerCrossAttention",
            "transformers.models.t5.modeling_t5.T5LayerFF",
            "TYPE_MATCH",
        ),
        ("`self.layer[1]`", "T5LayerCrossAttention", "T5LayerFF"),
    ),
    Case("length-change", miss("len(kwargs)", "2", "8", "DICT_LENGTH"), ("keyword", "2", "8")),
    Case("length-change", miss("len(kwargs)", "2", "8", "LENGTH_CHECK"), ("2", "8")),
    Case("length-change", miss("len(xs)", "1", "2", "LENGTH_CHECK"), ("`xs`", "1 element ", "2")),
    Case("length-change", miss("len(batch) != 1", kind="OTHER"), ("`batch`", "1 element ")),
    Case(
        "length-change",
        miss("len(self._modules['blocks']._modules) != 2", kind="OTHER"),
        ("2 layers in `self.blocks`",),
    ),
    Case(
        "function-change",
        miss("func.__code__", "the same object", "<code of gelu>", "ID_MATCH"),
        ("`func`", "`gelu`"),
    ),
    Case(
        "function-change",
        miss("g.__code__", "present", "Not a function", "ACCESSOR", guard="g.__code__ exists"),
        ("`g`",),
    ),
    Case(
        "function-change",
        miss("G['act'].__code__", "the same object", "<code of act>", "ID_MATCH"),
        ("global `act`",),
    ),
    Case(
        "layer-index",
        miss(
            "self.layer_idx",
            "0",
            "1",
            source="return past.update(k, v, self.layer_idx)",
        ),
        ("`self.layer_idx` = 0", "1"),
    ),
    Case("train-eval", miss(f"{BLOCK}.training", "True", "False", "TRUE_MATCH"), (".eval()",)),
    Case(
        "parameter-size",
        miss("fn._parameters['weight'].size()[0]", "3", "4", "TENSOR_MATCH"),
        ("`fn.weight.size()[0]`", "`fn` is the module given to torch.compile"),
    ),
    Case("module-class", miss("type(self)", "Relu", "Tanh", "TYPE_MATCH"), ("Relu", "Tanh")),
    # Tensors.
    Case("dtype-change", miss("x.dtype", "torch.float32", "torch.float16", "TENSOR_MATCH")),
    Case(
        "dtype-change",
        miss("___from_numpy(v).dtype", "torch.float32", "torch.int64", "TENSOR_MATCH"),
        ("`v`",),
    ),
    Case("device-change", miss("x.device.index", "None", "0", "TENSOR_MATCH"), ("cpu", "`x`")),
    Case(
        "device-change",
        miss("dispatch keys of x", "AutogradCPU, CPU", "AutogradCUDA, CUDA", "TENSOR_MATCH"),
        ("cpu", "cuda", "`x`"),
    ),
    Case(
        "inference-tensor",
        miss("dispatch keys of x", "ADInplaceOrView, AutogradCPU", "AutocastCPU", "TENSOR_MATCH"),
        ("`x` came from inference mode",),
    ),
    Case(
        "dispatch-keys",
        miss("dispatch keys of x", "BackendSelect", "AutocastCPU, Conjugate", "TENSOR_MATCH"),
        ("`x.resolve_conj()`",),
    ),
    Case(
        "autocast",
        miss("dispatch keys of x", "BackendSelect", "AutocastCPU", "TENSOR_MATCH"),
        ("`x`",),
    ),
    Case("requires-grad-change", miss("h.requires_grad", "False", "True", "TENSOR_MATCH"), ("h",)),
    Case("rank-change", miss("x.dim()", "1", "2", "TENSOR_MATCH"), ("`x.unsqueeze(0)`",)),
    Case("stride-change", miss("x.stride()[0]", "4", "1", "TENSOR_MATCH"), ("Convert `x` to one",)),
    Case("tensor-class", miss("type(x)", "Tensor", "Parameter", "TENSOR_MATCH"), ("`x`",)),
    Case("type-change", miss("type(x)", "Tensor", "float", "TENSOR_MATCH"), ("`float`",)),
    Case("size-zero-one", miss("x.size()[0]", "1", "5", "TENSOR_MATCH"), ("`x`", "1", "5")),
    Case(
        "size-zero-one",
        miss("x.size()[0]", "2 <= x.size()[0]", "1", "SHAPE", guard="2 <= x.size()[0]"),
        ("dimension 0 of `x`",),
    ),
    Case(
        "size-unrolled",
        miss(
            "x.size()[1]",
            "3",
            "4",
            "TENSOR_MATCH",
            source="for i in range(x.shape[1]):",
            program="def f(x):\n  for i in range(x.shape[1]):\n    x = x + i",
        ),
        ("for i in range(x.shape[1]):", "3", "4"),
    ),
    # Conditions on sizes and numbers.
    Case(
        "shape-condition",
        miss(
            "x.size()[0]",
            "4 <= x.size()[0]",
            "3",
            "SHAPE",
            guard="4 <= x.size()[0]",
            source="if x.shape[0] >= 4:",
            program="def f(x):\n  if x.shape[0] >= 4:\n    return x\n  return -x",
        ),
        ("`x.shape[0] >= 4` only", "3"),
    ),
    Case(
        "shape-condition",
        miss(
            "x.size()[0], y.size()[0]",
            "x.size()[0] != y.size()[0]",
            "3, 3",
            "SHAPE",
            guard="x.size()[0] != y.size()[0]",
        ),
        ("x.size()[0] != y.size()[0]",),
    ),
    Case(
        "equal-sizes",
        miss("x", kind="SHAPE", actual="6, 5", guard="y.size()[1] == x.size()[0]"),
        ("`y.size()[1] == x.size()[0]`", "6, 5"),
    ),
    Case(
        "stride-change",
        miss(
            "x.stride()[0], x.size()[1]",
            kind="SHAPE",
            actual="9, 3",
            guard="x.stride()[0] == x.size()[1]",
        ),
        ("Convert `x` to one",),
    ),
    Case(
        "number-needed",
        miss("n", "n == 3", "4", "SHAPE", guard="n == 3", source="x = table[n]"),
        ("`x = table[n]`", "4"),
    ),
    Case("number-condition", miss("n", "n <= 3", "4", "SHAPE", guard="n <= 3"), ("`n <= 3`",)),
    Case(
        "tensor-read",
        miss("n.item", "n.item() == 2", "<function item>", "SHAPE", guard="n.item() == 2"),
        ("the number in `n`", "2 at"),
    ),
    Case("aliasing", miss("x is y", "True", "False", "SHAPE", guard="x is y"), ("`x`", "`y`")),
    Case(
        "aliasing",
        miss("aliasing of arguments", kind="OTHER", guard='Duplicate tensors found: ["a", "b[0]"]'),
        ("`a`", "`b[0]`"),
    ),
    Case(
        "dynamic-marking",
        miss(
            "hasattr(x, '_dynamo_dynamic_indices')",
            "False",
            TENSOR,
            "DIMENSION_DYNAMIC_MARKING_GUARD",
        ),
        ("`x`",),
    ),
    # State of the process.
    Case("grad-mode", miss("grad_mode", "True", "False", "GLOBAL_STATE"), ("forward",)),
    Case(
        "autocast",
        miss("autocast_state", NO_AUTOCAST, AUTOCAST, "GLOBAL_STATE"),
        ("cpu: off before, torch.bfloat16 now",),
    ),
    Case("num-threads", miss("num_threads", "8", "1", "GLOBAL_STATE"), ("8", "set_num_threads")),
    Case("default-dtype", miss("default_dtype", "6", "15", "GLOBAL_STATE"), ("torch.bfloat16",)),
    Case("global-state", miss("allow_tf32", "False", "True", "GLOBAL_STATE"), ("allow_tf32",)),
    Case("global-state", miss("something_new", "1", "2", "GLOBAL_STATE"), ("something_new",)),
    Case("torch-function-mode", miss("torch_function", "True", "False", "GLOBAL_STATE")),
    Case("torch-function-mode", miss("L", "", "{}", "TORCH_FUNCTION_MODE_STACK")),
    Case("default-device", miss("utils_device.CURRENT_DEVICE", "None", "{}", "DEFAULT_DEVICE")),
    Case("backend-change", miss("the backend", kind="OTHER", guard=BACKEND), ("eager", "inductor")),
    Case(
        "object-gone",
        miss(
            "the guarded object",
            "alive",
            "gone",
            "WEAKREF",
            guard="Cache line invalidated because L['g'].__code__ got deallocated",
        ),
        ("`g`",),
    ),
    # Python values.
    Case(
        "broken-value",
        miss("int(x.sum())", "2", "3", resumed_at=9),
        ("`int(x.sum())`", "break at line 9"),
    ),
    Case(
        "broken-size",
        miss("x[x > 0].size()[0]", "4", "1", resumed_at=9),
        ("`x[x > 0]`", "break at line 9", "capture_dynamic_output_shape_ops"),
    ),
    Case(
        "broken-size",
        miss(
            "rows.size()[0]",
            "4",
            "5",
            resumed_at=9,
            source="return rows.sin()",
            program="def forward(x, done):\n  rows = x[~done]\n  print()\n  return rows.sin()",
        ),
        ("`rows`", "it was 4 and is 5"),
    ),
    Case("size-change", miss("rows.size()[0]", "4", "5", resumed_at=9), ("`rows`",)),
    Case("broken-value", miss("___stack0.stop", "2", "3", resumed_at=9), ("line 9",)),
    Case("int-change", miss("n", "2", "3", resumed_at=9), ("`n`",)),
    Case("int-change", miss("n", "3", "4", source="return x * n"), ("makes `n` dynamic",)),
    Case(
        "int-change",
        miss("n", "3", "4", source="if n > 3:", program="if n > 3:\n  x = -x"),
        ("branch of `n > 3`", "once `n` is dynamic"),
    ),
    Case("int-change", miss("b[0]", "1", "3"), ("makes `b[0]` dynamic",)),
    Case("float-change", miss("p", "0.1", "0.2"), ("makes `p` dynamic",)),
    Case("float-change", miss("p", "nan", "inf"), ("`p`",)),
    Case(
        "float-change",
        miss(
            "(type(p)",
            "float and __math_isnan(p))",
            "1.5",
            "FLOAT_IS_NAN",
            guard="(type(p) is float and __math_isnan(p))",
        ),
        ("`p` = nan",),
    ),
    Case("float-change", miss("self.scale", "2.0", "3.0"), ("keep `self.scale` in a",)),
    Case("bool-change", miss("double", "True", "False", "TRUE_MATCH"), ("`double`", "for True")),
    Case("string-change", miss("mode", "'relu'", "'tanh'"), ("'relu'", "'tanh'")),
    Case("type-change", miss("v", "2", "2.5"), ("int", "float")),
    Case("type-change", miss("v", "2", "[1, 2]"), ("type list",)),
    Case("type-change", miss("type(xs)", "list", "tuple", "TYPE_MATCH"), ("`list` or `tuple`",)),
    Case("type-change", miss("type(o)", "A", "A", "TYPE_MATCH"), ("two classes of that name",)),
    Case("constant-change", miss("to", "torch.float32", "torch.float64"), ("`to`",)),
    Case("module-number", miss("self.step", "3", "4"), ("keep `self.step` out", "instance")),
    Case("global-change", miss("G['N']", "3", "4"), ("Pass `N` to",)),
    Case("global-change", miss("G['net'].step", "3", "4"), ("Pass `net.step` to",)),
    Case("global-change", miss("G['FLAG']", "True", "False", "TRUE_MATCH"), ("`FLAG`",)),
    Case(
        "closure-change",
        miss(
            "scale",
            "2",
            "3",
            source="return x * scale",
            program="def make(scale):\n  def f(x):\n    return x * scale\n  return f",
            function="f",
        ),
        ("`scale`", "`f`"),
    ),
    Case("closure-change", miss("g.__closure__[0].cell_contents", "2", "3"), ("`g` closes over",)),
    Case("default-argument", miss("g.__kwdefaults__['by']", "2", "3"), ("`by`", "`g`")),
    Case("optimizer-setting", miss("self.param_groups[0]['lr']", "0.1", "0.05"), ("read `lr` in",)),
    Case("object-identity", miss("o", "the same object", "<Mode object>", "ID_MATCH"), ("`o`",)),
    Case("key-change", miss("batch.keys()[0]", "'a'", "'b'"), ("`batch`", "'a'", "'b'")),
    Case(
        "key-change",
        miss("b", "", "{'k': 1}", "DICT_CONTAINS", guard="not ___dict_contains('k', b)"),
        ("lacked 'k'", "`b`"),
    ),
    Case("key-change", miss("?", kind="OTHER", guard="KeyError on b['k']"), ("'k'", "`b`")),
    Case(
        "attribute-presence",
        miss("o", "", "<C object>", "NO_HASATTR", guard="not hasattr(o, 'k')"),
        ("no attribute `k`",),
    ),
    Case(
        "attribute-presence",
        miss("getattr failed on source o", kind="OTHER", guard="getattr failed on source o"),
        ("`o`",),
    ),
    Case("other-change", miss("thing", "1 of these", "2 of those", "NEW_KIND"), ("2 of those",)),
    Case("other-change", miss("", kind="OTHER", guard="words of torch"), ("words of torch",)),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.rule}-{case.miss.finding.subject}")
def test_the_pattern_is_known_and_its_words_are_the_users(case: Case) -> None:
    assert rule_of(case.miss).id == case.rule
    told = words(case.miss)
    for part in case.says:
        assert part in told
    remedies = rule_of(case.miss).remedies(case.miss)
    assert 1 <= len(remedies) <= 2
    keys = {"recompile", f"recompile/{case.rule}", f"recompile/{case.miss.finding.guard_kind}"}
    for remedy in remedies:
        assert not said_by_a_fix(remedy.text, keys, ""), remedy.text


def test_every_rule_has_a_case_here() -> None:
    assert {case.rule for case in CASES} == {rule.id for rule in RULES}


def test_words_never_show_torchs_inner_names() -> None:
    for case in CASES:
        rule = rule_of(case.miss)
        told = [rule.why(case.miss), *(each.text for each in rule.remedies(case.miss))]
        for text in told:
            assert not re.search(r"_modules\[|_parameters\[|\b[GL]\['|___\w+\(", text), text


def test_the_rule_for_anything_comes_last() -> None:
    assert RULES[-1].id == "other-change"
    assert RULES[-1].applies(miss(""))


@pytest.mark.parametrize(
    ("subject", "text"),
    [
        ("self._modules['layer']._modules['0'].flag", "self.layer[0].flag"),
        ("G['cfg'].k", "cfg.k"),
        ("G['__import_torch_dot_nn_dot_functional'].relu", "torch.nn.functional.relu"),
        ("G['__builtins_dict___0']['len']", "len"),
        ("L['x'].size()[0]", "x.size()[0]"),
        ("kwargs['use_cache']", "use_cache"),
        ("dict(type(self).__dict__)['N']", "type(self).N"),
        ("___from_numpy(v).dtype", "v.dtype"),
        ("fn._buffers['running_mean'].dtype", "fn.running_mean.dtype"),
        ("", ""),
    ],
)
def test_subjects_are_shown_as_their_author_writes_them(subject: str, text: str) -> None:
    assert subjects.shown(subject) == text


@pytest.mark.parametrize(
    ("program", "source", "name", "uses"),
    [
        ("for i in range(n): pass", "for i in range(n):", "n", {"range"}),
        ("y = table[self.layer_idx]", "y = table[self.layer_idx]", "layer_idx", {"index"}),
        ("y = x[:n]", "y = x[:n]", "n", set()),
        ("y = math.exp(p) + 1", "y = math.exp(p) + 1", "p", {"math"}),
        ("y = x if flag else z", "y = x if flag else z", "flag", {"branch"}),
        ("if a > 1:\n  y = table[n]", "if a > 1:", "n", set()),
        ("y = layer(x)", "y = layer(x)", "layer", {"call"}),
        ("assert n > 2", "assert n > 2", "n", {"branch"}),
        ("y = batch['n'] * 2", "y = batch['n'] * 2", "n", set()),
        ("y = range(batch['n'])", "y = range(batch['n'])", "n", {"range"}),
    ],
)
def test_uses_of_a_value(program: str, source: str, name: str, uses: set[str]) -> None:
    assert subjects.uses(miss(name, "1", "2", source=source, program=program), name) == uses


PIECES = st.sampled_from(
    [
        *(
            "x",
            "self",
            "None",
            "True",
            "1",
            "2.5",
            "'a'",
            "[",
            "]",
            "(",
            ")",
            ", ",
            "\n",
            "`",
            "\0",
        ),
        *("._modules['0']", ".size()[0]", ".stride()[1]", ".dtype", ".item()", ".keys()", ".dim()"),
        *("type(", "len(", "isnan(", "hasattr(", "G['", "L['x']", "']", " is ", " == 3", " != "),
        *(".__code__", "dispatch keys of ", "KeyError on ", "<function f>", "the same object"),
        *("Tensor(shape=(", "{'enabled': [", "2 <= ", ".param_groups[0]['lr']", ".__defaults__["),
        *("___dict_contains('k', ", ".device.index", ".__closure__[0].cell_contents", "args", "fn"),
    ]
)
TEXTS = st.one_of(st.text(max_size=30), st.lists(PIECES, max_size=6).map("".join))
KINDS = st.sampled_from(
    [
        "", "EQUALS_MATCH", "TENSOR_MATCH", "SHAPE", "GLOBAL_STATE", "OTHER", "WEAKREF", "ACCESSOR",
        "ID_MATCH", "TYPE_MATCH", "NONE_MATCH", "DICT_CONTAINS", "NO_HASATTR", "DICT_LENGTH",
        "RANGE_ITERATOR_MATCH", "DIMENSION_DYNAMIC_MARKING_GUARD", "DEFAULT_DEVICE", "FLOAT_IS_NAN",
    ]
)  # fmt: skip


# A busy machine is no fault of a rule.
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(TEXTS, TEXTS, TEXTS, KINDS, TEXTS, TEXTS)
def test_no_text_makes_a_rule_raise(
    subject: str, expected: str, actual: str, kind: str, guard: str, source: str
) -> None:
    case = miss(subject, expected, actual, kind, guard=guard, source=source)
    for rule in RULES:
        if rule.applies(case):
            assert rule.why(case)
            assert all(remedy.text for remedy in rule.remedies(case))


def test_a_rule_applies_only_where_a_word_that_it_needs_stands() -> None:
    """To every guard above, and to the values and kind of each with the subject of another."""
    picky = [rule for rule in RULES if rule.needs]
    cases = [each.miss for each in CASES]
    mixed = [
        RecompileCase(structs.replace(one.finding, **_told(other.finding)), other.spot)
        for one in cases
        for other in cases
    ]
    applied: set[str] = set()
    for case in [*cases, *mixed]:
        told = told_of(case.finding)
        for rule in picky:
            if not any(word in told for word in rule.needs):
                assert not rule.applies(case), (rule.id, told)
            elif rule.id not in applied and rule.applies(case):
                applied.add(rule.id)
    assert applied == {rule.id for rule in picky}


def _told(finding: RecompileFinding) -> dict[str, str]:
    return {name: getattr(finding, name) for name in ("guard", "subject", "expected", "actual")}
