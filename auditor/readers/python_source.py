"""Python files: launches in lists, command texts and `Engine(...)` calls, images and packages of deployment code."""

from __future__ import annotations

import ast
import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from auditor.errors import ReadError
from auditor.launch.images import is_watched, parse_reference
from auditor.launch.parse import LaunchContext, entry_of, mapping_launch
from auditor.launch.script import command_facts, script_facts
from auditor.model.facts import OR, Definition, Fact, Gpu, Hole, ImageReference, Unresolved, Value
from auditor.model.records import dataclass, field
from auditor.model.spans import SourceFile, Span
from auditor.syntax.python_nodes import children_of, nodes_below
from auditor.syntax.python_strings import Offsets, Resolver, TextNode, is_text, mapped_of, pieces_of, word_of
from auditor.syntax.python_tree import parse_python
from auditor.syntax.requirement_lines import requirement_of_word
from auditor.syntax.words import Word

MAX_SUM = 40  # lists joined by `+` or by name
LARGEST = 1 << 62  # beyond it a number is no length, size or count
MAX_DEPTH = 400  # levels of nesting that are looked into; deeper source is generated data
_ENGINE_CALLS = {"Engine", "Runtime", "ServerArgs", "AsyncEngine"}
_INSTALLS = re.compile(r"(?:^|_)(?:pip_install|uv_pip_install|python_packages|install_packages)$")
_PACKAGE_KEYS = {"pip", "packages", "python_packages", "requirements", "dependencies", "pip_packages", "conda"}
_RUNS = {
    "system", "popen", "Popen", "run", "call", "check_call", "check_output", "getoutput", "getstatusoutput", "execv",
    "execvp", "run_commands", "run_command", "execute", "create_subprocess_shell", "create_subprocess_exec", "spawn",
    "exec", "exec_command", "sh", "bash", "cmd", "shell", "dockerfile_commands", "popen_launch_server", "split",
}  # fmt: skip
_COMMAND_NAMES = re.compile(r"cmd|command|script|launch|entrypoint|args|setup|run", re.IGNORECASE)
_COMMAND = re.compile(
    r"\s*(?:\S+=\S+\s+)*(?:exec\s+|sudo\s+|nohup\s+|cd\s+\S+\s*&&\s*)?(?:\S*python[\d.]*|sglang|pip3?|uv|docker|srun|git|bash|sh)\s"
)
_IMAGE = re.compile(r"[a-z0-9][\w.-]*(?::\d+)?(?:/[\w.-]+)+(?::[\w.-]+)?(?:@sha256:[0-9a-f]{64})?", re.IGNORECASE)
_TALKS = {
    "print",
    "log",
    "info",
    "warning",
    "warn",
    "error",
    "debug",
    "exception",
    "critical",
    "add_argument",
    "write",
    "echo",
    "secho",
}
_GPU_KEYS = {"gpu", "gpu_type", "accelerator", "accelerator_type", "gpus"}
# The engine as a word of a command, an image or a requirement; not its modules, its variables, identifiers with it.
# Several patterns that begin with a literal are searched in a tenth of the time of one that does not.
_ENGINE = (
    r"sglang(?:(?![\w.])|_router|_[\w.-]*:|\.(?:launch|bench|compile|srt\.entrypoints)|\s*[\[=<>~!@]|(?<=dynamo\.sglang))",
    r"SGLang\s*[\[=<>~!@]",
    r"SGLANG\s*[\[=<>~!@]",
    r"sgl-dev",
    r"ai-dynamo",
)
_CALLS = (r"Engine\(", r"Runtime\(", r"ServerArgs\(")
_TELLS = tuple(map(re.compile, (*_ENGINE, *_CALLS)))
_TEXT = re.compile("|".join((*_ENGINE, "install")))
_DECLARES = re.compile(r"^__\w+__$|compat|support|tested", re.IGNORECASE)
_OPTION = re.compile(r"(?:^|\.)(?:args|arguments|opts|options|parsed|parsed_args|flags|FLAGS)\.(\w+)$")
_TESTS = re.compile(r"(?:^|/)(?:tests?|testing|conftest\.py|test_[^/]*\.py|[^/]*_test\.py)(?:/|$)", re.IGNORECASE)


