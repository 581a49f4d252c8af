"""What to write in place of an operator that a device does not have."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from compilescope.rules.hardware.op_names import OpPatterns


class _Way(NamedTuple):
    """Another way to the same result."""

    ops: tuple[str, ...]
    words: str
    needs: tuple[str, ...]
    """Operators that it takes instead."""


_WAYS = (
    _Way(
        ("aten.nonzero*", "aten.masked_select", "aten.argwhere"),
        "Keep the shape and mask instead: `torch.where(condition, x, 0)`.",
        ("aten.where",),
    ),
    _Way(("aten.sort", "aten.argsort"), "If a few are enough, use `torch.topk`.", ("aten.topk",)),
    _Way(
        ("aten.topk",),
        "Sort and take the first: `x.sort(descending=True).values[..., :k]`.",
        ("aten.sort",),
    ),
    _Way(
        ("aten.unique*", "aten._unique*", "aten.bincount"),
        "Its shape depends on data: run it on the host before the model.",
        (),
    ),
    _Way(
        ("aten.index_put", "aten.index_put_", "aten._index_put_impl_", "aten.masked_scatter"),
        "Write it as a selection: `torch.where(mask, new, old)`.",
        ("aten.where",),
    ),
    _Way(("aten.masked_fill",), "Use `torch.where(mask, value, x)`.", ("aten.where",)),
    _Way(
        ("aten.index", "aten.gather", "aten.take*"),
        "Select along one dimension: `torch.index_select(x, dim, index)`.",
        ("aten.index_select",),
    ),
    _Way(
        ("aten.embedding", "aten.index_select"),
        "Multiply one-hot rows: `torch.nn.functional.one_hot(ids, n).to(w.dtype) @ w`.",
        ("aten.mm",),
    ),
    _Way(
        ("aten._scaled_dot_product_*", "aten.scaled_dot_product_attention",
         "aten._flash_attention_forward", "aten._efficient_attention_forward"),
        "Use plain matrix products: `torch.nn.attention.sdpa_kernel(SDPBackend.MATH)`.",
        ("aten.bmm", "aten._softmax"),
    ),
    _Way(
        ("aten.native_dropout", "aten.bernoulli", "aten._fused_dropout", "aten.dropout"),
        "It does nothing in inference: call `model.eval()`. In training, set its probability to 0.",
        (),
    ),
    _Way(
        ("aten._fft_*", "aten.fft_*", "aten.stft", "aten.istft"),
        "For a fixed length, multiply by the transform's matrix.",
        ("aten.mm",),
    ),
    _Way(
        ("aten.gelu", "aten.silu", "aten.mish", "aten.hardswish"),
        "Write it out, as `x * torch.sigmoid(1.702 * x)` for GELU, or train with another "
        "activation.",
        ("aten.sigmoid", "aten.mul"),
    ),
    _Way(
        ("aten.upsample_bi*", "aten.upsample_tri*", "aten.upsample_linear*"),
        "Use `mode='nearest'`.",
        ("aten.upsample_nearest2d",),
    ),
    _Way(
        ("aten.native_batch_norm*", "aten._native_batch_norm_*", "aten.cudnn_batch_norm"),
        "For inference, fold it into the previous layer: `torch.nn.utils.fuse_conv_bn_eval`.",
        (),
    ),
    _Way(
        ("aten.cumsum",),
        "Multiply by a triangle of ones: `x @ torch.ones(n, n).triu()`.",
        ("aten.mm", "aten.triu"),
    ),
    _Way(
        ("aten._adaptive_avg_pool*", "aten.adaptive_avg_pool*"),
        "For one output per channel: `x.mean((-2, -1))`.",
        ("aten.mean",),
    ),
)  # fmt: skip
_PATTERNS = tuple(OpPatterns(way.ops) for way in _WAYS)
_GENERAL = "Replace it with operators the device supports, or run this part on the host."
_OUT_OF_PLACE = "Use the out-of-place operator: `{name}`."


def instead_of(op: str, takes: Callable[[str], bool]) -> str:
    """A sentence. `takes` tells whether the device has an operator."""
    base = op.split(".")[1] if op.count(".") else op
    if base.endswith("_") and not base.endswith("__"):
        plain = base[:-1]
        if takes(f"aten.{plain}") and not takes(op):
            return _OUT_OF_PLACE.format(name=plain)
    for way, patterns in zip(_WAYS, _PATTERNS, strict=True):
        if patterns.match(op) and all(takes(need) for need in way.needs):
            return way.words
    return _GENERAL
