"""CLAP: sound and text in one space."""

import torch
from transformers import ClapConfig, ClapModel

torch.manual_seed(0)
device = "cuda" if torch.cuda.is_available() else "cpu"
audio = {
    "window_size": 4,
    "num_mel_bins": 16,
    "spec_size": 64,
    "patch_size": 4,
    "patch_stride": [4, 4],
    "hidden_size": 16,
    "patch_embeds_hidden_size": 8,
    "depths": [1, 1],
    "num_attention_heads": [2, 2],
    "num_classes": 7,
    "projection_dim": 16,
    "enable_fusion": True,
    "fusion_type": "aff_2d",
    "aff_block_r": 2,
}
text = {
    "vocab_size": 99,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 37,
    "projection_dim": 16,
    "pad_token_id": 1,
}
config = ClapConfig(audio_config=audio, text_config=text, projection_dim=16)
model = ClapModel(config).eval().to(device)
compiled = torch.compile(model, backend="eager")
ids = torch.randint(3, 90, (2, 10), device=device)
sound = torch.randn(2, 4, 100, 16, device=device)
longer = torch.tensor([[True], [False]], device=device)
with torch.no_grad():
    out = compiled(input_ids=ids, input_features=sound, is_longer=longer)
print(f"similarity {out.logits_per_audio.mean().item():.4f}")
