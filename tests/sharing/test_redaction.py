"""Redaction hides the user's words and changes nothing else: parts that need no torch."""

from __future__ import annotations

import ast
import keyword
import random
import re
from decimal import Decimal
from pathlib import Path

import msgspec
import pytest

import samples
from builders import ROOT, event, frame, run_of
from compilescope.knowledge.analysis.digest import digest
from compilescope.knowledge.rules.recompiles import layer_index
from compilescope.record import bodies, cache_key, graph, header, stack
from compilescope.record.artifacts import MemoryArtifacts, artifact_name
from compilescope.record.bodies import (
    CacheAccess,
    CacheEntryMiss,
    CompileFailed,
    FailedGuard,
    GraphBreak,
    GraphCaptured,
    Guard,
    GuardSet,
    KernelEmitted,
    Recompile,
    SourceSeen,
    Unknown,
)
from compilescope.record.cache_key import cache_access, decode_key
from compilescope.record.event import encode
from compilescope.record.graph import Call, Graph, Node, TensorInfo, decode_graph, encode_graph
from compilescope.record.guards import decode_guards
from compilescope.record.run import Run
from compilescope.record.stack import CodeRef, Frame, origin_of
from compilescope.report.sharing.redaction import code, files, vocabulary
from compilescope.report.sharing.redaction import diagnosis as compared
from compilescope.report.sharing.redaction.code import Numbers, Words
from compilescope.report.sharing.redaction.diagnosis import changed, compared_diagnosis, diagnosis
from compilescope.report.sharing.redaction.files import redact_path
from compilescope.report.sharing.redaction.lexer import tokens
from compilescope.report.sharing.redaction.name_survey import collect_sizes, collect_source
from compilescope.report.sharing.redaction.names import Names
from compilescope.report.sharing.redaction.policies import POLICIES
from compilescope.report.sharing.redaction.prose import Prose
from compilescope.report.sharing.redaction.run import Redaction, a_few, leaked_names, redact
from compilescope.report.sharing.redaction.source import RedactedSource

HERE = Path(__file__).parent
LIBRARY = "/home/ada/env/lib/python3.11/site-packages"


def redacted(run: Run) -> tuple[Redaction, str]:
    """The run after redaction, and everything that would be in its files."""
    artifacts = MemoryArtifacts()
    done = redact(run, artifacts)
    texts = [encode(event).decode() for event in done.run.events]
    texts += [text for _, text in artifacts.items()] + [str(done.run.header)]
    assert leaked_names(done, texts) == []
    return done, "\n".join(texts)


def settled(*texts: str) -> Words:
    words = Words()
    for text in texts:
        words.code(text)
    words.settle()
    return words


def source_of(text: str) -> RedactedSource:
    words = Words()
    collect_source(words.names, text, set())
    RedactedSource(words, text)
    words.settle()
    return RedactedSource(words, text)


def shape(text: str) -> list[tuple[object, ...]]:
    """A syntax tree without its names and values."""
    return [
        (type(node).__name__, getattr(node, "lineno", None), type(getattr(node, "value", None)))
        for node in ast.walk(ast.parse(text))
    ]


# The lexer


def test_tokens_are_the_whole_text_whatever_it_is() -> None:
    chance = random.Random(1)
    for _ in range(2000):
        text = "".join(chance.choices("ab1.'\"{}\\\n#f rx[]():!=é…", k=chance.randrange(60)))
        assert "".join(text[t.start : t.end] for t in tokens(text)) == text


def test_f_strings_come_apart() -> None:
    text = """f"{first!r:>{width}} and {data["key"]} {{braces}}" + 'plain'"""
    names = [text[t.start : t.end] for t in tokens(text) if t.kind == "name"]
    assert names == ["first", "r", "width", "data"]
    fragments = [text[t.start : t.end] for t in tokens(text) if t.kind == "fragment"]
    assert fragments == [">", " and ", "key", " {{braces}}", "plain"]


def test_nesting_does_not_end_in_a_recursion_error() -> None:
    assert list(tokens("f'{" * 5000)) and list(tokens("f\"{f'{" * 5000))
    formats = "f'{" + "secretvalue:{" * 5000
    assert "".join(formats[t.start : t.end] for t in tokens(formats)) == formats
    assert "secret" not in settled(formats).code(formats)


@pytest.mark.parametrize(
    "name",
    [
        "torch_dynamo_resume_in_" * 3000 + "secret" + "_at_1" * 3000,
        "__import_" * 3000 + "secret",
        "__import_secret_dot_" * 3000 + "torch_dynamo_resume_in_secret_at_3",
    ],
    ids=["resumed", "imported", "both"],
)
def test_names_made_of_names_without_end_hide_them_all_the_same(name: str) -> None:
    assert "secret" not in settled(name).code(name)


