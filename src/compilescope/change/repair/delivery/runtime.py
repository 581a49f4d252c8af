"""What an emitted script carries to put its changes into modules.

The class is copied into the script as it stands: it knows nothing of compilescope, and all that it
imports, it imports inside.
"""

from __future__ import annotations

# mypy: ignore-errors
# What stands below is copied.


class _Fixes:
    """Patches modules when they are imported. No file is changed.

    A function is patched only if its source is still the one the change was made for.
    """

    def __init__(self, script):
        import os

        self.script = os.path.abspath(script)  # Tracebacks of new code name its lines.
        self.changes = {}  # A module's file -> what to do with the module.
        self.names = set()  # Names of those modules, without packages.
        self.imported = set()
        self.current = ""

    # What to change

    def file(self, file):
        """The changes that follow are for this file: `./x.py` is next to the script, other paths
        are relative to the folder that holds the packages."""
        *folders, last = file.split("/")
        self.names.add(folders[-1] if last == "__init__.py" else last.rpartition(".")[0])
        self.current = file
        self.changes[file] = {"whole": None, "parts": []}

    def module(self, made_for, source):
        """The whole text of a module."""
        self.changes[self.current]["whole"] = (made_for, self._in_place(source))

    def statements(self, source):
        """Run these in the module, after its own statements."""
        self.changes[self.current]["parts"].append((self._run, "", "", self._in_place(source)))

    def function(self, name, made_for, source):
        """New code for a function, wherever it is referenced."""
        part = (self._change_code, name, made_for, self._in_place(source))
        self.changes[self.current]["parts"].append(part)

    def function_anew(self, name, made_for, source):
        """A new function in place of the old one: its decorators or defaults changed."""
        part = (self._make_anew, name, made_for, self._in_place(source))
        self.changes[self.current]["parts"].append(part)

    def _in_place(self, source):
        """Padded with empty lines, so that line numbers match the script."""
        import sys

        return "\n" * (sys._getframe(2).f_lineno - 1) + source

    def install(self):
        """From now on, modules are changed as they are imported."""
        import atexit
        import sys

        sys.meta_path.insert(0, self)
        for module in list(sys.modules.values()):
            file = self._file_of(getattr(module, "__spec__", None))
            if file is not None:
                self._change(module, file)
        atexit.register(self._tell_what_was_not_imported)

    # When a module is imported

    def find_spec(self, name, path=None, target=None):
        """Python asks this first for every module. The other finders find it, and its loader
        changes it afterwards."""
        import sys

        if name.rpartition(".")[2] not in self.names:
            return None
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None) if finder is not self else None
            spec = find(name, path, target) if find is not None else None
            if spec is not None:
                if self._file_of(spec) is not None and "exec_module" not in vars(spec.loader):
                    spec.loader.exec_module = self._loading(spec.loader.exec_module)
                return spec
        return None

    def _file_of(self, spec):
        """The changed file that a module comes from, or None."""
        import os

        origin = getattr(spec, "origin", None)
        if not isinstance(origin, str):
            return None
        for file in self.changes:
            beside = os.path.join(os.path.dirname(self.script), file)
            if file.startswith("."):
                if os.path.realpath(beside) == os.path.realpath(origin):
                    return file
            elif origin.replace(os.sep, "/").endswith("/" + file):
                return file
        return None

    def _loading(self, load):
        def load_changed(module):
            file = self._file_of(module.__spec__)
            whole = self.changes[file]["whole"] if file is not None else None
            if whole is not None and self._digest(self._lines(module)) == whole[0]:
                self.imported.add(file)
                exec(compile(whole[1], self.script, "exec", dont_inherit=True), vars(module))
                return
            load(module)
            if file is not None:
                self._change(module, file)

        return load_changed

    def _change(self, module, file):
        self.imported.add(file)
        if self.changes[file]["whole"] is not None:
            self._tell(file, "it is a different version, or was already imported")
        for change, name, made_for, text in self.changes[file]["parts"]:
            try:
                change(module, name, made_for, text)
            except LookupError as error:
                self._tell(file, f"{name}: {error.args[0]}")

    # How a module is changed

    def _run(self, module, name, made_for, text):
        exec(self._compiled(module, text), vars(module))

    def _change_code(self, module, name, made_for, text):
        import gc
        import types

        new = self._compiled(module, text)
        for part in name.split("."):
            codes = [each for each in new.co_consts if isinstance(each, types.CodeType)]
            new = next(each for each in codes if each.co_name == part)
        functions = {}  # All of the module, by code: also those that decorators hold.
        for each in gc.get_objects():
            if type(each) is types.FunctionType and each.__globals__ is vars(module):
                functions.setdefault(each.__code__, []).append(each)
        places = {(new.co_name, n) for n in self._first_lines(module, name, made_for)}
        old = [code for code in functions if (code.co_name, code.co_firstlineno) in places]
        if not old:
            raise LookupError("the function does not exist after the import")
        for code in old:
            self._swap(code, new, functions)

    def _swap(self, old, new, functions):
        """New code for all functions with the old code, and for those it has already created."""
        import types

        for function in functions.get(old, ()):
            if old.co_freevars != new.co_freevars:
                raise LookupError(f"{old.co_name} has different free variables")
            function.__code__ = new
        for name in {code.co_name for code in old.co_consts if isinstance(code, types.CodeType)}:
            before, after = (
                [c for c in outer.co_consts if isinstance(c, types.CodeType) and c.co_name == name]
                for outer in (old, new)
            )
            if len(before) == len(after):
                for pair in zip(before, after, strict=True):
                    self._swap(*pair, functions)
            elif any(code in functions for code in before):
                raise LookupError(f"a function it created before ({name}) keeps its old code")

    def _make_anew(self, module, name, made_for, text):
        self._first_lines(module, name, made_for)
        made = {}
        exec(self._compiled(module, text), vars(module), made)
        *classes, last = name.split(".")
        owner = module
        for part in classes:
            owner, made = vars(owner)[part], dict(vars(made[part]))
        setattr(owner, last, made[last])

    def _compiled(self, module, text):
        """As if it were in the module: its `from __future__` imports apply."""
        import __future__

        import ast

        flags = 0
        for node in ast.parse("\n".join(self._lines(module))).body:
            if isinstance(node, ast.ImportFrom) and node.module == "__future__":
                for alias in node.names:
                    flags |= getattr(__future__, alias.name).compiler_flag
        return compile(text, self.script, "exec", flags=flags, dont_inherit=True)

    # Is it still the version that the change was made for?

    def _first_lines(self, module, name, made_for):
        """Where the definitions of that name begin; decorators are part of them."""
        import ast

        lines, found = self._lines(module), []

        def visit(body, prefix):
            for node in body:
                if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                    first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
                    same = self._digest(lines[first - 1 : node.end_lineno]) == made_for
                    found.extend([first] if prefix + node.name == name and same else [])
                else:
                    inside = f"{prefix}{node.name}." if isinstance(node, ast.ClassDef) else prefix
                    for block in ("body", "orelse", "finalbody", "handlers"):
                        visit(getattr(node, block, []), inside)

        visit(ast.parse("\n".join(lines)).body, "")
        if not found:
            raise LookupError("it is not the version the change was made for")
        return found

    def _lines(self, module):
        import re

        spec = module.__spec__
        source = spec.loader.get_source(spec.name) if hasattr(spec.loader, "get_source") else None
        return re.split(r"\r\n|\r|\n", source or "")

    def _digest(self, lines):
        import hashlib

        return hashlib.sha256("\n".join(lines).encode("utf-8", "surrogatepass")).hexdigest()[:16]

    # Warnings

    def _tell(self, file, words):
        import os
        import sys

        name = os.path.basename(self.script)
        sys.stderr.write(f"{name}: {file} is not fixed: {words}\n")

    def _tell_what_was_not_imported(self):
        import multiprocessing

        if multiprocessing.parent_process() is not None:
            return  # A worker need not import everything the program does.
        for file in sorted(set(self.changes) - self.imported):
            self._tell(file, "it was never imported")
