"""Tiny models of transformers: the classes are listed, built from their configs, and compiled."""

import importlib.util
import json
import os
import subprocess
import sys

import pytest

from compilescope.base.errors import ToolError
from compilescope.scale.sweep.program import (
    CLASS_VARIABLE,
    PROGRAM,
    UNBUILT_STATUS,
    find_classes,
)

needs_transformers = pytest.mark.skipif(
    importlib.util.find_spec("transformers") is None, reason="transformers is not installed"
)


def run_program(*words, environment=None):
    return subprocess.run(
        [sys.executable, str(PROGRAM), *words],
        capture_output=True,
        text=True,
        env={**os.environ, **(environment or {})},
        timeout=300,
    )


@needs_transformers
def test_classes_are_listed_by_family_and_by_name():
    found = find_classes("bert, LlamaForCausal*")
    names = [each.name for each in found]
    assert {"BertModel", "BertForMaskedLM", "LlamaForCausalLM"} <= set(names)
    assert len(names) == len(set(names))
    assert {each.family for each in found} == {"bert", "llama"}
    # Bases, layers and Auto classes are no models.
    assert not {"BertPreTrainedModel", "BertLayer", "AutoModel"} & set(names)


@needs_transformers
def test_a_pattern_that_matches_nothing_is_said_with_what_is_near():
    with pytest.raises(ToolError) as raised:
        find_classes("BertModle")
    assert raised.value.message == "No model class of transformers matches 'BertModle'."
    assert "BertModel" in raised.value.hint


def test_without_transformers_the_extra_is_named(monkeypatch, tmp_path):
    """A package that can't be imported stands in its place, on the child's path."""
    package = tmp_path / "transformers"
    package.mkdir()
    (package / "__init__.py").write_text(
        "raise ModuleNotFoundError(\"No module named 'transformers'\")"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(ToolError) as raised:
        find_classes("all")
    assert raised.value.message == "transformers is not installed."
    assert "compilescope[models]" in raised.value.hint


@pytest.mark.torch
@needs_transformers
def test_a_class_is_built_and_compiled():
    ended = run_program("BertModel", "--shapes", "2")
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith("BertModel, ")
    assert "input_ids [2, 16]" in ended.stdout


@pytest.mark.torch
@needs_transformers
def test_what_cannot_be_built_ends_with_its_own_status_and_one_sentence():
    ended = run_program("NoSuchModel")
    assert ended.returncode == UNBUILT_STATUS
    assert ended.stderr.strip().splitlines()[-1].endswith("has no such class.")


@pytest.mark.slow
@pytest.mark.torch
@needs_transformers
@pytest.mark.parametrize(
    ("name", "inputs"),
    [
        ("LlamaForSequenceClassification", "input_ids"),
        ("T5ForConditionalGeneration", "decoder_input_ids"),
        ("BrosModel", "bbox"),
        ("CLIPModel", "pixel_values"),
        ("LlavaForConditionalGeneration", "pixel_values"),
        ("Qwen2VLForConditionalGeneration", "image_grid_thw"),
        ("SwinForImageClassification", "pixel_values"),
        ("WhisperForConditionalGeneration", "input_features"),
        ("Wav2Vec2ForCTC", "input_values"),
        ("DeepseekV3ForCausalLM", "input_ids"),
    ],
)
def test_classes_of_every_modality_run(name, inputs):
    ended = run_program(name)
    assert ended.returncode == 0, ended.stderr
    assert inputs in ended.stdout


@pytest.mark.slow
@pytest.mark.torch
@needs_transformers
def test_a_training_step_compiles_too():
    ended = run_program("GPT2LMHeadModel", "--train", "--backend", "aot_eager")
    assert ended.returncode == 0, ended.stderr


@pytest.mark.slow
@pytest.mark.torch
@needs_transformers
def test_a_failing_backend_is_an_error_of_the_program_itself():
    ended = run_program("BertModel", "--backend", "no_such_backend")
    assert ended.returncode == 1
    assert "Traceback" in ended.stderr


@pytest.mark.slow
@pytest.mark.torch
@needs_transformers
def test_build_reads_the_class_from_the_environment():
    code = (
        "import importlib.util, json, sys\n"
        "spec = importlib.util.spec_from_file_location('program', sys.argv[1])\n"
        "program = importlib.util.module_from_spec(spec)\n"
        "spec.loader.exec_module(program)\n"
        "model, args, kwargs = program.build(batch=3)\n"
        "print(json.dumps([type(model).__name__, len(args), list(kwargs['input_ids'].shape)]))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code, str(PROGRAM)],
        capture_output=True,
        text=True,
        env={**os.environ, CLASS_VARIABLE: "GPT2Model"},
        timeout=300,
    )
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout.splitlines()[-1]) == ["GPT2Model", 0, [3, 16]]


SHRINK = """
import json, sys
sys.path.insert(0, sys.argv[1])
import tiny_config, transformers

def plain(config):
    return {name: value for name, value in config.to_dict().items()}

found = {}
for name in ("LlamaConfig", "Gemma3TextConfig", "Qwen2VLConfig", "SwinConfig", "DeepseekV3Config"):
    config = getattr(transformers, name)()
    small = tiny_config.shrunk(config, tiny_config.scales(config)[0])
    found[name] = plain(small)
print(json.dumps(found, default=str))
"""


@needs_transformers
def test_a_shrunk_config_keeps_what_its_sizes_have_to_do_with_each_other():
    ended = subprocess.run(
        [sys.executable, "-c", SHRINK, str(PROGRAM.parent)],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert ended.returncode == 0, ended.stderr
    small = json.loads(ended.stdout.splitlines()[-1])
    llama = small["LlamaConfig"]
    assert llama["hidden_size"] == llama["num_attention_heads"] * llama["head_dim"] < 512
    assert llama["num_attention_heads"] % llama["num_key_value_heads"] == 0
    # Every kind of layer is there, and the list is as long as the layers are many.
    gemma = small["Gemma3TextConfig"]
    assert set(gemma["layer_types"]) == {"sliding_attention", "full_attention"}
    assert len(gemma["layer_types"]) == gemma["num_hidden_layers"] <= 8
    # What the vision part gives is what the text part takes; ids stay within the vocabulary.
    qwen = small["Qwen2VLConfig"]
    assert qwen["vision_config"]["hidden_size"] == qwen["text_config"]["hidden_size"]
    ids = [value for name, value in qwen.items() if name.endswith("token_id") and value is not None]
    assert len(set(ids)) == len(ids)
    assert max(ids) < qwen["text_config"]["vocab_size"]
    swin = small["SwinConfig"]
    assert len(swin["depths"]) == len(swin["num_heads"]) == 4
    assert swin["embed_dim"] % swin["num_heads"][0] == 0
    deep = small["DeepseekV3Config"]
    assert deep["n_routed_experts"] % deep["n_group"] == 0
    assert deep["num_experts_per_tok"] <= deep["n_routed_experts"]
