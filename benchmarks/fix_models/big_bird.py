"""BigBird: sparse attention over blocks, on a long enough text."""

import torch
from transformers import BigBirdConfig, BigBirdForMaskedLM

torch.manual_seed(0)
device = "cuda" if torch.cuda.is_available() else "cpu"
config = BigBirdConfig(
    vocab_size=99,
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=37,
    max_position_embeddings=256,
    block_size=8,
    num_random_blocks=2,
    attention_type="block_sparse",
)
model = BigBirdForMaskedLM(config).eval().to(device)
compiled = torch.compile(model, backend="eager")
ids = torch.randint(3, 90, (1, 124), device=device)
with torch.no_grad():
    out = compiled(input_ids=ids)
print(f"logits {out.logits.abs().mean().item():.4f}")