@dataclass(slots=True)
class _Module:
    source: SourceFile
    offsets: Offsets
    constants: dict[str, tuple[Value, Span, ast.expr]] = field(default_factory=dict)
    engine_names: set[str] = field(default_factory=set)
    gpu: Gpu | None = None
    taken: list[Span] = field(default_factory=list)
    lists: dict[str, list[tuple[int, ast.expr, bool]]] = field(default_factory=dict)
    """Lists and mappings by name: the line, the expression, and whether it adds to what was there."""
    options: dict[str, tuple[Value, Span]] = field(default_factory=dict)
    """Defaults of command line options of the module itself, by the name of their attribute."""
    variables: tuple[object, Mapping[str, Definition]] = (None, MappingProxyType({}))
    """The constants and what a script sees of them."""
    test: bool = False
    last_line: int = 1 << 40
    """Where the function ends that is looked at."""
    telling: Sequence[int] = ()
    """Lines on which something stands that can lead to a fact."""


def read(source: SourceFile) -> Iterator[Fact]:
    """The facts of one module. Raises `ReadError` where Python cannot parse it."""
    if not _may_tell(source.text):
        return
    tree = parse_python(source)
    nodes = nodes_below(tree.body)
    lines = _telling_lines(nodes)
    if not lines:
        return
    module = _Module(source, Offsets(source), test=bool(_TESTS.search(source.path)), telling=lines)
    _collect(tree, nodes, module)
    yield from _walk(tree.body, module, "", None, 0)


def _may_tell(text: str) -> bool:
    """Whether more than imports and comments names the engine."""
    for pattern in _TELLS:
        for match in pattern.finditer(text):
            line = text[text.rfind("\n", 0, match.start()) + 1 : match.start()].lstrip()
            if not line.startswith(("from ", "import ", "#", "class ", "def ")):
                return True
    return False


def _telling_lines(nodes: Sequence[ast.AST]) -> list[int]:
    """The lines, in order, on which something stands that can lead to a fact: a text about the engine, a call that
    starts or installs it, a name that was given such a value. Only what holds one of them is looked into: the engine's
    own sources name it in every import, and say nothing that way."""
    lines: set[int] = set()
    silent: set[int] = set()
    for node in nodes:
        if isinstance(node, ast.Constant):
            if isinstance(node.value, str) and id(node) not in silent and _TEXT.search(node.value):
                lines.add(node.lineno)
        elif isinstance(node, ast.Call):
            last = _last(node.func)
            if last in _ENGINE_CALLS or _INSTALLS.search(last):
                lines.add(node.lineno)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            silent.add(id(node.value))  # a docstring; the nodes come from the outside in
    if not lines:
        return []
    used: dict[str, list[int]] = {}
    given: list[tuple[int, int, str]] = []
    for node in nodes:
        if isinstance(node, (ast.Name, ast.Attribute)):
            used.setdefault(_last(node), []).append(node.lineno)
        elif isinstance(node, ast.keyword) and node.arg:
            used.setdefault(node.arg, []).append(node.lineno)
        elif isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            given += [(node.lineno, node.end_lineno or node.lineno, _last(target)) for target in targets]
    spread: set[str] = set()
    grown = True
    while grown:
        order = sorted(lines)
        names = {name for first, last, name in given if name and _any_within(order, first, last)}
        grown = not names <= spread
        for name in names - spread:
            lines.update(used.get(name, ()))
        spread |= names
    return sorted(lines)


