"""Small trees on disk for tests, and what a scan of them says."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from auditor.config import Config, joined, load_config
from auditor.model.findings import Finding, ScanResult
from auditor.model.records import replace
from auditor.readers import READERS
from auditor.rulebook import load_rules
from auditor.scan import ScanRequest, scan

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared"


# Whole-path tests need the readers and the rules of the incident's tree.
READY = {"requirements", "dockerfile", "kubernetes", "shell"} <= {reader.name for reader in READERS} and {
    "version",
    "capacity",
    "code",
} <= {rule.family for rule in load_rules()}


def lay(files: Mapping[str, str | bytes], root: Path) -> Path:
    """Write the files below a folder and return the folder."""
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return root


def git(root: Path, *arguments: str) -> str:
    """Run git in a folder under a fixed identity, without the user's configuration; what it printed."""
    identity = {
        "GIT_AUTHOR_NAME": "a",
        "GIT_AUTHOR_EMAIL": "a@b.c",
        "GIT_COMMITTER_NAME": "a",
        "GIT_COMMITTER_EMAIL": "a@b.c",
    }
    done = subprocess.run(
        [
            "git",
            "-c",
            "init.defaultBranch=main",
            "-c",
            "commit.gpgsign=false",
            "-c",
            "protocol.file.allow=always",
            *arguments,
        ],
        cwd=root,
        env={**os.environ, **identity, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"},
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout.strip()


def scan_tree(root: Path, config: Config | None = None, **assume: str) -> ScanResult:
    """Scan one folder in this process."""
    found = root / "auditor.toml"
    config = config or Config()
    if found.is_file():
        config = joined(config, load_config(str(found)))
    return scan(ScanRequest((str(root),), replace(config, assume={**config.assume, **assume})))


def seen(result: ScanResult, finding: Finding) -> tuple[str, str, str, str]:
    """Rule, outcome, path and the text under the span: what a test compares."""
    return (
        finding.rule,
        finding.outcome,
        finding.span.path,
        result.sources[finding.span.path].slice(finding.span),
    )
