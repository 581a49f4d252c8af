"""Which fixes answer to which keys, and in which order, known without importing them.

A cause concerns a few fixes, and importing them all takes longer than asking those. A test compares
the table with the fixes and says what to write; a module that it lacks yet is imported each time.
"""

from __future__ import annotations

from typing import NamedTuple


class Indexed(NamedTuple):
    """A fix that has not been imported: where it is, and what decides when it is asked."""

    module: str
    order: int
    kind: str
    rules: tuple[str, ...]


_LOST_ON_A_WAY = (
    "break",
    "failure",
    "recompile/attribute-presence",
    "recompile/bool-change",
    "recompile/broken-value",
    "recompile/closure-change",
    "recompile/constant-change",
    "recompile/default-argument",
    "recompile/float-change",
    "recompile/function-change",
    "recompile/global-change",
    "recompile/int-change",
    "recompile/key-change",
    "recompile/layer-index",
    "recompile/length-change",
    "recompile/module-flag",
    "recompile/module-number",
    "recompile/none-or-value",
    "recompile/number-condition",
    "recompile/number-needed",
    "recompile/object-gone",
    "recompile/object-identity",
    "recompile/optimizer-setting",
    "recompile/other-change",
    "recompile/string-change",
    "recompile/tensor-read",
    "recompile/type-change",
)