def _last(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _any_within(lines: Sequence[int], first: int, last: int) -> bool:
    at = bisect_left(lines, first)
    return at < len(lines) and lines[at] <= last


def _tells(node: ast.stmt, module: _Module) -> bool:
    first = min([node.lineno, *(entry.lineno for entry in getattr(node, "decorator_list", ()))])
    return _any_within(module.telling, first, node.end_lineno or node.lineno)


def _collect(tree: ast.Module, nodes: Sequence[ast.AST], module: _Module) -> None:
    """Module constants, the names that mean the engine, and the one accelerator that the module names."""
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            target, expression = statement.targets[0], statement.value
        elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
            target, expression = statement.target, statement.value
        else:
            continue
        value = _value(expression, module) if isinstance(target, ast.Name) else None
        if isinstance(target, ast.Name) and value is not None:
            module.constants[target.id] = (value, _inner_span(expression, module), expression)
    gpus: list[Gpu] = []
    for node in nodes:
        if isinstance(node, ast.Import):
            module.engine_names.update(
                (name.asname or name.name) for name in node.names if name.name.split(".")[0] == "sglang"
            )
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "sglang":
            module.engine_names.update(name.asname or name.name for name in node.names)
        elif isinstance(node, ast.Call):
            gpus.extend(_gpus(node, module))
            if isinstance(node.func, ast.Attribute) and node.func.attr == "add_argument":
                _collect_option(node, module)
    _collect_lists(nodes, module)
    if len({(gpu.type, gpu.count) for gpu in gpus}) == 1:
        module.gpu = gpus[0]


def _collect_option(call: ast.Call, module: _Module) -> None:
    """The default of `add_argument("--name", default=...)`."""
    names = [item.value for item in call.args if isinstance(item, ast.Constant) and isinstance(item.value, str)]
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    name = next((name for name in names if name.startswith("--")), names[0] if names else "")
    dest = given.get("dest")
    if isinstance(dest, ast.Constant) and isinstance(dest.value, str):
        name = dest.value
    default = given.get("default")
    value = _value(default, module) if isinstance(default, ast.Constant) else None
    if name and default is not None and value is not None:
        module.options.setdefault(name.lstrip("-").replace("-", "_"), (value, _inner_span(default, module)))


def _collect_lists(nodes: Sequence[ast.AST], module: _Module) -> None:
    """What the statements say of lists and mappings: `x = [...]`, `x += [...]`, `x.extend(...)`."""
    for inner in nodes:
        if isinstance(inner, ast.Assign) and len(inner.targets) == 1 and isinstance(inner.targets[0], ast.Name):
            entry = (inner.targets[0].id, inner.value, False)
        elif isinstance(inner, ast.AugAssign) and isinstance(inner.target, ast.Name):
            entry = (inner.target.id, inner.value, True)
        elif isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute) and len(inner.args) == 1:
            if inner.func.attr not in ("extend", "append") or not isinstance(inner.func.value, ast.Name):
                continue
            item = inner.args[0]
            if inner.func.attr == "append":
                item = ast.copy_location(ast.List(elts=[item], ctx=ast.Load()), item)
            entry = (inner.func.value.id, item, True)
        else:
            continue
        if isinstance(entry[1], (ast.List, ast.Tuple, ast.Dict, ast.BinOp, ast.Call)):
            module.lists.setdefault(entry[0], []).append((entry[1].lineno, entry[1], entry[2]))
    for entries in module.lists.values():
        entries.sort(key=lambda entry: entry[0])


def _elements(node: ast.expr, module: _Module, depth: int = 0) -> list[ast.expr]:
    """The elements of a list expression: literals, sums of lists, lists by name, spread lists."""
    if depth > MAX_SUM:
        return []
    if isinstance(node, (ast.List, ast.Tuple)):
        found: list[ast.expr] = []
        for element in node.elts:
            if isinstance(element, ast.Starred):
                found.extend(_elements(element.value, module, depth + 1))
            else:
                found.append(element)
        return found
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return [*_elements(node.left, module, depth + 1), *_elements(node.right, module, depth + 1)]
    if isinstance(node, ast.Name):
        return _named_elements(node.id, node.lineno, module, depth + 1)
    return []


def _named_elements(name: str, line: int, module: _Module, depth: int) -> list[ast.expr]:
    """The elements that a list of this name has at a line: its last assignment before, and what was added since."""
    found: list[ast.expr] = []
    for at, value, adds in module.lists.get(name, ())[:200]:
        if at >= line:
            break
        found = [*(found if adds else []), *_elements(value, module, depth + 1)]
    return found


def _added(name: str, node: ast.expr, module: _Module) -> list[ast.expr]:
    """What is added to a list after the expression that made it, up to the next assignment."""
    found: list[ast.expr] = []
    for at, value, adds in module.lists.get(name, ())[:200]:
        if at <= (node.end_lineno or node.lineno) or value is node:
            continue
        if not adds or at > module.last_line:
            break
        found.extend(_elements(value, module, 1))
    return found


