"""Options of the suite."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update", action="store_true", help="rewrite the golden files; read the difference before you commit"
    )


from tests.trees import READY  # noqa: E402

collect_ignore = [] if READY else ["test_repos.py", "test_contract.py", "test_docs.py"]
