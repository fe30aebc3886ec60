"""Options of the suite."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update", action="store_true", help="rewrite the golden files; read the difference before you commit"
    )


from auditor.readers import READERS  # noqa: E402

# Whole-path tests need the readers of the incident's tree.
collect_ignore = ["test_repos.py", "test_contract.py", "test_docs.py"] if len(READERS) < 8 else []