def _local_values(node: ast.AST, module: _Module) -> dict[str, tuple[Value, Span, ast.expr]]:
    """Plain values that a function or class gives to names: defaults of parameters, single assignments, attributes."""
    found: dict[str, tuple[Value, Span, ast.expr]] = {}
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        names = [*node.args.posonlyargs, *node.args.args]
        pairs = list(zip(names[len(names) - len(node.args.defaults) :], node.args.defaults, strict=True))
        pairs += [
            (name, value)
            for name, value in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
            if value is not None
        ]
        for name, value in pairs:
            if isinstance(value, ast.Constant) and (plain := _value(value, module)) is not None:
                found[name.arg] = (plain, _inner_span(value, module), value)
    prefix = "self." if isinstance(node, ast.ClassDef) else ""
    counts: dict[str, int] = {}
    for inner in nodes_below((node,)):
        if isinstance(inner, ast.Assign) and len(inner.targets) == 1:
            target, given = inner.targets[0], inner.value
        elif isinstance(inner, ast.AnnAssign) and inner.value is not None:
            target, given = inner.target, inner.value
        else:
            continue
        key = (
            _dotted(target) if isinstance(target, ast.Attribute) else target.id if isinstance(target, ast.Name) else ""
        )
        if not key:
            continue
        key = key if "." in key else prefix + key
        counts[key] = counts.get(key, 0) + 1
        if isinstance(given, (ast.Constant, ast.Call)) and (plain := _value(given, module)) is not None:
            hole = plain.parts[0] if isinstance(plain, Unresolved) else None
            if not isinstance(hole, Hole) or hole.default is not None:
                found[key] = (plain, _inner_span(given, module), given)
    return {name: entry for name, entry in found.items() if counts.get(name, 0) <= 1}


def _gpus(call: ast.Call, module: _Module) -> Iterator[Gpu]:
    for keyword in call.keywords:
        value = keyword.value
        if keyword.arg in _GPU_KEYS:
            text = _settled(_value(value, module))
            if isinstance(text, str) and re.search(r"[A-Za-z]", text):
                kind, _, number = text.partition(":")
                yield Gpu(kind, int(number) if number.isdigit() else None, _inner_span(value, module))
            elif isinstance(value, (ast.List, ast.Tuple)) and value.elts:  # whichever is free
                parts = [_value(part, module) for part in value.elts]
                texts = [part.partition(":") for part in parts if isinstance(part, str)]
                if len(texts) == len(parts):
                    kinds = OR.join(dict.fromkeys(text[0] for text in texts))
                    counts = {text[2] for text in texts}
                    number = counts.pop() if len(counts) == 1 else ""
                    yield Gpu(kinds, int(number) if number.isdigit() else None, _inner_span(value.elts[0], module))
            elif isinstance(value, ast.Call):
                yield from _modal_gpu(value, module)
        elif keyword.arg == "resources" and isinstance(value, ast.Dict):
            known = {
                key.value: item
                for key, item in zip(value.keys, value.values, strict=True)
                if isinstance(key, ast.Constant)
            }
            named = _value(known["gpu_type"], module) if "gpu_type" in known else None
            count = _value(known["gpu"], module) if "gpu" in known else None
            if isinstance(named, str):
                plain = (
                    count
                    if isinstance(count, int)
                    else int(count)
                    if isinstance(count, str) and count.isdigit()
                    else None
                )
                yield Gpu(named, plain, _inner_span(known["gpu_type"], module))


def _settled(value: Value | None) -> Value | None:
    """A text whose holes are all constants of the module, as plain text."""
    if not isinstance(value, Unresolved):
        return value
    parts = [part if isinstance(part, str) else part.default for part in value.parts]
    if any(part is None or isinstance(part, (bool, Unresolved)) for part in parts):
        return value
    return "".join(str(part) for part in parts)


