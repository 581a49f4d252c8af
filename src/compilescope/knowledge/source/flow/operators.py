"""What torch's operators do besides computing a value, by their plain names.

`sin` stands for `torch.sin(x)`, `x.sin()` and `torch.nn.functional.sin(x)` alike. An operator that
is in no table is one about which nothing is known.
"""

from __future__ import annotations


def named(names: str) -> frozenset[str]:
    return frozenset(names.split())


VIEWS = named(
    "view view_as reshape reshape_as expand expand_as permute transpose swapaxes swapdims t mT mH "
    "unsqueeze squeeze flatten unflatten movedim moveaxis narrow chunk split unbind select "
    "diagonal broadcast_to detach contiguous to type float double half bfloat16 int long bool cpu "
    "cuda type_as unfold real imag ravel tensor_split atleast_1d atleast_2d atleast_3d "
    "positive broadcast_tensors values indices"
)
"""Their result may share memory with what they are given, or be it."""

PLAIN = named(
    "abs absolute add sub subtract rsub mul multiply neg negative sin cos tanh sigmoid relu relu6 "
    "gelu silu elu selu celu leaky_relu prelu softplus softsign hardtanh hardswish hardsigmoid "
    "mish logsigmoid clamp clip clamp_min clamp_max maximum minimum fmax fmin where masked_fill "
    "nan_to_num isnan isinf isfinite isneginf isposinf sign sgn floor ceil round trunc fix frac "
    "sum mean nansum nanmean max min amax amin aminmax any all argmax argmin count_nonzero median "
    "eq ne lt le gt ge equal greater greater_equal less less_equal not_equal isclose "
    "logical_and logical_or logical_not logical_xor bitwise_and bitwise_or bitwise_not bitwise_xor "
    "zeros_like ones_like full_like new_zeros new_ones new_full new_tensor zeros ones full tensor "
    "scalar_tensor as_tensor arange linspace eye cat concat stack hstack vstack flip fliplr flipud "
    "roll tril triu cumsum lerp erf atan arctan sinc square clone repeat tile threshold heaviside "
    "softmax log_softmax logaddexp layer_norm normalize mse_loss l1_loss smooth_l1_loss "
    "huber_loss outer diff pad signbit copysign addcmul diag"
)
"""Only a value, at little cost, whose derivative is finite where its inputs are."""

FLAT = VIEWS | named(
    "add sub subtract rsub neg negative relu relu6 leaky_relu hardtanh clamp clip clamp_min "
    "clamp_max maximum minimum where masked_fill nan_to_num sum mean max min amax amin zeros_like "
    "ones_like full_like new_zeros new_ones new_full zeros ones full arange cat concat stack "
    "hstack vstack flip fliplr flipud roll tril triu clone repeat tile threshold pad diag copy "
    "fill zero"
)
"""Their derivative is finite for every input, NaN and infinities too: zero times it is zero."""

STEEP = named(
    "sqrt rsqrt log log2 log10 log1p exp exp2 expm1 div divide true_divide reciprocal pow "
    "float_power acos asin arccos arcsin acosh asinh atanh arctanh tan cosh sinh logit "
    "std var norm prod cumprod atan2 arctan2 hypot xlogy logsumexp digamma lgamma erfinv "
    "cosine_similarity vector_norm addcdiv dist cdist renorm polygamma logcumsumexp"
)
"""Their value or derivative can be infinite or NaN for ordinary inputs: 0 times that is NaN, so
`where` lets it through into the gradient of the side that was not taken."""

RAISING = named(
    "floor_divide remainder fmod gather index_select take take_along_dim scatter scatter_add "
    "index_add index_copy index_fill embedding embedding_bag nll_loss cross_entropy "
    "binary_cross_entropy cholesky inverse solve inv det slogdet bincount searchsorted"
)
"""They raise for some values."""

COSTLY = named(
    "matmul mm bmm mv dot einsum linear bilinear conv1d conv2d conv3d conv_transpose1d "
    "conv_transpose2d conv_transpose3d scaled_dot_product_attention multi_head_attention_forward "
    "baddbmm addmm addbmm tensordot chain_matmul sort argsort topk kthvalue fft ifft rfft svd qr "
    "eigh eig interpolate grid_sample max_pool1d max_pool2d avg_pool1d avg_pool2d "
    "adaptive_avg_pool2d group_norm batch_norm instance_norm unfold fold kron"
)
"""Too much to be done for nothing."""

RANDOM = named(
    "rand randn randint randperm rand_like randn_like randint_like bernoulli multinomial normal "
    "poisson dropout dropout1d dropout2d dropout3d alpha_dropout feature_alpha_dropout "
    "gumbel_softmax rrelu random_ normal_ uniform_ bernoulli_ exponential_ cauchy_ geometric_ "
    "log_normal_"
)

