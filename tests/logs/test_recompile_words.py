"""Torch's words for why a compilation did not fit, as capture would have said it."""

from __future__ import annotations

import pytest

from compilescope.logs.words.failed_guards import GuardLines, explained, facts_of
from compilescope.logs.words.recompile_words import read_reason
from compilescope.record.guards import WholeFiles, count_kinds, read_guard_tree, readable

PLACE = "  # return x * n  # project/m.py:10 in f"
TENSOR = (
    "check_tensor(L['x'], Tensor, DispatchKeySet(CPU, BackendSelect), {dtype}, device=None, "
    "requires_grad={grad}, size={size}, stride=[1])"
)


@pytest.mark.parametrize(
    ("words", "guard", "subject", "expected", "actual", "kind"),
    [
        (
            "tensor 'x' size mismatch at index 0. expected 2, actual 3",
            "x.size()[0] == 2", "x.size()[0]", "2", "3", "TENSOR_MATCH",
        ),
        (
            "tensor 'L['x']' stride mismatch at index 1. expected 4, actual 1",
            "x.stride()[1] == 4", "x.stride()[1]", "4", "1", "TENSOR_MATCH",
        ),
        (
            "tensor 'x' rank mismatch. expected 1, actual 2",
            "x.dim() == 1", "x.dim()", "1", "2", "TENSOR_MATCH",
        ),
        (
            "tensor 'x' dtype mismatch. expected Float, actual BFloat16",
            "x.dtype == torch.float32", "x.dtype", "torch.float32", "torch.bfloat16",
            "TENSOR_MATCH",
        ),
        (
            "tensor 'x' requires_grad mismatch. expected requires_grad=0",
            "x.requires_grad == False", "x.requires_grad", "False", "True", "TENSOR_MATCH",
        ),
        (
            "tensor 'x' dispatch key set mismatch. expected DispatchKeySet(CPU, BackendSelect), "
            "actual DispatchKeySet(CPU, Python)",
            "dispatch keys of x", "dispatch keys of x", "BackendSelect", "Python", "TENSOR_MATCH",
        ),
        (
            "expected type of 'x' to be a tensor type, but found NoneType",
            "type(x) is Tensor", "type(x)", "Tensor", "NoneType", "TENSOR_MATCH",
        ),
        ("n == 3" + PLACE, "n == 3", "n", "3", "", "EQUALS_MATCH"),
        ("mode == 'a b'" + PLACE, "mode == 'a b'", "mode", "'a b'", "", "EQUALS_MATCH"),
        ("G['FLAG'] == True" + PLACE, "G['FLAG'] == True", "G['FLAG']", "True", "", "TRUE_MATCH"),
        ("bias is None" + PLACE, "bias is None", "bias", "None", "", "NONE_MATCH"),
        ("x is y" + PLACE, "x is y", "x is y", "True", "False", "SHAPE"),
        ("not seen" + PLACE, "len(seen) == 0", "len(seen)", "0", "", "LENGTH_CHECK"),
        ("len(xs) == 2" + PLACE, "len(xs) == 2", "len(xs)", "2", "", "LENGTH_CHECK"),
        (
            "2 <= L['x'].size()[0]" + PLACE,
            "2 <= x.size()[0]", "x.size()[0]", "2 <= x.size()[0]", "", "SHAPE",
        ),
        (
            "list(dict.keys(batch))[0] == 'a'" + PLACE,
            "batch.keys()[0] == 'a'", "batch.keys()[0]", "'a'", "", "EQUALS_MATCH",
        ),
        (
            "___check_type_id(self, 93890177755296), type=<class '__main__.Relu'>" + PLACE,
            "type(self) is Relu", "type(self)", "Relu", "", "TYPE_MATCH",
        ),
        (
            "___check_obj_id(L['fn'], 1402)" + PLACE,
            "fn is the same object", "fn", "the same object", "", "ID_MATCH",
        ),
        (
            "GLOBAL_STATE changed: grad_mode ",
            "grad_mode unchanged", "grad_mode", "", "changed", "GLOBAL_STATE",
        ),
        (
            "Cache line invalidated because L['self'].m got deallocated",
            "Cache line invalidated because self.m got deallocated", "the guarded object",
            "alive", "gone", "WEAKREF",
        ),
        ("something new: who knows", "something new: who knows", "something new", "", "", "OTHER"),
    ],
)  # fmt: skip
def test_words(words: str, guard: str, subject: str, expected: str, actual: str, kind: str) -> None:
    miss = read_reason(f"0/1: {words}", WholeFiles(["/home/ada/project/m.py"]))
    assert miss is not None
    assert miss.compile_id == "0/1"
    (failed,) = miss.failed
    found = (failed.guard, failed.subject, failed.expected, failed.actual, failed.kind)
    assert found == (guard, subject, expected, actual, kind)
    if PLACE in words:
        assert failed.frame is not None
        assert (failed.frame.file, failed.frame.line) == ("/home/ada/project/m.py", 10)