def _modal_gpu(call: ast.Call, module: _Module) -> Iterator[Gpu]:
    """`modal.gpu.A100(size="80GB", count=4)` or `memory=80`, the forms before accelerators were words."""
    if not isinstance(call.func, ast.Attribute) or not ast.unparse(call.func.value).endswith("gpu"):
        return
    given = {keyword.arg: _value(keyword.value, module) for keyword in call.keywords}
    size, count, memory = given.get("size"), given.get("count"), given.get("memory")
    if isinstance(memory, int):
        size = f"{memory}GB"
    kind = f"{call.func.attr}-{size}" if isinstance(size, str) else call.func.attr
    yield Gpu(kind, count if isinstance(count, int) else None, module.offsets.span(call))


def _inner_span(node: ast.expr, module: _Module) -> Span:
    if is_text(node):
        return word_of(node, module.offsets, _hole_of(module)).span
    return module.offsets.span(node)


def _hole_of(module: _Module) -> Resolver:
    def hole(expression: str) -> Hole:
        known = module.constants.get(expression)
        if known is not None and len(module.constants) < 10_000:
            return Hole(expression, known[0], known[1])
        option = _OPTION.search(expression)
        if option is not None and option[1] in module.options:
            return Hole(expression, *module.options[option[1]])
        return Hole(expression)

    return hole


