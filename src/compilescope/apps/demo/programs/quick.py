"""A model of `transformers`, built small from its config with random weights, and compiled.

Change the constants and run it again: compilescope run quick.py
"""

import difflib
import sys

import torch
import transformers

MODEL = "bert"
BATCH = 2
SEQ = 16
PADDED = 4  # tokens at the end of each sequence
BACKEND = "inductor"
FAIL_OP = ""  # `failing` raises at this operation

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
IMAGE = 64
SMALL = {
    "vocab_size": 128,
    **dict.fromkeys(("hidden_size", "d_model", "n_embd", "dim", "embed_dim"), 32),
    **dict.fromkeys(("embedding_size", "word_embed_proj_dim"), 32),
    **dict.fromkeys(("num_hidden_layers", "num_layers", "n_layer", "n_layers"), 2),
    **dict.fromkeys(("encoder_layers", "decoder_layers", "num_decoder_layers"), 2),
    **dict.fromkeys(("num_attention_heads", "num_heads", "n_head", "n_heads"), 2),
    **dict.fromkeys(("encoder_attention_heads", "decoder_attention_heads"), 2),
    **dict.fromkeys(("num_key_value_heads", "depths"), 2),
    **dict.fromkeys(("head_dim", "d_kv", "hidden_sizes"), 16),
    **dict.fromkeys(("intermediate_size", "d_ff", "ffn_dim", "hidden_dim", "n_inner"), 64),
    **dict.fromkeys(("encoder_ffn_dim", "decoder_ffn_dim"), 64),
    **dict.fromkeys(("num_experts", "num_local_experts", "state_size"), 4),
    "image_size": IMAGE,
    "patch_size": 8,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "decoder_start_token_id": 0,
}


def small_config():
    """The family's config with every size it has made small."""
    usual = transformers.AutoConfig.for_model(MODEL).to_dict()
    small = {}
    for name, value in SMALL.items():
        if isinstance(usual.get(name), (list, tuple)):
            small[name] = [value] * len(usual[name])  # one for each stage
        elif name in usual:
            small[name] = value
    return transformers.AutoConfig.for_model(MODEL, **small)


def inputs_of(model):
    """What the model takes: tokens and a mask, images, or a signal."""
    name = model.main_input_name
    if name == "pixel_values":
        return {name: torch.randn(BATCH, 3, IMAGE, IMAGE)}
    if name != "input_ids":
        return {name: torch.randn(BATCH, 2000)}
    # Below 3 are the special tokens.
    ids = torch.randint(3, model.config.vocab_size, (BATCH, SEQ))
    mask = torch.ones(BATCH, SEQ, dtype=torch.long)
    if PADDED:
        ids[:, -PADDED:] = 0
        mask[:, -PADDED:] = 0
    inputs = {"input_ids": ids, "attention_mask": mask}
    if model.config.is_encoder_decoder:
        inputs["decoder_input_ids"] = ids
    return inputs


def build():
    """The model, its positional and its keyword arguments: for `compilescope diff`."""
    torch.manual_seed(0)
    model = transformers.AutoModel.from_config(small_config()).eval().to(DEVICE)
    inputs = {name: value.to(DEVICE) for name, value in inputs_of(model).items()}
    return model, (), inputs


def failing(graph, inputs):
    """A backend with a forced failure, for `compilescope minify --predicate crash`."""
    for node in graph.graph.nodes:
        name = getattr(node.target, "__name__", node.target)
        if node.op.startswith("call_") and name == FAIL_OP:
            raise NotImplementedError(f"forced failure at {FAIL_OP}")
    return graph.forward


def check_name() -> None:
    if MODEL not in transformers.CONFIG_MAPPING:
        near = difflib.get_close_matches(MODEL, transformers.CONFIG_MAPPING, n=3)
        hint = f" Did you mean {' or '.join(near)}?" if near else ""
        sys.exit(f"transformers {transformers.__version__} has no model family {MODEL!r}.{hint}")


def main() -> None:
    check_name()
    try:
        model, _, inputs = build()
        with torch.no_grad():
            model(**inputs)
    except Exception as error:
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        sys.exit(f"A small {MODEL} can't be built and run: {reason}")
    size = sum(weight.numel() for weight in model.parameters())
    shapes = ", ".join(f"{name} {list(value.shape)}" for name, value in inputs.items())
    print(f"{type(model).__name__}, {size:,} parameters, on {DEVICE}; {shapes}")
    compiled = torch.compile(model, backend=BACKEND)
    with torch.no_grad():
        for _ in range(2):
            compiled(**inputs)


if __name__ == "__main__":
    main()
