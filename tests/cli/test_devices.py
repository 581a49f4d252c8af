"""`compilescope devices`, as its users call it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from compilescope.apps.cli.main import main

Run = Callable[..., tuple[int, str, str]]
WRONG = """name = "mine"
titel = "typo"

[dtypes]
supported = ["float17"]
"""
MISNAMED = """name = "mine"

[dtypes.per_op]
"aten.embeding" = ["float16"]

[ops]
denied = [
    "aten.nonzero",
    "aten.add.Tensr",
    "aten.frobnicate_*",
    "elsewhere.op",
    "aten.linear",
]

[[ops.conditions]]
op = "aten.convolution"
when = "group > 1"
"""


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("COLUMNS", "80")

    def call(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["compilescope", "devices", *words])
        with pytest.raises(SystemExit) as leaving:
            main()
        captured = capsys.readouterr()
        return int(leaving.value.code or 0), captured.out, captured.err

    return call


def test_the_list(run: Run) -> None:
    code, out, _ = run()
    assert code == 0 and "npu-a" in out and "Example: " in out
    code, out, _ = run("--json")
    rows = json.loads(out)["devices"]
    assert {"npu-a", "edge-dsp"} <= {row["name"] for row in rows}
    assert all(Path(row["file"]).is_file() for row in rows)


@pytest.mark.parametrize("name", [row for row in ("npu-a", "edge-dsp", "trainer-b", "vision-c")])
def test_every_word_of_a_device_is_shown(run: Run, name: str) -> None:
    code, out, _ = run("show", name)
    assert code == 0
    assert max(map(len, out.splitlines())) <= 80
    shown = " ".join(out.split())
    _, text, _ = run("show", name, "--json")
    device = json.loads(text)["device"]
    named = [*device["dtypes"]["supported"], *device["ops"]["denied"], *device["ops"]["allowed"]]
    for condition in device["ops"]["conditions"]:
        named += [condition["op"], condition["when"], condition["reason"]]
    for rule in device["shapes"]["alignment"]:
        named += [f"multiples of {rule['multiple']}", *rule["ops"]]
    assert [word for word in named if word not in shown] == []


def test_a_device_of_ones_own(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('name = "mine"\n')
    code, out, _ = run("show", str(file))
    assert code == 0 and "mine" in out and "any" in out


def test_an_unknown_device(run: Run) -> None:
    code, out, err = run("show", "npu-b")
    assert (code, out) == (2, "")
    assert err == (
        "compilescope: error: There is no device named 'npu-b'.\n  Did you mean npu-a?\n"
    )


def test_a_wrong_file(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(WRONG)
    code, out, _ = run("check", str(file))
    assert code == 1
    assert out.splitlines() == [
        f"{file}:2: titel: unknown key.",
        "    Did you mean title?",
        f"{file}:5: dtypes.supported: 'float17' is not a dtype.",
        "    Did you mean float16?",
    ]
    file.write_text(WRONG.replace('titel = "typo"\n', ""))
    code, out, _ = run("check", str(file), "--json")
    found = json.loads(out)
    assert (code, found["ok"]) == (1, False)
    (problem,) = found["problems"]
    assert (problem["line"], problem["key"], problem["hint"]) == (
        4, "dtypes.supported", "Did you mean float16?",
    )  # fmt: skip


def test_a_file_that_is_not_there(run: Run, tmp_path: Path) -> None:
    code, _, err = run("check", str(tmp_path / "none.toml"))
    assert code == 2 and "There is no device file" in err
    code, _, err = run("check", str(tmp_path))
    assert code == 2 and "Traceback" not in err


@pytest.mark.torch
def test_operators_that_torch_does_not_know(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    file = tmp_path / "mine.toml"
    file.write_text(MISNAMED)
    code, out, _ = run("check", str(file))
    assert code == 1
    assert out.splitlines() == [
        f"{file}:4: dtypes.per_op.aten.embeding: this torch has no operator aten.embeding.",
        "    Did you mean aten.embedding?",
        f"{file}:9: ops.denied: this torch has no overload aten.add.Tensr.",
        "    Did you mean aten.add.Tensor?",
        f"{file}:10: ops.denied: no operator of this torch matches aten.frobnicate_*.",
        f"{file}:17: ops.conditions.when: aten.convolution has no argument group.",
        "    Did you mean groups?",
        f"{file}:12: note: ops.denied: aten.linear is composed of other operators: graphs at ATen "
        "level contain only those.",
        "Not checked, because their libraries are not loaded here: elsewhere.op.",
    ]
    code, out, _ = run("check", str(file), "--json")
    found = json.loads(out)
    assert len(found["problems"]) == 4 and len(found["notes"]) == 1
    assert found["operators"]["unchecked"] == ["elsewhere.op"]


@pytest.mark.torch
def test_operators_are_looked_at_whatever_else_is_wrong(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    file = tmp_path / "mine.toml"
    file.write_text(
        'name = "mine"\n[ops]\ndenied = [7, "aten.nonzro"]\n'
        '[[ops.conditions]]\nop = "aten.convolution"\nwhen = "groups"\n'
        '[[ops.conditions]]\nop = 3\nwhen = "groups > 1"\n'
        '[[ops.conditions]]\nop = "aten.convolution"\nwhen = "gruops > 1"\n'
    )
    code, out, _ = run("check", str(file))
    assert code == 1
    assert out.splitlines() == [
        f"{file}:3: ops.denied: expected a string, got 7.",
        f"{file}:3: ops.denied: this torch has no operator aten.nonzro.",
        "    Did you mean aten.nonzero?",
        f"{file}:6: ops.conditions.when: 'groups' is not a comparison such as `groups > 1`.",
        f"{file}:8: ops.conditions.op: expected a string, got 3.",
        f"{file}:12: ops.conditions.when: aten.convolution has no argument gruops.",
        "    Did you mean groups?",
    ]


@pytest.mark.torch
@pytest.mark.parametrize("name", ["npu-a", "edge-dsp", "stream-d", "trainer-b", "vision-c"])
def test_torch_knows_the_operators_of_the_shipped_devices(run: Run, name: str) -> None:
    pytest.importorskip("torch")
    code, out, _ = run("check", name)
    assert code == 0 and len(out.splitlines()) == 1, out


def test_without_torch_operators_are_said_to_be_unchecked(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(MISNAMED)
    code = f"""
import sys
class Block:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("torch", "numpy"):
            raise ImportError(f"{{name}} is blocked")
sys.meta_path.insert(0, Block())
from compilescope.apps.cli.main import main
sys.argv = ["compilescope", "devices", "check", {str(file)!r}]
main()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "operators it names were not checked: torch is not installed here." in done.stdout