def _value(node: ast.expr, module: _Module) -> Value | None:
    """A literal, a module constant, `os.environ.get(NAME, default)`, `str(...)`; another expression is a hole."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, (str, int, float, bool)) else None
    if not isinstance(node, ast.Constant) and is_text(node):
        return word_of(node, module.offsets, _hole_of(module)).value
    if isinstance(node, (ast.UnaryOp, ast.BinOp)) and (number := _number(node)) is not None:
        return number
    if isinstance(node, ast.Name) and node.id in module.constants:
        value, span, _ = module.constants[node.id]
        return Unresolved(node.id, (Hole(node.id, value, span),))
    if isinstance(node, ast.Call):
        name = _dotted(node.func)
        if name in ("os.environ.get", "os.getenv", "environ.get", "getenv") and node.args:
            key = node.args[0]
            default = _value(node.args[1], module) if len(node.args) > 1 else None
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                text = module.source.text[slice(*module.offsets.ends(node))]
                return Unresolved(text, (Hole(key.value, default),))
        if name in ("str", "int", "float") and len(node.args) == 1:
            return _value(node.args[0], module)
    if isinstance(node, (ast.List, ast.Tuple, ast.Dict, ast.Set, ast.Lambda)):
        return None
    text = module.source.text[slice(*module.offsets.ends(node))]
    return Unresolved(text, (_hole_of(module)(text),)) if text else None


def _number(node: ast.expr, depth: int = 0) -> int | float | None:
    """A number that is written as a sum of its parts: `1024 * 1024`, `2**20 - 1`; `None` where a name is in it."""
    if isinstance(node, ast.Constant):
        known = node.value
        return known if isinstance(known, (int, float)) and not isinstance(known, bool) else None
    if depth > MAX_SUM:
        return None
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = _number(node.operand, depth + 1)
        return None if value is None else -value
    if not isinstance(node, ast.BinOp):
        return None
    left, right = _number(node.left, depth + 1), _number(node.right, depth + 1)
    if left is None or right is None or abs(left) > LARGEST or abs(right) > LARGEST:
        return None
    if isinstance(node.op, ast.Mult):
        return left * right
    if isinstance(node.op, ast.Add):
        return left + right
    if isinstance(node.op, ast.Sub):
        return left - right
    if isinstance(node.op, ast.FloorDiv) and right:
        return left // right
    whole = isinstance(left, int) and isinstance(right, int) and 0 <= right <= 62
    if whole and isinstance(node.op, ast.LShift):
        return int(left) << int(right)
    if whole and isinstance(node.op, ast.Pow) and abs(left) <= 1024:
        power: int = int(left) ** int(right)
        return power
    return None


def _dotted(node: ast.expr) -> str:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if isinstance(node, ast.Name):
        parts.append(node.id)
    return ".".join(reversed(parts))


def _word(node: ast.expr, module: _Module) -> Word | None:
    if isinstance(node, ast.Starred):
        return None
    if is_text(node):
        return word_of(node, module.offsets, _hole_of(module))
    value = _value(node, module)
    if value is None:
        return None
    span = module.offsets.span(node)
    value = value if isinstance(value, (str, Unresolved)) else str(value)
    return Word(value, span, module.source.slice(span))


def _walk(nodes: Sequence[ast.AST], module: _Module, scope: str, call: str | None, depth: int) -> Iterator[Fact]:
    """`call` names the call or target that a value goes to, `None` where it goes nowhere."""
    if depth > MAX_DEPTH:
        raise ReadError(f"source nested over {MAX_DEPTH} levels", limit=True)
    for node in nodes:
        yield from _visit(node, module, scope, call, depth)


def _visit(node: ast.AST, module: _Module, scope: str, call: str | None, depth: int) -> Iterator[Fact]:
    if isinstance(node, ast.stmt) and not _tells(node, module):
        return
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        inner = f"{scope}.{node.name}" if scope else node.name
        outer, end = module.constants, module.last_line
        if not isinstance(node, ast.ClassDef):
            module.last_line = node.end_lineno or end
        first, last = module.offsets.ends(node)
        if "sgl" in module.source.text[first:last]:
            module.constants = {**outer, **_local_values(node, module)}
        yield from _walk([*node.decorator_list, *node.body], module, inner, None, depth + 1)
        module.constants, module.last_line = outer, end
        return
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return  # a docstring, or text that goes nowhere
    if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
        name = _dotted(target).rpartition(".")[2] if isinstance(target, (ast.Name, ast.Attribute)) else ""
        if _DECLARES.search(name):
            return  # what a program says it works with
        if isinstance(target, ast.Name) and name in ("packages", "dependencies"):
            name = ""  # names that a program looks up or prints; an installer gets them as an argument
        if node.value is None:
            return
        if isinstance(target, ast.Name) and isinstance(node.value, (ast.List, ast.BinOp)):
            elements = [*_elements(node.value, module), *_added(name, node.value, module)]
            words = [word for word in (_word(element, module) for element in elements) if word is not None]
            if entry_of(words) is not None:
                yield from _launch(words, node.value, module, scope)
                return
        yield from _visit(node.value, module, scope, f"={name}", depth + 1)
        return
    if is_text(node):
        yield from _text(node, module, scope, call)
        return
    if isinstance(node, ast.Call):
        yield from _call(node, module, scope, call, depth)
        return
    if isinstance(node, (ast.List, ast.Tuple)) or (isinstance(node, ast.BinOp) and isinstance(node.left, ast.List)):
        words = [word for word in (_word(element, module) for element in _elements(node, module)) if word is not None]
        if entry_of(words) is not None:
            yield from _launch(words, node, module, scope)
            return
        for element in children_of(node):
            yield from _visit(element, module, scope, call, depth + 1)
        return
    if isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            name = key.value if isinstance(key, ast.Constant) and isinstance(key.value, str) else ""
            yield from _visit(value, module, scope, f"={name}" if name else call, depth + 1)
        return
    if isinstance(node, ast.Compare):
        return  # a text that something is compared with is not what runs
    if not isinstance(node, ast.Name):
        yield from _walk(children_of(node), module, scope, call, depth + 1)


def _launch(words: list[Word], node: ast.expr, module: _Module, scope: str) -> Iterator[Fact]:
    for fact in command_facts(words, module.source, LaunchContext(scope=scope, gpu=module.gpu)):
        yield fact
        module.taken.append(fact.span)


def _call(node: ast.Call, module: _Module, scope: str, outer: str | None, depth: int) -> Iterator[Fact]:
    name = _dotted(node.func)
    last = name.rpartition(".")[2]
    if isinstance(node.func, ast.Attribute):
        last = node.func.attr
        yield from _visit(node.func.value, module, scope, None, depth + 1)  # what stands before `.run_commands(...)`
    root = name.partition(".")[0] or "?"
    if last in _ENGINE_CALLS and node.keywords and root in module.engine_names:
        yield _engine(node, last, module, scope)
        return
    if last in _TALKS and last not in _RUNS:
        return
    if _INSTALLS.search(last):
        for argument in node.args:
            for element in argument.elts if isinstance(argument, (ast.List, ast.Tuple)) else [argument]:
                word = _word(element, module)
                found = requirement_of_word(word, module.source, scope) if word is not None else None
                if found is not None:
                    yield found
        return
    words = [word for word in (_word(argument, module) for argument in node.args) if word is not None]
    if entry_of(words) is not None and len(words) > 2:
        yield from _launch(words, node, module, scope)
        return
    for argument in node.args:
        yield from _visit(argument, module, scope, last, depth + 1)
    for keyword in node.keywords:
        yield from _visit(keyword.value, module, scope, f"={keyword.arg or ''}", depth + 1)


def _engine(node: ast.Call, last: str, module: _Module, scope: str) -> Fact:
    entries = []
    for keyword in _keywords(node, module):
        value = _value(keyword.value, module) if keyword.arg else None
        if keyword.arg and value is not None:
            start, end = module.offsets.ends(keyword)
            entries.append((keyword.arg, value, module.source.span(start, end)))
    context = LaunchContext(scope=scope, gpu=module.gpu)
    return mapping_launch(entries, module.source, module.offsets.span(node), context, entrypoint=f"sglang.{last}")


def _keywords(node: ast.Call, module: _Module) -> Iterator[ast.keyword]:
    """The keywords of a call; `**name` is followed to the mapping of that name."""
    for keyword in node.keywords:
        if keyword.arg is not None or not isinstance(keyword.value, ast.Name):
            yield keyword
            continue
        made: ast.expr | None = None
        for at, value, adds in module.lists.get(keyword.value.id, ()):
            if at < node.lineno and not adds:
                made = value
        if isinstance(made, ast.Call) and _dotted(made.func) == "dict":
            yield from made.keywords
        elif isinstance(made, ast.Dict):
            for key, value in zip(made.keys, made.values, strict=True):
                if isinstance(key, ast.Constant) and isinstance(key.value, str):
                    yield ast.copy_location(ast.keyword(arg=key.value, value=value), value)


def _variables(module: _Module) -> Mapping[str, Definition]:
    """The constants that hold here as variables of a script, made once for all scripts of a function."""
    constants, variables = module.variables
    if constants is not module.constants:
        variables = {
            re.sub(r"\W+", "_", name).strip("_"): Definition(name, value, "python", "", span)
            for name, (value, span, _) in module.constants.items()
        }
        module.variables = (module.constants, variables)
    return variables


def _text(node: TextNode, module: _Module, scope: str, call: str | None) -> Iterator[Fact]:
    """One text: an image, a requirement, or a command, by its whole shape and by where it goes."""
    source, offsets = module.source, module.offsets
    word = word_of(node, offsets, _hole_of(module))
    text = word.text
    if "sglang" not in text.lower() and "install" not in text:
        return
    target = (call or "").lstrip("=")
    if isinstance(word.value, str) and _IMAGE.fullmatch(text):
        parts = parse_reference(text)
        if not module.test and is_watched(text) and (parts.tag or parts.digest or call in ("from_registry", "Image")):
            yield ImageReference(text, scope, word.span)
        return
    if (
        isinstance(word.value, Unresolved)
        and call is not None
        and re.match(r"[\w.-]+(?:/[\w.{}-]+)*/sglang[\w-]*:", text)
    ):
        if not module.test:
            yield ImageReference(word.value, scope, word.span)
        return
    if re.match(r"sglang(?:\[[^\]]*\])?\s*(?:[=<>!~]=?|@\s)", text, re.IGNORECASE) and call is not None:
        found = requirement_of_word(word, source, scope)
        if found is not None and not module.test:
            yield found
        return
    if (
        target in _PACKAGE_KEYS
        and call is not None
        and call.startswith("=")
        and re.fullmatch(r"sglang(?:\[[^\]]*\])?", text)
    ):
        found = requirement_of_word(word, source, scope)
        if found is not None and not module.test:
            yield found
        return
    runs = call is not None and (target in _RUNS or _COMMAND_NAMES.search(target) is not None)
    if runs and re.search(r"\s", text) and (_COMMAND.match(text) or "\n" in text):
        pieces = pieces_of(node, offsets)
        context = LaunchContext(scope=scope, gpu=module.gpu, variables=_variables(module))
        yield from script_facts(mapped_of(pieces, offsets.ends(node)[1]), source, context)
