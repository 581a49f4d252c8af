"""A Llama-like decoder of about 100M parameters."""

from __future__ import annotations

import torch

from compilescope.measure.bench.built import Built, Model, logits_loss


def build(small: bool, batch: int) -> Built:
    from transformers import LlamaConfig, LlamaForCausalLM

    length = 32 if small else 128
    sizes = (
        {
            "vocab_size": 1000,
            "hidden_size": 128,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "intermediate_size": 256,
        }
        if small
        else {
            "vocab_size": 32000,
            "hidden_size": 768,
            "num_hidden_layers": 12,
            "num_attention_heads": 12,
            "num_key_value_heads": 4,
            "intermediate_size": 2048,
        }
    )
    config = LlamaConfig(
        **sizes, tie_word_embeddings=True, use_cache=False, attn_implementation="sdpa"
    )
    model = LlamaForCausalLM(config).eval()
    ids = torch.randint(config.vocab_size, (batch, length))
    return Built(model, kwargs={"input_ids": ids}, loss=logits_loss)


MODEL = Model(
    name="llama",
    title="Llama (100M)",
    about="A Llama decoder with 12 layers and grouped-query attention; transformers, random "
    "weights.",
    build=build,
    parameters=100_092_672,
    batch=1,
    small_batch=2,
    inputs="128 tokens",
    needs=("transformers",),
    aliases=("llama2", "llama-100m"),
)
