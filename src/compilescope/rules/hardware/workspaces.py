"""Memory that a kernel takes for itself while it runs, beside what it gives.

Known for kernels of torch's CPU build where it is not small. oneDNN copies what a convolution works
on into blocks of its own; measured with torch 2.13, in float32.
"""

from __future__ import annotations

from collections.abc import Callable

from compilescope.model.graph import Call, TensorInfo
from compilescope.rules.hardware.strides import is_dense

_Sizes = list[int]


def workspace_bytes(call: Call) -> int:
    """0 where nothing is known of it."""
    measure = _KERNELS.get(call.op.rpartition(".")[0])
    if measure is None or not all(t.device.startswith("cpu") for t in call.inputs):
        return 0
    given = [tensor.size_bytes for tensor in call.inputs]
    made = [tensor.size_bytes for tensor in call.outputs]
    known = [size for size in given if size is not None], [s for s in made if s is not None]
    if len(known[0]) < max(len(given), 2) or len(known[1]) < max(len(made), 1):
        return 0
    if call.constants.get("transposed") is True and measure is _convolution:
        measure = _transposed_convolution
    return measure(_is_channels_last(call.inputs), *known)


def _is_channels_last(given: tuple[TensorInfo, ...]) -> bool:
    return any(
        is_dense(tensor, form) is True and is_dense(tensor, "contiguous") is not True
        for tensor in given[:2]
        for form in ("channels_last", "channels_last_3d")
    )


def _convolution(channels_last: bool, given: _Sizes, made: _Sizes) -> int:
    """Input and weight in blocks, and then the result, which is copied out of them."""
    image, weight = given[:2]
    return weight if channels_last else max(image + weight, made[0])


def _transposed_convolution(channels_last: bool, given: _Sizes, made: _Sizes) -> int:
    image, weight = given[:2]
    return weight if channels_last else max(image + weight, 2 * made[0])


def _convolution_backward(channels_last: bool, given: _Sizes, made: _Sizes) -> int:
    if len(given) < 3:
        return 0
    gradient, image, weight = given[:3]
    return 2 * weight if channels_last else max(gradient + image, weight)


def _batch_norm_backward(channels_last: bool, given: _Sizes, made: _Sizes) -> int:
    return 0 if channels_last else given[1]


_KERNELS: dict[str, Callable[[bool, _Sizes, _Sizes], int]] = {
    "aten.convolution": _convolution,
    "aten.convolution_backward": _convolution_backward,
    "aten.native_batch_norm_backward": _batch_norm_backward,
}
