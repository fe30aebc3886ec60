"""docs/live.md: examples are the files of fixtures/live, outputs what the commands print, commands valid."""

from __future__ import annotations

import argparse
import configparser
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from tests.live import run

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "fixtures" / "live"
TEXT = (ROOT / "docs" / "live.md").read_text(encoding="utf-8")
MANIFESTS = sorted(EXAMPLES.glob("*.yaml"))
UNITS = sorted(EXAMPLES.glob("*.service"))

# As much of the Kubernetes API as the examples use, closed: a field that is misspelt or in the wrong place is an error.
NAME = {"type": "string", "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"}
WORDS = {"type": "array", "items": {"type": "string"}}
MAP = {"type": "object", "additionalProperties": {"type": "string"}}
AMOUNTS = {"type": "object", "additionalProperties": {"type": ["string", "integer"]}}


def closed(required: tuple[str, ...] = (), **properties: Any) -> dict[str, Any]:
    """An object with these properties and no other."""
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


PROBE = closed(
    (),
    exec=closed(("command",), command=WORDS),
    httpGet=closed(("port",), path={"type": "string"}, port={"type": ["integer", "string"]}),
    periodSeconds={"type": "integer"},
    timeoutSeconds={"type": "integer"},
    failureThreshold={"type": "integer"},
)
CONTAINER = closed(
    ("name", "image"),
    name=NAME,
    image={"type": "string"},
    command=WORDS,
    args=WORDS,
    env={"type": "array", "items": closed(("name",), name={"type": "string"}, valueFrom={"type": "object"})},
    ports={"type": "array", "items": closed(("containerPort",), name=NAME, containerPort={"type": "integer"})},
    resources=closed((), requests=AMOUNTS, limits=AMOUNTS),
    securityContext=closed(
        (),
        allowPrivilegeEscalation={"type": "boolean"},
        readOnlyRootFilesystem={"type": "boolean"},
        runAsNonRoot={"type": "boolean"},
        runAsUser={"type": "integer"},
    ),
    startupProbe=PROBE,
    readinessProbe=PROBE,
    volumeMounts={
        "type": "array",
        "items": closed(("name", "mountPath"), name=NAME, mountPath={"type": "string"}, readOnly={"type": "boolean"}),
    },
)
POD = closed(
    ("containers",),
    restartPolicy={"enum": ["Never", "OnFailure", "Always"]},
    initContainers={"type": "array", "items": CONTAINER},
    containers={"type": "array", "items": CONTAINER, "minItems": 1},
    volumes={
        "type": "array",
        "items": closed(("name",), name=NAME, persistentVolumeClaim={"type": "object"}, configMap={"type": "object"}),
    },
)
META = closed(("name",), name=NAME, labels=MAP, annotations=MAP)
TEMPLATE = closed(("spec",), metadata=closed((), labels=MAP), spec=POD)
NEVER = {"properties": {"spec": {"required": ["restartPolicy"]}}}
JOB = closed(
    ("template",),
    backoffLimit={"const": 0},  # one answer is enough: a second try must not turn a failure into a pass
    activeDeadlineSeconds={"type": "integer"},
    ttlSecondsAfterFinished={"type": "integer"},
    template={"allOf": [TEMPLATE, NEVER]},
)
WORKLOAD = {
    "replicas": {"type": "integer"},
    "selector": closed(("matchLabels",), matchLabels=MAP),
    "template": TEMPLATE,
}
ARGUMENTS = {"type": "array", "items": closed(("name",), name=NAME, value={"type": "string"})}
SPECS: dict[tuple[str, str], dict[str, Any]] = {
    ("apps/v1", "Deployment"): closed(("selector", "template"), **WORKLOAD),
    ("apps/v1", "StatefulSet"): closed(("selector", "template", "serviceName"), serviceName=NAME, **WORKLOAD),
    ("batch/v1", "Job"): JOB,
    ("batch/v1", "CronJob"): closed(
        ("schedule", "jobTemplate"),
        schedule={"type": "string"},
        concurrencyPolicy={"enum": ["Allow", "Forbid", "Replace"]},
        jobTemplate=closed(("spec",), spec=JOB),
    ),
    ("v1", "Pod"): POD,
    ("argoproj.io/v1alpha1", "AnalysisTemplate"): closed(
        ("metrics",),
        args=ARGUMENTS,
        metrics={
            "type": "array",
            "items": closed(
                ("name", "provider"),
                name=NAME,
                count={"const": 1},
                failureLimit={"const": 0},
                provider=closed(("job",), job=closed(("spec",), spec=JOB)),
            ),
        },
    ),
    ("argoproj.io/v1alpha1", "Rollout"): closed(
        ("selector", "template", "strategy"),
        strategy=closed(
            ("blueGreen",),
            blueGreen=closed(
                ("activeService",),
                activeService=NAME,
                previewService=NAME,
                autoPromotionEnabled={"type": "boolean"},
                prePromotionAnalysis=closed(
                    ("templates",),
                    templates={"type": "array", "items": closed(("templateName",), templateName=NAME)},
                    args=ARGUMENTS,
                ),
            ),
        ),
        **WORKLOAD,
    ),
}


def documents(path: Path) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(path.read_text(encoding="utf-8")))


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)


