"""A segmentation loss: Mask2Former compares masks at points drawn at random."""

import torch
from transformers import Mask2FormerConfig, Mask2FormerForUniversalSegmentation, SwinConfig

torch.manual_seed(0)
device = "cuda" if torch.cuda.is_available() else "cpu"
backbone = SwinConfig(
    embed_dim=8,
    depths=[1, 1, 1, 1],
    num_heads=[1, 2, 4, 8],
    window_size=4,
    image_size=64,
    out_features=["stage1", "stage2", "stage3", "stage4"],
)
config = Mask2FormerConfig(
    backbone_config=backbone,
    hidden_dim=32,
    feature_size=32,
    mask_feature_size=32,
    encoder_layers=2,
    decoder_layers=2,
    num_attention_heads=2,
    encoder_feedforward_dim=37,
    dim_feedforward=37,
    num_queries=5,
    num_labels=4,
    train_num_points=16,
    dropout=0.0,
)
model = Mask2FormerForUniversalSegmentation(config).train().to(device)
compiled = torch.compile(model, backend="eager")
masks = [torch.randint(0, 2, (2, 64, 64), device=device).float() for _ in range(2)]
classes = [torch.tensor([1, 2], device=device), torch.tensor([0, 3], device=device)]
out = compiled(
    pixel_values=torch.randn(2, 3, 64, 64, device=device), mask_labels=masks, class_labels=classes
)
out.loss.backward()
print(f"loss {out.loss.item():.4f}")
