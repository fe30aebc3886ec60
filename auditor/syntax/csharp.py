"""C# source lowered to the nodes of Python's `ast`, with tree-sitter's grammar (see `code_tree.py` for the idea).

Only what the code checks look at is kept: types, methods, conditions, calls, stores. A field reached without `this`
becomes an attribute of `self`; `x is not A or B` a comparison; LINQ's `Where` the `filter` that it is; a `switch` a
chain of conditions; `lock`, `using` and `fixed` a `with`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from auditor.errors import ReadError
from auditor.model.spans import SourceFile

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

TYPES = frozenset(
    {
        "class_declaration",
        "struct_declaration",
        "record_declaration",
        "record_struct_declaration",
        "interface_declaration",
    }
)
METHODS = frozenset(
    {"method_declaration", "constructor_declaration", "local_function_statement", "operator_declaration"}
    | {"destructor_declaration", "conversion_operator_declaration"}
)
COMPARISONS: dict[str, type[ast.cmpop]] = {
    "==": ast.Eq, "!=": ast.NotEq, "<": ast.Lt, "<=": ast.LtE, ">": ast.Gt, ">=": ast.GtE,
}  # fmt: skip
SEQUENCES = frozenset({"ToList", "ToArray", "AsEnumerable", "ToHashSet", "Reverse", "OrderBy", "OrderByDescending"})


@lru_cache(maxsize=1)
def _parser() -> Parser:
    import tree_sitter
    import tree_sitter_c_sharp

    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_c_sharp.language()))


def parse_csharp(source: SourceFile) -> ast.Module:
    """The types of a file as a module. Raises `ReadError`: there is no C# in it, or it nests too deeply."""
    data = source.text.encode("utf-8", "surrogatepass")
    root = _parser().parse(data).root_node
    try:
        body = list(_declarations(root, _Lowering()))
    except RecursionError:
        raise ReadError("nested deeper than the reader allows", 0, limit=True) from None
    if root.has_error and not body:
        place = _first_error(root)
        line = place.start_point[0] + 1
        raise ReadError(f"not valid C# at line {line}", source.offset(line, place.start_point[1] + 1))
    return ast.Module(body, [])


def _first_error(node: Node) -> Node:
    stack = [node]
    while stack:
        here = stack.pop()
        if here.is_error or here.is_missing:
            return here
        stack.extend(child for child in reversed(here.children) if child.has_error or child.is_missing)
    return node


def _declarations(node: Node, lowering: _Lowering) -> Iterator[ast.stmt]:
    for child in node.named_children:
        if child.type in TYPES:
            yield _type(child, lowering)
        elif child.type == "enum_declaration":
            yield _enum(child)
        elif child.type == "global_statement":
            yield from lowering.statements(child.named_children)
        elif child.type not in METHODS:
            yield from _declarations(child, lowering)  # namespaces, preprocessor branches, errors


def _text(node: Node | None) -> str:
    return node.text.decode("utf-8", "replace") if node is not None and node.text is not None else ""


def _placed(made: Any, node: Node, end: Node | None = None) -> Any:
    last = end or node
    made.lineno, made.col_offset = node.start_point[0] + 1, node.start_point[1]
    made.end_lineno, made.end_col_offset = last.end_point[0] + 1, last.end_point[1]
    return made


def _name(node: Node | None) -> str:
    """The identifier of a name or a generic name."""
    if node is None:
        return ""
    if node.type == "generic_name":
        return _name(node.named_children[0])
    if node.type == "qualified_name":
        return _name(node.child_by_field_name("name"))
    return _text(node).lstrip("@")


def _enum(node: Node) -> ast.ClassDef:
    body: list[ast.stmt] = []
    members = node.child_by_field_name("body")
    for number, member in enumerate(members.named_children if members is not None else ()):
        name = member.child_by_field_name("name")
        if name is not None:
            target = _placed(ast.Name(_name(name), ast.Store()), name)
            body.append(_placed(ast.Assign([target], _placed(ast.Constant(number), name)), member))
    base = _placed(ast.Name("Enum", ast.Load()), node)
    made = ast.ClassDef(_name(node.child_by_field_name("name")), [base], [], body or [_placed(ast.Pass(), node)], [])
    return _placed(made, node)  # type: ignore[no-any-return]


