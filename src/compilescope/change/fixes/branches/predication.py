"""An `if` on a tensor as straight-line code: every assignment of both branches picks its value.

`y = a` under `c` becomes `y = torch.where(c, a, y)`; two branches that set the same name meet in
one `torch.where(c, a, b)`. Statement by statement, so a branch may read what it has set before.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from compilescope.change.fixes.branches.condition import Truth, read_test
from compilescope.change.fixes.branches.effects import (
    Effect,
    check_not_the_argument,
    is_whole_number,
    looped_effect,
    parts_of,
    read_effect,
)
from compilescope.change.fixes.branches.numbers import check_numbers
from compilescope.change.fixes.branches.steep import guarded, is_steep
from compilescope.change.fixes.subject import Subject
from compilescope.change.fixes.values.kinds import check_accepted, check_alike, check_like, kind_of
from compilescope.change.fixes.values.tensors import facts_of, is_static, is_tensor, needs_grad
from compilescope.knowledge.source.flow import liveness, operators
from compilescope.knowledge.source.flow.aliasing import (
    changes_in_place,
    check_unchanged,
    is_shared,
    runs_without_grad,
)
from compilescope.knowledge.source.flow.purity import first, operator_of, remarks, short
from compilescope.knowledge.source.refusals import NeedsRun, Refused
from compilescope.knowledge.source.syntax.module import SourceModule
from compilescope.knowledge.source.syntax.snippets import number
from compilescope.knowledge.source.trees import cst

BENT = "Where an input is NaN or infinite, a gradient may be NaN that was not before."
ZEROS = "What only the side not taken uses gets a gradient of zeros, where it had none."


@dataclass
class Predication:
    """The work on one `if` with all its branches."""

    subject: Subject
    function: cst.FunctionDef
    whole: cst.If
    """The outermost `if`, which is replaced."""
    torch: str
    """What the file calls torch."""
    met: set[str] = field(default_factory=set)
    """Names that both sides have set."""
    _made: set[str] = field(default_factory=set)
    _guarded: dict[int, str] = field(default_factory=dict)
    """The code of what would have a gradient that is NaN, by the id of its node."""

    def effects(self, truth: Truth) -> list[Effect]:
        """What to do instead, in order; `truth` is the outermost test."""
        made = self._picked(self.whole, truth)
        for effect in made:
            self._check_name(effect)
        return made

    def branch(
        self, block: cst.CSTNode | None, test: str = "", *, otherwise: bool = False
    ) -> list[Effect]:
        """One side of it, as it stands; checked for what must not be done without need. `test`: a
        name for the truth by which it is taken (`otherwise`: is not)."""
        if block is None:
            return []
        if isinstance(block, cst.If):
            return self._inner(block)
        body = block.body if isinstance(block, cst.Else) else block
        found: list[Effect] = []
        for part in parts_of(body):
            if isinstance(part, cst.If):
                found += self._inner(part)
                continue
            if isinstance(part, cst.For):
                found.append(self._looped(part))
                continue
            for effect in read_effect(self.subject, self.function, part):
                found.append(self._checked(effect, test, otherwise))
        return found

    def _checked(self, effect: Effect, test: str, otherwise: bool) -> Effect:
        subject, items = self.subject, _items_anew(effect)
        nodes = (items.elt,) if items is not None else effect.nodes
        value = nodes[-1] if nodes else None
        whole = items is not None or (value is not None and effect.value == _code(subject, value))
        if not test or not whole or _is_display(effect) or not is_steep(subject, nodes):
            check_pure(subject, nodes)
            return effect
        check_pure(subject, nodes, guards=True)
        assert isinstance(value, cst.BaseExpression)
        code = guarded(subject, value, test, self.torch, otherwise=otherwise)
        self._guarded[id(value)] = code
        return effect if items is not None else replace(effect, value=code)

    def _looped(self, loop: cst.For) -> Effect:
        # The loop's variable is there only within.
        body = loop.body.body[0]
        inside = self.subject.at(
            self.subject.module, body.body.body[0] if isinstance(body, cst.If) else body
        )
        effect = looped_effect(
            self.subject, self.whole, loop, lambda part: read_effect(inside, self.function, part)
        )
        check_pure(inside, effect.nodes)
        return effect

    def _inner(self, node: cst.If) -> list[Effect]:
        module = self.subject.module
        if is_static(self.subject, node.test):
            raise Refused(f"a branch has its own `if`: `{short(module, node.test)}`")
        truth = read_test(self.subject, node.test)
        if truth.static:
            raise Refused(f"`{truth.static}` in an inner condition is not a tensor")
        check_test(self.subject, node.test)
        return self._picked(node, truth)

    def _picked(self, node: cst.If, truth: Truth) -> list[Effect]:
        name = self._fresh("taken")
        # Of an inner `if` the test says nothing where the outer one is not taken.
        test = name if node is self.whole else ""
        pairs = _aligned(
            self.branch(node.body, test), self.branch(node.orelse, test, otherwise=True)
        )
        needed = [pair for pair in pairs if not self._is_plain(*pair)]
        several = any(_is_listed(each) or (each and each.loop) for each in itertools.chain(*needed))
        once = len(needed) <= 1 and not several and not (test and self._guarded)
        if once and pairs[:1] == needed[:1]:
            return [self._pick(truth.tensor, then, other) for then, other in pairs]
        # Evaluated once, before anything that it reads is set.
        saved = Effect("name", name, truth.tensor, plain=True)
        return [saved, *(self._pick(name, then, other) for then, other in pairs)]

    def _fresh(self, wanted: str) -> str:
        numbered = itertools.chain([wanted], (f"{wanted}_{n}" for n in itertools.count(2)))
        for name in numbered:
            if name not in self._made and self.subject.module.fresh_name(name) == name:
                self._made.add(name)
                return name
        raise AssertionError

    def _is_plain(self, then: Effect | None, other: Effect | None) -> bool:
        only = then or other
        if then is not None and other is not None:
            return then.plain and other.plain
        assert only is not None
        return only.plain or (only.kind == "name" and self._is_passing(only.target))

    def _is_passing(self, name: str) -> bool:
        """Set by one side for its own use."""
        module, function = self.subject.module, self.function
        if liveness.is_read_later(module, function, self.whole, name):
            return False
        if not liveness.is_set_before(module, function, self.whole, name):
            return True
        return sum(name in liveness.names_read(module, each) for each in _sides(self.whole)) <= 1

    def _pick(self, test: str, then: Effect | None, other: Effect | None) -> Effect:
        only = then or other
        assert only is not None
        if self._is_plain(then, other):
            return replace(only, plain=True)
        if _is_display(then) or _is_display(other):
            return self._pick_each(test, then, other)
        if _is_listed(then) or _is_listed(other):
            return self._pick_anew(test, then, other)
        if then is not None and other is not None:
            check_numbers(self.subject, self.function, self.whole, then, other)
            if then.operand is not None and other.operand is not None:
                check_alike(self.subject, then.operand, other.operand)
            self.met.add(then.target)
            nodes = (*then.nodes, *other.nodes)
            value = self._where(test, then.value, other.value)
            return replace(only, value=value, nodes=nodes, operand=None)
        if only.kind == "name":
            self._check_set(only.target)
        check_numbers(self.subject, self.function, self.whole, only, None)
        if only.kind == "name" and only.operand is not None:
            self._check_like_before(only.target, only.operand)
        a, b = (only.value, only.target) if then is not None else (only.target, only.value)
        return replace(only, value=self._where(test, a, b), operand=None)

    def _pick_each(self, test: str, then: Effect | None, other: Effect | None) -> Effect:
        """Both sides write out a list, or a tuple: so does what takes their place."""
        sides = [each.operand for each in (then, other) if each is not None]
        items = [_items_of(each) for each in sides]
        if then is None or len(items) != 2 or then.kind != "name":
            raise Refused(f"`{(then or other).target}` is set to a list on one side only")  # type: ignore[union-attr]
        if type(sides[0]) is not type(sides[1]) or items[0] is None or items[1] is None:
            raise Refused(f"`{then.target}` is a list on one side and another thing on the other")
        if len(items[0]) != len(items[1]):
            raise Refused(f"`{then.target}` has another number of items on each side")
        if is_shared(self.subject.module, self.function, then.target):
            raise Refused(f"what `{then.target}` holds may be changed or kept elsewhere")
        values = ", ".join(
            self._picked_item(test, a, b) for a, b in zip(items[0], items[1], strict=True)
        )
        self.met.add(then.target)
        one = len(items[0]) == 1
        value = f"[{values}]" if isinstance(sides[0], cst.List) else f"({values}{',' * one})"
        nodes = (*items[0], *items[1])
        return replace(then, value=value, nodes=nodes, operand=None)

    def _pick_anew(self, test: str, then: Effect | None, other: Effect | None) -> Effect:
        """One side makes a list of the items of the same one: each item is picked."""
        only = then or other
        assert only is not None
        name, items = only.target, _items_anew(only)
        if then is not None and other is not None:
            raise Refused(f"`{name}` is made of its items on one side, and set on the other too")
        assert items is not None
        _check_list(self.subject, self.function, self.whole, name)
        module = self.subject.module
        item = module.code(items.for_in.target)
        made = self._guarded.get(id(items.elt)) or module.code(items.elt)
        value = self._where(test, *((made, item) if then is not None else (item, made)))
        clause = module.code(items.for_in).strip()
        return replace(only, value=f"[{value} {clause}]", nodes=(items.elt,), operand=None)

    def _picked_item(self, test: str, one: cst.BaseExpression, other: cst.BaseExpression) -> str:
        module = self.subject.module
        if module.code(one) == module.code(other):
            return module.code(one)
        for each in (one, other):
            if not is_tensor(self.subject, each):
                raise Refused(f"it is unknown whether `{short(module, each)}` is a tensor")
            check_not_the_argument(self.subject, module.code(each))
        check_alike(self.subject, one, other)
        return self._where(test, module.code(one), module.code(other))

    def _check_like_before(self, name: str, value: cst.BaseExpression) -> None:
        """The other side leaves the name as it was: its value must be like the new one."""
        subject = self.subject
        before = subject.facts(name, subject.module.line(self.whole))
        if before and all(fact.kind in ("tensor", "parameter") for fact in before):
            check_like(subject, before, value)
        check_not_the_argument(subject, name)

    def _where(self, test: str, a: str, b: str) -> str:
        return a if a == b else f"{self.torch}.where({test}, {a}, {b})"

    def _check_set(self, name: str) -> None:
        module, function = self.subject.module, self.function
        if name in self.met or liveness.is_set_before(module, function, self.whole, name):
            return
        if not self.subject.facts(name, module.line(self.whole)):
            raise Refused(f"`{name}` is set on one side only")

    def _check_name(self, effect: Effect) -> None:
        """The name gets a new tensor, where it may have kept another one's."""
        module, function = self.subject.module, self.function
        if effect.kind == "copy" and not effect.plain:
            seen = self.subject.facts(effect.target, module.line(self.whole))
            inside = runs_without_grad(module, self.subject.statement)
            if not inside and any(fact.requires_grad for fact in seen):
                raise Refused(f"`{effect.target}` requires a gradient and is changed in place")
            if not inside and any(kind_of(self.subject, each).grad for each in effect.nodes):
                raise Refused(f"`{effect.target}` gets a gradient on one side only")
        if effect.kind != "name":
            return
        if effect.target in liveness.declared_elsewhere(module, function):
            raise Refused(f"`{effect.target}` belongs to another scope")
        if effect.plain:
            return
        check_unchanged(module, function, self.whole, effect.nodes, [effect.target])


