"""C# patterns as conditions: `x is not A or B` a comparison, a property pattern a chain of them."""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from auditor.model.records import dataclass, field
from auditor.syntax.csharp_nodes import any_of, between, placed, text_of

if TYPE_CHECKING:
    from tree_sitter import Node

COMPARISONS: dict[str, type[ast.cmpop]] = {
    "==": ast.Eq, "!=": ast.NotEq, "<": ast.Lt, "<=": ast.LtE, ">": ast.Gt, ">=": ast.GtE,
}  # fmt: skip


@dataclass
class Patterns(ABC):
    """What names mean inside of one type: its fields and methods, and the locals of the method at hand."""

    fields: frozenset[str] = frozenset()
    functions: frozenset[str] = frozenset()
    locals: set[str] = field(default_factory=set)
    switches: int = 0

    @abstractmethod
    def expression(self, node: Node | None, receiver: ast.expr | None = None) -> ast.expr:
        """One expression."""

    def equal(self, subject: Node, value: Node) -> ast.expr:
        """`subject == value`, at the place of both."""
        right = self.expression(value)
        none = isinstance(right, ast.Constant) and right.value is None
        made = ast.Compare(self.expression(subject), [ast.Is() if none else ast.Eq()], [right])
        return placed(made, *between(subject, value))  # type: ignore[no-any-return]

    def pattern(self, subject: Node, pattern: Node, of: ast.expr | None = None) -> ast.expr:
        """A pattern as a condition on the subject."""
        kind = pattern.type
        inner = [part for part in pattern.named_children if part.type != "comment"]
        if kind == "constant_pattern" and inner:
            value = inner[0]
            # The grammar takes `x is A && y` for one pattern; the operator belongs to the condition around it.
            if value.type == "binary_expression" and text_of(value.child_by_field_name("operator")) in ("&&", "||"):
                left, right = value.child_by_field_name("left"), value.child_by_field_name("right")
                if left is not None and right is not None:
                    first = self._constant(subject, left, of, negate=False)
                    operator = ast.And() if text_of(value.child_by_field_name("operator")) == "&&" else ast.Or()
                    return placed(ast.BoolOp(operator, [first, self.expression(right)]), *between(subject, value))  # type: ignore[no-any-return]
            return self._constant(subject, value, of, negate=False)
        if kind in ("negated_pattern", "not_pattern") and inner:
            made = self.pattern(subject, inner[0], of)
            return self._negated(made, subject, pattern)
        if kind in ("or_pattern", "and_pattern") and len(inner) == 2:
            parts = [self.pattern(subject, part, of) for part in inner]
            if kind == "or_pattern":
                return any_of(parts, pattern, subject)
            return placed(ast.BoolOp(ast.And(), parts), *between(subject, pattern))  # type: ignore[no-any-return]
        if kind == "parenthesized_pattern" and inner:
            return self.pattern(subject, inner[0], of)
        if kind == "recursive_pattern":
            return self._recursive(subject, pattern, of)
        if kind == "relational_pattern" and inner:
            sign = next((text_of(part) for part in pattern.children if not part.is_named), "<")
            left_side = of if of is not None else self.expression(subject)
            made_compare = ast.Compare(left_side, [COMPARISONS.get(sign, ast.Lt)()], [self.expression(inner[-1])])
            return placed(made_compare, *between(subject, pattern))  # type: ignore[no-any-return]
        if kind in ("declaration_pattern", "type_pattern") and inner:
            call = ast.Call(
                placed(ast.Name("isinstance", ast.Load()), pattern),
                [of if of is not None else self.expression(subject), self.expression(inner[0])],
                [],
            )
            return placed(call, *between(subject, pattern))  # type: ignore[no-any-return]
        if kind in ("member_access_expression", "identifier", "qualified_name"):
            return self._constant(subject, pattern, of, negate=False)
        return placed(ast.Constant(True), pattern)  # type: ignore[no-any-return]

    def _constant(self, subject: Node, value: Node, of: ast.expr | None, *, negate: bool) -> ast.expr:
        if of is None:
            return self.equal(subject, value)
        right = self.expression(value)
        if isinstance(right, ast.Constant) and isinstance(right.value, bool):
            return of if right.value else placed(ast.UnaryOp(ast.Not(), of), value)
        none = isinstance(right, ast.Constant) and right.value is None
        return placed(ast.Compare(of, [ast.Is() if none else ast.Eq()], [right]), value)  # type: ignore[no-any-return]

    def _negated(self, made: ast.expr, subject: Node, pattern: Node) -> ast.expr:
        flips: dict[type[ast.cmpop], type[ast.cmpop]] = {
            ast.Eq: ast.NotEq, ast.Is: ast.IsNot, ast.In: ast.NotIn, ast.NotEq: ast.Eq,
        }  # fmt: skip
        if isinstance(made, ast.Compare) and type(made.ops[0]) in flips:
            made.ops[0] = flips[type(made.ops[0])]()
            return placed(made, *between(subject, pattern))  # type: ignore[no-any-return]
        if isinstance(made, ast.BoolOp) and isinstance(made.values[0], ast.Compare):
            # `x is not A && y`, see above: the negation holds for the first part alone.
            made.values[0] = self._negated(made.values[0], subject, pattern)
            return made
        return placed(ast.UnaryOp(ast.Not(), made), *between(subject, pattern))  # type: ignore[no-any-return]

    def _recursive(self, subject: Node, pattern: Node, of: ast.expr | None) -> ast.expr:
        tests: list[ast.expr] = []
        base = of if of is not None else self.expression(subject)
        for clause in pattern.named_children:
            if clause.type != "property_pattern_clause":
                continue
            for part in clause.named_children:
                if part.type == "subpattern" and len(part.named_children) == 2:
                    name, inner = part.named_children
                    attribute = base
                    for piece in text_of(name).split("."):
                        attribute = placed(ast.Attribute(attribute, piece, ast.Load()), part)
                    tests.append(self.pattern(subject, inner, attribute))
        if len(tests) == 1:
            return placed(tests[0], *between(subject, pattern))  # type: ignore[no-any-return]
        if not tests:
            return placed(ast.Constant(True), pattern)  # type: ignore[no-any-return]
        return placed(ast.BoolOp(ast.And(), tests), *between(subject, pattern))  # type: ignore[no-any-return]
