"""GPT-2 in its smallest published size."""

from __future__ import annotations

import torch

from compilescope.measure.bench.built import Built, Model, logits_loss


def build(small: bool, batch: int) -> Built:
    from transformers import GPT2Config, GPT2LMHeadModel

    length = 32 if small else 128
    sizes = (
        {
            "vocab_size": 1000,
            "n_positions": 64,
            "n_embd": 128,
            "n_layer": 2,
            "n_head": 4,
            "bos_token_id": 0,
            "eos_token_id": 0,
        }
        if small
        else {}
    )
    config = GPT2Config(**sizes, use_cache=False, attn_implementation="sdpa")
    model = GPT2LMHeadModel(config).eval()
    ids = torch.randint(config.vocab_size, (batch, length))
    return Built(model, kwargs={"input_ids": ids}, loss=logits_loss)


MODEL = Model(
    name="gpt2",
    title="GPT-2",
    about="GPT-2 with 12 layers and its language-model head; transformers, random weights.",
    build=build,
    parameters=124_439_808,
    batch=1,
    small_batch=2,
    inputs="128 tokens",
    needs=("transformers",),
    aliases=("gpt-2", "gpt2-small", "gpt"),
)
