"""The concrete syntax of one function: its positions lead back to the text of the file, character for character."""

from __future__ import annotations

import ast
import textwrap
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auditor.errors import ReadError
from auditor.model.spans import SourceFile
from auditor.syntax.code_tree import CodeTree
from auditor.syntax.python_function_cst import DEEPEST, FunctionCst, function_cst
from tests.trees import ROOT

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
TEXTS = {path: path.read_text(encoding="utf-8") for path in sorted((ROOT / "auditor").rglob("*.py"))}
SHAPED = (ast.UnaryOp, ast.Compare, ast.Call, ast.Attribute, ast.BoolOp, ast.Name)


def functions(text: str) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    return [node for node in ast.walk(ast.parse(text)) if isinstance(node, FUNCTIONS)]


def agrees(source: SourceFile, node: ast.FunctionDef | ast.AsyncFunctionDef) -> FunctionCst:
    """Every test that `ast` sees in the function is found in the concrete syntax at the same place, with its text."""
    made = function_cst(source, node)
    tree = CodeTree(source, ast.Module([node], []), "python")
    for part in ast.walk(node):
        if isinstance(part, SHAPED):
            span = tree.span(part)
            there = made.at(span)
            assert there, source.slice(span)
            assert {made.spans[entry] for entry in there} == {(span.start.offset, span.end.offset)}
            text = ast.get_source_segment(source.text, part)
            assert made.slice(there[0]).replace("\r\n", "\n").replace("\r", "\n") == text.replace("\r\n", "\n")
    return made


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_positions_of_real_functions_lead_back_to_the_text(data: st.DataObject) -> None:
    path: Path = data.draw(st.sampled_from(sorted(TEXTS)))
    text = TEXTS[path].replace("\n", data.draw(st.sampled_from(["\n", "\r\n"])))
    if data.draw(st.booleans()):
        text = text.replace("    ", "\t")
    found = functions(text)
    if "f'" in text or 'f"' in text:  # before Python 3.12 `ast` places what stands in an f-string elsewhere
        found = [node for node in found if not any(isinstance(part, ast.JoinedStr) for part in ast.walk(node))]
    if not found:
        return
    node = data.draw(st.sampled_from(found))
    made = agrees(SourceFile(path.name, text), node)
    assert text[made.start : made.end].lstrip().startswith(("def ", "async def ", "@"))


@pytest.mark.parametrize(
    "text",
    [
        "class A:\n    @hook(\n        1)\n    async def f(self):\n        return not (self.é())\n",
        'class A:\n\tdef f(self):\n\t\tx = """\nno indent\n  two"""\n\t\treturn not self.x\n',
        "def f(a):\n    if a.b \\\n  is None: return (a\n  .c)",
        "class A:\n    def f(self):\n# at the edge\n        # in\n        return (x := self.y()) != 1\n    # end\n",
        "if x:\n    def f(ñ, y='𝄞'): return not ñ\n",
    ],
    ids=["decorator", "string", "continuation", "comments", "letters"],
)
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_odd_functions_lead_back_to_the_text(text: str, ending: str) -> None:
    text = text.replace("\n", ending)
    for node in functions(text):
        agrees(SourceFile("a.py", text), node)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("return " + "not " * 1000 + "x", id="operators"),
        pytest.param("return x" + ".a" * 300, id="attributes"),
        pytest.param("return " + "f(" * 90 + ")" * 90 + ".a" * 20, id="calls"),
        pytest.param("if a:\n    pass\n" + "elif b:\n    pass\n" * 900, id="elif"),
        pytest.param("x = 1\n" * 50_000, id="length"),
    ],
)
def test_what_goes_beyond_a_bound_is_refused_before_it_is_parsed(body: str) -> None:
    text = "def f(x):\n" + textwrap.indent(body, "    ") + "\n"
    with pytest.raises(ReadError) as caught:
        function_cst(SourceFile("a.py", text), functions(text)[0])
    assert caught.value.limit


def test_brackets_up_to_the_bound_of_the_language_are_read() -> None:
    text = "def f(x):\n    return " + "(" * 190 + "x" + ")" * 190 + "\n"
    assert DEEPEST < 190
    agrees(SourceFile("a.py", text), functions(text)[0])


def test_a_function_that_libcst_does_not_take_is_an_error_of_reading() -> None:
    [node] = functions("def f():\n    return 1\n")
    for text in ("def f():\n    return '\ud800'\n", "x = 1; y = 2\n    return 1\n", "def f():\n  return ]\n"):
        with pytest.raises(ReadError):
            function_cst(SourceFile("a.py", text), node)