BY_VALUE = named(
    "item tolist numpy nonzero argwhere unique unique_consecutive masked_select "
    "repeat_interleave one_hot allclose"
)
"""What they give cannot be known without the numbers: Dynamo stops at them."""

INQUIRIES = named(
    "finfo iinfo promote_types result_type is_tensor is_floating_point is_complex Size device "
    "is_grad_enabled get_default_dtype broadcast_shapes can_cast numel"
)
"""They ask for what is known without numbers."""

REDUCTIONS = named(
    "sum mean nansum nanmean max min amax amin any all norm std var prod median argmax argmin "
    "count_nonzero logsumexp numel dot dist det vector_norm"
)
"""Without a dimension, they give one number."""

LOSSES = named(
    "mse_loss l1_loss smooth_l1_loss huber_loss nll_loss cross_entropy binary_cross_entropy "
    "binary_cross_entropy_with_logits kl_div gaussian_nll_loss poisson_nll_loss"
)
"""Of an input and a target they give one number, unless told to reduce otherwise."""

TRUTHS = named(
    "any all isnan isinf isfinite isneginf isposinf eq ne lt le gt ge greater greater_equal less "
    "less_equal not_equal logical_and logical_or logical_not logical_xor isclose bool"
)
"""They give booleans."""

NEVER_NEGATIVE = named("norm vector_norm abs absolute square std var count_nonzero softmax sigmoid")
"""Of real numbers they give none below zero; NaN of NaN."""

SAME_SIZE = named(
    "abs neg sin cos tanh sigmoid relu relu6 gelu silu elu leaky_relu softplus clamp clip "
    "clamp_min clamp_max nan_to_num sign floor ceil round trunc softmax log_softmax square clone "
    "detach contiguous sqrt rsqrt log log2 log10 log1p exp expm1 reciprocal pow zeros_like "
    "ones_like full_like masked_fill dropout tril triu cumsum flip roll normalize layer_norm "
    "hardtanh mish rand_like randn_like isnan isinf isfinite logical_not"
)
"""Their result is as large as the first that they are given."""

ROW_BY_ROW = named(
    "abs add sub mul neg sin cos tanh sigmoid relu relu6 gelu silu elu selu celu leaky_relu "
    "softplus softsign hardtanh hardswish hardsigmoid mish logsigmoid clamp clip clamp_min "
    "clamp_max maximum minimum nan_to_num sign floor ceil round trunc square clone div divide "
    "sqrt rsqrt log log1p exp expm1 reciprocal pow erf multiply subtract "
    "to type type_as float half bfloat16 double contiguous detach"
)
"""Of every element for itself, or of how it is stored."""

NOT_OF_WHOLE_NUMBERS = named(
    "adaptive_avg_pool2d addcdiv binary_cross_entropy cdist celu cholesky cosine_similarity "
    "cross_entropy det dist eigh elu frac gelu group_norm hardsigmoid hardswish huber_loss hypot "
    "inv inverse l1_loss layer_norm leaky_relu lerp log_softmax logaddexp logcumsumexp logsigmoid "
    "max_pool1d mean mish mse_loss nanmean norm normalize qr scaled_dot_product_attention selu "
    "silu slogdet smooth_l1_loss softmax softplus std svd var vector_norm"
)
"""They raise for integers and booleans, some of them for some. A test asks torch."""

NOT_OF_TRUTHS = named(
    "abs absolute addcmul addmm argmax argmin avg_pool1d ceil chain_matmul clamp clip fix floor "
    "floor_divide fmod hardtanh kthvalue linear matmul median mm neg negative positive pow relu "
    "relu6 remainder round rsub searchsorted softsign sub subtract tensordot threshold topk trunc"
)
"""They raise for booleans as well."""

NOT_OF_FRACTIONS = named("bitwise_and bitwise_or bitwise_not bitwise_xor")
"""They raise for floating-point numbers."""

JOINING = named("add sub mul div maximum minimum fmax fmin")
"""Arithmetic of two, which are broadcast."""

OUTRIGHT = PLAIN | VIEWS
KNOWN = OUTRIGHT | INQUIRIES | STEEP | RAISING | COSTLY | RANDOM | BY_VALUE

PREFIXES = ("torch.", "torch.nn.functional.", "torch.special.", "torch.linalg.", "torch.Tensor.")


def plain_name(meaning: str) -> str | None:
    """`sin` for `torch.sin` and `torch.nn.functional.sin`; None for what is not torch's."""
    head, _, last = meaning.rpartition(".")
    return last if f"{head}." in PREFIXES else None


def out_of_place(method: str) -> str | None:
    """`mul` for `mul_`; None for what is no in-place method, or one that draws numbers."""
    name = method[:-1]
    if not method.endswith("_") or method.endswith("__") or method in RANDOM:
        return None
    special = {"copy", "zero", "fill", "masked_fill", "nan_to_num"}
    return name if name in special or name in PLAIN | STEEP else None
