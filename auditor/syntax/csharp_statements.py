"""C# statements and functions lowered to Python's: a `switch` is a chain of conditions; `lock`, `using` and `fixed` a
`with`."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from auditor.syntax.code_tree import last_name
from auditor.syntax.csharp_expressions import Expressions
from auditor.syntax.csharp_nodes import any_of, first, kind_of, last, locals_of, marks_of, name_of, placed, text_of

if TYPE_CHECKING:
    from tree_sitter import Node


class Lowering(Expressions):
    """Functions of one type, statement by statement."""

    def method(self, node: Node) -> ast.stmt:
        """A method, constructor or local function."""
        name = name_of(node.child_by_field_name("name")) or "operator"
        if node.type == "constructor_declaration":
            name = "__init__"
        inner = Lowering(self.fields, self.functions, set(self.locals))
        return inner.function(node, name, node.child_by_field_name("parameters"), node.child_by_field_name("body"))

    def getter(self, node: Node, name: str) -> ast.stmt | None:
        """A property or indexer with a body as a method; its getter alone."""
        inner = Lowering(self.fields, self.functions, set(self.locals))
        body = node.child_by_field_name("value")
        if body is None or body.type != "arrow_expression_clause":
            accessors = node.child_by_field_name("accessors")
            body = None
            for accessor in accessors.named_children if accessors is not None else ():
                if text_of(accessor).lstrip().startswith(("get", "public get", "internal get")):
                    body = accessor.child_by_field_name("body") or next(
                        (part for part in accessor.named_children if part.type == "arrow_expression_clause"), None
                    )
            if body is None:
                return None
        return inner.function(node, name, node.child_by_field_name("parameters"), body)

    def function(self, node: Node, name: str, parameters: Node | None, body: Node | None) -> ast.stmt:
        """A function of this name. The locals of its whole body are known before its first line is lowered."""
        arguments = [placed(ast.arg("self", None), node)]
        for parameter in parameters.named_children if parameters is not None else ():
            given = name_of(parameter.child_by_field_name("name"))
            if parameter.type == "parameter" and given:
                self.locals.add(given)
                kind = kind_of(parameter.child_by_field_name("type"), parameter)
                if any(child.type == "modifier" and text_of(child) == "out" for child in parameter.children):
                    written = placed(ast.Name("Out", ast.Load()), parameter)
                    kind = placed(ast.Subscript(written, kind or written, ast.Load()), parameter)
                arguments.append(placed(ast.arg(given, kind), parameter))
        if body is not None:
            self.locals.update(locals_of(body))
        statements = self.body(body)
        made = ast.FunctionDef(
            name=name,
            args=ast.arguments([], arguments, None, [], [], None, []),
            body=statements or [placed(ast.Pass(), node)],
            decorator_list=[placed(ast.Name(name, ast.Load()), node) for name in marks_of(node)],
            returns=None,
        )
        return placed(made, node)  # type: ignore[no-any-return]

    def body(self, node: Node | None) -> list[ast.stmt]:
        """A block, an arrow body or a single statement."""
        if node is None:
            return []
        if node.type == "arrow_expression_clause":
            inner = first(node)
            if inner is None:
                return []
            counts = inner.type.endswith("unary_expression") and ("++" in text_of(inner) or "--" in text_of(inner))
            if inner.type == "assignment_expression" or counts:
                return self.effect(inner)
            return [placed(ast.Return(self.expression(inner)), inner)]
        if node.type == "block":
            return self.statements(node.named_children)
        return self.statements([node])

    def texts(self, node: Node) -> Iterator[ast.stmt]:
        """The fields of a declaration that stand for a text, as assignments."""
        for part in node.named_children:
            for made in self.declaration(part):
                value = made.value if isinstance(made, ast.Assign) else None
                if isinstance(made, ast.Assign) and isinstance(value, ast.Constant) and isinstance(value.value, str):
                    field = placed(ast.Name(last_name(made.targets[0]), ast.Store()), node)
                    yield placed(ast.Assign([field], value), node)

    # --- statements -------------------------------------------------------------------------------------------------

    def statements(self, nodes: Iterable[Node]) -> list[ast.stmt]:
        """Statements in order."""
        return [made for node in nodes for made in self.statement(node)]

    def statement(self, node: Node) -> list[ast.stmt]:
        """One statement; a declaration of two variables, or a block, gives several."""
        kind = node.type
        field_of = node.child_by_field_name
        if kind == "block":
            return self.statements(node.named_children)
        if kind == "expression_statement":
            inner = first(node)
            return self.effect(inner) if inner is not None else []
        if kind == "local_declaration_statement":
            return [made for part in node.named_children for made in self.declaration(part)]
        if kind == "if_statement":
            other = field_of("alternative")
            made = ast.If(self.expression(field_of("condition")), self.some(field_of("consequence")), self.body(other))
            return [placed(made, node)]
        if kind in ("foreach_statement", "for_each_statement"):
            left = field_of("left")
            target: ast.expr = self.target(left) if left is not None else placed(ast.Name("_", ast.Store()), node)
            return [placed(ast.For(target, self.expression(field_of("right")), self.some(field_of("body")), []), node)]
        if kind == "while_statement":
            condition = field_of("condition") or first(node)
            return [placed(ast.While(self.expression(condition), self.some(field_of("body")), []), node)]
        if kind == "do_statement":
            condition = field_of("condition") or last(node)
            body = self.some(field_of("body"))
            return [*body, placed(ast.While(self.expression(condition), body, []), node)]
        if kind == "for_statement":
            start = field_of("initializer")
            before = self.declaration(start) if start is not None else []
            step = field_of("update")
            after = self.effect(step) if step is not None else []
            until = field_of("condition")
            test = self.expression(until) if until is not None else placed(ast.Constant(True), node)
            return [*before, placed(ast.While(test, [*self.some(field_of("body")), *after], []), node)]
        if kind == "switch_statement":
            return self.switch(node)
        if kind in ("return_statement", "throw_statement"):
            value = self.expression(first(node)) if node.named_children else None
            return [placed(ast.Return(value) if kind == "return_statement" else ast.Raise(value), node)]
        if kind == "yield_statement":
            value = self.expression(first(node)) if node.named_children else None
            return [placed(ast.Expr(placed(ast.Yield(value), node)) if value is not None else ast.Return(None), node)]
        if kind == "break_statement":
            return [placed(ast.Pass() if self.switches else ast.Break(), node)]
        if kind == "continue_statement":
            return [placed(ast.Continue(), node)]
        if kind == "try_statement":
            return self.attempt(node)
        if kind in ("lock_statement", "using_statement", "fixed_statement"):
            return self.held(node)
        if kind in ("checked_statement", "unsafe_statement", "labeled_statement"):
            return self.statements(node.named_children)
        if kind == "local_function_statement":
            return [self.method(node)]
        return []

    def some(self, node: Node | None) -> list[ast.stmt]:
        """A body that may not be empty."""
        return self.body(node) or [placed(ast.Pass(), node) if node is not None else ast.Pass()]

    def declaration(self, node: Node) -> list[ast.stmt]:
        """`var a = x, b = y` as assignments."""
        made: list[ast.stmt] = []
        if node.type != "variable_declaration":
            return self.effect(node) if node.type == "assignment_expression" else []
        for entry in node.named_children:
            if entry.type != "variable_declarator":
                continue
            name = entry.child_by_field_name("name")
            values = [part for part in entry.named_children if part != name and part.type != "bracketed_argument_list"]
            if name is not None and values:
                target = self.target(name)
                made.append(placed(ast.Assign([target], self.expression(values[-1])), entry))
        return made

    def effect(self, node: Node) -> list[ast.stmt]:
        """An expression that stands as a statement."""
        if node.type == "assignment_expression":
            left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
            operator = next((text_of(part) for part in node.children if not part.is_named), "")
            operator = text_of(node.child_by_field_name("operator")) or operator
            value = self.expression(right)
            if operator in ("=", "??="):
                return [placed(ast.Assign([self.target(left)], value), node)]
            return [placed(ast.AugAssign(self.target(left), ast.Add() if operator == "+=" else ast.Sub(), value), node)]
        if node.type in ("postfix_unary_expression", "prefix_unary_expression"):
            text = text_of(node)
            if "++" in text or "--" in text:
                one = placed(ast.Constant(1), node)
                operator_node = ast.Add() if "++" in text else ast.Sub()
                return [placed(ast.AugAssign(self.target(first(node)), operator_node, one), node)]
        return [placed(ast.Expr(self.expression(node)), node)]

    def attempt(self, node: Node) -> list[ast.stmt]:
        """`try` with its handlers."""
        handlers, final = [], []
        for part in node.named_children:
            if part.type == "catch_clause":
                body = self.some(part.child_by_field_name("body"))
                handlers.append(placed(ast.ExceptHandler(None, None, body), part))
            elif part.type == "finally_clause":
                final = self.statements(part.named_children)
        return [placed(ast.Try(self.some(node.child_by_field_name("body")), handlers, [], final), node)]

    def held(self, node: Node) -> list[ast.stmt]:
        """`lock (x) { }` and its relatives."""
        items, body, before = [], [], []
        for part in node.named_children:
            if part.type == "variable_declaration":
                before += self.declaration(part)
            elif part.type == "block" or part.type.endswith("statement"):
                body += self.body(part)
            else:
                items.append(ast.withitem(self.expression(part), None))
        if not items:
            return [*before, *body]
        return [*before, placed(ast.With(items, body or [placed(ast.Pass(), node)]), node)]

    def switch(self, node: Node) -> list[ast.stmt]:
        """A chain of conditions. Labels that share a body are one condition."""
        subject = node.child_by_field_name("value") or first(node)
        if subject is None:
            return []
        sections = node.child_by_field_name("body")
        chain: list[tuple[ast.expr | None, list[ast.stmt], Node]] = []
        tests: list[ast.expr] = []
        fallback = False
        self.switches += 1
        for section in sections.named_children if sections is not None else ():
            statements = []
            fallback |= any(text_of(part) == "default" for part in section.children)
            for part in section.named_children:
                if part.type.endswith("pattern") or part.type in ("discard",):
                    tests.append(self.pattern(subject, part))
                elif part.type == "when_clause" and tests:
                    guard = self.expression(first(part))
                    tests[-1] = placed(ast.BoolOp(ast.And(), [tests[-1], guard]), part)
                elif part.type.endswith("statement") or part.type == "block":
                    statements.append(part)
                elif part.type.endswith("expression") or part.type in (
                    "identifier",
                    "integer_literal",
                    "string_literal",
                ):
                    tests.append(self.equal(subject, part))
            if not statements:
                continue
            test = None if fallback else tests[0] if len(tests) == 1 else any_of(tests, section)
            chain.append((test, self.statements(statements) or [placed(ast.Pass(), section)], section))
            tests, fallback = [], False
        self.switches -= 1
        rest: list[ast.stmt] = next((body for test, body, _ in chain if test is None), [])
        for test, body, section in reversed([entry for entry in chain if entry[0] is not None]):
            assert test is not None  # noqa: S101 - filtered in the line above
            rest = [placed(ast.If(test, body, rest), section)]
        return rest
