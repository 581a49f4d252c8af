"""Whisper: a training step on log-mel features."""

import torch
from transformers import WhisperConfig, WhisperForConditionalGeneration

torch.manual_seed(0)
device = "cuda" if torch.cuda.is_available() else "cpu"
config = WhisperConfig(
    vocab_size=99,
    d_model=32,
    encoder_layers=2,
    decoder_layers=2,
    encoder_attention_heads=2,
    decoder_attention_heads=2,
    encoder_ffn_dim=37,
    decoder_ffn_dim=37,
    num_mel_bins=16,
    max_source_positions=20,
    max_target_positions=20,
    pad_token_id=0,
    bos_token_id=1,
    eos_token_id=2,
    decoder_start_token_id=1,
    dropout=0.0,
)
model = WhisperForConditionalGeneration(config).train().to(device)
compiled = torch.compile(model, backend="eager")
features, labels = (
    torch.randn(2, 16, 40, device=device),
    torch.randint(3, 90, (2, 10), device=device),
)
loss = compiled(input_features=features, labels=labels).loss
loss.backward()
print(f"loss {loss.item():.4f}")
