"""One text of a configuration file as a word: variables found, blanks and quotes kept as they stand."""

from __future__ import annotations

from collections.abc import Mapping

from auditor.model.facts import Definition
from auditor.model.spans import SourceFile
from auditor.syntax.mapped import Mapped
from auditor.syntax.shell_lexer import SHELL, Dialect, expansions
from auditor.syntax.shell_values import Scope, ShellWord, default_literal
from auditor.syntax.yaml_nodes import ScalarNode


def word_of_text(
    text: Mapped, source: SourceFile, dialect: Dialect = SHELL, variables: Mapping[str, Definition] | None = None
) -> ShellWord:
    """The text as one word. Its span covers the whole text."""
    scope = Scope(source, variables)
    fragments = scope.evaluate(expansions(text, dialect))
    return scope.word(fragments, True, text.text, text.span(source, 0, len(text.text)))


def word_of(node: ScalarNode, dialect: Dialect = SHELL, variables: Mapping[str, Definition] | None = None) -> ShellWord:
    """A YAML scalar as one word."""
    return word_of_text(node.mapped, node.source, dialect, variables)


def expression_literal(word: ShellWord, text: str) -> Mapped | None:
    """The literal that stands for a text which is one workflow expression and nothing else."""
    return default_literal(word) if text.startswith("${{") else None