def _type(node: Node, outer: _Lowering) -> ast.ClassDef:
    members = node.child_by_field_name("body")
    children = list(_flat(members)) if members is not None else []
    fields: set[str] = set(outer.fields)
    functions: set[str] = set(outer.functions)
    parameters = next((child for child in node.named_children if child.type == "parameter_list"), None)
    for child in children:
        if child.type in ("field_declaration", "event_field_declaration"):
            fields.update(_declared(child))
        elif child.type == "property_declaration":
            fields.add(_name(child.child_by_field_name("name")))
        elif child.type == "method_declaration":
            functions.add(_name(child.child_by_field_name("name")))
    body: list[ast.stmt] = []
    for parameter in parameters.named_children if parameters is not None else ():
        name = _name(parameter.child_by_field_name("name"))
        if name:
            fields.add(name)
            body.append(_annotated(parameter, name, parameter.child_by_field_name("type")))
    lowering = _Lowering(frozenset(fields), frozenset(functions))
    for child in children:
        body.extend(_member(child, lowering))
    bases = [
        _placed(ast.Name(_name(base), ast.Load()), base)
        for entry in node.named_children
        if entry.type == "base_list"
        for base in entry.named_children
    ]
    made = ast.ClassDef(_name(node.child_by_field_name("name")), bases, [], body or [_placed(ast.Pass(), node)], [])
    return _placed(made, node)  # type: ignore[no-any-return]


def _flat(node: Node) -> Iterator[Node]:
    for child in node.named_children:
        if child.type.startswith("preproc_if") or child.type in ("preproc_else", "preproc_elif", "ERROR"):
            yield from _flat(child)
        else:
            yield child


def _declared(node: Node) -> Iterator[str]:
    for part in node.named_children:
        if part.type == "variable_declaration":
            for entry in part.named_children:
                if entry.type == "variable_declarator":
                    yield _name(entry.child_by_field_name("name"))


def _annotated(node: Node, name: str, kind: Node | None) -> ast.stmt:
    target = _placed(ast.Name(name, ast.Store()), node)
    return _placed(ast.AnnAssign(target, _kind(kind, node), None, 1), node)  # type: ignore[no-any-return]


def _kind(kind: Node | None, at: Node) -> ast.expr:
    """A type as an annotation; `List<Order>` becomes `List[Order]`, `Order?` the bare name."""
    if kind is None:
        return _placed(ast.Name("object", ast.Load()), at)  # type: ignore[no-any-return]
    if kind.type in ("nullable_type", "array_type", "ref_type", "scoped_type"):
        inner = kind.child_by_field_name("type") or (kind.named_children[0] if kind.named_children else None)
        return _kind(inner, at) if inner is not None else _placed(ast.Name(_text(kind), ast.Load()), kind)
    if kind.type == "generic_name":
        arguments = [
            part for child in kind.named_children if child.type == "type_argument_list" for part in child.named_children
        ]
        base = _placed(ast.Name(_name(kind), ast.Load()), kind)
        inner_kinds = [_kind(part, kind) for part in arguments]
        if not inner_kinds:
            return base  # type: ignore[no-any-return]
        index = inner_kinds[0] if len(inner_kinds) == 1 else _placed(ast.Tuple(inner_kinds, ast.Load()), kind)
        return _placed(ast.Subscript(base, index, ast.Load()), kind)  # type: ignore[no-any-return]
    return _placed(ast.Name(_name(kind), ast.Load()), kind)  # type: ignore[no-any-return]


def _member(node: Node, lowering: _Lowering) -> Iterator[ast.stmt]:
    if node.type in TYPES:
        yield _type(node, lowering)
    elif node.type == "enum_declaration":
        yield _enum(node)
    elif node.type in METHODS:
        yield lowering.method(node)
    elif node.type == "field_declaration":
        kind = next(
            (part.child_by_field_name("type") for part in node.named_children if part.type == "variable_declaration"),
            None,
        )
        for name in _declared(node):
            yield _annotated(node, name, kind)
    elif node.type in ("property_declaration", "indexer_declaration"):
        name = _name(node.child_by_field_name("name")) or "item"
        getter = lowering.getter(node, name)
        if getter is not None:
            yield getter
        if node.type == "property_declaration" and getter is None:
            yield _annotated(node, name, node.child_by_field_name("type"))


