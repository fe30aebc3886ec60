"""Imports go one way, and every module is in the tuple that registers it."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from auditor.checks import CHECKS
from auditor.cli import COMMANDS
from auditor.readers import READERS
from auditor.report import REPORTERS
from auditor.rulebook import load_rules

PACKAGE = Path(__file__).resolve().parent.parent / "auditor"

# What a package may import besides itself. `scan` stands for the modules at the top that make up the pipeline.
BELOW = {
    "model": set(),
    "syntax": {"model"},
    "launch": {"model", "syntax"},
    "capacity": {"model", "syntax", "launch"},
    "readers": {"model", "syntax", "launch", "capacity"},
    "resolve": {"model", "syntax", "launch", "capacity", "readers"},
    "checks": {"model", "syntax", "launch", "capacity", "resolve"},
    "report": {"model", "launch", "capacity"},
    "live": {"model", "launch", "capacity"},
}


def imports_of(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
        elif isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
    return names


@pytest.mark.parametrize("layer", BELOW)
def test_imports_go_one_way(layer: str) -> None:
    wrong = []
    for path in sorted((PACKAGE / layer).rglob("*.py")):
        for name in imports_of(path):
            parts = name.split(".")
            if parts[0] != "auditor" or len(parts) < 2 or not (PACKAGE / parts[1]).is_dir():
                continue
            if parts[1] != layer and parts[1] not in BELOW[layer]:
                wrong.append(f"{path.relative_to(PACKAGE)} imports {name}")
    assert wrong == []


def test_only_live_may_import_a_network_module() -> None:
    network = {"httpx", "requests", "urllib3", "aiohttp", "socket", "http", "ssl"}
    wrong = []
    for path in sorted(PACKAGE.rglob("*.py")):
        inside_live = path.is_relative_to(PACKAGE / "live")
        for name in imports_of(path):
            if not inside_live and (name.split(".")[0] in network or name.startswith("urllib.request")):
                wrong.append(f"{path.relative_to(PACKAGE)} imports {name}")
    assert wrong == []


def test_scan_never_loads_the_live_package_nor_a_network_module(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("sglang==0.5.19\n", encoding="utf-8")
    code = (
        "import sys\nfrom auditor.cli import main\nmain(['scan', sys.argv[1], '--format', 'json'])\n"
        "bad = [m for m in sys.modules if m.startswith('auditor.live') or m in ('httpx', 'requests')]\n"
        "sys.exit(repr(bad) if bad else 0)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=False, cwd=PACKAGE.parent
    )
    assert done.returncode == 0, done.stderr


def test_every_module_is_registered() -> None:
    readers = {reader.module for reader in READERS}
    for reader in READERS:
        assert callable(importlib.import_module(reader.module).read)
    assert len({reader.name for reader in READERS}) == len(READERS)
    on_disk = {f"auditor.readers.{path.stem}" for path in (PACKAGE / "readers").glob("*.py") if path.stem != "__init__"}
    shared = {name for name in on_disk if not hasattr(importlib.import_module(name), "read")}
    assert on_disk - shared == {name for name in readers if name.startswith("auditor.readers.")}
    commands = {f"auditor.commands.{path.stem}" for path in (PACKAGE / "commands").glob("*.py")}
    registered = {command.module for command in COMMANDS}
    assert registered <= commands
    for reporter in REPORTERS:
        assert callable(importlib.import_module(reporter.module).write)


def test_every_check_has_a_rule_and_every_rule_a_check() -> None:
    used = {rule.check for rule in load_rules()}
    assert used == {check.name for check in CHECKS}


def test_nothing_heavy_is_imported_before_a_file_needs_it(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("nothing here\n", encoding="utf-8")
    code = (
        "import sys\nfrom auditor.cli import main\nmain(['scan', sys.argv[1]])\n"
        "bad = [m for m in ('libcst', 'rich', 'tomli', 'packaging', 'hcl2', 'tree_sitter') if m in sys.modules]\n"
        "sys.exit(repr(bad) if bad else 0)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=False, cwd=PACKAGE.parent
    )
    assert done.returncode == 0, done.stderr
