"""What is known to fall short: by corpus and program, why the first advice does not hold there.

A test fails when one of these holds after all, so that the list stays true.
"""

from __future__ import annotations

SHORTFALLS: dict[str, str] = {
    "fixes/gradient_at_inner_leaf": "the break goes and uncovers another at the same line: two "
    "fixes are needed, and the first advice is one",
    "fixes/pasts_of_gpt_blocks": "the prompt's size and the lists of the cache change together: "
    "with one of the fixes the other causes come to stand in its place",
    "models/mixtral_script": "the library installs hooks at every call, and not only at the first",
    "registry/gb0015": "a sparse tensor breaks on its way in, however it is used then",
    "registry/gb0017": "the piece that is moved out is an operator of torch's that compiles itself",
    "registry/gb0201": "a function that is marked to be skipped is compiled all the same where it "
    "is what torch.compile is given",
    "registry/gb0293": "with trace_numpy off, a constant that is made at the top is read too",
    "registry/gb8985": "trace_autograd_ops mends requires_grad_() only where the gradient is taken "
    "inside",
    "rules/shape-condition-4": "a range that mark_dynamic was given stays, dynamic=True or not",
}
"""`corpus/program` -> the reason, in one sentence."""
