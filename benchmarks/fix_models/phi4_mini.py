"""Phi-4-mini: longrope over a part of each head, on a short text and a longer one."""

import torch
from transformers import Phi3Config, Phi3ForCausalLM

torch.manual_seed(0)
device = "cuda" if torch.cuda.is_available() else "cpu"
config = Phi3Config(
    vocab_size=99,
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=2,
    num_key_value_heads=1,
    intermediate_size=37,
    max_position_embeddings=64,
    original_max_position_embeddings=16,
    partial_rotary_factor=0.75,
    rope_scaling={
        "type": "longrope",
        "short_factor": [1.0] * 6,
        "long_factor": [1.5] * 6,
    },
    pad_token_id=0,
    tie_word_embeddings=True,
)
model = Phi3ForCausalLM(config).eval().to(device)
compiled = torch.compile(model, backend="eager")
with torch.no_grad():
    for length in (12, 24):
        ids = torch.randint(3, 90, (2, length), device=device)
        out = compiled(input_ids=ids, attention_mask=torch.ones_like(ids), use_cache=False)
        print(f"{length} tokens: {out.logits.abs().mean().item():.4f}")