INDEX: dict[str, Indexed] = {
    "async-assert": Indexed(
        "breaks.async_assert",
        45,
        "source",
        (
            "GB0033",
            "category/data-dependent-branch",
            "scalar-extraction",
            "tensor-if",
            "tensor-truth",
            "validation-guard",
        ),
    ),
    "bar-while-eager": Indexed(
        "breaks.bar_while_eager", 57, "source", ("GB0007", "GB0008", "logging-call")
    ),
    "bool-for-comparison": Indexed(
        "breaks.bool_for_comparison", 30, "source", ("GB0112", "symbolic-value")
    ),
    "cached-property-ahead": Indexed(
        "breaks.cached_property_ahead", 105, "caller", ("context-manager", "recompile/key-change")
    ),
    "config-field": Indexed(
        "breaks.caller_config_field",
        170,
        "caller",
        (
            "category/context-manager",
            "category/data-dependent-branch",
            "category/data-dependent-operator",
            "category/dynamic-shape-operator",
            "category/logging",
            "category/mutation",
            "category/scalar-extraction",
            "category/skipped-function",
            "category/unsupported-builtin",
            "category/validation-guard",
        ),
    ),
    "environment-switch": Indexed(
        "breaks.caller_environment_switch",
        165,
        "caller",
        (
            "category/context-manager",
            "category/data-dependent-branch",
            "category/data-dependent-operator",
            "category/logging",
            "category/rng-device-state",
            "category/scalar-extraction",
            "category/skipped-function",
            "category/unsupported-builtin",
            "category/validation-guard",
        ),
    ),
    "compile-modules": Indexed(
        "breaks.compile_modules",
        151,
        "source",
        _LOST_ON_A_WAY,
    ),
    "compile-parts": Indexed(
        "breaks.compile_parts",
        150,
        "source",
        _LOST_ON_A_WAY,
    ),
    "disable-helper": Indexed(
        "breaks.disable_helper",
        152,
        "source",
        _LOST_ON_A_WAY,
    ),
    "compile-second-call": Indexed(
        "breaks.caller_first_call_eager",
        130,
        "caller",
        (
            "category/autograd",
            "category/class-construction",
            "category/context-manager",
            "category/data-dependent-branch",
            "category/data-dependent-operator",
            "category/dynamic-shape-operator",
            "category/exception",
            "category/extension",
            "category/generator",
            "category/logging",
            "category/mutation",
            "category/reconstruction",
            "category/rng-device-state",
            "category/scalar-extraction",
            "category/skipped-function",
            "category/unsupported-builtin",
        ),
    ),
    "checkpoint-once": Indexed("breaks.dynamo_flags", 127, "config", ("GB0067",)),
    "class-at-top": Indexed(
        "breaks.class_at_top", 40, "source", ("GB0075", "GB0082", "GB8977", "outside-call")
    ),
    "clone-for-deepcopy": Indexed(
        "breaks.clone_for_deepcopy", 30, "source", ("GB0179", "GB0208", "GB4198")
    ),
    "cond-for-conditional": Indexed(
        "breaks.cond",
        62,
        "source",
        (
            "GB0033",
            "category/data-dependent-branch",
            "scalar-extraction",
            "tensor-if",
            "tensor-truth",
        ),
    ),
    "cond-for-if": Indexed(
        "breaks.cond",
        60,
        "source",
        (
            "GB0033",
            "category/data-dependent-branch",
            "scalar-extraction",
            "tensor-if",
            "tensor-truth",
        ),
    ),
    "cond-for-return": Indexed(
        "breaks.cond",
        61,
        "source",
        (
            "GB0033",
            "category/data-dependent-branch",
            "scalar-extraction",
            "tensor-if",
            "tensor-truth",
        ),
    ),
    "converted-after": Indexed(
        "breaks.converted_after",
        118,
        "source",
        ("GB0033", "GB0109", "GB0124", "scalar-extraction", "tensor-if", "tensor-truth"),
    ),
    "copy-method": Indexed("breaks.copy_method", 30, "source", ("outside-call",)),
    "custom-op-scaffold": Indexed("breaks.custom_op_scaffold", 220, "scaffold", ("outside-call",)),
    "device-given": Indexed("breaks.device_given", 35, "source", ("context-manager",)),
    "autograd-traced": Indexed(
        "breaks.dynamo_flags", 130, "config", ("GB0123", "GB8985", "GB9186")
    ),
    "capture-scalars": Indexed(
        "breaks.dynamo_flags", 120, "config", ("GB0124", "scalar-extraction")
    ),
    "capture-scalars-and-shapes": Indexed(
        "breaks.dynamo_flags",
        125,
        "config",
        ("GB0036", "GB0124", "dynamic-shape", "scalar-extraction"),
    ),
    "capture-shapes": Indexed("breaks.dynamo_flags", 120, "config", ("GB0036", "dynamic-shape")),
    "parameter-traced": Indexed("breaks.dynamo_flags", 125, "config", ("GB0264",)),
    "rnn-traced": Indexed("breaks.dynamo_flags", 120, "config", ("rnn-module",)),
    "explicit-break-removed": Indexed(
        "breaks.explicit_break_removed", 210, "source", ("explicit-break",)
    ),
    "functional-for-autograd": Indexed("breaks.functional_for_autograd", 60, "source", ("GB0055",)),
    "grad-mode-called": Indexed("breaks.grad_mode_called", 20, "source", ("context-manager",)),
    "grad-mode-inside": Indexed("breaks.grad_mode_called", 30, "source", ("GB0116",)),
    "housekeeping-while-eager": Indexed(
        "breaks.housekeeping_while_eager", 56, "source", ("outside-call",)
    ),
    "import-at-top": Indexed("breaks.import_at_top", 110, "source", ("GB0022", "GB0069")),
    "leaf-for-grad-fn": Indexed("breaks.leaf_for_grad_fn", 20, "source", ("GB0104",)),
    "list-for-iterator": Indexed(
        "breaks.list_for_iterator", 30, "caller", ("GB0156", "GB0811", "GB1752", "GB4347", "GB9493")
    ),
    "masked-loop": Indexed(
        "breaks.masked_loop",
        50,
        "source",
        (
            "GB0033",
            "category/data-dependent-branch",
            "scalar-extraction",
            "tensor-if",
            "tensor-truth",
        ),
    ),
    "masked-reduction": Indexed(
        "breaks.masked_reduction", 45, "source", ("GB0036", "dynamic-shape")
    ),
    "masked-store": Indexed("breaks.masked_store", 46, "source", ("GB0036", "dynamic-shape")),
    "math-for-numpy": Indexed(
        "breaks.math_for_numpy",
        42,
        "source",
        ("GB0033", "GB0208", "numpy-call", "outside-call", "scalar-extraction"),
    ),
    "module-unscripted": Indexed("breaks.module_unscripted", 115, "source", ("GB0357", "GB4695")),
    "nonstrict-part": Indexed(
        "breaks.nonstrict_part",
        95,
        "source",
        ("GB0015", "GB0055", "GB0277", "GB0374", "outside-call"),
    ),
    "number-for-output": Indexed(
        "breaks.number_for_output", 58, "source", ("GB0033", "GB0124", "scalar-extraction")
    ),
    "numpy-at-top": Indexed("breaks.numpy_at_top", 50, "source", ("GB0294", "numpy-call")),
    "one-hot-classes": Indexed("breaks.one_hot_classes", 215, "scaffold", ("GB0246",)),
    "outside-of-compiled": Indexed(
        "breaks.outside_of_compiled",
        80,
        "source",
        (
            "GB0117",
            "GB0123",
            "GB0125",
            "GB0179",
            "GB0206",
            "GB0228",
            "GB0264",
            "GB4198",
            "GB8985",
            "backward-inside",
            "file-access",
            "outside-call",
            "validation-guard",
        ),
    ),
    "print-after-graph": Indexed(
        "breaks.print_after_graph", 57, "config", ("logging-call", "print-call")
    ),
    "print-in-graph": Indexed(
        "breaks.print_in_graph",
        60,
        "source",
        (
            "GB0109",
            "GB0569",
            "logging-call",
            "numpy-call",
            "outside-call",
            "print-call",
            "scalar-extraction",
        ),
    ),
    "print-while-eager": Indexed(
        "breaks.print_while_eager",
        190,
        "source",
        ("GB0109", "logging-call", "outside-call", "print-call", "scalar-extraction"),
    ),
    "pure-call-once": Indexed(
        "breaks.pure_call_once", 50, "source", ("GB0134", "GB0299", "outside-call")
    ),
    "register-buffer": Indexed("breaks.register_buffer", 35, "source", ("GB0116",)),
    "report-in-graph": Indexed(
        "breaks.report_in_graph",
        59,
        "source",
        (
            "GB0033",
            "category/data-dependent-branch",
            "scalar-extraction",
            "tensor-if",
            "tensor-truth",
        ),
    ),
    "requires-grad-after": Indexed("breaks.requires_grad_after", 40, "source", ("GB0225",)),
    "running-best": Indexed("breaks.running_best", 104, "source", ("GB0193", "GB5687")),
    "scipy-operator": Indexed("breaks.scipy_operator", 76, "source", ("GB8335", "outside-call")),
    "tensor-for-number": Indexed(
        "breaks.tensor_for_number", 40, "source", ("GB0033", "GB0124", "scalar-extraction")
    ),
    "tensor-logic": Indexed("breaks.tensor_logic", 42, "source", ("tensor-if", "tensor-truth")),
    "threshold-first": Indexed(
        "breaks.threshold_first",
        40,
        "source",
        ("category/data-dependent-branch", "tensor-if", "tensor-truth"),
    ),
    "torch-random": Indexed("breaks.torch_random", 110, "source", ("random-number",)),
    "unbind-for-tolist": Indexed(
        "breaks.unbind_for_tolist", 40, "source", ("GB0033", "GB0109", "scalar-extraction")
    ),
    "uniform-for-random": Indexed("breaks.uniform_for_random", 40, "source", ("random-number",)),
    "value-from-outside": Indexed(
        "breaks.value_from_outside",
        86,
        "source",
        (
            "GB0015",
            "GB0045",
            "GB0046",
            "GB0055",
            "GB0208",
            "GB0363",
            "GB7650",
            "context-manager",
            "file-access",
            "outside-call",
        ),
    ),
    "value-read-first": Indexed(
        "breaks.value_read_first",
        128,
        "source",
        (
            "GB0033",
            "GB0109",
            "GB0124",
            "category/data-dependent-branch",
            "random-number",
            "scalar-extraction",
            "tensor-if",
            "tensor-truth",
        ),
    ),
    "warm-up": Indexed(
        "breaks.warm_up",
        135,
        "caller",
        (
            "GB0119",
            "GB0228",
            "GB0264",
            "category/autograd",
            "category/class-construction",
            "category/context-manager",
            "category/data-dependent-branch",
            "category/data-dependent-operator",
            "category/dynamic-shape-operator",
            "category/exception",
            "category/extension",
            "category/generator",
            "category/logging",
            "category/mutation",
            "category/reconstruction",
            "category/rng-device-state",
            "category/scalar-extraction",
            "category/skipped-function",
            "category/unsupported-builtin",
            "context-manager",
            "file-access",
            "outside-call",
        ),
    ),
    "warn-when-compiled": Indexed("breaks.warn_when_compiled", 56, "source", ("logging-call",)),
    "where-for-buffer": Indexed(
        "breaks.buffer_where",
        110,
        "source",
        (
            "GB0033",
            "category/data-dependent-branch",
            "scalar-extraction",
            "tensor-if",
            "tensor-truth",
        ),
    ),
    "where-for-conditional": Indexed(
        "breaks.where",
        41,
        "source",
        (
            "GB0033",
            "category/data-dependent-branch",
            "scalar-extraction",
            "tensor-if",
            "tensor-truth",
        ),
    ),
    "where-for-if": Indexed(
        "breaks.where",
        40,
        "source",
        (
            "GB0033",
            "category/data-dependent-branch",
            "scalar-extraction",
            "tensor-if",
            "tensor-truth",
        ),
    ),
    "where-for-return": Indexed(
        "breaks.where",
        43,
        "source",
        (
            "GB0033",
            "category/data-dependent-branch",
            "scalar-extraction",
            "tensor-if",
            "tensor-truth",
        ),
    ),
    "while-loop": Indexed(
        "breaks.while_loop",
        65,
        "source",
        (
            "GB0033",
            "category/data-dependent-branch",
            "scalar-extraction",
            "tensor-if",
            "tensor-truth",
            "tensor-while",
        ),
    ),
    "with-for-exit-stack": Indexed(
        "breaks.with_for_exit_stack", 45, "source", ("GB0262", "context-manager", "outside-call")
    ),
    "with-outside": Indexed(
        "breaks.with_outside",
        85,
        "source",
        ("GB0208", "GB0262", "context-manager", "logging-call", "outside-call"),
    ),
    "append-outside": Indexed(
        "recompiles.append_outside", 85, "source", ("recompile/length-change",)
    ),
    "dynamic-sources": Indexed(
        "recompiles.compile_options",
        125,
        "config",
        (
            "recompile/global-change",
            "recompile/int-change",
            "recompile/layer-index",
            "recompile/module-number",
        ),
    ),
    "dynamic-true": Indexed(
        "recompiles.compile_options",
        110,
        "config",
        (
            "recompile/closure-change",
            "recompile/default-argument",
            "recompile/equal-sizes",
            "recompile/float-change",
            "recompile/global-change",
            "recompile/int-change",
            "recompile/number-condition",
            "recompile/optimizer-setting",
            "recompile/shape-condition",
            "recompile/size-change",
        ),
    ),
    "isolated-recompiles": Indexed(
        "recompiles.compile_options",
        190,
        "config",
        (
            "recompile/attribute-presence",
            "recompile/closure-change",
            "recompile/function-change",
            "recompile/layer-index",
            "recompile/length-change",
            "recompile/module-class",
            "recompile/module-flag",
            "recompile/module-number",
            "recompile/none-or-value",
            "recompile/parameter-size",
            "recompile/requires-grad-change",
        ),
    ),
    "join-as-it-grows": Indexed(
        "recompiles.join_as_it_grows", 82, "source", ("recompile/length-change",)
    ),
    "join-outside": Indexed("recompiles.join_outside", 84, "source", ("recompile/length-change",)),
    "raised-limit": Indexed("recompiles.compile_options", 230, "scaffold", ("recompile",)),
    "unspecialised-ints": Indexed(
        "recompiles.compile_options",
        120,
        "config",
        ("recompile/layer-index", "recompile/module-number"),
    ),
    "contiguous-argument": Indexed(
        "recompiles.contiguous_argument", 70, "source", ("recompile/stride-change",)
    ),
    "converted-argument": Indexed(
        "recompiles.converted_argument",
        80,
        "source",
        ("recompile/dtype-change", "recompile/type-change"),
    ),
    "default-outside": Indexed(
        "recompiles.default_outside", 80, "source", ("recompile/none-or-value",)
    ),
    "dynamic-automatic": Indexed(
        "recompiles.compile_options",
        112,
        "config",
        ("recompile/equal-sizes", "recompile/size-change", "recompile/size-zero-one"),
    ),
    "dynamic-parameters": Indexed(
        "recompiles.dynamic_parameters",
        150,
        "config",
        ("recompile/parameter-size", "recompile/size-change"),
    ),
    "first-call-eager": Indexed(
        "recompiles.first_call_eager",
        130,
        "caller",
        (
            "recompile/attribute-presence",
            "recompile/bool-change",
            "recompile/global-change",
            "recompile/key-change",
            "recompile/length-change",
            "recompile/module-flag",
            "recompile/module-number",
            "recompile/none-or-value",
            "recompile/object-identity",
            "recompile/other-change",
            "recompile/type-change",
        ),
    ),
    "index-by-view": Indexed("recompiles.index_by_view", 65, "source", ("recompile/tensor-read",)),
    "log-outside": Indexed(
        "breaks.outside_of_compiled",
        56,
        "source",
        ("logging-call", "print-call", "scalar-extraction"),
    ),
    "mark-dynamic": Indexed(
        "recompiles.mark_dynamic", 60, "source", ("recompile/equal-sizes", "recompile/size-change")
    ),
    "mark-unbacked": Indexed(
        "recompiles.mark_unbacked",
        62,
        "source",
        ("recompile/size-change", "recompile/size-zero-one"),
    ),
    "no-grad-around": Indexed("recompiles.no_grad_around", 90, "source", ("recompile/grad-mode",)),
    "number-outside": Indexed(
        "recompiles.number_outside",
        143,
        "source",
        (
            "recompile/float-change",
            "recompile/int-change",
            "recompile/module-number",
            "recompile/number-condition",
            "recompile/number-needed",
        ),
    ),
    "separate-argument": Indexed(
        "recompiles.separate_argument", 75, "source", ("recompile/aliasing",)
    ),
    "tensor-argument": Indexed(
        "recompiles.tensor_argument",
        140,
        "source",
        (
            "recompile/float-change",
            "recompile/int-change",
            "recompile/number-condition",
            "recompile/number-needed",
        ),
    ),
    "tensor-argument-rounded": Indexed(
        "recompiles.tensor_argument",
        144,
        "source",
        (
            "recompile/float-change",
            "recompile/int-change",
            "recompile/number-condition",
            "recompile/number-needed",
        ),
    ),
    "tensor-learning-rate": Indexed(
        "recompiles.tensor_learning_rate",
        145,
        "source",
        ("recompile/number-needed", "recompile/optimizer-setting"),
    ),
    "searchsorted-for-digitize": Indexed(
        "breaks.searchsorted_for_digitize",
        42,
        "source",
        ("GB0033", "GB0208", "numpy-call", "outside-call"),
    ),
    "function-operator": Indexed(
        "breaks.function_operator",
        98,
        "source",
        (
            "GB0036",
            "category/data-dependent-branch",
            "dynamic-shape",
            "scalar-extraction",
            "tensor-if",
        ),
    ),
    "list-for-tensor": Indexed(
        "breaks.list_for_tensor",
        36,
        "source",
        ("GB0033", "GB0124", "category/data-dependent-branch", "scalar-extraction"),
    ),
    "number-for-size": Indexed(
        "breaks.number_for_size",
        126,
        "source",
        ("GB0036", "GB0124", "GB6622", "dynamic-shape", "scalar-extraction"),
    ),
    "flag-when-empty": Indexed(
        "breaks.flag_when_empty",
        121,
        "source",
        (
            "GB0033",
            "GB0124",
            "category/data-dependent-branch",
            "dynamic-shape",
            "scalar-extraction",
            "tensor-if",
            "tensor-truth",
        ),
    ),
    "one-more-row": Indexed(
        "breaks.one_more_row",
        123,
        "source",
        (
            "GB0033",
            "GB0036",
            "GB0124",
            "category/data-dependent-branch",
            "dynamic-shape",
            "scalar-extraction",
            "tensor-if",
            "tensor-truth",
        ),
    ),
    "run-when-empty": Indexed(
        "breaks.run_when_empty",
        119,
        "source",
        (
            "GB0033",
            "GB0036",
            "GB0124",
            "category/data-dependent-branch",
            "dynamic-shape",
            "scalar-extraction",
            "tensor-if",
            "tensor-truth",
        ),
    ),
}
"""By id."""
