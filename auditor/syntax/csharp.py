"""C# source lowered to the nodes of Python's `ast`, with tree-sitter's grammar (see `code_tree.py` for the idea).

Only what the code checks look at is kept: types, methods, conditions, calls, stores. A field reached without `this`
becomes an attribute of `self`; `x is not A or B` a comparison; LINQ's `Where` the `filter` that it is; a `switch` a
chain of conditions; `lock`, `using` and `fixed` a `with`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

from auditor.errors import ReadError
from auditor.model.spans import SourceFile
from auditor.syntax.csharp_nodes import annotated, declared, name_of, placed
from auditor.syntax.csharp_statements import Lowering

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

_DIRECTIVE = re.compile(
    rb"(?m)^[ \t]*#[ \t]*(if|elif|else|endif|region|endregion|pragma|nullable|warning|error|line)\b"
)
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


@lru_cache(maxsize=1)
def _parser() -> Parser:
    import tree_sitter
    import tree_sitter_c_sharp

    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_c_sharp.language()))


def parse_csharp(source: SourceFile) -> tuple[ast.Module, ReadError | None]:
    """The types of a file as a module, and where something of it was not understood; the rest is there all the same.
    Raises `ReadError`: there is no C# in it, or it nests too deeply."""
    data = source.text.encode("utf-8", "surrogatepass")
    root = _parser().parse(data).root_node
    if root.has_error and _DIRECTIVE.search(data):
        # A directive in the middle of a statement: the grammar knows them between statements alone.
        other = _parser().parse(_first_branches(data)).root_node
        root = root if other.has_error else other
    try:
        body = list(_declarations(root, Lowering()))
    except RecursionError:
        raise ReadError("nested deeper than the reader allows", 0, limit=True) from None
    if not root.has_error:
        return ast.Module(body, []), None
    place = _first_error(root)
    line = place.start_point[0] + 1
    offset = source.offset(line, place.start_point[1] + 1)
    if not body:
        raise ReadError(f"not valid C# at line {line}", offset)
    return ast.Module(body, []), ReadError(f"C# that was not understood at line {line}; the rest was read", offset)


def _first_branches(data: bytes) -> bytes:
    """The source with the first branch of each `#if` alone; what goes becomes blanks, so that every place stays."""
    made: list[bytes] = []
    open_branches: list[bool] = []  # whether the branch at hand is kept, outermost first
    for line in data.splitlines(keepends=True):
        match = _DIRECTIVE.match(line)
        word = match.group(1) if match is not None else b""
        if word == b"if":
            open_branches.append(True)
        elif word in (b"else", b"elif") and open_branches:
            open_branches[-1] = False
        elif word == b"endif" and open_branches:
            open_branches.pop()
        blank = bool(word) or not all(open_branches)
        made.append(re.sub(rb"[^\r\n]", b" ", line) if blank else line)
    return b"".join(made)


def _first_error(node: Node) -> Node:
    stack = [node]
    while stack:
        here = stack.pop()
        if here.is_error or here.is_missing:
            return here
        stack.extend(child for child in reversed(here.children) if child.has_error or child.is_missing)
    return node


def _declarations(node: Node, lowering: Lowering) -> Iterator[ast.stmt]:
    for child in node.named_children:
        if child.type in TYPES:
            yield _type(child, lowering)
        elif child.type == "enum_declaration":
            yield _enum(child)
        elif child.type == "global_statement":
            yield from lowering.statements(child.named_children)
        elif child.type not in METHODS:
            yield from _declarations(child, lowering)  # namespaces, preprocessor branches, errors


def _enum(node: Node) -> ast.ClassDef:
    body: list[ast.stmt] = []
    members = node.child_by_field_name("body")
    for number, member in enumerate(members.named_children if members is not None else ()):
        name = member.child_by_field_name("name")
        if name is not None:
            target = placed(ast.Name(name_of(name), ast.Store()), name)
            body.append(placed(ast.Assign([target], placed(ast.Constant(number), name)), member))
    base = placed(ast.Name("Enum", ast.Load()), node)
    made = ast.ClassDef(name_of(node.child_by_field_name("name")), [base], [], body or [placed(ast.Pass(), node)], [])
    return placed(made, node)  # type: ignore[no-any-return]


def _type(node: Node, outer: Lowering) -> ast.ClassDef:
    members = node.child_by_field_name("body")
    children = list(_flat(members)) if members is not None else []
    fields: set[str] = set(outer.fields)
    functions: set[str] = set(outer.functions)
    parameters = next((child for child in node.named_children if child.type == "parameter_list"), None)
    for child in children:
        if child.type in ("field_declaration", "event_field_declaration"):
            fields.update(declared(child))
        elif child.type == "property_declaration":
            fields.add(name_of(child.child_by_field_name("name")))
        elif child.type == "method_declaration":
            functions.add(name_of(child.child_by_field_name("name")))
    body: list[ast.stmt] = []
    for parameter in parameters.named_children if parameters is not None else ():
        name = name_of(parameter.child_by_field_name("name"))
        if name:
            fields.add(name)
            body.append(annotated(parameter, name, parameter.child_by_field_name("type")))
    lowering = Lowering(frozenset(fields), frozenset(functions))
    for child in children:
        body.extend(_member(child, lowering))
    bases = [
        placed(ast.Name(name_of(base), ast.Load()), base)
        for entry in node.named_children
        if entry.type == "base_list"
        for base in entry.named_children
    ]
    made = ast.ClassDef(name_of(node.child_by_field_name("name")), bases, [], body or [placed(ast.Pass(), node)], [])
    return placed(made, node)  # type: ignore[no-any-return]


def _flat(node: Node) -> Iterator[Node]:
    for child in node.named_children:
        if child.type.startswith("preproc_if") or child.type in ("preproc_else", "preproc_elif", "ERROR"):
            yield from _flat(child)
        else:
            yield child


def _member(node: Node, lowering: Lowering) -> Iterator[ast.stmt]:
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
        for name in declared(node):
            yield annotated(node, name, kind)
        yield from lowering.texts(node)
    elif node.type in ("property_declaration", "indexer_declaration"):
        name = name_of(node.child_by_field_name("name")) or "item"
        getter = lowering.getter(node, name)
        if getter is not None:
            yield getter
        if node.type == "property_declaration" and getter is None:
            yield annotated(node, name, node.child_by_field_name("type"))
