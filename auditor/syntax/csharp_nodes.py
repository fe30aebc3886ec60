"""The pieces of a C# tree that every stage of the lowering needs: names, places, types as annotations."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tree_sitter import Node


def text_of(node: Node | None) -> str:
    """The text that a node covers."""
    return node.text.decode("utf-8", "replace") if node is not None and node.text is not None else ""


def placed(made: Any, node: Node, end: Node | None = None) -> Any:
    """A made node at the place of a C# node, or from one to another."""
    until = end or node
    made.lineno, made.col_offset = node.start_point[0] + 1, node.start_point[1]
    made.end_lineno, made.end_col_offset = until.end_point[0] + 1, until.end_point[1]
    return made


def name_of(node: Node | None) -> str:
    """The identifier of a name or a generic name."""
    if node is None:
        return ""
    if node.type == "generic_name":
        return name_of(first(node))
    if node.type == "qualified_name":
        return name_of(node.child_by_field_name("name"))
    return text_of(node).lstrip("@")


def first(node: Node) -> Node | None:
    """The first named part that is no comment; `None` where an error left nothing."""
    return next((part for part in node.named_children if part.type != "comment"), None)


def last(node: Node) -> Node | None:
    """The last named part that is no comment; `None` where an error left nothing."""
    return next((part for part in reversed(node.named_children) if part.type != "comment"), None)


def declared(node: Node) -> Iterator[str]:
    """The names that a field declaration declares."""
    for part in node.named_children:
        if part.type == "variable_declaration":
            for entry in part.named_children:
                if entry.type == "variable_declarator":
                    yield name_of(entry.child_by_field_name("name"))


def annotated(node: Node, name: str, kind: Node | None) -> ast.stmt:
    """A field as an annotated name."""
    target = placed(ast.Name(name, ast.Store()), node)
    return placed(ast.AnnAssign(target, kind_of(kind, node), None, 1), node)  # type: ignore[no-any-return]


def kind_of(kind: Node | None, at: Node) -> ast.expr:
    """A type as an annotation; `List<Order>` becomes `List[Order]`, `Order?` the bare name."""
    if kind is None:
        return placed(ast.Name("object", ast.Load()), at)  # type: ignore[no-any-return]
    if kind.type in ("nullable_type", "array_type", "ref_type", "scoped_type"):
        inner = kind.child_by_field_name("type") or first(kind)
        return kind_of(inner, at) if inner is not None else placed(ast.Name(text_of(kind), ast.Load()), kind)
    if kind.type == "generic_name":
        arguments = [
            part for child in kind.named_children if child.type == "type_argument_list" for part in child.named_children
        ]
        base = placed(ast.Name(name_of(kind), ast.Load()), kind)
        inner_kinds = [kind_of(part, kind) for part in arguments]
        if not inner_kinds:
            return base  # type: ignore[no-any-return]
        index = inner_kinds[0] if len(inner_kinds) == 1 else placed(ast.Tuple(inner_kinds, ast.Load()), kind)
        return placed(ast.Subscript(base, index, ast.Load()), kind)  # type: ignore[no-any-return]
    return placed(ast.Name(name_of(kind), ast.Load()), kind)  # type: ignore[no-any-return]


def marks_of(node: Node) -> Iterator[str]:
    """The names of the attributes of a method: `[Fact]`, `[TestCase(3)]`."""
    for part in node.named_children:
        if part.type == "attribute_list":
            for entry in part.named_children:
                if entry.type == "attribute":
                    yield name_of(entry.child_by_field_name("name") or first(entry))


def between(first: Node, last: Node) -> tuple[Node, Node]:
    """From where the subject starts to where the pattern ends; a `switch` label stands on its own."""
    if last.start_point[0] > first.end_point[0]:
        return last, last
    return first, last


def any_of(tests: list[ast.expr], at: Node, subject: Node | None = None) -> ast.expr:
    """Several comparisons of one thing as `thing in (a, b)`; else a disjunction."""
    place = between(subject, at) if subject is not None else (at, at)
    simple = [test for test in tests if isinstance(test, ast.Compare) and isinstance(test.ops[0], (ast.Eq, ast.In))]
    if tests and len(simple) == len(tests):
        items: list[ast.expr] = []
        for test in simple:
            right = test.comparators[0]
            items += right.elts if isinstance(right, ast.Tuple) else [right]
        made = ast.Compare(simple[0].left, [ast.In()], [placed(ast.Tuple(items, ast.Load()), at)])
        if subject is None:
            return ast.copy_location(made, simple[0])
        return placed(made, *place)  # type: ignore[no-any-return]
    if len(tests) == 1:
        return tests[0]
    return placed(ast.BoolOp(ast.Or(), tests or [placed(ast.Constant(True), at)]), *place)  # type: ignore[no-any-return]


def locals_of(node: Node) -> set[str]:
    """All names that a body declares, nested functions left to themselves."""
    found: set[str] = set()
    stack = [node]
    while stack:
        here = stack.pop()
        if here.type in ("variable_declarator", "declaration_expression", "catch_declaration", "declaration_pattern"):
            found.add(name_of(here.child_by_field_name("name")))
        elif here.type in ("foreach_statement", "for_each_statement"):
            left = here.child_by_field_name("left")
            found.add(name_of(left))
        stack.extend(here.named_children)
    return found