def check_pure(
    subject: Subject,
    nodes: tuple[cst.CSTNode, ...],
    layers: Sequence[cst.Call] = (),
    *,
    guards: bool = False,
) -> None:
    """Raises `Refused` where these must not be evaluated without need. `layers`: calls of layers
    that are known to compute only, and may be. `guards`: their gradients are seen to."""
    module = subject.module
    known = {id(call) for call in layers}
    for concern in ("effect", "random", "unknown", "by-value", "raises", "costly"):
        for node in nodes:
            for found in remarks(module, node):
                if id(found.call) in known or (layers and concern == "costly"):
                    continue
                if found.concern == concern and not _is_row(subject, found.subscript):
                    raise Refused(found.words)
    for node in nodes:
        _check_seen(subject, node, known)
        check_accepted(subject, node)
    steep = first(module, list(nodes), "steep")
    if steep is not None and not guards and is_steep(subject, nodes):
        raise Refused(steep.words)


def _is_row(subject: Subject, node: cst.Subscript | None) -> bool:
    """`x[i]` by Python numbers: whether there is such a row does not depend on the values. Where
    it is seen that there is none, only a branch keeps Python from asking."""
    if node is None:
        return False
    sizes = kind_of(subject, node.value).shape
    for place, element in enumerate(node.slice):
        value = element.slice.value if isinstance(element.slice, cst.Index) else None
        if isinstance(value, cst.Name) and not is_whole_number(subject, value):
            return False
        if value is not None and not isinstance(value, (cst.Name, cst.Integer, cst.UnaryOperation)):
            return False
        at = number(value) if value is not None else None
        size = sizes[place] if sizes is not None and place < len(sizes) else None
        if size is not None and isinstance(at, int) and not -size <= at < size:
            return False
    return True


