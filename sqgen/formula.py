"""Formulas as the papers write them: `(5*n^2 + 36*n)/2`, with ceil and floor, in exact arithmetic."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from fractions import Fraction

_BINARY: dict[type[ast.operator], Callable[[Fraction, Fraction], Fraction]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: lambda base, power: base ** int(power),
}
_ROUNDING: dict[str, Callable[[Fraction], int]] = {"ceil": math.ceil, "floor": math.floor}


class FormulaError(ValueError):
    """Text that is no formula; a fault of a file in `papers/`, not of the user."""


def evaluate(text: str, names: Mapping[str, Fraction]) -> Fraction:
    """The value of a formula.  Raises KeyError for a name that has no value, FormulaError for what is no formula."""
    try:
        tree = ast.parse(text.replace("^", "**"), mode="eval")
    except SyntaxError:
        raise FormulaError(f"'{text}' is no formula") from None
    return _value(tree.body, text, names)


def _value(node: ast.expr, text: str, names: Mapping[str, Fraction]) -> Fraction:
    match node:
        case ast.Constant(value=int() | float()):
            return Fraction(ast.get_source_segment(text.replace("^", "**"), node) or "")
        case ast.Name(id=name):
            return names[name]
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            return _BINARY[type(op)](_value(left, text, names), _value(right, text, names))
        case ast.Call(func=ast.Name(id=name), args=[inside]) if name in _ROUNDING:
            return Fraction(_ROUNDING[name](_value(inside, text, names)))
        case _:
            raise FormulaError(f"'{text}' is no formula")
