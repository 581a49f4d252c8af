"""Plain numbers in place of a graph's symbolic sizes: two sets, to tell fixed from dynamic.

An operator is run once with each set. A size that comes out the same for both is fixed, one that
does not is dynamic. torch's shape environment is only read: no guard and no symbol is left in it.
"""

from __future__ import annotations

import itertools
from typing import Any

import sympy

Pair = tuple[int, int]
"""What a size is in the first and in the second trial."""

_FACTORS = (3, 5, 7, 11, 13)
"""From one trial to the next a size grows by a factor: what divided it still does. Different
primes: how much a product grew tells of which sizes it is one."""
_UNBACKED = 24
"""For a size that only the running program knows. Chosen: it can be halved, and split in 3, 4, 6 or
8; and it is not 0 or 1, which torch treats apart."""
_MOST_SYMBOLS = 6
"""Sizes that a product is sought among. Chosen: 6 make 83 products of up to three, and all are
tried."""


class Unclear(Exception):
    """Running it with numbers and without data does not tell what it does."""


class TrialSizes:
    """The numbers for the symbols of one graph."""

    def __init__(self) -> None:
        self._symbols: dict[Any, Pair] = {}
        self._environment: Any = None
        self._held: set[Any] | None = None
        self._pairs: dict[Any, Pair] = {}
        self._names: dict[Pair, str] = {}
        self._products: dict[Pair, str] = {}

    def both(self, size: Any) -> Pair:
        if type(size) is int:
            return size, size
        expression = size.node.expr
        pair = self._pairs.get(expression)
        if pair is None:
            self._environment = size.node.shape_env
            pair = self._pairs[expression] = self._evaluate(expression)
            # A number that a guard holds may be equal to a fixed one: that is then dynamic too.
            if pair[0] != pair[1] or (self._held and pair[0] > 1):
                self._names.setdefault(pair, str(expression))
        return pair

    def shown(self, first: int, second: int) -> int | str:
        """The number, or for a dynamic one the expression that gave it."""
        pair = (first, second)
        if pair in self._names:
            return self._names[pair]
        if first == second:
            return first
        if pair not in self._products:
            self._products[pair] = self._product(first, second)
        return self._products[pair]

    def hold_to_guards(self) -> bool:
        """Where the second trial fails: leave sizes alone that a guard ties to others.

        False if that was done before, or there is nothing to hold.
        """
        if self._held is not None:
            return False
        self._held = set()
        guards = [guard.expr for guard in getattr(self._environment, "guards", ())]
        changed = True
        while changed:
            changed = False
            for guard in guards:
                loose = guard.free_symbols - self._held
                if loose and self._at(guard, 1) != sympy.true:
                    self._held |= loose
                    changed = True
        self._pairs.clear()
        self._names.clear()
        self._products.clear()
        return bool(self._held)

    def _evaluate(self, expression: Any) -> Pair:
        if isinstance(expression, int):
            return expression, expression
        first, second = self._at(expression, 0), self._at(expression, 1)
        if not (first.is_Integer and second.is_Integer):
            raise Unclear(f"{expression} is not a number")
        return int(first), int(second)

    def _at(self, expression: Any, trial: int) -> Any:
        """The expression with numbers in place of symbols."""
        numbers = {}
        for symbol in expression.free_symbols:
            if symbol not in self._symbols:
                self._symbols[symbol] = self._numbers(symbol)
            held = self._held is not None and symbol in self._held
            numbers[symbol] = sympy.Integer(self._symbols[symbol][0 if held else trial])
        return expression.xreplace(numbers)

    def _numbers(self, symbol: Any) -> Pair:
        # torch 2.13 calls them backed; before, there were only those.
        known = getattr(self._environment, "backed_var_to_val", None)
        if known is None:
            known = getattr(self._environment, "var_to_val", {})
        first = int(known.get(symbol, _UNBACKED))
        return first, first * _FACTORS[len(self._symbols) % len(_FACTORS)]

    def _product(self, first: int, second: int) -> str:
        """`2*s0*s1`, as flattening makes it. What is no product has no name of its own."""
        symbols = list(self._symbols.items())[:_MOST_SYMBOLS]
        for length in (1, 2, 3):
            for chosen in itertools.combinations_with_replacement(symbols, length):
                one = two = 1
                for _, (small, large) in chosen:
                    one, two = one * small, two * large
                if one and not first % one and not second % two and first // one == second // two:
                    names = "*".join(str(symbol) for symbol, _ in chosen)
                    return names if first == one else f"{first // one}*{names}"
        return "dynamic"