def test_a_guard_that_comes_again_is_redacted_alike() -> None:
    """By its kind: torch's words stay in a guard of torch's own."""
    made = [
        FailedGuard("secret is tensor", "secret", "secret", "secret", kind)
        for kind in ("OTHER", "SHAPE", "OTHER", "SHAPE")
    ]
    code = CodeRef("/u/secret.py", 1, "forward")
    body = Recompile(code, tuple(CacheEntryMiss(f"0/{n}", (one,)) for n, one in enumerate(made)))
    done, text = redacted(run_of(event(body, number=1, stack=(frame(),))))
    assert "secret" not in text
    found = next(e.body for e in done.run.events if isinstance(e.body, Recompile)).entries
    assert found[0].failed == found[2].failed and found[1].failed == found[3].failed


# Source


def test_source_keeps_its_lines_and_its_syntax() -> None:
    for path in [*HERE.glob("*.py"), *(HERE.parent / "zoo" / "programs").glob("*.py")]:
        old = path.read_text()
        new = source_of(old).text
        assert shape(new) == shape(old), path
        assert new.isascii() and not re.search(r"#(?! \d+$)", re.sub(r'"[^"\n]*"', "", new), re.M)


SOURCE = '''"""Secret docstring."""
import torch  # secret comment
from secretpackage.secretmodule import SecretThing as Alias

class SecretModel(torch.nn.Module):
    """Secret words."""

    def forward(self, secretinput, *, secretflag=True):
        # secret line
        secretsum = torch.relu(secretinput).sum() + 8675309
        text = f"secret {secretsum:.2f} of {self.secretpart!r}" "secret tail" 'x'
        größe = """secret
        lines"""
        if secretsum > 0.731: raise ValueError("secret message", 0x1F, 1_000, 3j)
        return secretinput[3:].reshape(-1, 2), {"secretkey": größe, 'cpu': None}
'''


def test_nothing_of_the_user_stays_in_source() -> None:
    new = source_of(SOURCE).text
    assert "secret" not in new.lower() and "größe" not in new and "text =" not in new
    assert not re.search(r"8675309|0\.731|1_000|0x1F", new)
    for kept in ("torch.relu(", ".sum() +", "ValueError(", "class C", "'cpu': None", "def forward"):
        assert kept in new
    assert shape(new) == shape(SOURCE)


def test_columns_lead_to_the_same_expression() -> None:
    source = source_of(SOURCE)
    old = SOURCE.split("\n")
    parsed = list(ast.walk(ast.parse(SOURCE)))
    # Text between the fields of an f-string: since Python 3.12 it has a place of its own.
    between = [part for node in parsed if isinstance(node, ast.JoinedStr) for part in node.values]
    for node in parsed:
        if not isinstance(node, ast.expr) or isinstance(node, ast.JoinedStr) or node in between:
            continue
        if isinstance(node, ast.Constant) and "ecret" in str(node.value):
            continue  # A docstring is emptied, and so has one part less.
        line = source.line(node.lineno)
        assert line is not None and node.end_col_offset is not None
        column = len(old[node.lineno - 1].encode()[: node.col_offset].decode())
        last = old[(node.end_lineno or 1) - 1]
        end = len(last.encode()[: node.end_col_offset].decode())
        if node.end_lineno == node.lineno:
            new = line.new[line.column(column) : source.end_column(node.lineno, column, end)]
            kinds = [t.kind for t in tokens(last[column:end])]
            assert [t.kind for t in tokens(new)] == kinds, (last[column:end], new)


def test_the_end_of_an_expression_of_several_lines() -> None:
    text = "def f(somevalue):\n    return (somevalue\n        .lengthy().item())\n"
    source = source_of(text)
    # The expression ends at column 25 of the third line.
    end = source.end_column(2, 12, 25)
    third = source.line(3)
    assert third is not None and third.new[:end].endswith(".item()")


def test_lines_that_were_different_stay_different() -> None:
    new = source_of("f(x)  # one\nf(x)  # two\nf(x)  # one\n").text.split("\n")
    assert new[0] == new[2] and new[0] != new[1]


# Numbers


def test_numbers_keep_their_order_and_their_kind() -> None:
    whole = ("0", "1", "2", "3", "5", "17", "64", "99", "512", "8675309", "0xff", "1_000")
    texts = [*whole, "0.001", "0.5", "1.5", "2.5", "1e-5", "513.25"]
    numbers = Numbers()
    numbers.keep(64)
    numbers.keep(512)
    for text in texts:
        numbers.redact(text)
    numbers.settle()
    new = {text: numbers.redact(text) for text in texts}
    assert all(new[text] == text for text in ("0", "1", "2", "64", "512"))

    def value(text: str) -> Decimal:
        return Decimal(int(text, 0)) if "x" in text else Decimal(text.replace("_", ""))

    in_order = sorted(texts, key=value)
    assert sorted(texts, key=lambda text: value(new[text])) == in_order
    assert len({value(new[text]) for text in texts}) == len(texts)
    for text in texts:
        assert ("." in new[text]) == ("." in text or "e" in text)
        assert text in ("0", "1", "2", "64", "512") or value(new[text]) != value(text)