def _check_seen(subject: Subject, node: cst.CSTNode, known: set[int]) -> None:
    """What only the values that were seen tell."""
    module = subject.module
    for each in module.walk(node):
        if id(each) in known:
            continue
        if isinstance(each, cst.Call) and isinstance(each.func, cst.Attribute):
            seen = facts_of(subject, each.func.value)
            objects = [fact for fact in seen if fact.kind in ("module", "other")]
            imported = all(fact.type == "builtins.module" for fact in objects)
            if not imported and not is_static(subject, each):
                shown = short(module, each)
                raise Refused(f"the branch calls `{shown}`, which may do more than compute")
        if isinstance(each, cst.BinaryOperation) and isinstance(each.operator, cst.Divide):
            seen = facts_of(subject, each.right)
            python = bool(seen) and all(fact.kind == "number" for fact in seen)
            if python and is_static(subject, each.left):
                raise Refused(f"`{short(module, each)}` raises on division by zero")


def gradient_note(subject: Subject, sides: Sequence[cst.CSTNode], *, taken: bool = False) -> str:
    """What a user could see change where both sides are computed: for NaN and infinite inputs the
    derivative of most operators is no number, and `torch.where` multiplies it with zero; and what
    one side alone uses has part in the result always. `taken`: only one side is computed."""
    if runs_without_grad(subject.module, subject.statement):
        return ""
    notes = [ZEROS] if _is_used_once(subject, sides) else []
    bent = any(_is_bent(subject, each) for side in sides for each in subject.module.walk(side))
    if bent and not taken and needs_grad(subject, list(sides)):
        notes.insert(0, BENT)
    return " ".join(notes)


