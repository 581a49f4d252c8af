"""Functions cut in three, without running them."""

from __future__ import annotations

import libcst as cst
import pytest

from compilescope.change.fixes.statements.shell import Shell
from compilescope.knowledge.source.flow.cuts import Split, is_light, split_around
from compilescope.knowledge.source.refusals import Refused
from compilescope.knowledge.source.syntax.bindings import bound_names, local_names, statements_of
from compilescope.knowledge.source.syntax.edit import Edit
from compilescope.knowledge.source.syntax.module import SourceModule


def _function(module: SourceModule, name: str = "f") -> cst.FunctionDef:
    return next(
        each
        for each in module.walk()
        if isinstance(each, cst.FunctionDef) and each.name.value == name
    )


def _split(text: str, *outside: str) -> str:
    """The text after its function was split around the lines that contain these words."""
    module = SourceModule("/program.py", text)
    function = _function(module)
    body = statements_of(function)
    stays = [each for each in body if any(word in module.code(each) for word in outside)]
    edit = Edit(module)
    Shell(edit, function, split_around(module, body, stays)).write()
    return edit.text()


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("a = b = 1", {"a", "b"}),
        ("(a, [b, *c]) = x", {"a", "b"}),
        ("for i, (j, k) in x:\n    m = 1", {"i", "j", "k", "m"}),
        ("with open(p) as h, q as (s, t): pass", {"h", "s", "t"}),
        ("import os.path, sys as s", {"os", "s"}),
        ("from a import b, c as d", {"b", "d"}),
        ("try:\n    pass\nexcept E as e:\n    f = 1", {"e", "f"}),
        ("x.y = 1; z[0] = 2", set()),
        ("v = [i for i in (w := range(3))]", {"v", "w"}),
        ("def g(p):\n    q = 1", {"g"}),
        ("class C:\n    a = 1", {"C"}),
        ("n: int = 3", {"n"}),
        ("n += 1", {"n"}),
    ],
)
def test_bound_names(code: str, names: set[str]) -> None:
    assert bound_names(cst.parse_module(code).body) >= names
    assert bound_names(cst.parse_module(code).body) <= names | {"c"}


def test_a_global_is_no_local() -> None:
    module = SourceModule("/p.py", "def f(a, *b, c=1, **d):\n    global n\n    n = e = 1\n")
    assert local_names(_function(module)) == {"a", "b", "c", "d", "e"}


@pytest.mark.parametrize(
    ("code", "light"),
    [
        ("opt.step()", True),
        ("x.mul_(2)", False),
        ("p.requires_grad_(False)", True),
        ("return loss", True),
        ("return loss.item(), {'n': n}", True),
        ("return loss.detach()", False),
        ("return loss * 2", False),
        ("n = self.size", True),
        ("n = self.layer(x)", False),
        ("if a: pass", False),
        ("x += 1", False),
        ("y = batch['ids']", True),
    ],
)
def test_what_is_light(code: str, light: bool) -> None:
    module = SourceModule("/p.py", f"def f(x):\n    {code}\n")
    (statement,) = statements_of(_function(module))
    assert is_light(module, statement) is light


def test_only_what_the_core_reads_is_handed_in() -> None:
    text = _split(
        "import torch\n\n\ndef f(x, y, *rest, scale=2, **more):\n"
        "    n = more['n']\n    stop()\n    z = x * scale + n\n    return z.sin()\n",
        "stop()",
    )
    assert "def _f_result(x, scale, n):\n    z = x * scale + n\n    return z.sin()\n" in text
    assert "    stop()\n    return _f_result(x, scale, n)\n" in text
    # No public decorator leaves a function alone that is itself given to torch.compile.
    assert "does this\n@torch._dynamo.decorators.skip\ndef f(x, y, *rest," in text


def test_several_names_come_back() -> None:
    text = _split(
        "import torch as th\n\n\ndef f(x):\n    loss = x.sum()\n    aux = x.mean()\n"
        "    loss.backward()\n    log(aux)\n    return {'loss': loss, 'aux': aux}\n",
        "backward",
        "log",
    )
    assert "    return aux, loss\n" in text
    assert "    aux, loss = _aux_and_loss(x)\n    loss.backward()\n    log(aux)\n" in text
    assert "@th._dynamo.decorators.skip" in text


def test_the_value_returned_is_computed_before_the_backward() -> None:
    text = _split(
        "import torch\n\n\ndef f(x):\n    loss = x.sum()\n    loss.backward()\n"
        "    return loss * 2\n",
        "backward",
    )
    assert "    result = loss * 2\n    return loss, result\n" in text
    assert text.endswith("    loss.backward()\n    return result\n")


