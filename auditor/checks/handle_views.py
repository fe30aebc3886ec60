"""What a method reads through a handle, and which of its names stand for that: rows, slices, gathered rows, spans."""

from __future__ import annotations

import ast

from auditor.checks.code_params import SlotParams
from auditor.checks.pool_structure import assigned, base_of
from auditor.checks.slot_pools import is_free_list
from auditor.model.records import dataclass, field
from auditor.syntax.code_tree import last_name, path_of
from auditor.syntax.names import word_set, words
from auditor.syntax.python_nodes import walk

NUMBERS = frozenset(
    {"index", "idx", "id", "slot", "page", "row", "position", "pos", "offset", "number", "block", "start", "begin"}
    | {"lo", "low", "first", "address", "addr"}
)
QUEUES = frozenset({"q", "queue", "channel", "inbox", "mailbox", "pipe", "bus", "client", "session", "http", "conn"})
GATHERING = frozenset({"index_select", "gather", "take", "take_along_axis", "itemgetter", "get_rows"})
SPANS = frozenset(
    {"AsSpan", "AsMemory", "Slice", "Span", "ReadOnlySpan", "Memory", "ReadOnlyMemory", "ArraySegment", "narrow"}
    | {"frombuffer", "GetRange"}
)
# Calls whose answer is what they are called on, or given, in another shape.
SHAPING = frozenset(
    {"contiguous", "clone", "copy", "to", "cpu", "cuda", "detach", "numpy", "tobytes", "view", "reshape", "float"}
    | {"half", "flatten", "ravel", "squeeze", "unsqueeze", "astype", "tolist", "hex", "decode", "cast", "toreadonly"}
    | {"ToArray", "AsSpan", "AsMemory", "ToString", "Clone", "transpose", "permute", "encode", "items", "values"}
)
WRAPPING = frozenset(
    {"bytes", "bytearray", "memoryview", "list", "tuple", "dict", "array", "asarray", "copy", "deepcopy", "stack"}
    | {"cat", "concatenate", "vstack", "hstack", "join", "from_numpy", "as_tensor", "tensor", "dumps", "sorted"}
    | {"Span", "ReadOnlySpan", "Memory", "ReadOnlyMemory", "b64encode", "ascontiguousarray"}
)
# Calls and fields that say how much or whether, and nothing of what.
ASKING = frozenset({"len", "bool", "isinstance", "any", "all", "id", "hash", "type", "hasattr", "callable", "print"})
FIGURES = frozenset(
    {"len", "length", "size", "count", "refs", "ref", "refcount", "state", "status", "is", "has", "num", "nbytes"}
    | {"shape", "dtype", "device", "capacity", "nbytes", "itemsize", "ndim"}
)