def _is_used_once(subject: Subject, sides: Sequence[cst.CSTNode]) -> bool:
    """Does one side use something that requires a gradient, and another not?"""
    used = [
        {
            subject.module.code(each)
            for each in subject.module.walk(side)
            if _is_graded(subject, each)
        }
        for side in sides
    ]
    # With no other side, what was there before goes on unchanged.
    return any(names != used[0] for names in used) or (len(used) == 1 and len(used[0]) > 1)


def _is_graded(subject: Subject, node: cst.CSTNode) -> bool:
    named = isinstance(node, (cst.Name, cst.Attribute))
    return named and any(fact.requires_grad for fact in facts_of(subject, node))


def _is_bent(subject: Subject, node: cst.CSTNode) -> bool:
    """Does its derivative depend on the values?"""
    if isinstance(node, cst.BinaryOperation):
        variable = [not is_static(subject, side) for side in (node.left, node.right)]
        if isinstance(node.operator, (cst.Divide, cst.Power)):
            return variable[1] or (variable[0] and isinstance(node.operator, cst.Power))
        return all(variable) and isinstance(node.operator, (cst.Multiply, cst.MatrixMultiply))
    if not isinstance(node, cst.Call):
        return False
    name = operator_of(subject.module, node)
    known = operators.FLAT | operators.TRUTHS | operators.INQUIRIES
    if name in ("mul", "multiply", "div", "divide"):
        given = [arg.value for arg in node.args]
        return not all(is_static(subject, each) for each in given[-1:])
    return name is not None and (operators.out_of_place(name) or name) not in known


def check_test(subject: Subject, test: cst.BaseExpression) -> None:
    """The same for a test that Python did not always come to."""
    found = first(subject.module, [test], "effect", "random", "unknown", "raises", "costly")
    if found is not None:
        raise Refused(found.words.replace("the branch", "an inner condition"))