@dataclass
class _Lowering:
    """What names mean inside of one type: its fields and methods, and the locals of the method at hand."""

    fields: frozenset[str] = frozenset()
    functions: frozenset[str] = frozenset()
    locals: set[str] = field(default_factory=set)
    switches: int = 0

    # --- members ----------------------------------------------------------------------------------------------------

    def method(self, node: Node) -> ast.stmt:
        """A method, constructor or local function."""
        name = _name(node.child_by_field_name("name")) or "operator"
        if node.type == "constructor_declaration":
            name = "__init__"
        inner = _Lowering(self.fields, self.functions, set(self.locals))
        return inner.function(node, name, node.child_by_field_name("parameters"), node.child_by_field_name("body"))

    def getter(self, node: Node, name: str) -> ast.stmt | None:
        """A property or indexer with a body as a method; its getter alone."""
        inner = _Lowering(self.fields, self.functions, set(self.locals))
        body = node.child_by_field_name("value")
        if body is None or body.type != "arrow_expression_clause":
            accessors = node.child_by_field_name("accessors")
            body = None
            for accessor in accessors.named_children if accessors is not None else ():
                if _text(accessor).lstrip().startswith(("get", "public get", "internal get")):
                    body = accessor.child_by_field_name("body") or next(
                        (part for part in accessor.named_children if part.type == "arrow_expression_clause"), None
                    )
            if body is None:
                return None
        return inner.function(node, name, node.child_by_field_name("parameters"), body)

    def function(self, node: Node, name: str, parameters: Node | None, body: Node | None) -> ast.stmt:
        """A function of this name. The locals of its whole body are known before its first line is lowered."""
        arguments = [_placed(ast.arg("self", None), node)]
        for parameter in parameters.named_children if parameters is not None else ():
            given = _name(parameter.child_by_field_name("name"))
            if parameter.type == "parameter" and given:
                self.locals.add(given)
                kind = _kind(parameter.child_by_field_name("type"), parameter)
                arguments.append(_placed(ast.arg(given, kind), parameter))
        if body is not None:
            self.locals.update(_locals(body))
        statements = self.body(body)
        made = ast.FunctionDef(
            name=name,
            args=ast.arguments([], arguments, None, [], [], None, []),
            body=statements or [_placed(ast.Pass(), node)],
            decorator_list=[],
            returns=None,
        )
        return _placed(made, node)  # type: ignore[no-any-return]

    def body(self, node: Node | None) -> list[ast.stmt]:
        """A block, an arrow body or a single statement."""
        if node is None:
            return []
        if node.type == "arrow_expression_clause":
            inner = node.named_children[0]
            counts = inner.type.endswith("unary_expression") and ("++" in _text(inner) or "--" in _text(inner))
            if inner.type == "assignment_expression" or counts:
                return self.effect(inner)
            return [_placed(ast.Return(self.expression(inner)), inner)]
        if node.type == "block":
            return self.statements(node.named_children)
        return self.statements([node])

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
            return self.effect(node.named_children[0]) if node.named_children else []
        if kind == "local_declaration_statement":
            return [made for part in node.named_children for made in self.declaration(part)]
        if kind == "if_statement":
            other = field_of("alternative")
            made = ast.If(self.expression(field_of("condition")), self.some(field_of("consequence")), self.body(other))
            return [_placed(made, node)]
        if kind in ("foreach_statement", "for_each_statement"):
            left = field_of("left")
            target: ast.expr = self.target(left) if left is not None else _placed(ast.Name("_", ast.Store()), node)
            return [_placed(ast.For(target, self.expression(field_of("right")), self.some(field_of("body")), []), node)]
        if kind == "while_statement":
            condition = field_of("condition") or node.named_children[0]
            return [_placed(ast.While(self.expression(condition), self.some(field_of("body")), []), node)]
        if kind == "do_statement":
            condition = field_of("condition") or node.named_children[-1]
            body = self.some(field_of("body"))
            return [*body, _placed(ast.While(self.expression(condition), body, []), node)]
        if kind == "for_statement":
            start = field_of("initializer")
            before = self.declaration(start) if start is not None else []
            step = field_of("update")
            after = self.effect(step) if step is not None else []
            until = field_of("condition")
            test = self.expression(until) if until is not None else _placed(ast.Constant(True), node)
            return [*before, _placed(ast.While(test, [*self.some(field_of("body")), *after], []), node)]
        if kind == "switch_statement":
            return self.switch(node)
        if kind in ("return_statement", "throw_statement"):
            value = self.expression(node.named_children[0]) if node.named_children else None
            return [_placed(ast.Return(value) if kind == "return_statement" else ast.Raise(value), node)]
        if kind == "yield_statement":
            value = self.expression(node.named_children[0]) if node.named_children else None
            return [_placed(ast.Expr(_placed(ast.Yield(value), node)) if value is not None else ast.Return(None), node)]
        if kind == "break_statement":
            return [_placed(ast.Pass() if self.switches else ast.Break(), node)]
        if kind == "continue_statement":
            return [_placed(ast.Continue(), node)]
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
        return self.body(node) or [_placed(ast.Pass(), node) if node is not None else ast.Pass()]

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
                made.append(_placed(ast.Assign([target], self.expression(values[-1])), entry))
        return made

    def effect(self, node: Node) -> list[ast.stmt]:
        """An expression that stands as a statement."""
        if node.type == "assignment_expression":
            left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
            operator = next((_text(part) for part in node.children if not part.is_named), "")
            operator = _text(node.child_by_field_name("operator")) or operator
            value = self.expression(right)
            if operator in ("=", "??="):
                return [_placed(ast.Assign([self.target(left)], value), node)]
            return [
                _placed(ast.AugAssign(self.target(left), ast.Add() if operator == "+=" else ast.Sub(), value), node)
            ]
        if node.type in ("postfix_unary_expression", "prefix_unary_expression"):
            text = _text(node)
            if "++" in text or "--" in text:
                one = _placed(ast.Constant(1), node)
                operator_node = ast.Add() if "++" in text else ast.Sub()
                return [_placed(ast.AugAssign(self.target(node.named_children[0]), operator_node, one), node)]
        return [_placed(ast.Expr(self.expression(node)), node)]

    def attempt(self, node: Node) -> list[ast.stmt]:
        """`try` with its handlers."""
        handlers, final = [], []
        for part in node.named_children:
            if part.type == "catch_clause":
                body = self.some(part.child_by_field_name("body"))
                handlers.append(_placed(ast.ExceptHandler(None, None, body), part))
            elif part.type == "finally_clause":
                final = self.statements(part.named_children)
        return [_placed(ast.Try(self.some(node.child_by_field_name("body")), handlers, [], final), node)]

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
        return [*before, _placed(ast.With(items, body or [_placed(ast.Pass(), node)]), node)]

    def switch(self, node: Node) -> list[ast.stmt]:
        """A chain of conditions. Labels that share a body are one condition."""
        subject = node.child_by_field_name("value") or node.named_children[0]
        sections = node.child_by_field_name("body")
        chain: list[tuple[ast.expr | None, list[ast.stmt], Node]] = []
        tests: list[ast.expr] = []
        fallback = False
        self.switches += 1
        for section in sections.named_children if sections is not None else ():
            statements = []
            fallback |= any(_text(part) == "default" for part in section.children)
            for part in section.named_children:
                if part.type.endswith("pattern") or part.type in ("discard",):
                    tests.append(self.pattern(subject, part))
                elif part.type == "when_clause" and tests:
                    guard = self.expression(part.named_children[0])
                    tests[-1] = _placed(ast.BoolOp(ast.And(), [tests[-1], guard]), part)
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
            test = None if fallback else tests[0] if len(tests) == 1 else _any(tests, section)
            chain.append((test, self.statements(statements) or [_placed(ast.Pass(), section)], section))
            tests, fallback = [], False
        self.switches -= 1
        rest: list[ast.stmt] = next((body for test, body, _ in chain if test is None), [])
        for test, body, section in reversed([entry for entry in chain if entry[0] is not None]):
            assert test is not None  # noqa: S101 - filtered in the line above
            rest = [_placed(ast.If(test, body, rest), section)]
        return rest

    # --- expressions ------------------------------------------------------------------------------------------------

    def target(self, node: Node | None) -> Any:
        """What is assigned to."""
        if node is not None and node.type == "declaration_expression":
            node = node.child_by_field_name("name") or node.named_children[-1]
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
            return made if hasattr(made, "lineno") else _placed(made, node)
        inner = [part for part in node.named_children if part.type != "comment"]
        if node.type in _THROUGH and inner:
            return self.expression(inner[-1] if node.type in _LAST else inner[0], receiver)
        return _placed(ast.Constant(...), node)  # type: ignore[no-any-return]

    def _identifier(self, node: Node, receiver: ast.expr | None) -> ast.expr:
        name = _name(node)
        own = name in self.fields or name in self.functions or (name.startswith(("_", "m_")) and name != "_")
        if name not in self.locals and own:
            return ast.Attribute(_placed(ast.Name("self", ast.Load()), node), name, ast.Load())
        return ast.Name(name, ast.Load())

    def _generic_name(self, node: Node, receiver: ast.expr | None) -> ast.expr:
        return self._identifier(node.named_children[0], receiver)

    def _this_expression(self, node: Node, receiver: ast.expr | None) -> ast.expr:
        return ast.Name("self", ast.Load())

    _this = _base_expression = _base = _this_expression

    def _null_literal(self, node: Node, receiver: ast.expr | None) -> ast.expr:
        return ast.Constant(None)

    def _boolean_literal(self, node: Node, receiver: ast.expr | None) -> ast.expr:
        return ast.Constant(_text(node) == "true")

    def _integer_literal(self, node: Node, receiver: ast.expr | None) -> ast.expr:
        digits = _text(node).replace("_", "").rstrip("uUlL")
        try:
            return ast.Constant(int(digits, 0))
        except ValueError:
            return ast.Constant(1)

    def _string_literal(self, node: Node, receiver: ast.expr | None) -> ast.expr:
        return ast.Constant(_text(node).strip('@"'))

    _verbatim_string_literal = _string_literal

    def _default_expression(self, node: Node, receiver: ast.expr | None) -> ast.expr:
        return ast.Constant(None)

    _default_literal = _default_expression

    def _member_access_expression(self, node: Node, receiver: ast.expr | None) -> ast.expr:
        base = self.expression(node.child_by_field_name("expression"), receiver)
        return ast.Attribute(base, _name(node.child_by_field_name("name")), ast.Load())

    _qualified_name = _member_access_expression

    def _conditional_access_expression(self, node: Node, receiver: ast.expr | None) -> ast.expr:
        base = self.expression(node.child_by_field_name("condition") or node.named_children[0], receiver)
        return self.expression(node.named_children[-1], base)

    def _member_binding_expression(self, node: Node, receiver: ast.expr | None) -> ast.expr:
        base = receiver if receiver is not None else _placed(ast.Name("_", ast.Load()), node)
        name = node.child_by_field_name("name") or node.named_children[-1]
        return ast.Attribute(base, _name(name), ast.Load())

    def _element_access_expression(self, node: Node, receiver: ast.expr | None) -> ast.expr:
        base = self.expression(node.child_by_field_name("expression"), receiver)
        return self._item(base, node.child_by_field_name("subscript"), node)

    def _element_binding_expression(self, node: Node, receiver: ast.expr | None) -> ast.expr:
        base = receiver if receiver is not None else _placed(ast.Name("_", ast.Load()), node)
        return self._item(base, node.named_children[0] if node.named_children else None, node)

    def _item(self, base: ast.expr, subscript: Node | None, node: Node) -> ast.expr:
        found = [
            part for part in (subscript.named_children if subscript is not None else ()) if part.type == "argument"
        ]
        parts = [self.expression(part.named_children[-1]) for part in found if part.named_children]
        index = parts[0] if len(parts) == 1 else _placed(ast.Tuple(parts, ast.Load()), node)
        return ast.Subscript(base, index, ast.Load())

    def _range_expression(self, node: Node, receiver: ast.expr | None) -> ast.expr:
        text = _text(node)
        parts = [self.expression(part) for part in node.named_children]
        lower = parts[0] if parts and not text.startswith("..") else None
        upper = parts[-1] if parts and not text.endswith("..") else None
        return ast.Slice(lower, upper, None)

    def _invocation_expression(self, node: Node, receiver: ast.expr | None) -> ast.expr:
        function = node.child_by_field_name("function")
        arguments, keywords = self._arguments(node.child_by_field_name("arguments"))
        called = self.expression(function, receiver)
        name = called.attr if isinstance(called, ast.Attribute) else ""
        if name == "Where" and len(arguments) == 1 and isinstance(called, ast.Attribute):
            return ast.Call(_placed(ast.Name("filter", ast.Load()), node), [arguments[0], called.value], [])
        if name in ("First", "FirstOrDefault", "Single", "SingleOrDefault", "Last", "Find") and isinstance(
            called, ast.Attribute
        ):
            source = called.value
            if arguments:
                source = _placed(
                    ast.Call(_placed(ast.Name("filter", ast.Load()), node), [arguments[0], source], []), node
                )
            return ast.Call(_placed(ast.Name("next", ast.Load()), node), [source], [])
        if name in SEQUENCES and isinstance(called, ast.Attribute):
            return ast.Call(_placed(ast.Name("list", ast.Load()), node), [called.value], [])
        return ast.Call(called, arguments, keywords)

    def _arguments(self, node: Node | None) -> tuple[list[ast.expr], list[ast.keyword]]:
        arguments: list[ast.expr] = []
        keywords: list[ast.keyword] = []
        for part in node.named_children if node is not None else ():
            if part.type != "argument" or not part.named_children:
                continue
            value = self.expression(part.named_children[-1])
            name = part.child_by_field_name("name")
            if name is not None:
                keywords.append(_placed(ast.keyword(_name(name), value), part))
            else:
                arguments.append(value)
        return arguments, keywords

    def _declaration_expression(self, node: Node, receiver: ast.expr | None) -> ast.expr:
        return ast.Name(_name(node.child_by_field_name("name") or node.named_children[-1]), ast.Load())

    def _object_creation_expression(self, node: Node, receiver: ast.expr | None) -> ast.expr:
        kind = node.child_by_field_name("type")
        arguments, keywords = self._arguments(node.child_by_field_name("arguments"))
        initializer = node.child_by_field_name("initializer")
        for part in initializer.named_children if initializer is not None else ():
            right = part.child_by_field_name("right")
            if part.type == "assignment_expression" and right is not None:
                name = _name(part.child_by_field_name("left"))
                keywords.append(_placed(ast.keyword(name, self.expression(right)), part))
        name = _name(kind) if kind is not None else "New"
        return ast.Call(_placed(ast.Name(name[:1].upper() + name[1:], ast.Load()), node), arguments, keywords)

    _implicit_object_creation_expression = _object_creation_expression

    def _array_creation_expression(self, node: Node, receiver: ast.expr | None) -> ast.expr:
        return ast.Call(_placed(ast.Name("NewArray", ast.Load()), node), [], [])

    def _implicit_array_creation_expression(self, node: Node, receiver: ast.expr | None) -> ast.expr:
        parts = [part for child in node.named_children for part in child.named_children]
        return ast.List([self.expression(part) for part in parts], ast.Load())

    def _collection_expression(self, node: Node, receiver: ast.expr | None) -> ast.expr:
        return ast.List([self.expression(part) for part in node.named_children], ast.Load())

    def _with_expression(self, node: Node, receiver: ast.expr | None) -> ast.expr:
        return ast.Call(_placed(ast.Name("With", ast.Load()), node), [self.expression(node.named_children[0])], [])

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
        subject = node.named_children[0]
        rest: ast.expr = _placed(ast.Constant(None), node)
        for arm in reversed([part for part in node.named_children if part.type == "switch_expression_arm"]):
            pattern, value = arm.named_children[0], self.expression(arm.named_children[-1])
            if pattern.type == "discard":
                rest = value
                continue
            rest = _placed(ast.IfExp(self.pattern(subject, pattern), value, rest), arm)
        return rest

    def _lambda_expression(self, node: Node, receiver: ast.expr | None) -> ast.expr:
        parameters = node.child_by_field_name("parameters")
        names = []
        if parameters is not None and parameters.type == "implicit_parameter":
            names = [_name(parameters)]
        elif parameters is not None:
            names = [_name(part.child_by_field_name("name") or part) for part in parameters.named_children]
        inner = _Lowering(self.fields, self.functions, self.locals | set(names))
        body = node.child_by_field_name("body")
        value = (
            inner.expression(body) if body is not None and body.type != "block" else _placed(ast.Constant(None), node)
        )
        arguments = ast.arguments([], [_placed(ast.arg(name, None), node) for name in names], None, [], [], None, [])
        return ast.Lambda(arguments, value)

    def _await_expression(self, node: Node, receiver: ast.expr | None) -> ast.expr:
        return ast.Await(self.expression(node.named_children[0]))

    def _prefix_unary_expression(self, node: Node, receiver: ast.expr | None) -> ast.expr:
        inner = self.expression(node.named_children[0])
        if _text(node).startswith("!"):
            return ast.UnaryOp(ast.Not(), inner)
        return inner if _text(node).startswith(("++", "--", "&", "*", "^")) else ast.UnaryOp(ast.USub(), inner)

    def _postfix_unary_expression(self, node: Node, receiver: ast.expr | None) -> ast.expr:
        return self.expression(node.named_children[0])

    def _assignment_expression(self, node: Node, receiver: ast.expr | None) -> ast.expr:
        target, value = (
            self.target(node.child_by_field_name("left")),
            self.expression(node.child_by_field_name("right")),
        )
        return ast.NamedExpr(target, value) if isinstance(target, ast.Name) else value

    def _binary_expression(self, node: Node, receiver: ast.expr | None) -> ast.expr:
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        operator = _text(node.child_by_field_name("operator")) or next(
            (_text(part) for part in node.children if not part.is_named), ""
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
        return self.equal(left or node.named_children[0], right or node.named_children[-1])

    def _is_pattern_expression(self, node: Node, receiver: ast.expr | None) -> ast.expr:
        subject, pattern = node.child_by_field_name("expression"), node.child_by_field_name("pattern")
        if subject is None or pattern is None:
            return ast.Constant(...)
        return self.pattern(subject, pattern)

    # --- patterns ---------------------------------------------------------------------------------------------------

    def equal(self, subject: Node, value: Node) -> ast.expr:
        """`subject == value`, at the place of both."""
        right = self.expression(value)
        none = isinstance(right, ast.Constant) and right.value is None
        made = ast.Compare(self.expression(subject), [ast.Is() if none else ast.Eq()], [right])
        return _placed(made, *_between(subject, value))  # type: ignore[no-any-return]

    def pattern(self, subject: Node, pattern: Node, of: ast.expr | None = None) -> ast.expr:
        """A pattern as a condition on the subject."""
        kind = pattern.type
        inner = [part for part in pattern.named_children if part.type != "comment"]
        if kind == "constant_pattern" and inner:
            value = inner[0]
            # The grammar takes `x is A && y` for one pattern; the operator belongs to the condition around it.
            if value.type == "binary_expression" and _text(
                value.child_by_field_name("operator") or value.children[1]
            ) in ("&&", "||"):
                left, right = value.child_by_field_name("left"), value.child_by_field_name("right")
                if left is not None and right is not None:
                    first = self._constant(subject, left, of, negate=False)
                    operator = ast.And() if _text(value.children[1]) == "&&" else ast.Or()
                    return _placed(ast.BoolOp(operator, [first, self.expression(right)]), *_between(subject, value))  # type: ignore[no-any-return]
            return self._constant(subject, value, of, negate=False)
        if kind in ("negated_pattern", "not_pattern") and inner:
            made = self.pattern(subject, inner[0], of)
            return self._negated(made, subject, pattern)
        if kind in ("or_pattern", "and_pattern") and len(inner) == 2:
            parts = [self.pattern(subject, part, of) for part in inner]
            if kind == "or_pattern":
                return _any(parts, pattern, subject)
            return _placed(ast.BoolOp(ast.And(), parts), *_between(subject, pattern))  # type: ignore[no-any-return]
        if kind == "parenthesized_pattern" and inner:
            return self.pattern(subject, inner[0], of)
        if kind == "recursive_pattern":
            return self._recursive(subject, pattern, of)
        if kind == "relational_pattern" and inner:
            sign = next((_text(part) for part in pattern.children if not part.is_named), "<")
            left_side = of if of is not None else self.expression(subject)
            made_compare = ast.Compare(left_side, [COMPARISONS.get(sign, ast.Lt)()], [self.expression(inner[-1])])
            return _placed(made_compare, *_between(subject, pattern))  # type: ignore[no-any-return]
        if kind in ("declaration_pattern", "type_pattern") and inner:
            call = ast.Call(
                _placed(ast.Name("isinstance", ast.Load()), pattern),
                [of if of is not None else self.expression(subject), self.expression(inner[0])],
                [],
            )
            return _placed(call, *_between(subject, pattern))  # type: ignore[no-any-return]
        if kind in ("member_access_expression", "identifier", "qualified_name"):
            return self._constant(subject, pattern, of, negate=False)
        return _placed(ast.Constant(True), pattern)  # type: ignore[no-any-return]

    def _constant(self, subject: Node, value: Node, of: ast.expr | None, *, negate: bool) -> ast.expr:
        if of is None:
            return self.equal(subject, value)
        right = self.expression(value)
        if isinstance(right, ast.Constant) and isinstance(right.value, bool):
            return of if right.value else _placed(ast.UnaryOp(ast.Not(), of), value)
        none = isinstance(right, ast.Constant) and right.value is None
        return _placed(ast.Compare(of, [ast.Is() if none else ast.Eq()], [right]), value)  # type: ignore[no-any-return]

    def _negated(self, made: ast.expr, subject: Node, pattern: Node) -> ast.expr:
        flips: dict[type[ast.cmpop], type[ast.cmpop]] = {
            ast.Eq: ast.NotEq, ast.Is: ast.IsNot, ast.In: ast.NotIn, ast.NotEq: ast.Eq,
        }  # fmt: skip
        if isinstance(made, ast.Compare) and type(made.ops[0]) in flips:
            made.ops[0] = flips[type(made.ops[0])]()
            return _placed(made, *_between(subject, pattern))  # type: ignore[no-any-return]
        if isinstance(made, ast.BoolOp) and isinstance(made.values[0], ast.Compare):
            # `x is not A && y`, see above: the negation holds for the first part alone.
            made.values[0] = self._negated(made.values[0], subject, pattern)
            return made
        return _placed(ast.UnaryOp(ast.Not(), made), *_between(subject, pattern))  # type: ignore[no-any-return]

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
                    for piece in _text(name).split("."):
                        attribute = _placed(ast.Attribute(attribute, piece, ast.Load()), part)
                    tests.append(self.pattern(subject, inner, attribute))
        if len(tests) == 1:
            return _placed(tests[0], *_between(subject, pattern))  # type: ignore[no-any-return]
        if not tests:
            return _placed(ast.Constant(True), pattern)  # type: ignore[no-any-return]
        return _placed(ast.BoolOp(ast.And(), tests), *_between(subject, pattern))  # type: ignore[no-any-return]


_THROUGH = frozenset(
    {"parenthesized_expression", "cast_expression", "checked_expression", "ref_expression", "as_expression"}
    | {"throw_expression", "argument", "equals_value_clause", "arrow_expression_clause", "spread_element"}
)
_LAST = frozenset({"cast_expression", "equals_value_clause"})


def _between(first: Node, last: Node) -> tuple[Node, Node]:
    """From where the subject starts to where the pattern ends; a `switch` label stands on its own."""
    if last.start_point[0] > first.end_point[0]:
        return last, last
    return first, last


def _any(tests: list[ast.expr], at: Node, subject: Node | None = None) -> ast.expr:
    """Several comparisons of one thing as `thing in (a, b)`; else a disjunction."""
    place = _between(subject, at) if subject is not None else (at, at)
    simple = [test for test in tests if isinstance(test, ast.Compare) and isinstance(test.ops[0], (ast.Eq, ast.In))]
    if tests and len(simple) == len(tests):
        items: list[ast.expr] = []
        for test in simple:
            right = test.comparators[0]
            items += right.elts if isinstance(right, ast.Tuple) else [right]
        made = ast.Compare(simple[0].left, [ast.In()], [_placed(ast.Tuple(items, ast.Load()), at)])
        if subject is None:
            return ast.copy_location(made, simple[0])
        return _placed(made, *place)  # type: ignore[no-any-return]
    if len(tests) == 1:
        return tests[0]
    return _placed(ast.BoolOp(ast.Or(), tests or [_placed(ast.Constant(True), at)]), *place)  # type: ignore[no-any-return]


def _locals(node: Node) -> set[str]:
    """All names that a body declares, nested functions left to themselves."""
    found: set[str] = set()
    stack = [node]
    while stack:
        here = stack.pop()
        if here.type in ("variable_declarator", "declaration_expression", "catch_declaration", "declaration_pattern"):
            found.add(_name(here.child_by_field_name("name")))
        elif here.type in ("foreach_statement", "for_each_statement"):
            left = here.child_by_field_name("left")
            found.add(_name(left))
        stack.extend(here.named_children)
    return found