def commands_in(value: object) -> Iterator[list[str]]:
    """Every command line of a manifest: containers, probes, shell texts."""
    if isinstance(value, dict):
        command = value.get("command")
        if isinstance(command, list):
            line = [*command, *value.get("args", [])]
            yield shlex.split(line[-1]) if line[:2] == ["sh", "-c"] else line
        for inner in value.values():
            yield from commands_in(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from commands_in(inner)


def auditor_lines() -> list[tuple[str, list[str]]]:
    """Every `auditor` command line of the examples and of the document."""
    found = []
    for path in MANIFESTS:
        found += [(path.name, line) for document in documents(path) for line in commands_in(document)]
    for path in UNITS:
        found += [
            (path.name, shlex.split(line)) for line in re.findall(r"^Exec\w+=(.*)$", path.read_text(), re.MULTILINE)
        ]
    for block in blocks("sh"):
        found += [("docs/live.md", shlex.split(line.split("|")[-1].split(" > ")[0])) for line in block.splitlines()]
    for block in blocks("console"):
        found += [("docs/live.md", shlex.split(line[2:])) for line in block.splitlines() if line.startswith("$ ")]
    return [(name, line) for name, line in found if line and Path(line[0]).name == "auditor"]


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.name)
def test_an_example_is_valid(path: Path) -> None:
    for document in documents(path):
        spec = SPECS[document["apiVersion"], document["kind"]]
        schema = closed(
            ("apiVersion", "kind", "metadata", "spec"),
            apiVersion={"const": document["apiVersion"]},
            kind={"const": document["kind"]},
            metadata=META,
            spec=spec,
        )
        jsonschema.validate(document, schema)
        template = document["spec"].get("template")
        if template is not None and "selector" in document["spec"]:
            assert document["spec"]["selector"]["matchLabels"] == template["metadata"]["labels"]


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_a_unit_is_valid(path: Path) -> None:
    parser = configparser.ConfigParser(strict=True, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read(path)
    assert parser.sections() == ["Unit", "Service", "Install"]
    assert parser["Service"]["ExecStart"].startswith("/")


def test_the_document_shows_every_example_as_it_is() -> None:
    shown = [*blocks("yaml"), *blocks("ini")]
    assert sorted(shown) == sorted(path.read_text(encoding="utf-8") for path in (*MANIFESTS, *UNITS))


@pytest.mark.parametrize(
    ("name", "line"), auditor_lines(), ids=lambda value: value if isinstance(value, str) else value[1]
)
def test_a_command_is_one_that_the_program_takes(name: str, line: list[str]) -> None:
    parser = argparse.ArgumentParser(allow_abbrev=False, exit_on_error=False)
    import_module(f"auditor.commands.{line[1]}").add_arguments(parser)
    parser.parse_args(line[2:])


def test_every_place_runs_the_gate() -> None:
    gated = {name for name, line in auditor_lines() if line[1] == "gate"}
    assert gated == {path.name for path in (*MANIFESTS, *UNITS)} - {"front.service", "latency-cronjob.yaml"} | {
        "docs/live.md"
    }


@pytest.mark.parametrize("block", blocks("console"), ids=lambda block: block.split()[2])
def test_an_output_is_what_the_command_prints(block: str, request: pytest.FixtureRequest) -> None:
    first, rest = block.split("\n", 1)
    done = subprocess.run(
        [sys.executable, "-m", *shlex.split(first[2:])], cwd=ROOT, capture_output=True, text=True, check=False,
        env={"PATH": "/usr/bin:/bin", "PYTHONIOENCODING": "utf-8", "PYTHONPATH": str(ROOT)}, encoding="utf-8",
    )  # fmt: skip
    if request.config.getoption("--update"):
        path = ROOT / "docs" / "live.md"
        path.write_text(path.read_text(encoding="utf-8").replace(block, f"{first}\n{done.stdout}"), encoding="utf-8")
        return
    assert done.stdout == rest


def test_the_keys_of_the_documents_are_documented(tmp_path: Path) -> None:
    gate = run("gate", str(EXAMPLES / "incident-prefill.json"), "--format", "json").report
    latency = run("latency", str(EXAMPLES / "requests.jsonl"), "--format", "json").report
    canary = run("canary", "http://127.0.0.1:9", "--format", "json", "--timeout", "1").report
    named = set(re.findall(r"`([a-z_0-9]+)(?:\[\])?`", TEXT[TEXT.index("## JSON") :]))
    used = {*gate, *latency, *canary, *gate["workers"][0], *latency["buckets"][0], *gate["results"][0]}
    assert used - named == set()


def test_the_checks_of_the_gate_are_documented() -> None:
    source = (ROOT / "auditor" / "live" / "gate.py").read_text(encoding="utf-8")
    ids = {name for name in re.findall(r'Result\(\s*"([a-z-]+)"', source) if not name.startswith("agree-")} - {"pair"}
    table = set(re.findall(r"^\| `([a-z-]+)` \|", TEXT, re.MULTILINE))
    assert ids - table == set()
    assert json.loads((EXAMPLES / "requests.jsonl").read_text(encoding="utf-8").splitlines()[0])["model"] == "glm"