def test_a_size_is_told_by_its_dtype() -> None:
    """A key of a dictionary is none."""
    words = Words()
    collect_sizes(words, '"f32[64, 96][96, 1]cpu" "bf16[128]cuda:0" "orders[8887771]" "i64[777]"')
    for text in ("64", "96", "128", "777", "8887771"):
        words.numbers.redact(text)
    words.numbers.settle()
    kept = [words.numbers.redact(text) == text for text in ("64", "96", "128", "777", "8887771")]
    assert kept == [True, True, True, True, False]


def test_odd_numbers() -> None:
    numbers = Numbers()
    odd = ("9" * 5000, "1e999999", "1e-999999", "7j", "8L", "0.5f", "0777", "0b11", "1.")
    for text in odd:
        numbers.redact(text)
    numbers.settle()
    assert all(numbers.redact(text) and len(numbers.redact(text)) < 12 for text in odd)
    assert numbers.redact("7j").endswith("j") and numbers.redact("8L").endswith("L")


# Names


def test_names_are_short_and_carry_their_kind() -> None:
    new = source_of("class Alpha:\n    def beta(self, gamma):\n        return gamma.delta\n").text
    assert re.fullmatch(
        r"class C\d+:\n    def f\d+\(self, v(\d+)\):\n        return v\1\.v\d+\n", new
    )


def test_no_name_is_made_of_the_old_one() -> None:
    one, two = source_of("apple = 1\n").text, source_of("zebra = 1\n").text
    assert one == two


def test_names_that_rules_look_for_stay() -> None:
    for word in vocabulary.LAYER_WORDS:
        assert layer_index._INDEX.match(word), word
    names = Names()
    for word in ("layer_idx", "block", "stage_index", "expert_id"):
        assert layer_index._INDEX.match(word) and names.redact(word) == word
    assert re.fullmatch(r"v\d+_numpy", names.redact("to_numpy_batch"))
    assert re.fullmatch(r"v\d+_view", names.redact("preview"))
    assert re.fullmatch(r"v\d+_Tensor", names.redact("SecretTensor"))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("L['self']._modules['enc'][3].flag", r"L\['self'\]._modules\['v1'\]\[3\].v2"),
        ("fn._modules['3'].flag", r"fn._modules\['3'\].v1"),
        ("L['x'].size()[1] == 8", r"L\['v1'\].size\(\)\[1\] == \d"),
        ("torch.ops.acme.secret(x)", r"torch.ops.v1.v2\(v3\)"),
        ("torch.nn.functional.gelu(x)", r"torch.nn.functional.gelu\(v1\)"),
        ("G['__import_acme_dot_layers'].f", r"G\['__import_v1_dot_v2'\].v3"),
        ("G['__import_code_dot_secret'].f", r"G\['__import_code_dot_v1'\].v2"),
        ("G['__import_torch_dot_nn'].f", r"G\['__import_torch_dot_nn'\].v1"),
        ("torch_dynamo_resume_in_secret_at_28", "torch_dynamo_resume_in_v1_at_28"),
        ("___check_type_id(L['self'], 94127), type=<class '__main__.Net'>",
         r"___check_type_id\(L\['self'\], 3\), type=<class '__main__.v1'>"),
        ("'some secret words'", "'text1'"),
        ("'cut in the mid…", "'text1"),
        ("{'k': [1, 2], 'cpu': None}", r"\{'v1': \[1, 2\], 'cpu': None\}"),
        ("s77*8 + u0", r"s77\*\d \+ u0"),
    ],
)  # fmt: skip
def test_guards_and_values(old: str, new: str) -> None:
    assert re.fullmatch(new, settled(old).code(old))


def test_names_that_torch_makes() -> None:
    names = Names()
    names.redact("secret")
    for word in ("add_1234", "mul", "primals_7", "buf12", "tmp3", "cpp_fused_add_mul_0", "x0"):
        assert names.redact(word, "generated") == word
    assert names.redact("secret_2", "generated") == f"{names.redact('secret')}_2"
    for word in ("other_2024123", "l_self_modules_other_parameters_weight_"):
        assert re.fullmatch(r"v\d+", names.redact(word, "generated"))
    assert re.fullmatch(
        r"cpp_fused_add_v\d+_0", names.redact("cpp_fused_add_otherop_0", "generated")
    )