@pytest.mark.parametrize("text", ["", "no id here", "0/0 without a colon", ": x == 1"])
def test_no_reason(text: str) -> None:
    assert read_reason(text) is None


def tree(*leaves: str) -> str:
    lines = "".join(f"| {'' if leaf.startswith('|') else '+- '}{leaf}\n" for leaf in leaves)
    return f"TREE_GUARD_MANAGER:\n+- RootGuardManager\n{lines}"


def failures(old: str, new: str, words: str, **symbols: str) -> set[tuple[str, str, str]]:
    miss = read_reason(f"0/0: {words}")
    assert miss is not None
    before, after = GuardLines(old), GuardLines(new)
    facts = facts_of(after.beside(before, WholeFiles()), symbols)
    found = explained(miss, before.beside(after, WholeFiles()), facts)
    return {(one.subject, one.expected, one.actual) for one in found.failed}


def test_guards_held_against_each_other_tell_all_that_failed() -> None:
    shape = "TENSOR_MATCH: " + TENSOR.format(dtype="torch.float32", grad=False, size="[3]")
    other = "TENSOR_MATCH: " + TENSOR.format(dtype="torch.float64", grad=True, size="[None]")
    old = tree(shape, f"EQUALS_MATCH: L['n'] == 3{PLACE}", f"TRUE_MATCH: G['A'] == True{PLACE}")
    new = tree(other, f"FALSE_MATCH: G['A'] == False{PLACE}")
    found = failures(old, new, "n == 3", **{"L['n']": "4", "L['x'].size()[0]": "5"})
    assert found == {
        ("x.dtype", "torch.float32", "torch.float64"),
        ("x.requires_grad", "False", "True"),
        ("x.size()[0]", "3", "5"),
        ("n", "3", "4"),
        ("G['A']", "True", "False"),
    }


def test_a_value_that_became_a_tensor() -> None:
    old = tree(f"NONE_MATCH: L['x'] is None{PLACE}")
    new = tree("TENSOR_MATCH: " + TENSOR.format(dtype="torch.float32", grad=False, size="[3]"))
    assert failures(old, new, "x is None") == {
        ("x", "None", "Tensor(shape=(3,), dtype=torch.float32)")
    }


def test_without_guards_torchs_word_stands() -> None:
    assert failures("", "", "n == 3") == {("n", "3", "")}


def test_a_tree_is_read_and_counted_alike() -> None:
    text = tree(
        f"LAMBDA_GUARD: hooks == None{PLACE}",
        "GuardManager: source=L['x'], accessed_by=A(key='x'), type=<class 'torch.Tensor'>",
        "| +- TENSOR_MATCH: check_tensor(L['x'])",
        f"| +- NO_TENSOR_ALIASING: check_no_aliasing(L['x'], L['y']){PLACE}",
        f"| +- DIMENSION_DYNAMIC_MARKING_GUARD: a{PLACE}",
        f"| +- DIMENSION_DYNAMIC_MARKING_GUARD: b{PLACE}",
    )
    text += f"+- LAMBDA_GUARD: 2 <= L['x'].size()[0]{PLACE}\n"
    guards = read_guard_tree(text, ["/home/ada/project/m.py"])
    assert [(guard.source, guard.kind, len(guard.checks)) for guard in guards] == [
        ("L", "LAMBDA_GUARD", 1),
        ("L['x']", "TENSOR_MATCH", 1),
        ("L['x']", "NO_TENSOR_ALIASING", 1),
        ("L['y']", "NO_TENSOR_ALIASING", 1),
        ("L['x']", "DIMENSION_DYNAMIC_MARKING_GUARD", 2),
        ("", "SHAPE", 1),
    ]
    assert guards[0].stack[0].file == "/home/ada/project/m.py"
    kinds: dict[str, int] = {}
    for guard in guards:
        kinds[guard.kind] = kinds.get(guard.kind, 0) + 1
    assert count_kinds(text.encode()) == kinds


@pytest.mark.parametrize(
    ("guard", "words"),
    [
        ("___as_tensor(L['p']).item() == 0.1", "p == 0.1"),
        ("0.0 <= ___as_tensor(L['self'].p).item()", "0.0 <= self.p"),
        ("L['t'].item() == 3", "t.item() == 3"),
        ("len(L['x']) == 2", "len(x) == 2"),
    ],
)
def test_guards_in_the_words_of_the_author(guard: str, words: str) -> None:
    assert readable(guard) == words
