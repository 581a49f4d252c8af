"""BART in half precision: its layers look for infinities."""

import torch
from transformers import BartConfig, BartForConditionalGeneration

torch.manual_seed(0)
device = "cuda" if torch.cuda.is_available() else "cpu"
config = BartConfig(
    vocab_size=99,
    d_model=32,
    encoder_layers=2,
    decoder_layers=2,
    encoder_attention_heads=2,
    decoder_attention_heads=2,
    encoder_ffn_dim=37,
    decoder_ffn_dim=37,
)
model = BartForConditionalGeneration(config).half().eval().to(device)
compiled = torch.compile(model, backend="eager")
ids, labels = (
    torch.randint(3, 90, (2, 16), device=device),
    torch.randint(3, 90, (2, 12), device=device),
)
with torch.no_grad():
    out = compiled(input_ids=ids, labels=labels)
print(f"loss {out.loss.item():.3f}")