def test_messages() -> None:
    """Torch's errors stay, with other numbers; the user's own text goes."""
    words = settled("secretfn", "'a string of the user'")
    prose = Prose(words, lambda file, number, text: words.code(text), ["/home/a b/secret.py"])
    kept = "mat1 and mat2 shapes cannot be multiplied (4x8 and 7x8)"
    assert prose.message(kept) == kept
    for old, new in {
        "RuntimeError: customer 8675309 has no contract": r"RuntimeError: text\d+",
        "SecretError: a string of the user": r"v\d+: text\d+",
        "in /home/a b/secret.py:34 and secret/x.py:7": r"in /\w+/\w+/m\d+.py:34 and \w+/m\d+.py:7",
        "sizes of tensor secretfn at 10.20.30.77": r"sizes of tensor v\d+ at [\d.]+",
        "expected 'secret thing' but got 'secretfn'": r"expected 'text\d+' but got 'v\d+'",
    }.items():
        found = prose.message(old)
        assert re.fullmatch(new, found), found
        assert "8675309" not in found and "77" not in found


def test_a_message_without_end_goes_as_a_whole() -> None:
    """Even one of torch's words alone: nobody reads it, and its length costs hardly anything."""
    words = settled("secretfn")
    prose = Prose(words, lambda file, number, text: words.code(text), [])
    line = "shapes cannot be multiplied "
    assert prose.message(f"RuntimeError: {line}").startswith(f"RuntimeError: {line}")
    assert re.fullmatch(r"RuntimeError: text\d+", prose.message(f"RuntimeError: {line * 1000}"))


def test_what_is_learned_of_a_message_is_not_what_is_shown() -> None:
    """A line of the user's own is seen in parts first: then it goes as a whole."""
    words = settled("secretfn")
    prose = Prose(words, lambda file, number, text: words.code(text), [])
    line = "RuntimeError: customer secretfn has no contract"
    prose.learn()
    prose.message(line)
    prose.forget()
    assert re.fullmatch(r"RuntimeError: text\d+", prose.message(line))


# Paths


def test_paths() -> None:
    names = Names()

    def path(old: str) -> str:
        return redact_path(names, old)

    assert path("/home/ada/model.py") == "/d1/d2/m3.py"
    assert path("/home/ada/data/other.py").startswith("/d1/d2/d4/m")
    assert path("/home/ada") == "/d1/d2"
    assert path(f"{LIBRARY}/transformers/models/t5.py").endswith(
        "/lib/python3.11/site-packages/transformers/models/t5.py"
    )
    private = path(f"{LIBRARY}/secretwheel/core.py")
    assert "secret" not in private and origin_of(private) == "library"
    assert path("/usr/lib/python3.11/json/decoder.py") == "/usr/lib/python3.11/json/decoder.py"
    assert "secret" not in path("/opt/lib/python3.11/secretthing/x.py")
    assert path("<stdin>") == "<stdin>" and path("<eval_with_key>.3") == "<eval_with_key>.3"
    assert origin_of(path("<ipython-input-3-secret>")) == "user"
    assert re.fullmatch(r"<m\d+>", path("<secret template>"))
    assert re.fullmatch(r"C:\\d\d+\\d\d+\\m\d+.py", path(r"C:\Users\Ada\secret.py"))
    assert path("train/__init__.py").endswith("/__init__.py")
    assert path("/train/data") != "/train/data", "names of torch's are the user's folders here"


# Runs


@pytest.mark.parametrize("name", samples.RUNS)
def test_sample_runs_are_read_alike(name: str) -> None:
    run = samples.RUNS[name]
    done, _ = redacted(run)
    assert changed(diagnosis(digest(run)), diagnosis(digest(done.run))) == []
    assert done.run.header.host == "host" and done.run.header.run.endswith("-redacted")


def _graph(at: Frame) -> str:
    """A graph that calls an operator of torch's and one of the user's."""
    tensor = TensorInfo((8, "s77"), "float32", (8, 1), "secretchip:0")
    constants = {"other": 8675309, "alpha": 0.731, "dim": 17, "stride": [3, 3], "mode": "secret"}
    calls = (
        Call("aten.add.Tensor", (tensor,), (tensor,), constants),
        Call("secretns.secretop.default", (), (tensor,), {"secretarg": 0.731, "flag": True}),
    )
    nodes = (
        Node("l_self_modules_secret_", "placeholder", "L_secret_", source="L['self'].secretpart"),
        Node("secretvalue_1", "call_function", "secretmodule.secretcall", frame=at, calls=calls),
    )
    return encode_graph(Graph(nodes, ((at,),)))


SECRET_KEY = [
    "[secrethashofagraph] gm: GraphModule() secretgraph",
    "[secrethashofatag] cache_key_tag: secrettag",
    "[secrethashofasetting] inductor_config[cpp.cxx]: (None, 'secretcompiler')",
    "[secrethashofaflag] inductor_config[max_autotune]: True",
]