@dataclass(slots=True)
class Views:
    """The names of one method: `handles` are numbers that the caller gave, `aliases` stand for what was read through
    one (with the read), `derived` are places worked out of one (`start = row * width`)."""

    handles: set[str]
    released: frozenset[str]
    params: SlotParams
    aliases: dict[str, ast.expr] = field(default_factory=dict)
    derived: set[str] = field(default_factory=set)

    def spread(self, node: ast.AST) -> None:
        """Take in the loops of a node: what they go over one by one are handles as well."""
        if isinstance(node, (ast.For, ast.AsyncFor)):
            self._each(node.target, node.iter)
        elif isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)):
            for loop in node.generators:
                self._each(loop.target, loop.iter)

    def learn(self, node: ast.AST, outward: set[str]) -> ast.expr | None:
        """Take in what a node says of names; gives the read that it stores into an `out` parameter."""
        if isinstance(node, ast.Assign):
            for target, value in assigned(node):
                if isinstance(target, ast.Tuple) and isinstance(value, ast.Name) and value.id in self.handles:
                    self.derived |= {part.id for part in target.elts if isinstance(part, ast.Name)}
                elif isinstance(target, ast.Name):
                    read = self._bind(target.id, value, outward)
                    if read is not None:
                        return read
        elif isinstance(node, ast.NamedExpr):
            return self._bind(node.target.id, node.value, outward)
        elif isinstance(node, ast.Call) and last_name(node.func) == "TryGetValue" and len(node.args) == 2:
            source, (key, taken) = node.func, node.args
            own = isinstance(source, ast.Attribute) and self._is_rows(path_of(source.value))
            if own and self._is_handle(key) and isinstance(taken, ast.Name):
                self.aliases[taken.id] = node
                return node if taken.id in outward else None
        return None

    def _bind(self, name: str, value: ast.expr, outward: set[str]) -> ast.expr | None:
        read = self.held(value)
        if read is not None:
            if name in outward:
                return read
            self.aliases[name] = read
        elif self._is_place(value):
            self.derived.add(name)
        elif name in self.handles and not isinstance(value, ast.Name):
            # `index = int(index) // page` is the caller's number still.
            self.handles -= set() if _names(value) & self.handles else {name}
        return None

    def _each(self, target: ast.expr, source: ast.expr) -> None:
        """`for page in pages`: each is a handle as well."""
        if isinstance(source, ast.Call) and last_name(source.func) in (
            "enumerate",
            "zip",
            "reversed",
            "sorted",
            "list",
        ):
            if any(self._is_handle(part) for part in source.args):
                self.handles |= _names(target)
        elif self._is_handle(source):
            self.handles |= _names(target)

    def given(self, value: ast.expr) -> ast.expr | None:
        """The read inside of what is returned or copied; an alias counts where it was read."""
        stack: list[ast.AST] = [value]
        while stack:
            part = stack.pop()
            if isinstance(part, (ast.Compare, ast.Lambda)) or _only_asks(part):
                continue
            if isinstance(part, ast.expr) and self.is_item(part):
                return part
            if isinstance(part, ast.Name) and part.id in self.aliases:
                return self.aliases[part.id]
            stack.extend(reversed(list(ast.iter_child_nodes(part))))
        return None

    def held(self, value: ast.expr) -> ast.expr | None:
        """The read that a value is, in whatever shape: `bytes(self.rows[i])`, `self.kv[ids].contiguous()`."""
        while not self.is_item(value):
            if isinstance(value, ast.Name):
                return self.aliases.get(value.id)
            inner = _inside(value)
            if inner is None or _only_asks(value):
                return None
            value = inner
        return value

    def inside(self, value: ast.expr) -> bool:
        """Whether a value is of what stands behind a handle, its owner and marks included."""
        for part in walk(value):
            if isinstance(part, ast.Name) and part.id in self.aliases:
                return True
            if isinstance(part, ast.Subscript) and base_of(path_of(part.value)) and self.is_number(part.slice):
                return True
            if isinstance(part, ast.expr) and self.is_item(part):
                return True
        return False

    def is_item(self, node: ast.expr) -> bool:
        """Whether an expression reads from `self` through a handle."""
        if isinstance(node, ast.Call):
            return self._is_call(node)
        if not isinstance(node, ast.Subscript):
            return False
        source = node.value
        if isinstance(source, ast.Call) and last_name(source.func) in ("memoryview", "AsSpan") and not source.keywords:
            source = source.args[0] if source.args else source.func
            source = source.value if isinstance(source, ast.Attribute) and source.attr == "AsSpan" else source
        if not self._is_rows(path_of(source)):
            return False
        if isinstance(node.slice, ast.Slice):
            return node.slice.lower is not None and self._is_start(node.slice.lower)
        entries = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        return any(
            self._is_start(entry.lower) for entry in entries if isinstance(entry, ast.Slice) and entry.lower
        ) or (any(self._is_handle(entry) or self._is_place(entry) for entry in entries))

    def _is_call(self, node: ast.Call) -> bool:
        name, receiver = last_name(node.func), node.func.value if isinstance(node.func, ast.Attribute) else None
        if name == "get" and node.args and receiver is not None:
            owner = path_of(receiver) or ""
            # `self.inbox.get(block, timeout)` asks for the next one.
            return word_set(owner).isdisjoint(QUEUES) and self._is_rows(owner) and self._is_handle(node.args[0])
        if name not in GATHERING and name not in SPANS:
            return False
        sources = [*([receiver] if receiver is not None else []), *node.args]
        own = any(self._is_rows(path_of(part)) for part in sources)
        if name in GATHERING:
            return own and any(self._is_handle(part) for part in node.args)
        return own and any(self._is_start(part) for part in node.args)

    def _is_rows(self, path: str | None) -> bool:
        """A container of `self` that holds what handles stand for: no free list, no owners, no constants."""
        if path is None or not path.startswith("self.") or is_free_list(path, self.params) or path[5:].isupper():
            return False
        if "to" in words(path.rpartition(".")[2])[1:-1]:  # `physical_to_virtual[page]` is another number
            return False
        return word_set(path).isdisjoint(self.params.owning) and "constant" not in words(path)

    def is_number(self, node: ast.expr) -> bool:
        """A handle, or a number worked out of one."""
        return self._is_handle(node) or self._is_place(node)

    def _is_handle(self, node: ast.expr) -> bool:
        """`page`, or the number of a handle whose other half nobody looks at: `handle.index`."""
        if isinstance(node, ast.Attribute) and not word_set(node.attr).isdisjoint(NUMBERS):
            node = node.value
        return isinstance(node, ast.Name) and node.id in self.handles

    def _is_place(self, node: ast.expr) -> bool:
        """A number worked out of a handle and of nothing but constants: `row * self.width`, `handle & MASK`."""
        if isinstance(node, ast.Name):
            return node.id in self.derived
        if isinstance(node, ast.Call) and last_name(node.func) == "int" and len(node.args) == 1:
            return self._is_handle(node.args[0]) or self._is_place(node.args[0])
        if isinstance(node, ast.Attribute):
            return self._is_handle(node)
        if not isinstance(node, ast.BinOp):
            return False
        sides = (node.left, node.right)
        fixed = [
            isinstance(side, ast.Constant) or base_of(path_of(side)) != "" or (path_of(side) or "").isupper()
            for side in sides
        ]
        ours = [self._is_handle(side) or self._is_place(side) for side in sides]
        return any(ours) and all(one or other for one, other in zip(ours, fixed, strict=True))

    def _is_start(self, node: ast.expr) -> bool:
        """Where a slice begins. A bare parameter is a handle there only if it is what the pool takes back."""
        if isinstance(node, ast.Name) and node.id in self.handles:
            return node.id in self.released
        return self._is_place(node)


