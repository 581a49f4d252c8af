"""The stance of torch.compile: when it compiles at all."""

from __future__ import annotations

import libcst as cst

from compilescope.fixes.patch import Patch, Refused
from compilescope.fixes.source.compiling import main_edit, put_setting
from compilescope.fixes.subject import Subject

STATES = "The first call of every compiled function in the program runs eagerly."


def eager_then_compile(subject: Subject) -> Patch:
    """One line in the script. Raises `Refused` where the program has a stance of its own."""
    edit = main_edit(subject)
    for node in edit.module.walk():
        if isinstance(node, cst.Call) and edit.module.calls(node, "torch.compiler.set_stance"):
            raise Refused("the program sets a stance itself")
    put_setting(edit, f'{edit.module_name("torch")}.compiler.set_stance("eager_then_compile")')
    return Patch(edit.files(), states=STATES)