def planted() -> Run:
    """A run with secrets in every place that capture does not reach in the other tests."""
    artifacts = MemoryArtifacts()
    text = SOURCE.replace("secretpackage", "secretpkg")
    file = f"{ROOT}/secretfolder/with blank/secretfile.py"
    at = Frame(file, 14, "secretfunction", 11, 28, SOURCE.split("\n")[13])
    code = CodeRef(file, 8, "secretfunction")
    guard = FailedGuard("secretarg == 'secret value'", "secretarg", "'secret value'", "8675309")
    message = (
        f"backend='secretbackend' raised:\nSecretError: secret reasons in {file}:14\n\n"
        f'Traceback:\n  File "{file}", line 14, in secretfunction\n    {at.source.strip()}\n'
        '  File "/home/secretuser/x.py", line 3, in secretcaller\n    secretcall(secretvalue)\n'
    )
    reason = f"secretarg == 1  # f(secretarg)  # {file}:14 in secretfunction"
    made = [
        SourceSeen(file, artifacts.put(text, "py")),
        GraphBreak(
            gb_type="A type of secret things",
            explanation="Dynamo does not know how to trace `secretmethod` of class `SecretC`",
            context="call_method UserDefinedObjectVariable(SecretC) secretmethod [] {}",
            hints=(f"See {file} or https://secret.example.com/x",),
            frame=code,
        ),
        CompileFailed("SecretError", message, backend="secretbackend", frame=code),
        Recompile(code, (CacheEntryMiss("0/0", (guard,), reason),)),
        GuardSet(1, {"X": 1}, "0" * 40 + ".guards", code),
        Unknown({"kind": "SecretKind", "secret": "secret"}),
        GraphCaptured("dynamo", graph=artifacts.put(_graph(at), "json"), backend="secretbackend"),
        CacheAccess("aot_autograd", "bypass", reason="Unsupported target secretmodule.secretop."),
        cache_access(
            "fx_graph", "miss", {"key": "secretkey", "components": SECRET_KEY}, artifacts.put
        ),
    ]
    events = [
        event(body, number=n, stack=(at,), test=f"{file}::TestSecret::test_secret[secret-8675309]")  # type: ignore[arg-type]
        for n, body in enumerate(made)
    ]
    run = run_of(
        *events,
        command=("secretscript.py", "--secret-option=secret", "--lr", "0.731", "secret words"),
        cwd="/home/secretuser/secretproject",
        host="secrethost",
        run="abc123-secretscript",
    )
    return samples.with_artifacts(run, artifacts)


def test_every_place_is_reached() -> None:
    run = planted()
    done, text = redacted(run)
    assert "secret" not in text.lower() and "8675309" not in text and "0.731" not in text
    assert "0" * 40 not in text, "the name of a missing artifact is a hash of what it was"
    assert changed(diagnosis(digest(run)), diagnosis(digest(done.run))) == []
    failed = next(body for _, body in done.run.of(CompileFailed))
    assert re.search(r'File "(/\w+|/with blank)+/m\d+\.py", line 14, in f\d+', failed.message)
    assert done.run.count(Unknown) == 1
    lookup = list(done.run.of(CacheAccess))[-1][1]
    [_, setting] = decode_key(done.run.artifacts.get(lookup.settings or "") or "").parts
    assert (setting.name, setting.digest, setting.value) == (
        "inductor_config[max_autotune]",
        "",
        "True",
    )
    [captured] = [body for _, body in done.run.of(GraphCaptured)]
    first, second = (
        decode_graph(done.run.artifacts.get(captured.graph or "") or "").nodes[1].calls or ()
    )
    assert first.op == "aten.add.Tensor" and first.constants["dim"] == 17
    assert first.constants["stride"] == [3, 3] and first.outputs[0].shape == (8, "s77")
    assert list(first.constants) == ["other", "alpha", "dim", "stride", "mode"]
    assert list(second.constants.values())[1] is True


TRITON = """# kernel path: /tmp/torchinductor_secret/ab/cabc.py
# Topologically Sorted Source Nodes: [secrethidden, add], Original ATen: [aten.mul, aten.add]
# Source node to ATen node mapping:
#   secrethidden => mul_1
# Graph fragment:
#   %arg0_1 : Tensor "f32[4, 8][8, 1]cuda:0" = PlaceHolder[target=arg0_1]
#   %mul_1 : Tensor = call_function[target=torch.ops.aten.mul.Tensor](args = (%arg0_1, 0.731))
triton_poi_fused_mul_secretop_0 = async_compile.triton('triton_poi_fused_mul_secretop_0', '''
import triton.language as tl
@triton.jit
def triton_poi_fused_mul_secretop_0(in_ptr0, out_ptr0, xnumel, XBLOCK : tl.constexpr):
    xoffset = tl.program_id(0) * XBLOCK
    tmp0 = tl.load(in_ptr0 + (x0), xmask)
    tmp1 = tl.full([1], 8675309, tl.float32)  # the sauce of Secretcorp
    secretvalue = tmp0 * tmp1
''', device_str='cuda')
"""


