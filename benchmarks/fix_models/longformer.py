"""Longformer: attention in windows, with global attention on the first token."""

import torch
from transformers import LongformerConfig, LongformerModel

torch.manual_seed(0)
device = "cuda" if torch.cuda.is_available() else "cpu"
config = LongformerConfig(
    vocab_size=99,
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=37,
    attention_window=[4, 4],
    max_position_embeddings=64,
)
model = LongformerModel(config).eval().to(device)
compiled = torch.compile(model, backend="eager")
ids = torch.randint(3, 90, (2, 14), device=device)
first = torch.zeros_like(ids)
first[:, 0] = 1
with torch.no_grad():
    out = compiled(ids, global_attention_mask=first)
print(f"hidden {out.last_hidden_state.abs().mean().item():.4f}")
