"""C# expressions lowered to Python's. What no check looks at becomes a constant."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from auditor.syntax.csharp_nodes import first, last, name_of, placed, text_of
from auditor.syntax.csharp_patterns import COMPARISONS, Patterns

if TYPE_CHECKING:
    from tree_sitter import Node

SEQUENCES = frozenset({"ToList", "ToArray", "AsEnumerable", "ToHashSet", "Reverse", "OrderBy", "OrderByDescending"})
_THROUGH = frozenset(
    {"parenthesized_expression", "cast_expression", "checked_expression", "ref_expression", "as_expression"}
    | {"throw_expression", "argument", "equals_value_clause", "arrow_expression_clause", "spread_element"}
)
_LAST = frozenset({"cast_expression", "equals_value_clause"})


class Expressions(Patterns):
    """Expressions in the order in which they may stand inside of each other."""

    def target(self, node: Node | None) -> Any:
        """What is assigned to."""
        if node is not None and node.type == "declaration_expression":
            node = node.child_by_field_name("name") or last(node)
        made = self.expression(node)
        if not isinstance(made, (ast.Name, ast.Attribute, ast.Subscript, ast.Tuple)):
            return ast.copy_location(ast.Name("_", ast.Store()), made)
        made.ctx = ast.Store()
        return made

    def expression(self, node: Node | None, receiver: ast.expr | None = None) -> ast.expr:
        """One expression; what no check looks at becomes a constant."""
        if node is None:
            return ast.Constant(None, lineno=1, col_offset=0, end_lineno=1, end_col_offset=0)
        maker = getattr(self, "_" + node.type, None)
        if maker is not None:
            made: ast.expr = maker(node, receiver)
            return made if hasattr(made, "lineno") else placed(made, node)
        inner = [part for part in node.named_children if part.type != "comment"]
        if node.type in _THROUGH and inner:
            return self.expression(inner[-1] if node.type in _LAST else inner[0], receiver)
        return placed(ast.Constant(...), node)  # type: ignore[no-any-return]

    def _identifier(self, node: Node, receiver: ast.expr | None) -> ast.expr:
        name = name_of(node)
        own = name in self.fields or name in self.functions or (name.startswith(("_", "m_")) and name != "_")
        if name not in self.locals and own:
            return ast.Attribute(placed(ast.Name("self", ast.Load()), node), name, ast.Load())
        return ast.Name(name, ast.Load())

    def _generic_name(self, node: Node, receiver: ast.expr | None) -> ast.expr:
        inner = first(node)
        return self._identifier(inner if inner is not None else node, receiver)

    def _this_expression(self, node: Node, receiver: ast.expr | None) -> ast.expr:
        return ast.Name("self", ast.Load())

    _this = _base_expression = _base = _this_expression

    def _null_literal(self, node: Node, receiver: ast.expr | None) -> ast.expr:
        return ast.Constant(None)

    def _boolean_literal(self, node: Node, receiver: ast.expr | None) -> ast.expr:
        return ast.Constant(text_of(node) == "true")

    def _integer_literal(self, node: Node, receiver: ast.expr | None) -> ast.expr:
        digits = text_of(node).replace("_", "").rstrip("uUlL")
        try:
            return ast.Constant(int(digits, 0))
        except ValueError:
            return ast.Constant(1)

    def _string_literal(self, node: Node, receiver: ast.expr | None) -> ast.expr:
        return ast.Constant(text_of(node).strip('@"'))

    _verbatim_string_literal = _string_literal

    def _raw_string_literal(self, node: Node, receiver: ast.expr | None) -> ast.expr:
        return ast.Constant(text_of(node).strip('"'))

    def _interpolated_string_expression(self, node: Node, receiver: ast.expr | None) -> ast.expr:
        pieces = [
            "{}" if part.type == "interpolation" else text_of(part)
            for part in node.named_children
            if part.type in ("interpolation", "string_content", "interpolated_string_text") or "content" in part.type
        ]
        return ast.Constant("".join(pieces))

    def _default_expression(self, node: Node, receiver: ast.expr | None) -> ast.expr:
        return ast.Constant(None)

    _default_literal = _default_expression

    def _member_access_expression(self, node: Node, receiver: ast.expr | None) -> ast.expr:
        base = self.expression(node.child_by_field_name("expression"), receiver)
        return ast.Attribute(base, name_of(node.child_by_field_name("name")), ast.Load())

    _qualified_name = _member_access_expression

    def _conditional_access_expression(self, node: Node, receiver: ast.expr | None) -> ast.expr:
        base = self.expression(node.child_by_field_name("condition") or first(node), receiver)
        return self.expression(last(node), base)

    def _member_binding_expression(self, node: Node, receiver: ast.expr | None) -> ast.expr:
        base = receiver if receiver is not None else placed(ast.Name("_", ast.Load()), node)
        name = node.child_by_field_name("name") or last(node)
        return ast.Attribute(base, name_of(name), ast.Load())

    def _element_access_expression(self, node: Node, receiver: ast.expr | None) -> ast.expr:
        base = self.expression(node.child_by_field_name("expression"), receiver)
        return self._item(base, node.child_by_field_name("subscript"), node)

    def _element_binding_expression(self, node: Node, receiver: ast.expr | None) -> ast.expr:
        base = receiver if receiver is not None else placed(ast.Name("_", ast.Load()), node)
        return self._item(base, first(node), node)

    def _item(self, base: ast.expr, subscript: Node | None, node: Node) -> ast.expr:
        found = [
            part for part in (subscript.named_children if subscript is not None else ()) if part.type == "argument"
        ]
        parts = [self.expression(last(part)) for part in found if part.named_children]
        index = parts[0] if len(parts) == 1 else placed(ast.Tuple(parts, ast.Load()), node)
        return ast.Subscript(base, index, ast.Load())

    def _range_expression(self, node: Node, receiver: ast.expr | None) -> ast.expr:
        text = text_of(node)
        parts = [self.expression(part) for part in node.named_children]
        lower = parts[0] if parts and not text.startswith("..") else None
        upper = parts[-1] if parts and not text.endswith("..") else None
        return ast.Slice(lower, upper, None)

    def _invocation_expression(self, node: Node, receiver: ast.expr | None) -> ast.expr:
        function = node.child_by_field_name("function")
        arguments, keywords = self._arguments(node.child_by_field_name("arguments"))
        called = self.expression(function, receiver)
        name = called.attr if isinstance(called, ast.Attribute) else ""
        if isinstance(called, ast.Attribute) and name in ("TryWrite", "WriteAsync"):
            side = called.value  # the writing side of a channel stands for the channel
            if isinstance(side, ast.Attribute) and side.attr == "Writer":
                called.value = side.value
        if name == "Where" and len(arguments) == 1 and isinstance(called, ast.Attribute):
            return ast.Call(placed(ast.Name("filter", ast.Load()), node), [arguments[0], called.value], [])
        if name in ("First", "FirstOrDefault", "Single", "SingleOrDefault", "Last", "Find") and isinstance(
            called, ast.Attribute
        ):
            source = called.value
            if arguments:
                source = placed(
                    ast.Call(placed(ast.Name("filter", ast.Load()), node), [arguments[0], source], []), node
                )
            return ast.Call(placed(ast.Name("next", ast.Load()), node), [source], [])
        if name in SEQUENCES and isinstance(called, ast.Attribute):
            return ast.Call(placed(ast.Name("list", ast.Load()), node), [called.value], [])
        return ast.Call(called, arguments, keywords)

    def _arguments(self, node: Node | None) -> tuple[list[ast.expr], list[ast.keyword]]:
        arguments: list[ast.expr] = []
        keywords: list[ast.keyword] = []
        for part in node.named_children if node is not None else ():
            if part.type != "argument" or not part.named_children:
                continue
            value = self.expression(last(part))
            name = part.child_by_field_name("name")
            if name is not None:
                keywords.append(placed(ast.keyword(name_of(name), value), part))
            else:
                arguments.append(value)
        return arguments, keywords

    def _declaration_expression(self, node: Node, receiver: ast.expr | None) -> ast.expr:
        return ast.Name(name_of(node.child_by_field_name("name") or last(node)), ast.Load())

    def _object_creation_expression(self, node: Node, receiver: ast.expr | None) -> ast.expr:
        kind = node.child_by_field_name("type")
        arguments, keywords = self._arguments(node.child_by_field_name("arguments"))
        initializer = node.child_by_field_name("initializer")
        for part in initializer.named_children if initializer is not None else ():
            right = part.child_by_field_name("right")
            if part.type == "assignment_expression" and right is not None:
                name = name_of(part.child_by_field_name("left"))
                keywords.append(placed(ast.keyword(name, self.expression(right)), part))
        name = name_of(kind) if kind is not None else "New"
        return ast.Call(placed(ast.Name(name[:1].upper() + name[1:], ast.Load()), node), arguments, keywords)

    _implicit_object_creation_expression = _object_creation_expression

    def _array_creation_expression(self, node: Node, receiver: ast.expr | None) -> ast.expr:
        return ast.Call(placed(ast.Name("NewArray", ast.Load()), node), [], [])

    def _implicit_array_creation_expression(self, node: Node, receiver: ast.expr | None) -> ast.expr:
        parts = [part for child in node.named_children for part in child.named_children]
        return ast.List([self.expression(part) for part in parts], ast.Load())

    def _collection_expression(self, node: Node, receiver: ast.expr | None) -> ast.expr:
        return ast.List([self.expression(part) for part in node.named_children], ast.Load())

    def _with_expression(self, node: Node, receiver: ast.expr | None) -> ast.expr:
        changes = [
            placed(ast.keyword(name_of(part.named_children[0]), self.expression(last(part))), part)
            for part in node.named_children
            if part.type == "with_initializer" and len(part.named_children) == 2
        ]
        return ast.Call(placed(ast.Name("With", ast.Load()), node), [self.expression(first(node))], changes)

    def _tuple_expression(self, node: Node, receiver: ast.expr | None) -> ast.expr:
        arguments, keywords = self._arguments(node)
        return ast.Tuple([*arguments, *(entry.value for entry in keywords)], ast.Load())

    def _conditional_expression(self, node: Node, receiver: ast.expr | None) -> ast.expr:
        return ast.IfExp(
            self.expression(node.child_by_field_name("condition")),
            self.expression(node.child_by_field_name("consequence")),
            self.expression(node.child_by_field_name("alternative")),
        )

    def _switch_expression(self, node: Node, receiver: ast.expr | None) -> ast.expr:
        subject = first(node)
        if subject is None:
            return ast.Constant(...)
        rest: ast.expr = placed(ast.Constant(None), node)
        for arm in reversed([part for part in node.named_children if part.type == "switch_expression_arm"]):
            pattern, value = first(arm), self.expression(last(arm))
            if pattern is None:
                continue
            if pattern.type == "discard":
                rest = value
                continue
            rest = placed(ast.IfExp(self.pattern(subject, pattern), value, rest), arm)
        return rest

    def _lambda_expression(self, node: Node, receiver: ast.expr | None) -> ast.expr:
        parameters = node.child_by_field_name("parameters")
        names = []
        if parameters is not None and parameters.type == "implicit_parameter":
            names = [name_of(parameters)]
        elif parameters is not None:
            names = [name_of(part.child_by_field_name("name") or part) for part in parameters.named_children]
        inner = type(self)(self.fields, self.functions, self.locals | set(names))
        body = node.child_by_field_name("body")
        value = (
            inner.expression(body) if body is not None and body.type != "block" else placed(ast.Constant(None), node)
        )
        arguments = ast.arguments([], [placed(ast.arg(name, None), node) for name in names], None, [], [], None, [])
        return ast.Lambda(arguments, value)

    def _await_expression(self, node: Node, receiver: ast.expr | None) -> ast.expr:
        return ast.Await(self.expression(first(node)))

    def _prefix_unary_expression(self, node: Node, receiver: ast.expr | None) -> ast.expr:
        inner = self.expression(first(node))
        if text_of(node).startswith("!"):
            return ast.UnaryOp(ast.Not(), inner)
        return inner if text_of(node).startswith(("++", "--", "&", "*", "^")) else ast.UnaryOp(ast.USub(), inner)

    def _postfix_unary_expression(self, node: Node, receiver: ast.expr | None) -> ast.expr:
        return self.expression(first(node))

    def _assignment_expression(self, node: Node, receiver: ast.expr | None) -> ast.expr:
        target, value = (
            self.target(node.child_by_field_name("left")),
            self.expression(node.child_by_field_name("right")),
        )
        return ast.NamedExpr(target, value) if isinstance(target, ast.Name) else value

    def _binary_expression(self, node: Node, receiver: ast.expr | None) -> ast.expr:
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        operator = text_of(node.child_by_field_name("operator")) or next(
            (text_of(part) for part in node.children if not part.is_named), ""
        )
        if operator in ("&&", "||", "??"):
            return ast.BoolOp(
                ast.And() if operator == "&&" else ast.Or(), [self.expression(left), self.expression(right)]
            )
        if operator in COMPARISONS:
            compared = self.expression(right)
            is_none = isinstance(compared, ast.Constant) and compared.value is None
            kind: ast.cmpop = COMPARISONS[operator]()
            if is_none:
                kind = ast.Is() if operator == "==" else ast.IsNot()
            return ast.Compare(self.expression(left), [kind], [compared])
        return ast.BinOp(self.expression(left), ast.Add(), self.expression(right))

    def _is_expression(self, node: Node, receiver: ast.expr | None) -> ast.expr:
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        left, right = left or first(node), right or last(node)
        return self.equal(left, right) if left is not None and right is not None else ast.Constant(...)

    def _is_pattern_expression(self, node: Node, receiver: ast.expr | None) -> ast.expr:
        subject, pattern = node.child_by_field_name("expression"), node.child_by_field_name("pattern")
        if subject is None or pattern is None:
            return ast.Constant(...)
        return self.pattern(subject, pattern)
