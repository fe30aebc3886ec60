"""What the public SARIF validators do not notice and GitHub does: asserted on every log that the tests make."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from auditor.model.spans import SourceFile
from auditor.report.sarif import line_hashes


def check_sarif(log: dict[str, Any], root: Path) -> None:
    """`root` is the repository root that the URIs are relative to."""
    assert log["version"] == "2.1.0"
    assert "$schema" in log
    assert len(log["runs"]) == 1
    run = log["runs"][0]
    assert isinstance(run["results"], list)
    assert run["columnKind"] == "utf16CodeUnits"
    assert run["automationDetails"]["id"].endswith("/")
    for invocation in run["invocations"]:
        assert invocation["executionSuccessful"] is True
        for note in invocation["toolExecutionNotifications"]:
            assert note["message"]["text"]
            for location in note.get("locations", ()):
                _location(location, root)
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == sorted(rule["id"] for rule in rules)
    for rule in rules:
        _rule(rule)
    identities = [result["partialFingerprints"]["auditorFinding/v1"] for result in run["results"]]
    assert len(identities) == len(set(identities)), "two results cannot be told apart"
    for result in run["results"]:
        _result(result, rules, root)


def _rule(rule: dict[str, Any]) -> None:
    assert "/" not in rule["id"]
    assert re.fullmatch(r"[A-Z][A-Za-z0-9]{0,254}", rule["name"])
    assert rule["name"] != rule["id"]
    for key in ("shortDescription", "fullDescription", "help"):
        assert rule[key]["text"].strip()
    assert len(rule["shortDescription"]["text"]) <= 1024
    assert len(rule["fullDescription"]["text"]) <= 1024
    assert rule["help"]["markdown"].strip()
    severity = rule["properties"]["security-severity"]
    assert isinstance(severity, str)
    assert 0 < float(severity) <= 10
    assert rule["properties"]["precision"] in ("very-high", "high", "medium", "low")
    assert len(rule["properties"]["tags"]) <= 10
    assert "security" in rule["properties"]["tags"]


def _result(result: dict[str, Any], rules: list[dict[str, Any]], root: Path) -> None:
    assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
    assert result["level"] in ("error", "warning", "note")
    assert len(result["locations"]) == 1
    path, line = _location(result["locations"][0], root)
    source = _source(path)
    assert result["partialFingerprints"]["primaryLocationLineHash"] == line_hashes(source)[line]
    ids = {related["id"] for related in result.get("relatedLocations", ())}
    linked = {int(number) for number in re.findall(r"(?<!\\)\]\((\d+)\)", result["message"]["text"])}
    assert linked == ids, "every related location is linked, every link leads somewhere"
    for related in result.get("relatedLocations", ()):
        assert related["message"]["text"]
        _location(related, root)
    for flow in result.get("codeFlows", ()):
        for thread in flow["threadFlows"]:
            for step in thread["locations"]:
                _location(step["location"], root)


def _location(location: dict[str, Any], root: Path) -> tuple[Path, int]:
    physical = location["physicalLocation"]
    uri = physical["artifactLocation"]["uri"]
    assert uri
    assert not uri.startswith(("/", "./", "../"))
    assert re.fullmatch(r"(?:[A-Za-z0-9\-._~/]|%[0-9A-F]{2})+", uri), uri
    path = root / unquote(uri)
    assert path.is_file(), f"{uri} is no file of the repository"
    region = physical.get("region")
    if region is None:
        return path, 1
    assert set(region) == {"startLine", "startColumn", "endLine", "endColumn"}
    assert all(isinstance(value, int) and value >= 1 for value in region.values())
    assert (region["endLine"], region["endColumn"]) >= (region["startLine"], region["startColumn"])
    lines = _source(path).line_starts
    assert region["endLine"] <= len(lines)
    return path, region["startLine"]


def _source(path: Path) -> SourceFile:
    from auditor.decode import decode

    return decode(path.name, path.read_bytes())[0]