def test_kernels() -> None:
    artifacts = MemoryArtifacts()
    bodies_ = [
        SourceSeen(f"{ROOT}/model.py", artifacts.put("secrethidden = 1\n", "py")),
        KernelEmitted(artifacts.put(TRITON, "py"), kernels=("triton_poi_fused_mul_secretop_0",)),
    ]
    run = run_of(*(event(body, number=n) for n, body in enumerate(bodies_)))
    done, text = redacted(samples.with_artifacts(run, artifacts))
    assert "secret" not in text.lower() and "8675309" not in text and "0.731" not in text
    assert "sauce" not in text
    [kernel] = [body for _, body in done.run.of(KernelEmitted)]
    code = done.run.artifacts.get(kernel.artifact) or ""
    assert re.fullmatch(r"triton_poi_fused_mul_v\d+_0", kernel.kernels[0])
    assert code.count(kernel.kernels[0]) == 3
    hidden = re.search(
        r"Source Nodes: \[(v\d+), add\], Original ATen: \[aten.mul, aten.add\]", code
    )
    assert hidden and f"#   {hidden[1]} => mul_1" in code and f"{hidden[1]} = 1" in text
    for line in ('"f32[4, 8][8, 1]cuda:0" = PlaceHolder[target=arg0_1]', "tl.load(in_ptr0 + (x0)"):
        assert line in code


def test_library_code_stays_named() -> None:
    artifacts = MemoryArtifacts()
    file = f"{LIBRARY}/transformers/models/bert.py"
    source = "def bert_step(hidden_states):  # a public comment\n    print(hidden_states)\n"
    at = Frame(file, 2, "bert_step", 4, 24, "    print(hidden_states)", "library")
    made = [
        SourceSeen(file, artifacts.put(source, "py")),
        GraphBreak(gb_type="Failed to trace builtin operator", gb_id="GB0059"),
    ]
    run = run_of(*(event(body, number=n, stack=(at,)) for n, body in enumerate(made)))
    done, text = redacted(samples.with_artifacts(run, artifacts))
    assert source in text and "/site-packages/transformers/models/bert.py" in text
    assert "ada" not in text
    assert done.run.events[2].stack[0].function == "bert_step"


def test_a_package_of_the_users_own_with_a_public_name() -> None:
    artifacts = MemoryArtifacts()
    text = "from einops import secretpart\nsecretpart.secretcall()\n"
    made = [
        SourceSeen(f"{ROOT}/main.py", artifacts.put(text, "py")),
        SourceSeen(f"{ROOT}/einops.py", artifacts.put("def secretpart(): ...\n", "py")),
    ]
    run = run_of(*(event(body, number=n) for n, body in enumerate(made)))
    assert "secret" not in redacted(samples.with_artifacts(run, artifacts))[1]


def test_what_a_name_means_elsewhere() -> None:
    """`cfg` is a package in one file and the user's object in another."""
    artifacts = MemoryArtifacts()
    one, two = "import einops as cfg\ncfg.rearrange(x)\n", "def f(cfg):\n    cfg.secretfield\n"
    made = [
        SourceSeen(f"{ROOT}/{n}.py", artifacts.put(t, "py")) for n, t in (("a", one), ("b", two))
    ]
    run = run_of(*(event(body, number=n) for n, body in enumerate(made)))
    assert "secret" not in redacted(samples.with_artifacts(run, artifacts))[1]


def test_the_diagnosis_sees_a_change() -> None:
    run = samples.RUNS["full"]
    other = Run(
        run.header, [e for e in run.events if not isinstance(e.body, GraphBreak)], run.artifacts
    )
    assert set(changed(diagnosis(digest(run)), diagnosis(digest(other)))) >= {"breaks", "findings"}
    assert diagnosis(digest(run))["breaks"]


def test_of_very_many_causes_the_first_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    run = samples.RUNS["full"]
    whole = diagnosis(digest(run))
    assert compared_diagnosis(run) == (whole, "whole")
    monkeypatch.setattr(compared, "MOST_COMPARED", 0)
    part, extent = compared_diagnosis(run)
    assert extent == "part" and part["counts"] == whole["counts"]
    assert len(part["breaks"]) == len(whole["breaks"]) and part["breaks"] != whole["breaks"]
    monkeypatch.setattr(compared, "_MOST_CAUSES", 0)
    assert compared_diagnosis(run) == ({}, "none")