def _names(node: ast.AST) -> set[str]:
    return {part.id for part in walk(node) if isinstance(part, ast.Name)}


def _only_asks(node: ast.AST) -> bool:
    """`len(row)`, `not row`, `row.nbytes`: an answer that holds nothing of the content."""
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, ast.Not)
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.Sub)  # `now - self.since[slot]` is a figure
    if isinstance(node, ast.Attribute):
        # `row.size` is of the row, `row.prompt_len` of whoever it belongs to
        parts = words(node.attr)
        return bool(parts) and (parts[0] in ("is", "has", "num") or all(part in FIGURES for part in parts))
    return isinstance(node, ast.Call) and last_name(node.func) in ASKING


def _inside(value: ast.expr) -> ast.expr | None:
    """What a value is another shape of."""
    if isinstance(value, (ast.Await, ast.Starred, ast.NamedExpr, ast.Attribute, ast.Subscript)):
        return value.value
    if isinstance(value, (ast.ListComp, ast.SetComp, ast.GeneratorExp)):
        return value.elt
    if isinstance(value, ast.BoolOp):
        return value.values[0]
    if isinstance(value, ast.IfExp):
        return value.body
    if isinstance(value, ast.Call):
        if isinstance(value.func, ast.Attribute) and value.func.attr in SHAPING:
            return value.func.value
        if last_name(value.func) in WRAPPING and value.args:
            return value.args[0]
    return None