def test_a_method_keeps_its_object() -> None:
    text = _split(
        "import torch\n\n\nclass M:\n    def f(this, x):\n        this.calls.append(1)\n"
        "        return this.w * x\n",
        "append",
    )
    assert "    def _f_result(this, x):\n        return this.w * x\n" in text
    assert "        return this._f_result(x)\n" in text
    assert "    @torch.compiler.disable(recursive=False)\n    def f(this, x):" in text


@pytest.mark.parametrize(
    ("body", "because"),
    [
        ("y = x * 2\nstop()\nz = y + 1\nreturn z * 2", "both before and after"),
        ("if x.dim() > 3:\n    return x * 2\ny = x * 3\nstop()\nreturn y", "from the middle"),
        ("global n\nn = x * 2\nstop()\nreturn n", "variables of another scope"),
        ("stop()\nyield x * 2\nyield x * 3", "generator"),
        ("y = x * w.sum()\nw.add_(1)\nstop(y)\nreturn y * w", "both before|may depend"),
        ("y = x * 2\nstop(y)\nreturn y * 2", "may depend"),
        ("stop()\nreturn x", "computes nothing else"),
    ],
)
def test_it_refuses(body: str, because: str) -> None:
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    with pytest.raises(Refused, match=because):
        _split(f"import torch\n\n\ndef f(x, w=None):\n{lines}", "stop(")


def test_a_piece_is_a_function_of_the_file() -> None:
    text = (
        "import torch\n\n\nclass M:\n    def f(self, x):\n        y = x.a()\n        return y.b()\n"
    )
    module = SourceModule("/p.py", text)
    function = _function(module)
    first, last = statements_of(function)
    edit = Edit(module)
    Shell(edit, function, Split([], [first], [last])).write_part("torch._dynamo.nonstrict_trace")
    piece = "@torch._dynamo.nonstrict_trace\ndef _f_result(x):\n    y = x.a()\n    return y\n"
    assert f"\n\n{piece}\n\nclass M:" in edit.text()
    assert edit.text().endswith("        y = _f_result(x)\n        return y.b()\n")


@pytest.mark.parametrize(
    ("text", "where", "expected"),
    [
        ("a = 1; b = f(a)  # end\n", "before", "a = 1\nnew()\nb = f(a)  # end\n"),
        ("# top\nb = f(1); c = 2\n", "before", "# top\nnew()\nb = f(1); c = 2\n"),
        ("a = 1; b = f(a); c = 2\n", "after", "a = 1; b = f(a)\nnew()\nc = 2\n"),
        ("a = 1; b = f(a)  # end\n", "after", "a = 1; b = f(a)  # end\nnew()\n"),
        (
            "def g():\r\n\ta = 1; f(a);\r\n",
            "before",
            "def g():\r\n\ta = 1\r\n\tnew()\r\n\tf(a)\r\n",
        ),
        ("for a in b: f(a)\n", "before", ""),
        ("if a: b = 1; f(b)\n", "after", ""),
        ("@f(1)\ndef g():\n    pass\n", "before", "new()\n@f(1)\ndef g():\n    pass\n"),
    ],
)
def test_a_line_with_several_statements_is_split(text: str, where: str, expected: str) -> None:
    module = SourceModule("/p.py", text)
    call = next(
        each
        for each in module.walk()
        if isinstance(each, cst.Call) and isinstance(each.func, cst.Name) and each.func.value == "f"
    )
    edit = Edit(module)
    put = edit.put_before if where == "before" else edit.put_after
    if not expected:
        with pytest.raises(Refused, match="shares a line"):
            put(call, "new()")
        return
    put(call, "new()")
    assert edit.text() == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import torch\n", "import math\n\nimport torch\n"),
        ("import os\n\nimport torch\n", "import os\nimport math\n\nimport torch\n"),
        ('"""Doc."""\n\nimport torch\n', '"""Doc."""\n\nimport math\n\nimport torch\n'),
        ("# licence\nimport numpy\n", "# licence\nimport math\n\nimport numpy\n"),
        ("x = 1\n", "import math\nx = 1\n"),
    ],
)
def test_an_import_of_pythons_own_comes_above_others(text: str, expected: str) -> None:
    edit = Edit(SourceModule("/p.py", text))
    assert edit.module_name("math") == "math"
    assert edit.text() == expected


def test_a_definition_put_before_leaves_comments_where_they_are() -> None:
    module = SourceModule("/p.py", "import a\n\n\n# About f.\ndef f():\n    pass\n")
    edit = Edit(module)
    edit.put_definition_before(_function(module), "# About g.\ndef g():\n    pass\n")
    assert edit.text() == (
        "import a\n\n\n# About g.\ndef g():\n    pass\n\n\n# About f.\ndef f():\n    pass\n"
    )