def test_beyond_a_number_of_words_texts_go_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of them is left, and a message is no longer taken for PyTorch's."""
    monkeypatch.setattr(code, "_MOST_WORDS", 20)
    said = [" ".join(f"'hidden w{n}{k}' `secret{n}.{k}`" for k in "abcdef") for n in range(9)]
    events = [
        event(
            GraphBreak(f"Reason {text}", explanation=text, context=text, outcome="resumed"),
            number=number,
            stack=(frame(number + 1, source=f"    secret{number} = quiet{number}({text!r})"),),
        )
        for number, text in enumerate(said)
    ]
    failed = CompileFailed("RuntimeError", "the shape of the input")
    done, everything = redacted(run_of(*events, event(failed, number=99)))
    assert done.whole > 9
    for word in ("hidden", "secret", "quiet", "the shape of the input"):
        assert word not in everything, word


def test_the_ends_of_expressions_are_the_same_from_the_first_look() -> None:
    text = "y = f(\n    secret,\n    other\n)\nz = g(secret,\n    y)\n"
    words = Words()
    _, ends = collect_source(words.names, text, set(), {1, 2})
    assert {line for line, _ in ends} == {1, 2}
    words.settle()
    one, two = RedactedSource(words, text), RedactedSource(words, text, {1, 2}, ends)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.expr):
            place = (node.lineno, node.col_offset, node.end_col_offset or 0)
            assert one.end_column(*place) == two.end_column(*place), place


def test_the_check_finds_what_redaction_forgot() -> None:
    done, _ = redacted(planted())
    assert leaked_names(done, ["... secretfunction ..."]) == ["secretfunction"]
    assert leaked_names(done, ['"a\\nsecretfunction"']) == ["secretfunction"]
    assert leaked_names(done, ["secretfolder/x"]) == ["secretfolder"]


def test_the_check_does_not_take_the_record_for_the_user() -> None:
    """Somebody has variables with the names of our fields, of folders, and of PyTorch's words."""
    run = samples.full_run()
    words = set(re.findall(r"[a-z]\w{2,}", " ".join(encode(e).decode() for e in run.events)))
    words |= {*vocabulary.prose(), *vocabulary.errors(), *vocabulary.generated()}
    words |= {"opt", "tmp", "venv", "site", "module", "host", "unreadable", "redacted", "https"}
    words = {word for word in words if word.isidentifier() and not keyword.iskeyword(word)}
    artifacts = MemoryArtifacts()
    text = "".join(f"{word} = '{word} said'\n" for word in sorted(words))
    trace = 'Traceback (most recent call last):\n  File "/tmp/x/opt/site.py", line 3, in <module>\n'
    made = [
        *(e.body for e in run.events),
        SourceSeen(f"{ROOT}/model.py", artifacts.put(text, "py")),
        SourceSeen("/usr/lib/python3/site-packages/host.py", artifacts.put("host = 1\n", "py")),
        CompileFailed("RuntimeError", f"{trace}See https://pytorch.org/docs/host.html"),
    ]
    events = [event(body, number=n, stack=(frame(),)) for n, body in enumerate(made)]
    redacted(samples.with_artifacts(run_of(*events), artifacts))


def test_every_text_of_the_record_has_a_policy() -> None:
    """A new field must be thought about: unlisted, it is taken for code and replaced."""
    structs = {
        name: kind
        for module in (bodies, cache_key, graph, header)
        for name, kind in vars(module).items()
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct) and name[0] != "_"
    }
    special = {"Unknown", *(name for name in vars(stack))}
    for name, kind in structs.items():
        if name in special:
            continue
        for field in msgspec.structs.fields(kind):
            if re.search(r"\bstr\b", str(field.type)) or field.type is str:
                assert field.name in POLICIES.get(name, {}), f"{name}.{field.name}: see policies.py"


def test_frames_that_are_equal_stay_equal() -> None:
    one, two = frame(), frame(9)
    run = run_of(
        event(GraphBreak(gb_type="x"), number=1, stack=(one, two)),
        event(GraphBreak(gb_type="y"), number=2, stack=(two, one)),
    )
    first, second = (e.stack for e in redacted(run)[0].run.events[1:3])
    assert first[0] == second[1] and first[1] == second[0] and first[0] != first[1]
    assert first[0].source[first[0].column : first[0].end_column].endswith(".mean() > 0")


def test_a_file_too_large_to_parse_keeps_only_its_number_of_lines() -> None:
    text = "secret_thing = 1\n" * 40_000
    run = run_of(event(SourceSeen("/u/model.py", artifact_name(text, "py"))))
    run.artifacts.put(text, "py")
    artifacts = MemoryArtifacts()
    redaction = redact(run, artifacts)
    ((_, seen),) = redaction.run.of(SourceSeen)
    shown = artifacts.get(seen.artifact)
    assert shown is not None
    assert shown.count("\n") == text.count("\n")
    assert shown.strip() == "# This file is too large to redact."


