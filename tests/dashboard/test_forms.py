"""Forms as data: what each field lets through, and that real commands take what forms make."""

from __future__ import annotations

import importlib
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest

import samples
from compilescope.apps.dashboard.fields import choices
from compilescope.apps.dashboard.fields.form import FilledForm, Form, all_forms, fill
from compilescope.apps.dashboard.fields.kinds import (
    Checks,
    Field,
    Flag,
    FormPlace,
    NameList,
    Number,
    OneOf,
    ProgramArguments,
    Text,
    WholeNumber,
)
from compilescope.apps.dashboard.fields.shared import (
    Backends,
    Build,
    Builds,
    DeviceName,
    OutFile,
    RunId,
    ScriptFile,
    SweepSource,
)
from compilescope.base.errors import ToolError
from compilescope.base.folders import Folders

FORMS = all_forms()
BY_ID = {form.id: form for form in FORMS}
TEXTS = {
    "site": "model.py:3",
    "step": "model.py:build",
    "budget": "2m",
    "padding": "8",
}
RUN = "abc123-sample"


@pytest.fixture
def place(tmp_path: Path) -> FormPlace:
    home = tmp_path / "work" / "runs here"
    samples.store(next(iter(samples.RUNS.values())), home, RUN)
    (tmp_path / "work" / "model.py").write_text("def build(): ...")
    (tmp_path / "work" / "device.toml").write_text("")
    (tmp_path / "work" / "a b.py").write_text("")
    (tmp_path / "outside.py").write_text("")
    (tmp_path / "work" / "link.py").symlink_to(tmp_path / "outside.py")
    return FormPlace(Folders([tmp_path / "work"]), home)


def sample(field: Field) -> list[str]:
    """Something that this field takes."""
    kind = field.kind
    known: dict[type, list[str]] = {
        Flag: ["on"],
        ScriptFile: ["model.py"],
        Build: ["model.py:build"],
        Builds: ["model.py:build 'a b.py:f'"],
        SweepSource: ["model.py"],
        OutFile: ["repro.py"],
        RunId: [RUN],
        ProgramArguments: ["--dir x '--write' 'a b' --json -- --site y:1"],
        DeviceName: ["device.toml"],
        NameList: ["Encoder Decoder.forward"],
        Number: ["0.5"],
        WholeNumber: ["7"],
    }
    if type(kind) in known:
        return known[type(kind)]
    if isinstance(kind, Backends):
        return ["mine model.py:backend" if kind.many else "mine"]
    if isinstance(kind, Checks):
        return [option.value for option in kind.suggestions][:2]
    if isinstance(kind, OneOf):
        return [kind.options[-1]]
    assert isinstance(kind, Text), kind
    if kind.only_offered and kind.suggestions:
        return [kind.suggestions[0].value]
    return [TEXTS.get(field.name, "bert")]


def command_of(form: Form) -> click.Command:
    return importlib.import_module(f"compilescope.apps.cli.commands.{form.command[0]}").COMMAND


def option_of(form: Form, name: str) -> click.Option | None:
    for option in command_of(form).params:
        if isinstance(option, click.Option) and name in (*option.opts, *option.secondary_opts):
            return option
    return None


def parsed(filled: FilledForm) -> click.Context:
    """As the command itself reads the line."""
    command = command_of(filled.form)
    words = shlex.split(shlex.join(filled.words))
    assert words[0] == filled.form.command[0]
    return command.make_context(words[0], words[1:])


def test_forms_are_those_that_were_promised() -> None:
    wanted = {"run", "diff", "bench", "fix", "tune", "minify", "preflight", "sweep", "model"}
    assert set(BY_ID) == wanted


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.id)
def test_every_option_is_one_of_the_real_command(form: Form) -> None:
    if form.home_option:
        assert option_of(form, form.home_option) is not None
    assert len({field.name for field in form.fields}) == len(form.fields)
    for field in form.fields:
        if not field.option:
            continue
        option = option_of(form, field.option)
        assert option is not None, f"{form.command[0]} has no {field.option}"
        assert option.is_flag == isinstance(field.kind, Flag), field.name
        several = isinstance(field.kind, Checks | NameList | Builds) or getattr(
            field.kind, "many", False
        )
        assert not several or option.multiple, field.name
        if isinstance(option.type, click.Choice):
            assert isinstance(field.kind, OneOf), field.name
            assert set(field.kind.options) <= set(option.type.choices)
        if field.default and option.default is not None and form.id != "model":
            usual = float(field.default) if isinstance(option.default, float) else option.default
            assert str(usual) == str(option.default), field.name


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.id)
def test_the_real_command_takes_each_field(form: Form, place: FormPlace) -> None:
    """One at a time beside what is required: fields may exclude each other."""
    needed = {
        "fix": {"script": ["model.py"]},
        "preflight": {"script": ["model.py"], "devices": ["npu-a"]},
        "bench": {"models": ["gpt2"]},
        "sweep": {"source": ["model.py"]},
    }
    base = {field.name: sample(field) for field in form.fields if field.required}
    base |= needed.get(form.id, {})
    plain = parsed(fill(form, base, place))
    for field in form.fields:
        filled = fill(form, {**base, field.name: sample(field)}, place)
        assert field.name not in filled.errors or field.name in _EXCLUDED, filled.errors
        context = parsed(filled)
        if field.option and field.name not in base:
            option = option_of(form, field.option)
            assert option is not None and option.name is not None
            assert context.params[option.name] != plain.params[option.name], field.name
        if isinstance(field.kind, ProgramArguments):
            given = shlex.split(sample(field)[0])
            script = str(place.folders.check("model.py"))
            assert context.obj == ("script", (script, *given))


