"""Where torch.compile is applied, under whatever name, and how its arguments are changed."""

from __future__ import annotations

import pytest

from builders import run_of
from compilescope.change.fixes.compilation.objects import is_of_several
from compilescope.change.fixes.compilation.regions import Region, own_regions, regions_of
from compilescope.change.fixes.compilation.settings import put_setting, set_argument
from compilescope.change.fixes.subject import Program
from compilescope.knowledge.analysis.digest import digest
from compilescope.knowledge.source.refusals import Refused
from compilescope.knowledge.source.syntax.edit import Edit
from compilescope.knowledge.source.syntax.module import SourceModule


def regions(text: str) -> list[Region]:
    return regions_of(SourceModule("/program.py", text))


@pytest.mark.parametrize(
    ("text", "form", "target", "names"),
    [
        ("import torch\nf = torch.compile(g)\n", "call", "g", {"f"}),
        ("import torch as th\nself.net = th.compile(Net())\n", "call", "Net()", {"self.net"}),
        ("from torch import compile as c\nf: object = c(g)\n", "call", "g", {"f"}),
        ("import torch\ntorch.compile(g)(x)\n", "call", "g", {"torch.compile(g)"}),
        ("import torch\nfs = [torch.compile(g) for g in gs]\n", "call", "g", {"fs"}),
        ("import torch\nif (f := torch.compile(model=g)):\n    pass\n", "call", "g", {"f"}),
        ("import torch\nnet.compile()\n", "method", "net", {"net"}),
        ("import torch\nself.net.compile(dynamic=True)\n", "method", "self.net", {"self.net"}),
        ("import torch\n[b.compile() for b in net.blocks]\n", "method", "b", {"b"}),
        ("import torch\nfor b in net.blocks:\n    b.compile()\n", "method", "b", {"b"}),
        ("from torch import nn\nnn.Module.compile(net, dynamic=True)\n", "method", "net", {"net"}),
        (
            "import torch\nn.forward = torch.compile(n.forward)\n",
            "call",
            "n.forward",
            {"n.forward"},
        ),
    ],
)
def test_forms_of_calls(text: str, form: str, target: str, names: set[str]) -> None:
    (region,) = regions(text)
    assert region.form == form
    assert region.target is not None
    assert region.module.code(region.target) == target
    assert region.names == names


@pytest.mark.parametrize(
    "decorator",
    [
        "torch.compile",
        "torch.compile()",
        "torch.compile(backend='eager')",
        "partial(torch.compile)",
    ],
)
def test_decorators(decorator: str) -> None:
    head = "import torch\nfrom functools import partial\n"
    (region,) = regions(f"{head}@{decorator}\ndef step(x):\n    return x\n")
    assert region.form == "decorator"
    assert "step" in region.names


@pytest.mark.parametrize(
    "text",
    [
        "import re\npattern = re.compile('a')\n",
        "import re\nre.compile('a')\n",
        "import re\n[re.compile(each) for each in 'ab']\n",
        "patterns = [each.compile() for each in templates]\n",
        "code = compile('a', 'b', 'exec')\n",
        "import other as torch\nf = torch.compile(g)\n",
        "def torch(): ...\n",
    ],
)
def test_what_is_none(text: str) -> None:
    assert regions(text) == []


@pytest.mark.parametrize(
    ("text", "several"),
    [
        ("a = torch.compile(f)\n", False),
        ("for g in gs:\n    torch.compile(g)\n", True),
        ("a = [torch.compile(g) for g in gs]\n", True),
        ("def main():\n    a = torch.compile(f)\nmain()\n", False),
        ("def make(h):\n    return torch.compile(h)\n", False),
        ("def make(h):\n    return torch.compile(h)\nmake(a)\nmake(b)\n", True),
        ("def make(h):\n    return torch.compile(h)\nhs = list(map(make, hs))\n", True),
        ("def main(h):\n    torch.compile(h)\nfor h in hs:\n    main(h)\n", True),
        ("class A:\n    def __init__(self):\n        self.f = torch.compile(f)\nA()\n", False),
        ("class A:\n    def __init__(self):\n        self.f = torch.compile(f)\nA(), A()\n", True),
        (
            "class A:\n    def __init__(self):\n        self.f = torch.compile(f)\n"
            "class B(A):\n    def __init__(self):\n        super().__init__()\nA(), B()\n",
            True,
        ),
        ("def make(h):\n    return torch.compile(h)\n@make\ndef f(): ...\n", False),
        (
            "def make():\n    @torch.compile\n    def f(): ...\n    return f\nmake(), make()\n",
            True,
        ),
    ],
)
def test_is_of_several(text: str, several: bool) -> None:
    run = run_of()
    program = Program(run, digest(run), "/t.py", {"/t.py": f"import torch\n{text}"})
    assert is_of_several(own_regions(program)[0], program) is several


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("f = torch.compile(g)", "f = torch.compile(g, dynamic=True)"),
        ("f = torch.compile(g, dynamic = None)", "f = torch.compile(g, dynamic = True)"),
        ("net.compile()", "net.compile(dynamic=True)"),
        ("@torch.compile\ndef f(x): ...", "@torch.compile(dynamic=True)\ndef f(x): ..."),
        (
            "f = torch.compile(\n    g,  # one\n    backend='eager'  # two\n)",
            "f = torch.compile(\n    g,  # one\n    backend='eager',  # two\n    dynamic=True\n)",
        ),
        (
            "f = torch.compile(\n    g,\n    backend='eager',\n)",
            "f = torch.compile(\n    g,\n    backend='eager',\n    dynamic=True,\n)",
        ),
        ("f = torch.compile(g,)", "f = torch.compile(g, dynamic=True,)"),
    ],
)
def test_an_argument_is_set(before: str, after: str) -> None:
    (region,) = regions(f"import torch\n{before}\n")
    edit = Edit(region.module)
    set_argument(edit, region, "dynamic", "True")
    assert edit.text() == f"import torch\n{after}\n"


def test_options_that_cannot_be_seen() -> None:
    (region,) = regions("import torch\nf = torch.compile(g, **options)\n")
    with pytest.raises(Refused, match="from a dict"):
        set_argument(Edit(region.module), region, "dynamic", "True")


def test_a_setting_goes_below_the_imports() -> None:
    text = '"""Words."""\nfrom __future__ import annotations\nimport torch\nx = 1\nimport os\n'
    edit = Edit(SourceModule("/program.py", text))
    put_setting(edit, "torch.flag = True")
    assert edit.text() == text.replace("import torch\n", "import torch\n\ntorch.flag = True\n")
    again = Edit(SourceModule("/program.py", edit.text()))
    with pytest.raises(Refused, match="already"):
        put_setting(again, "torch.flag = True")
