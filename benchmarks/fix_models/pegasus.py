"""Pegasus: a summariser's training step."""

import torch
from transformers import PegasusConfig, PegasusForConditionalGeneration

torch.manual_seed(0)
device = "cuda" if torch.cuda.is_available() else "cpu"
config = PegasusConfig(
    vocab_size=99,
    d_model=32,
    encoder_layers=2,
    decoder_layers=2,
    encoder_attention_heads=2,
    decoder_attention_heads=2,
    encoder_ffn_dim=37,
    decoder_ffn_dim=37,
    max_position_embeddings=32,
    dropout=0.0,
)
model = PegasusForConditionalGeneration(config).train().to(device)
compiled = torch.compile(model, backend="eager")
ids, labels = (
    torch.randint(3, 90, (2, 16), device=device),
    torch.randint(3, 90, (2, 12), device=device),
)
loss = compiled(input_ids=ids, labels=labels).loss
loss.backward()
print(f"loss {loss.item():.4f}")
