"""Writes a positive test over a negative one. Pieces of the text that stay are taken from the file as they stand."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable

from auditor.checks.code_atoms import Atom
from auditor.checks.guard_form import Form
from auditor.errors import ReadError
from auditor.model.findings import Edit
from auditor.model.records import dataclass, field
from auditor.syntax.code_tree import CodeTree, FunctionNode
from auditor.syntax.python_function_cst import FunctionCst, function_cst

_BLANK = r"(?:\s|\\\r?\n)"
_OPERATOR = re.compile(
    rf"(?P<before>{_BLANK}*)(?P<operator>not{_BLANK}+in|is{_BLANK}+not|in|is|==|!=)(?P<after>{_BLANK}*)"
)
# What libcst calls the nodes that tests are made of.
_KINDS = {
    ast.UnaryOp: "UnaryOperation", ast.Compare: "Comparison", ast.Call: "Call", ast.Attribute: "Attribute",
    ast.Name: "Name", ast.Subscript: "Subscript", ast.NamedExpr: "NamedExpr",
    ast.Await: "Await",
}  # fmt: skip


@dataclass(slots=True)
class Rewriter:
    """What is worked out once for the guards of one file."""

    tree: CodeTree
    _parents: dict[ast.AST, dict[ast.AST, ast.AST]] = field(default_factory=dict)
    _functions: dict[ast.AST, FunctionCst | None] = field(default_factory=dict)
    _made: set[tuple[ast.AST, str]] = field(default_factory=set)

    def parents(
        self, function: FunctionNode, make: Callable[[ast.AST], dict[ast.AST, ast.AST]]
    ) -> dict[ast.AST, ast.AST]:
        """What each node of a function stands in."""
        if function not in self._parents:
            self._parents[function] = make(function)
        return self._parents[function]

    def repeats(self, around: ast.AST | None, edit: Edit) -> bool:
        """Whether the same `and` or `or` has been given the same text already: `state != A and state != B`."""
        if not isinstance(around, ast.BoolOp):
            return False
        known = (around, edit.text) in self._made
        self._made.add((around, edit.text))
        return known

    def concrete(self, function: FunctionNode) -> FunctionCst | None:
        """The concrete syntax of a function; `None` where libcst cannot give it: the finding stands without an edit."""
        if function not in self._functions:
            try:
                self._functions[function] = function_cst(self.tree.source, function)
            except ReadError:
                self._functions[function] = None
        return self._functions[function]


def ask_predicate(rewriter: Rewriter, function: FunctionNode, form: Form, name: str, called: bool) -> Edit | None:
    """`not req.finished()` becomes `req.is_valid()`."""
    core = form.core if isinstance(form.core, ast.Attribute) else None
    if isinstance(form.core, ast.Compare) and isinstance(form.core.left, ast.Attribute):
        core = form.core.left
    if core is None or rewriter.tree.language != "python":
        return None
    ends = _extents(rewriter, function, form.node, core.value)
    if ends is None:
        return None
    (start, end), (first, last) = ends
    text = rewriter.tree.source.text
    made = ("not " if form.over else "") + f"{text[first:last]}.{name}" + ("()" if called else "")
    return _edit(rewriter, start, end, made)


def ask_member(rewriter: Rewriter, function: FunctionNode, form: Form, atom: Atom, member: str) -> Edit | None:
    """`job.state != State.DONE` becomes `job.state == State.READY`."""
    core = form.core
    if not isinstance(core, ast.Compare):
        return None
    left, right = core.left, core.comparators[0]
    named, other = _member_of(right, atom), left
    if named is None:
        named, other = _member_of(left, atom), right
    if named is None or not isinstance(named, ast.Attribute):
        return None
    side = right if other is left else left
    ends = _extents(rewriter, function, form.node, left, right, named, named.value, other)
    if ends is None:
        return None
    (start, end), (_, left_end), (right_start, _), (_, named_end), (prefix_start, prefix_end), (first, last) = ends
    text = rewriter.tree.source.text
    between = _OPERATOR.fullmatch(text[left_end:right_start])
    dot = re.fullmatch(rf"({_BLANK}*\.{_BLANK}*){re.escape(named.attr)}", text[prefix_end:named_end])
    if between is None or dot is None:
        return None
    by_identity = between["operator"].startswith("is")
    operator = ("is not" if form.over else "is") if by_identity else ("!=" if form.over else "==")
    item = side.elts[0] if isinstance(side, (ast.Tuple, ast.List, ast.Set)) else side
    suffix = f".{item.attr}" if isinstance(item, ast.Attribute) and item is not named else ""  # `State.DONE.value`
    state = text[prefix_start:prefix_end] + dot[1] + member + suffix
    kept = text[first:last]
    words = (kept, operator, state) if side is right else (state, operator, kept)
    made = words[0] + between["before"] + words[1] + between["after"] + words[2]
    return _edit(rewriter, start, end, made)


def _member_of(side: ast.expr, atom: Atom) -> ast.expr | None:
    """The first member that a side of the comparison names."""
    if isinstance(side, (ast.Tuple, ast.List, ast.Set)):
        return _member_of(side.elts[0], atom) if side.elts else None
    if isinstance(side, ast.Attribute) and side.attr in ("value", "name") and isinstance(side.value, ast.Attribute):
        side = side.value
    return side if isinstance(side, ast.Attribute) and side.attr in atom.members else None


def _extents(rewriter: Rewriter, function: FunctionNode, *nodes: ast.expr) -> list[tuple[int, int]] | None:
    """Where the text of each node begins and ends: of the first without parentheses around it, of the others with.
    `None` where the concrete syntax has no such node there, or a comment inside of the first."""
    tree = rewriter.tree
    spans = [tree.span(node) for node in nodes]
    if tree.language != "python":
        found = [(span.start.offset, span.end.offset) for span in spans]
        return found if "//" not in tree.source.slice(spans[0]) and "/*" not in tree.source.slice(spans[0]) else None
    concrete = rewriter.concrete(function)
    if concrete is None:
        return None
    found = []
    for number, (node, span) in enumerate(zip(nodes, spans, strict=True)):
        if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
            found.append((span.start.offset, span.end.offset))  # brackets are part of the node to `ast` alone
            continue
        kind = _KINDS.get(type(node))
        there = [made for made in concrete.at(span) if type(made).__name__ == kind]
        if not there:
            return None
        start, end = concrete.spans[there[0]]
        if number and there[0].lpar:
            start, end = concrete.spans[there[0].lpar[0]][0], concrete.spans[there[0].rpar[-1]][1]
        found.append((start, end))
    start, end = found[0]
    if any(type(made).__name__ == "Comment" and start <= at < end for made, (at, _) in concrete.spans.items()):
        return None
    return found


def _edit(rewriter: Rewriter, start: int, end: int, made: str) -> Edit | None:
    """The edit, where what it leaves can be read as one condition."""
    source = rewriter.tree.source
    after = source.text[end : end + 1]
    if made[-1:].isidentifier() and (after.isidentifier() or after.isdigit()):
        made += " "
    old = source.text[start:end]
    if rewriter.tree.language == "python" and not (_reads(made) or (not _reads(old) and _reads(f"({made})"))):
        return None
    return Edit(source.span(start, end), made) if made != old else None


def _reads(text: str) -> bool:
    try:
        ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True
