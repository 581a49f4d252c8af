"""What capture really records: nothing of the user's is left in it, and the rules say the same."""

from __future__ import annotations

import ast
import contextlib
import io
import logging
import runpy
import sys
import warnings
from pathlib import Path

import pytest

import compilescope
from compilescope.base.plugins import discover
from compilescope.knowledge.analysis.digest import digest
from compilescope.knowledge.rules import breaks
from compilescope.knowledge.rules import recompiles as guards
from compilescope.knowledge.rules.causes.rule import BreakRule, GuardRule
from compilescope.knowledge.source.spots import Place, Sources
from compilescope.record.artifacts import DiskArtifacts, MemoryArtifacts
from compilescope.record.event import encode
from compilescope.record.run import Run, read_run
from compilescope.record.stack import Frame
from compilescope.report.sharing.archive import write_archive, write_run
from compilescope.report.sharing.redaction import vocabulary
from compilescope.report.sharing.redaction.diagnosis import changed, diagnosis
from compilescope.report.sharing.redaction.run import leaked_names, redact
from sharing import secret_programs, words_of_torch
from zoo.truth import all_programs

pytestmark = pytest.mark.torch

EXAMPLES = {
    f"{rule.id}-{number}": example.bad
    for package, kind in ((breaks, BreakRule), (guards, GuardRule))
    for rule in discover(package, "RULE", kind)
    for number, example in enumerate(rule.examples)
}


def capture(script: Path) -> Run:
    """What capture sees of a program, in this process."""
    import torch

    torch._dynamo.reset()
    quiet = io.StringIO()
    log = logging.getLogger("torch")
    level = log.level
    log.setLevel(logging.CRITICAL)
    config = torch._dynamo.config.save_config()
    path, modules = list(sys.path), set(sys.modules)
    sys.path.insert(0, str(script.parent))
    try:
        with (
            contextlib.redirect_stdout(quiet),
            contextlib.redirect_stderr(quiet),
            warnings.catch_warnings(),
            compilescope.capture() as run,
        ):
            warnings.simplefilter("ignore")
            runpy.run_path(str(script), run_name="__main__")
    finally:
        log.setLevel(level)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch._dynamo.config.load_config(config)
        sys.path[:] = path
        for name in [name for name in sys.modules if name not in modules and "qzx" in name]:
            del sys.modules[name]
    return run.run


def assert_same_diagnosis(run: Run) -> Run:
    """The rules say the same of the redacted run, and point at the same expressions."""
    artifacts = MemoryArtifacts()
    redaction = redact(run, artifacts)
    new = redaction.run
    assert changed(diagnosis(digest(run)), diagnosis(digest(new))) == []
    texts = [encode(event).decode() for event in new.events]
    assert leaked_names(redaction, [*texts, *(text for _, text in artifacts.items())]) == []
    old_sources, new_sources = Sources(run), Sources(new)
    for before, after in zip(run.events, new.events, strict=True):
        for one, two in zip(before.stack, after.stack, strict=True):
            assert (one.line, one.origin) == (two.line, two.origin)
            assert _form(one, old_sources) == _form(two, new_sources), (one, two)
    return new


def _form(frame: Frame, sources: Sources) -> list[str]:
    """The form of the expression that is underlined."""
    # An expression that ends on a later line is told by its beginning.
    ends = frame.end_column if (frame.end_column or 0) <= len(frame.source) else None
    place = Place(frame.file, frame.line, frame.column, ends, frame.source)
    spot = sources.spot(place)
    nodes = [node for node in (spot.expression, spot.statement) if node is not None]
    return [type(part).__name__ for node in nodes for part in ast.walk(node)]


def scan(folder: Path) -> list[str]:
    """Secrets that are still in the files of a run, with a little of what stands around them."""
    return [
        f"{path.name}: {words!r}"
        for path in sorted(folder.rglob("*"))
        if path.is_file()
        for words in secret_programs.leaks(path.read_bytes().decode("utf-8", "replace"))
    ]


def redacted_on_disk(run: Run, folder: Path) -> Path:
    folder.mkdir()
    redaction = redact(run, DiskArtifacts(folder / "artifacts"))
    write_run(folder, redaction.run)
    assert changed(diagnosis(digest(run)), diagnosis(digest(read_run(folder)))) == []
    write_archive(folder, folder.with_suffix(".zip"))
    return folder


def test_no_secret_is_left(tmp_path: Path) -> None:
    project = secret_programs.write(tmp_path)
    run = capture(project / secret_programs.SCRIPT)
    before = digest(run)
    # The program is worth the scan: it has all sorts of losses.
    assert len(before.sites) >= 8 and len(before.recompiles) >= 4 and len(before.failures) >= 3
    (tmp_path / "open").mkdir()
    write_run(tmp_path / "open", run)
    plain = "".join(scan(tmp_path / "open"))
    assert all(number in plain for number in ("7654321", "918273", "1111117", "5557771"))
    assert scan(redacted_on_disk(run, tmp_path / "redacted")) == []
    assert_same_diagnosis(run)


@pytest.mark.slow
def test_no_secret_is_left_in_kernels(cxx: None, tmp_path: Path) -> None:
    project = secret_programs.write(tmp_path)
    run = capture(project / "qzxinductor.py")
    assert digest(run).kernels >= 1
    folder = redacted_on_disk(run, tmp_path / "redacted")
    assert scan(folder) == []
    texts = [path.read_text() for path in (folder / "artifacts").iterdir()]
    # What is torch's own can still be read.
    assert any("torch.ops.aten.mm.default(" in text for text in texts)
    assert any("cpp_fused" in text and "async_compile" in text for text in texts)
    assert any("# File: " in text and ", code: " in text for text in texts)


def test_the_words_know_this_torch() -> None:
    """Run `tests/sharing/words_of_torch.py` for a torch that has brought many names."""
    installed = words_of_torch.python_names() | words_of_torch.torch_names()
    missing = {w for w in installed if w.isascii() and len(w) <= 40} - vocabulary.code()
    assert len(missing) < 0.05 * len(installed), sorted(missing)


SAMPLE = all_programs()[::11]


@pytest.mark.parametrize("path", SAMPLE, ids=lambda path: path.stem)
def test_programs_of_the_zoo(path: Path) -> None:
    assert_same_diagnosis(capture(path))


@pytest.mark.parametrize("name", list(EXAMPLES)[::14])
def test_examples_of_the_rules(name: str, tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(EXAMPLES[name])
    assert_same_diagnosis(capture(script))


@pytest.mark.slow
def test_all_programs_of_the_zoo() -> None:
    for path in all_programs():
        assert_same_diagnosis(capture(path))


@pytest.mark.slow
def test_all_examples_of_the_rules(tmp_path: Path) -> None:
    for name, text in EXAMPLES.items():
        script = tmp_path / f"{name}.py"
        script.write_text(text)
        assert_same_diagnosis(capture(script))


@pytest.mark.slow
def test_model_families() -> None:
    """Breaks and recompiles in a library that anyone can read."""
    pytest.importorskip("transformers", reason="needs transformers (extra: models)")
    import torch

    from models.families import FAMILIES

    for name in ("bart_training_with_layerdrop", "big_bird", "switch_transformers"):
        torch.manual_seed(0)
        torch._dynamo.reset()
        model, call = FAMILIES[name]()
        with warnings.catch_warnings(), compilescope.capture() as run:
            warnings.simplefilter("ignore")
            call(torch.compile(model, backend="eager"))
        new = assert_same_diagnosis(run.run)
        assert any("/transformers/models/" in site.file for site in digest(new).sites)