def _code(subject: Subject, node: cst.CSTNode) -> str:
    return subject.module.code(node)


def _sides(branch: cst.If) -> list[cst.CSTNode]:
    """The bodies, and the tests of each `elif`."""
    found: list[cst.CSTNode] = [branch.body]
    if isinstance(branch.orelse, cst.If):
        return [*found, branch.orelse.test, *_sides(branch.orelse)]
    return [*found, *([branch.orelse] if branch.orelse is not None else [])]


def _aligned(then: list[Effect], other: list[Effect]) -> list[tuple[Effect | None, Effect | None]]:
    """Both sequences as one, each in its order, the same targets side by side where they meet."""
    pairs: list[tuple[Effect | None, Effect | None]] = []
    rest = list(other)
    for effect in then:
        place = next((i for i, each in enumerate(rest) if _meets(effect, each)), None)
        if place is None:
            pairs.append((effect, None))
            continue
        pairs += [(None, each) for each in rest[:place]]
        pairs.append((effect, rest[place]))
        rest = rest[place + 1 :]
    return [*pairs, *((None, each) for each in rest)]


def _meets(a: Effect, b: Effect) -> bool:
    if a.loop or b.loop:
        return False
    return a.kind == b.kind and a.target == b.target and not a.plain and not b.plain


def _is_display(effect: Effect | None) -> bool:
    return effect is not None and isinstance(effect.operand, (cst.List, cst.Tuple))


def _items_anew(effect: Effect | None) -> cst.ListComp | None:
    """`[g * 2 for g in parts]` of what sets `parts` to it."""
    node = effect.operand if effect is not None and effect.kind == "name" else None
    if effect is None or not isinstance(node, cst.ListComp):
        return None
    clause = node.for_in
    if clause.ifs or clause.inner_for_in is not None or clause.asynchronous is not None:
        return None
    names = [each.value for each in (clause.iter, clause.target) if isinstance(each, cst.Name)]
    return node if len(names) == 2 and names[0] == effect.target != names[1] else None


def _is_listed(effect: Effect | None) -> bool:
    return _is_display(effect) or _items_anew(effect) is not None


def _is_gone_through(module: SourceModule, read: cst.Name) -> bool:
    """Is a list only looked at here, item by item, joined, or returned?"""
    above = module.parent(read)
    if isinstance(above, cst.Arg):
        call = module.parent(above)
        if not isinstance(call, cst.Call):
            return False
        if module.calls(call, *(f"builtins.{each}" for each in ("len", "zip", "enumerate", "sum"))):
            return True
        return operator_of(module, call) in ("stack", "cat", "concat", "hstack", "vstack")
    if isinstance(above, cst.Subscript) and above.value is read:
        return not isinstance(module.parent(above), (cst.AssignTarget, cst.AugAssign, cst.Del))
    return isinstance(above, (cst.CompFor, cst.For, cst.Return))


def _items_of(node: cst.CSTNode | None) -> list[cst.BaseExpression] | None:
    """Of a list or a tuple that is written out; None of another thing, and where one item may be
    several."""
    if not isinstance(node, (cst.List, cst.Tuple)):
        return None
    if any(isinstance(each, cst.StarredElement) for each in node.elements):
        return None
    return [each.value for each in node.elements]


def _check_list(subject: Subject, function: cst.FunctionDef, branch: cst.If, name: str) -> None:
    """Raises `Refused` unless the name holds a list before the branch, of which nobody else sees
    that it becomes another one."""
    module = subject.module
    if not subject.program.facts.seen:
        raise NeedsRun(f"the source does not show what `{name}` holds")
    seen = subject.facts(name, module.line(branch))
    if not seen or any(fact.type != "builtins.list" for fact in seen):
        raise Refused(f"`{name}` is not known to be a list before the branch")
    end = module.position(branch).end.line
    for where, _ in changes_in_place(module, function.body):
        if module.line(where) > end or module.around(branch, cst.For, cst.While):
            raise Refused(f"`{short(module, where)}` may change what `{name}` holds")
    for read in liveness.reads(module, function.body):
        if read.value == name and module.line(read) > end and not _is_gone_through(module, read):
            raise Refused(f"what `{name}` holds may be changed or kept elsewhere")