_EXCLUDED = (
    "run",
    "transformers",
    "backend",
    "optimizer",
    "output",
    "force",
    "device",
    "arguments",
)
"""What needs another field, or excludes it, says so beside a value that is right by itself."""


def test_a_line_can_be_typed_in_a_shell(place: FormPlace) -> None:
    given = {"script": ["a b.py"], "arguments": ["--lr 0.1 'it'\"'\"'s'"], "time": ["on"]}
    filled = fill(BY_ID["run"], given, place)
    assert not filled.errors
    script = place.folders.folders[0] / "a b.py"
    assert filled.line == (
        f"cd {place.folders.folders[0]} && compilescope run --dir '{place.home}' --time "
        f"'{script}' --lr 0.1 'it'\"'\"'s'"
    )
    said = subprocess.run(
        ["sh", "-c", filled.line.replace("compilescope", "printf '%s\\n'")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout.splitlines() == filled.words


def test_what_is_missing_stands_in_capitals(place: FormPlace) -> None:
    filled = fill(BY_ID["minify"], {}, place)
    assert filled.line == "compilescope minify SCRIPT"
    assert filled.errors == {"script": "This is required."}
    filled = fill(BY_ID["fix"], {"budget": ["soon"]}, place)
    assert filled.words[3:] == ["--budget", "BUDGET", "SCRIPT"]


def test_what_is_the_default_is_not_written(place: FormPlace) -> None:
    form = BY_ID["diff"]
    usual = {field.name: [field.default] for field in form.fields if field.default}
    filled = fill(form, {**usual, "build": ["model.py"]}, place)
    assert filled.words == [
        "diff",
        "--dir",
        str(place.home),
        f"{place.folders.folders[0]}/model.py:build",
    ]


@pytest.mark.parametrize(
    ("form", "field", "value"),
    [
        ("run", "script", "--help"),
        ("run", "script", "-c"),
        ("run", "script", "../outside.py"),
        ("run", "script", "link.py"),
        ("run", "script", "/etc/passwd"),
        ("run", "script", "model.py\n--json"),
        ("run", "script", "model.py\0"),
        ("run", "script", "x" * 5000),
        ("run", "arguments", "'never closed"),
        ("run", "arguments", "a\nb"),
        ("run", "backend", "--json"),
        ("run", "backend", "inductor eager"),
        ("run", "compile", "--json"),
        ("run", "compile", "a.b; rm"),
        ("run", "time", "maybe"),
        ("fix", "site", "--json"),
        ("fix", "site", "nowhere"),
        ("fix", "rules", "--write"),
        ("fix", "run", "../outside"),
        ("fix", "run", "no-such-run"),
        ("fix", "limit", "nan"),
        ("fix", "limit", "0"),
        ("fix", "limit", "-1"),
        ("fix", "limit", "1e400"),
        ("diff", "build", "model.py:build()"),
        ("diff", "build", "../outside.py:build"),
        ("diff", "inputs", "1.5"),
        ("diff", "inputs", "０"),
        ("diff", "inputs", "99999999999999999999"),
        ("diff", "test_backend", "../outside.py:backend"),
        ("diff", "optimizer", "--json"),
        ("bench", "models", "--list"),
        ("bench", "own", "../outside.py:build"),
        ("bench", "device", "tpu"),
        ("bench", "constraints", "../../etc/x.toml"),
        ("minify", "output", "../repro.py"),
        ("minify", "output", "/etc/cron.d/x"),
        ("minify", "output", "link.py"),
        ("minify", "predicate", "check"),
        ("preflight", "devices", "nobody"),
        ("preflight", "device_file", "/etc/x.toml"),
        ("sweep", "transformers", "--store"),
        ("sweep", "transformers", "a b"),
        ("sweep", "source", "/"),
        ("model", "model", "--dir"),
        ("model", "padding", "--x"),
        ("model", "seq", "0"),
    ],
)
def test_no_value_becomes_an_option_or_leaves_the_folders(
    form: str, field: str, value: str, place: FormPlace
) -> None:
    filled = fill(BY_ID[form], {field: [value]}, place)
    assert filled.errors[field]
    assert value.strip() not in filled.words


def test_fields_that_do_not_exist_or_come_twice(place: FormPlace) -> None:
    with pytest.raises(ToolError, match="has no field 'shell'"):
        fill(BY_ID["run"], {"shell": ["x"]}, place)
    filled = fill(BY_ID["run"], {"script": ["model.py", "a b.py"]}, place)
    assert filled.errors["script"] == "Give one value."
    filled = fill(BY_ID["bench"], {"models": ["gpt2"] * 101}, place)
    assert filled.errors["models"] == "These are too many."


def test_fields_that_speak_of_each_other(place: FormPlace) -> None:
    def wrong(form: str, **given: str) -> set[str]:
        return set(fill(BY_ID[form], {name: [text] for name, text in given.items()}, place).errors)

    assert wrong("run", script="model.py", backend="eager") == {"backend"}
    assert not wrong("run", script="model.py", backend="eager", compile_all="on")
    assert wrong("fix") == {"script"}
    assert wrong("fix", script="model.py", run=RUN) == {"run"}
    assert wrong("fix", run=RUN, arguments="x") == {"arguments"}
    assert wrong("fix", script="model.py", write="on", fixed="on") == {"fixed"}
    assert wrong("fix", script="model.py", output="x.py", force="on") == {"output", "force"}
    assert wrong("diff", build="model.py", optimizer="SGD") == {"optimizer"}
    assert wrong("bench") == {"models"}
    both = {"script": "model.py", "output": "r.py"}
    assert wrong("minify", **both, predicate="violation") == {"device"}
    assert wrong("minify", **both, predicate="break", device="npu-a") == {"device"}
    assert wrong("minify", **both, predicate="break", test_backend="x") == {"test_backend"}
    assert wrong("preflight", script="model.py") == {"devices"}
    assert wrong("sweep") == {"source"}
    assert wrong("sweep", source="model.py", transformers="all") == {"transformers"}
    assert wrong("sweep", transformers="all", compile_all="on") == {"compile_all"}
    assert wrong("sweep", source="model.py", backend="eager") == {"backend"}


def test_a_time_limit_is_no_part_of_the_line(place: FormPlace) -> None:
    given = {"script": ["model.py"], "limit_minutes": ["1.5"]}
    filled = fill(BY_ID["run"], given, place)
    assert filled.limit_s == 90
    assert filled.words == fill(BY_ID["run"], {"script": ["model.py"]}, place).words
    assert fill(BY_ID["run"], {"limit_minutes": ["0"]}, place).errors["limit_minutes"]


def test_what_it_is_about(place: FormPlace) -> None:
    def about(form: str, **given: Any) -> tuple[str, str]:
        filled = fill(BY_ID[form], given, place)
        return filled.subject, str(filled.cwd and filled.cwd.name)

    assert about("run", script=["model.py"]) == ("model.py", "work")
    assert about("diff", build=["model.py:f"]) == ("model.py:f", "work")
    assert about("bench", models=["gpt2", "bert"]) == ("bert, gpt2", "None")
    assert about("sweep", source=["."]) == ("work", "work")
    assert about("model", model=["bert"]) == ("bert", "None")


def test_which_files_are_written(place: FormPlace) -> None:
    def written(form: str, **given: str) -> list[str]:
        texts = {name: [text] for name, text in given.items()}
        return [Path(name).name for name in fill(BY_ID[form], texts, place).writes]

    assert written("minify", script="model.py", output="r.py") == ["r.py"]
    assert written("minify", script="model.py") == ["repro.py"]
    assert written("fix", script="model.py") == []
    assert written("fix", script="model.py", fixed="on") == ["model_fixed.py"]
    assert written("fix", script="model.py", fixed="on", output="f.py") == ["f.py"]
    assert written("tune", script="model.py", fixed="on") == ["model_fixed.py"]


def test_choices_are_read_without_torch_or_transformers() -> None:
    code = (
        "import sys; from compilescope.apps.dashboard.fields import choices; "
        "from compilescope.apps.dashboard.fields.form import all_forms; all_forms(); "
        "print([o.value for o in choices.bench_models()], len(choices.families())); "
        "assert not {'torch', 'transformers'} & set(sys.modules)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "'gpt2'" in said.stdout


@pytest.mark.slow
def test_the_models_are_those_of_bench() -> None:
    torch = pytest.importorskip("torch")
    assert torch
    from compilescope.measure.bench.model import all_models

    ours = {option.value: option for option in choices.bench_models()}
    for model in all_models():
        assert ours[model.name].text == model.title
        assert ours[model.name].note == model.about


@pytest.mark.slow
def test_the_families_are_those_of_transformers() -> None:
    transformers = pytest.importorskip("transformers")
    ours = {option.value for option in choices.families()}
    assert ours == set(transformers.CONFIG_MAPPING)
    assert choices.families()[0].value == "bert"


def test_what_is_not_installed_is_said() -> None:
    assert choices.missing((("sys", "x"), ("no_such_package", "models"))) == (
        "no_such_package",
        "models",
    )
    form = BY_ID["model"]
    lacking = Form(**{**vars(form), "needs": (("no_such_package", "models"),)})
    assert lacking.problem == (
        'This needs no_such_package. Install it with: pip install "compilescope[models]"'
    )
