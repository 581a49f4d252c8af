"""A line that needs torch goes after the import of torch, wherever a program does that."""

from __future__ import annotations

import os
import sys

import pytest

from compilescope.change.fixes.compilation.settings import put_setting
from compilescope.knowledge.source.refusals import Refused
from compilescope.knowledge.source.syntax.edit import Edit
from compilescope.knowledge.source.syntax.module import SourceModule

pytestmark = pytest.mark.torch
HEADS = {
    "plain": "import torch\n",
    "docstring": '"""What it does."""\nimport torch\n',
    "future": '"""What it does."""\nfrom __future__ import annotations\nimport os\nimport torch\n',
    "environment": 'import os\nos.environ["SOME_FLAG"] = "1"\nimport torch\nimport math\n',
    "filter": 'import warnings\nwarnings.filterwarnings("ignore")\n\nimport torch as th\n',
    "path": "import sys\nsys.path.insert(0, '.')\nfrom torch import nn\nimport torch.nn\n",
    "part-only": 'import os\nos.environ["SOME_FLAG"] = "1"\nfrom torch import nn\n',
    "alias-only": "import torch.nn as nn\nlayer = nn.Linear(1, 1)\n",
    "submodule": "import torch._dynamo\n",
    "star": "from torch import *\n",
    "tried": "import os\ntry:\n    import torch\nexcept ImportError:\n    raise\nx = 1\n",
    "in-if": "import sys\nif sys.version_info > (3,):\n    import torch\n    import math\nx = 1\n",
    "in-with": "import contextlib\nwith contextlib.nullcontext():\n    import torch\n",
    "main-guard": 'import os\nif __name__ == "__main__":\n    import torch\n    torch.ones(1)\n',
    "in-function": "import os\n\ndef main():\n    import torch\n    torch.ones(1)\n\nmain()\n",
    "for-types": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import torch\nx = 1\n",
    "late": "x = [1]\nfor each in x:\n    pass\nimport torch\n",
    "one-line": "import os; import torch\n",
    "none": "x = 1\n",
    "filter-between": (
        'import os\nimport warnings\nwarnings.filterwarnings("ignore")\nimport torch\n'
        'os.environ["SOME_FLAG"] = "1"\nimport math\nx = 1\n'
    ),
    "other-tried": (
        "try:\n    import nothing_here\nexcept ImportError:\n    nothing_here = None\n"
        "import torch\nx = 1\n"
    ),
    "in-except": ("try:\n    import nothing_here\nexcept ImportError:\n    import torch\nx = 1\n"),
    "first-side-not-taken": (
        "import sys\nif sys.argv is None:\n    import torch\nelse:\n    import torch\nx = 1\n"
    ),
    "third-side-taken": (
        "import sys\nif sys.argv is None:\n    import torch\nelif sys.path is None:\n"
        "    import torch\nelse:\n    import torch\nx = 1\n"
    ),
    "other-side": (
        "import sys\nif sys.argv is None:\n    import math\nelse:\n    import torch\nx = 1\n"
    ),
    "environment-if-missing": (
        'import os\nif "SOME_FLAG" not in os.environ:\n    os.environ["SOME_FLAG"] = "1"\n'
        "from torch import nn\nlayer = nn.Linear(1, 1)\n"
    ),
    "main-guard-above": (
        'import os\nif __name__ == "__main__":\n    os.environ["SOME_FLAG"] = "1"\n'
        "import torch\nx = torch.ones(1)\n"
    ),
    "functional-only": "import os\nimport torch.nn.functional as F\nF.relu\n",
    "compile-only": (
        "from torch import compile as tc\n\n@tc(backend='eager')\ndef f(x):\n    return x\n"
    ),
    "semicolons": 'import os; os.environ["SOME_FLAG"] = "1"; import torch; torch.ones(1)\n',
    "after-function": "def help():\n    return 1\n\nfrom torch import nn\nx = nn.Linear(1, 1)\n",
    "from-another-module": "import json\nfrom string import Template\nx = Template\n",
    "shebang": "#!/usr/bin/env python\n# A licence.\nimport torch\n",
}


def _with_line(text: str) -> str:
    edit = Edit(SourceModule("/program.py", text))
    put_setting(edit, f"{edit.module_name('torch')}._dynamo.config.capture_scalar_outputs = True")
    return edit.text()


@pytest.mark.parametrize("head", HEADS.values(), ids=HEADS)
def test_the_line_finds_torch(head: str) -> None:
    import torch

    before = torch._dynamo.config.capture_scalar_outputs
    text = _with_line(head)
    path, environ = list(sys.path), dict(os.environ)
    try:
        exec(compile(text, "program.py", "exec"), {"__name__": "__main__"})
        assert torch._dynamo.config.capture_scalar_outputs is True
    finally:
        torch._dynamo.config.capture_scalar_outputs = before
        sys.path[:] = path
        os.environ.clear()
        os.environ.update(environ)


@pytest.mark.parametrize("head", ["part-only", "environment-if-missing"])
def test_nothing_is_imported_before_the_environment_is_set(head: str) -> None:
    text = _with_line(HEADS[head])
    assert text.index('os.environ["SOME_FLAG"]') < text.index("import torch\n")


def test_an_import_alone_does_not_go_before_it_either() -> None:
    edit = Edit(SourceModule("/program.py", HEADS["environment-if-missing"]))
    assert edit.module_name("torch") == "torch"
    text = edit.text()
    assert text.index('os.environ["SOME_FLAG"]') < text.index("import torch\n")


def test_a_name_that_means_something_else_is_left_alone() -> None:
    with pytest.raises(Refused, match="something else"):
        _with_line("torch = 3\n")


def test_a_line_that_is_there_is_not_put_twice() -> None:
    once = _with_line(HEADS["environment"])
    with pytest.raises(Refused, match="already set"):
        _with_line(once)