def test_of_much_source_the_first_files_are_shown_and_none_leaks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(files, "_MOST_SOURCE", 2000)
    texts = [f"secret{n} = 'their own words {n}'\n" + "x = 1\n" * 50 for n in range(8)]
    line = "call_of_theirs(secret7)"
    run = run_of(
        *(
            event(SourceSeen(f"/u/model{n}.py", artifact_name(text, "py")), number=n + 1)
            for n, text in enumerate(texts)
        ),
        event(
            GraphBreak(gb_type="their own words 7", context="secret7 secret0"),
            number=20,
            stack=(Frame(file="/u/model7.py", line=1, function="secret7", source=line),),
        ),
    )
    for text in texts:
        run.artifacts.put(text, "py")
    redaction, everything = redacted(run)
    artifacts = [
        redaction.run.artifacts.get(seen.artifact) for _, seen in redaction.run.of(SourceSeen)
    ]
    left_out = [text for text in artifacts if text is not None and text.startswith("# This file")]
    assert len(left_out) == redaction.left_out
    assert 0 < len(left_out) < len(texts)
    assert artifacts[0] not in left_out and artifacts[-1] in left_out
    assert {text.count("\n") for text in left_out} == {texts[0].count("\n")}
    assert not re.search(r"secret\d|theirs|own words", everything)


@pytest.mark.parametrize("more", [-1, 0, 1, 5000])
def test_code_is_hidden_on_both_sides_of_the_longest_that_is_read(more: int) -> None:
    code = "secret_name.their_method('a secret text') + " * 5000
    code = code[: 100_000 + more - len("secret_end")] + "secret_end"
    guard = FailedGuard(code, code, code, code, "SHAPE")
    entry = CacheEntryMiss("0/0", (guard,), f"{code}  # secret_name  # secret.py:3 in secret_f")
    place = Frame(file="/u/secret.py", line=3, function="secret_f", source=code)
    body = Recompile(CodeRef("/u/secret.py", 1, "secret_f"), (entry,))
    redaction, everything = redacted(run_of(event(body, number=1, stack=(place,))))
    assert "secret" not in everything and "their_method" not in everything
    ((_, seen),) = redaction.run.of(Recompile)
    assert (len(seen.entries[0].failed[0].guard) < 20) == (more > 0)


def test_a_guard_that_names_every_tensor_stays_small() -> None:
    names = ", ".join(f"L['x{n}']" for n in range(30_000))
    tree = f"+- RootGuardManager\n| +- NO_ALIAS: check_no_aliasing({names})\n"
    guards = decode_guards(tree)
    assert len(guards) > 29_000
    assert sum(len(guard.checks[0]) for guard in guards) < 5_000_000


def test_a_line_of_bars_is_no_guard() -> None:
    assert decode_guards("| " * 100_000 + "\n| +- A: b\n|  +- B: c\n") == [Guard("", "A", ("b",))]


def test_a_sentence_names_a_few_and_none_at_length() -> None:
    assert a_few(["secret", "x" * 200_000]) == f"secret, {'x' * 59}…"
    assert a_few([str(number) for number in range(9)]) == "0, 1, 2, 3, 4"


@pytest.mark.parametrize("kind", ["\u202esecret.exe", "secret"])
def test_words_of_the_record_itself_are_nobodys_secret(kind: str) -> None:
    """A damaged run may have a name of the user's where only our own words belong."""
    failed = FailedGuard("x == 1", "x", "1", "2", kind)
    code = CodeRef(f"{ROOT}/secret.py", 3, "secret")
    run = run_of(event(Recompile(code, (CacheEntryMiss("0/0", (failed,)),)), compile_id="secret/0"))
    redacted(run)


@pytest.mark.parametrize(
    "path", [f"{LIBRARY}/torch/secret.py", f"{LIBRARY}/torch/{'x' * 5000}", "<frozen secret>"]
)
def test_what_stays_of_a_path_is_public(path: str) -> None:
    """Wherever the path stands: in a field of its own, in a sentence, in a frame."""
    own = CodeRef(f"{ROOT}/secret.py", 3, path.rpartition("/")[2].removesuffix(".py"))
    run = run_of(
        event(bodies.LogRead(path, 1)),
        event(GraphBreak(gb_type="A", explanation=f"See {path}.", frame=own, within=own)),
    )
    redacted(run)


def test_the_end_of_an_artifacts_name_may_be_a_word_of_the_users() -> None:
    artifacts = MemoryArtifacts()
    kept = artifacts.put("def f(x):\n    return x\n", "projectzebra")
    seen = [
        event(SourceSeen(f"{ROOT}/a.py", kept)),
        event(SourceSeen(f"{ROOT}/b.py", f"{'0' * 40}.projectzebra"), id="0.9"),
        event(SourceSeen(f"{ROOT}/c.py", artifacts.put("y = 1\n", "py")), id="0.10"),
    ]
    whole = run_of(*seen)
    done, text = redacted(Run(whole.header, whole.events, artifacts))
    assert "projectzebra" not in text
    ends = [body.artifact.partition(".")[2] for _, body in done.run.of(SourceSeen)]
    assert ends == ["txt", "txt", "py"]
