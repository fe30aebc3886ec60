"""Definitions in one file, uses in another: what an audit of the tree says, and where it says it."""

from __future__ import annotations

from pathlib import Path

import pytest

from auditor.config import Config
from tests.trees import lay, scan_tree

POD = "apiVersion: v1\nkind: Pod\nspec: {{containers: [{{name: a, image: {image}}}]}}\n"
DEPLOY = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: x}
spec: {template: {spec: {containers: [{name: s, image: IMAGE}]}}}
"""
CHART = "apiVersion: v2\nname: srv\nversion: 1.0.0\nappVersion: v0.5.19\n"
HELPER = """\
{{- define "srv.image" -}}
{{- $tag := .Values.image.tag | default .Chart.AppVersion -}}
{{- if .Values.image.registry }}{{ .Values.image.registry }}/{{ end }}{{ .Values.image.repository }}:{{ $tag }}
{{- end -}}
"""

TREES: dict[str, tuple[dict[str, str], list[tuple[str, str, str, list[str]]]]] = {
    "an argument with a default": (
        {"Dockerfile": "ARG TAG=v0.5.19\nFROM lmsysorg/sglang:${TAG}\n"},
        [("Dockerfile", "lmsysorg/sglang:${TAG}", "0.5.19", ["Dockerfile: v0.5.19"])],
    ),
    "a build argument of compose": (
        {
            "docker/Dockerfile": "ARG TAG=latest\nFROM lmsysorg/sglang:${TAG}\n",
            "compose.yaml": "services: {a: {build: {context: docker, args: {TAG: v0.5.20}}}}  # sglang\n",
        },
        [("docker/Dockerfile", "lmsysorg/sglang:${TAG}", "0.5.20", ["compose.yaml: v0.5.20"])],
    ),
    "a whole image as a build argument is reported once, at its use": (
        {
            "Dockerfile": "ARG BASE\nFROM ${BASE}\n# sglang\n",
            "compose.yaml": "services: {a: {build: {context: ., args: [BASE=lmsysorg/sglang:v0.5.20]}}}\n",
        },
        [("Dockerfile", "${BASE}", "0.5.20", ["compose.yaml: lmsysorg/sglang:v0.5.20"])],
    ),
    "a build argument of a bake file": (
        {
            "Dockerfile": "ARG TAG\nFROM lmsysorg/sglang:${TAG}\n",
            "docker-bake.hcl": 'variable "T" { default = "v0.5.18" }\ntarget "sglang" { args = { TAG = T } }\n',
        },
        [("Dockerfile", "lmsysorg/sglang:${TAG}", "0.5.18", ["docker-bake.hcl: T", "docker-bake.hcl: v0.5.18"])],
    ),
    "an env file beside compose": (
        {
            "compose.yaml": "services: {a: {image: 'lmsysorg/sglang:${TAG:-v0.5.23}'}}\n",
            ".env": "# tag\nTAG=v0.5.19\n",
        },
        [("compose.yaml", "lmsysorg/sglang:${TAG:-v0.5.23}", "0.5.19", [".env: v0.5.19"])],
    ),
    "a sample does not beat a default": (
        {
            "compose.yaml": "services: {a: {image: 'lmsysorg/sglang:${TAG:-v0.5.18}'}}\n",
            ".env.example": "TAG=v0.5.23\n",
        },
        [("compose.yaml", "lmsysorg/sglang:${TAG:-v0.5.18}", "0.5.18", [])],
    ),
    "a ring of variables ends": (
        {"Dockerfile": "ARG A=${B}\nARG B=${A}\nARG C=${C}\nFROM lmsysorg/sglang:${B}\n"},
        [("Dockerfile", "lmsysorg/sglang:${B}", "variable", ["Dockerfile: ${A}", "Dockerfile: ${B}"])],
    ),
    "template, values and appVersion": (
        {
            "c/Chart.yaml": CHART,
            "c/values.yaml": 'image:\n  repository: lmsysorg/sglang\n  tag: ""\n',
            "c/templates/d.yaml": DEPLOY.replace(
                "IMAGE", '"{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}"'
            ),
        },
        [("c/Chart.yaml", "v0.5.19", "0.5.19", ["c/templates/d.yaml", "c/values.yaml: lmsysorg/sglang"])],
    ),
    "a named template": (
        {
            "c/Chart.yaml": CHART,
            "c/values.yaml": "image: {registry: r.example, repository: lmsysorg/sglang, tag: v0.5.18}\n",
            "c/templates/_helpers.tpl": HELPER,
            "c/templates/d.yaml": DEPLOY.replace("IMAGE", '{{ include "srv.image" . }}') + "# sglang\n",
        },
        [
            (
                "c/values.yaml",
                "v0.5.18",
                "0.5.18",
                ["c/templates/d.yaml", "c/values.yaml: r.example", "c/values.yaml: lmsysorg/sglang"],
            )
        ],
    ),
    "an overlay that sets the tag alone": (
        {
            "c/Chart.yaml": CHART,
            "c/values.yaml": "image: {repository: lmsysorg/sglang, tag: v0.5.23}\n",
            "c/values-prod.yaml": "image: {tag: v0.5.17}\n",
            "c/templates/d.yaml": DEPLOY.replace("IMAGE", '"{{ .Values.image.repository }}:{{ .Values.image.tag }}"'),
        },
        [("c/values-prod.yaml", "v0.5.17", "0.5.17", ["c/templates/d.yaml", "c/values.yaml: lmsysorg/sglang"])],
    ),
    "an overlay of kustomize beats its base": (
        {
            "base/kustomization.yaml": "resources: [pod.yaml]\n",
            "base/pod.yaml": POD.format(image="lmsysorg/sglang:v0.5.9"),
            "prod/kustomization.yaml": ("resources: [../base]\nimages:\n- name: lmsysorg/sglang\n  newTag: v0.5.19\n"),
        },
        [("prod/kustomization.yaml", "v0.5.19", "0.5.19", ["base/pod.yaml: lmsysorg/sglang:v0.5.9"])],
    ),
    "a safe overlay makes the base quiet": (
        {
            "base/kustomization.yaml": "resources: [pod.yaml]\n",
            "base/pod.yaml": POD.format(image="lmsysorg/sglang:v0.5.9"),
            "prod/kustomization.yaml": "resources: [../base]\nimages: [{name: lmsysorg/sglang, newTag: v0.5.23}]\n",
        },
        [],
    ),
    "a new name keeps the tag of the base": (
        {
            "base/kustomization.yaml": "resources: [pod.yaml]\n",
            "base/pod.yaml": POD.format(image="engine:v0.5.9"),
            "prod/kustomization.yaml": "resources: [../base]\nimages: [{name: engine, newName: lmsysorg/sglang}]\n",
        },
        [("prod/kustomization.yaml", "lmsysorg/sglang", "0.5.9", ["base/pod.yaml: engine:v0.5.9"])],
    ),
    "a variable of a role": (
        {
            "roles/s/defaults/main.yml": "sglang_image: lmsysorg/sglang:v0.5.16\n",
            "roles/s/tasks/main.yml": '- docker_container: {name: a, image: "{{ sglang_image }}"}\n',
        },
        [
            (
                "roles/s/tasks/main.yml",
                "{{ sglang_image }}",
                "0.5.16",
                ["roles/s/defaults/main.yml: lmsysorg/sglang:v0.5.16"],
            )
        ],
    ),
    "a variable of terraform": (
        {
            "m/variables.tf": 'variable "image" { default = "lmsysorg/sglang:v0.5.15" }\n',
            "m/main.tf": 'resource "x" "sglang" { image = var.image }\n',
        },
        [("m/main.tf", "var.image", "0.5.15", ["m/variables.tf: lmsysorg/sglang:v0.5.15"])],
    ),
    "a matrix of a workflow": (
        {
            ".github/workflows/t.yml": (
                "on: push\njobs:\n  a:\n    strategy: {matrix: {v: [v0.5.19, v0.5.23]}}\n"
                "    container: {image: 'lmsysorg/sglang:${{ matrix.v }}'}\n"
            )
        },
        [
            (
                ".github/workflows/t.yml",
                "v0.5.19",
                "0.5.19",
                [".github/workflows/t.yml: lmsysorg/sglang:${{ matrix.v }}"],
            )
        ],
    ),
}


@pytest.mark.parametrize("name", TREES)
def test_a_tree_says_its_images_where_they_are_to_be_changed(name: str, tmp_path: Path) -> None:
    files, expected = TREES[name]
    result = scan_tree(lay(files, tmp_path), Config(select=("sglang-vulnerable-image",)))
    got = []
    for finding in result.active:
        source = result.sources[finding.span.path]
        value = finding.properties["version"] or finding.properties["reason"]
        related = [
            related.span.path
            if "/templates/" in related.span.path
            else f"{related.span.path}: {result.sources[related.span.path].slice(related.span)}"
            for related in finding.related
        ]
        got.append((finding.span.path, source.slice(finding.span), value, related))
    assert got == expected
    assert [problem for problem in result.problems if problem.kind == "internal"] == []


def test_a_launch_finds_the_configuration_of_its_model(tmp_path: Path) -> None:
    config = '{"num_hidden_layers": 2, "max_position_embeddings": 4096}'
    files = {
        "deploy/models/a/config.json": config,
        "deploy/a.sh": "python3 -m sglang.launch_server --model-path ./models/a\n",
        "b/config.json": config.replace("4096", "8192"),
        "b.sh": "python3 -m sglang.launch_server --model-path /opt/x/b\n",
        "c.sh": "python3 -m sglang.launch_server --model-path Qwen/b2\n",
    }
    facts = scan_tree(lay(files, tmp_path)).facts
    named = {model.model: model.values["max_position_embeddings"] for model in facts.models if model.model}
    assert named == {"./models/a": 4096, "/opt/x/b": 8192}
    shown = {launch.span.path: [related.span.path for related in launch.related] for launch in facts.launches}
    assert shown == {"deploy/a.sh": ["deploy/models/a/config.json"], "b.sh": ["b/config.json"], "c.sh": []}


@pytest.mark.parametrize("links", [2, 9, 17, 1000])
@pytest.mark.parametrize("name", ["install.sh", "Dockerfile"])
def test_a_version_behind_a_chain_of_variables_is_known(tmp_path: Path, name: str, links: int) -> None:
    docker = name == "Dockerfile"
    chain = [f"V{link}=$V{link - 1}" for link in range(1, links + 1)]
    lines = ["V0=0.5.19", *chain]
    text = "".join(f"ENV {line}\n" if docker else f"{line}\n" for line in lines)
    text = (
        f"FROM ubuntu\n{text}RUN pip install sglang==$V{links}\n"
        if docker
        else f"{text}pip install sglang==$V{links}\n"
    )
    result = scan_tree(lay({name: text}, tmp_path), Config())
    assert [(finding.rule, finding.outcome) for finding in result.active] == [
        ("sglang-vulnerable-version", "vulnerable")
    ]
    assert result.problems == ()


FAR = "services: {a: {image: 'lmsysorg/sglang:${X_SGLANG_VERSION%s}'}}\n"


@pytest.mark.parametrize(
    ("files", "use", "tag", "reason"),
    [
        ({"profiles/default.env": "X_SGLANG_VERSION=latest\n"}, "", "latest", "latest"),
        ({"profiles/default.env": "X_SGLANG_VERSION=v0.5.19\n"}, "", "v0.5.19", None),
        ({".env": "X_SGLANG_VERSION=v0.5.19\n", "b/.env": "X_SGLANG_VERSION=v0.5.20\n"}, "", "v0.5.19", None),
        # what the use itself says stands before a file that nothing loads
        ({"profiles/default.env": "X_SGLANG_VERSION=v0.5.19\n"}, ":-v0.5.20", "v0.5.20", None),
        # two files that disagree, neither of them where compose looks
        ({"a.env": "X_SGLANG_VERSION=v0.5.19\n", "b.env": "X_SGLANG_VERSION=v0.5.20\n"}, "", None, "variable"),
    ],
)
def test_what_an_env_file_elsewhere_sets(
    tmp_path: Path, files: dict[str, str], use: str, tag: str | None, reason: str | None
) -> None:
    result = scan_tree(lay({**files, "services/compose.x.yml": FAR % use}, tmp_path), Config())
    found = [finding for finding in result.active if finding.span.path == "services/compose.x.yml"]
    expected = tag if tag is not None else "${X_SGLANG_VERSION}"
    assert [(finding.properties["tag"], finding.properties["reason"]) for finding in found] == [(expected, reason)]


def test_a_plain_name_is_not_looked_up_far_away(tmp_path: Path) -> None:
    text = "services: {a: {image: 'lmsysorg/sglang:${TAG}'}}\n"
    files = {"services/compose.yml": text, "other/.env": "TAG=v0.5.19\n"}
    result = scan_tree(lay(files, tmp_path), Config())
    assert [finding.properties["reason"] for finding in result.active] == ["variable"]


POD_OF = """apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  containers:
  - {name: front, image: "nvcr.io/acme/wideep:latest"}
  - name: worker
    image: IMAGE
    command: [python3, -m, dynamo.sglang, --model-path, m, --disaggregation-mode, decode]
"""


@pytest.mark.parametrize(
    ("files", "found"),
    [
        # as in a public workshop on Dynamo: the name says nothing, the command does; told at the worker, once a file
        ({"pod.yaml": POD_OF.replace("IMAGE", "nvcr.io/acme/wideep:latest")}, [("pod.yaml", 8, "latest")]),
        ({"pod.yaml": POD_OF.replace("IMAGE", "acme/llm:1.2")}, [("pod.yaml", 8, "no-version")]),
        ({"pod.yaml": POD_OF.replace("IMAGE", "$IMG")}, [("pod.yaml", 8, "variable")]),
        ({"a.sh": "docker run --gpus all acme/llm:1.2 sglang serve m\n" * 2}, [("a.sh", 1, "no-version")]),
        # the file puts the engine in itself, or its image is the base of a build
        ({"a.sh": "pip install sglang==0.5.22\ndocker run acme/llm:1.2 sglang serve m\n"}, []),
        ({"Dockerfile": "FROM nvidia/cuda:13.0\nCOPY build.sh /\nCMD [sglang, serve, m]\n"}, []),
        # a client of the engine, and a server without an image
        ({"a.sh": "docker run acme/llm:1.2 python -m sglang.bench_serving --backend sglang\nsglang serve m\n"}, []),
    ],
)
def test_an_image_that_is_not_named_after_the_engine_it_runs(
    tmp_path: Path, files: dict[str, str], found: list[tuple[str, int, str]]
) -> None:
    result = scan_tree(lay(files, tmp_path), Config())
    told = [one for one in result.active if one.rule == "sglang-vulnerable-image"]
    assert [(one.span.path, one.span.start.line, one.properties["reason"]) for one in told] == found
    assert {one.level for one in told} <= {"note"}


WORKER = """apiVersion: apps/v1
kind: Deployment
metadata: {name: d}
spec:
  template:
    spec:
      containers:
      - name: e
        image: "VALUE"
        command: [python3, -m, sglang.launch_server, --model-path, m]
"""


@pytest.mark.parametrize(
    ("value", "values", "found"),
    [
        ("{{ .Values.image }}", "app: a\n", [("variable", "{{ .Values.image }}")]),
        ("{{ .Values.r }}:{{ .Values.t }}", "r: ''\nt: ''\n", [("variable", "{{ .Values.r }}:{{ .Values.t }}")]),
        (
            "{{ .Values.image.r }}:{{ .Values.image.t }}",
            "image: {r: acme/llm, t: v2}\n",
            [("no-version", "acme/llm:v2")],
        ),
    ],
)
def test_a_chart_whose_image_is_given_at_the_installation(
    tmp_path: Path, value: str, values: str, found: list[tuple[str, str]]
) -> None:
    files = {
        "Chart.yaml": "apiVersion: v2\nname: c\nversion: 0.1.0\n",
        "values.yaml": values,
        "templates/d.yaml": WORKER.replace("VALUE", value),
    }
    result = scan_tree(lay(files, tmp_path), Config())
    told = [one for one in result.active if one.rule == "sglang-vulnerable-image"]
    assert [(one.properties["reason"], one.message.split("`")[1]) for one in told] == found


def test_an_image_file_that_is_named_after_a_vendors_release(tmp_path: Path) -> None:
    """As in the Slurm examples of a public evaluator: Dynamo 1.1.0 holds the engine 0.5.10.post1."""
    text = "services:\n  w: {type: dynamo, image: '${ROOT}/sglang-runtime-1.1.0-cuda13-amd64.sqsh'}\n"
    (found,) = scan_tree(lay({"run.yaml": text}, tmp_path), Config()).active
    assert (found.outcome, found.properties["version"]) == ("vulnerable", "0.5.10.post1")


STEPS = """on: push
jobs:
  image:
    runs-on: ubuntu-24.04
    env: {NAME: "ghcr.io/acme/sglang-custom"}
    steps:
      - uses: docker/build-push-action@v7
        with: {context: ., tags: "local/sglang-custom:verify,${{ env.NAME }}:candidate-${{ github.sha }}"}
      - run: docker run --rm local/sglang-custom:verify true
"""
SERVICE = "services: {e: {build: ., image: '${REGISTRY:-acme}/sglang:${TAG:-latest}'}}\n"


@pytest.mark.parametrize(
    ("files", "found"),
    [
        ({".github/workflows/image.yml": STEPS}, []),
        ({"ci/staged.yml": STEPS}, []),
        ({"compose.yaml": SERVICE}, []),
        ({".github/workflows/docker/x-compose.yaml": SERVICE}, []),
        ({"a.sh": "docker build -t acme/sglang:dev .\ndocker run acme/sglang:dev sglang serve m\n"}, []),
        # another file that runs the same image pulls it
        (
            {"compose.yaml": SERVICE, "run/compose.yaml": SERVICE.replace("build: ., ", "")},
            [("run/compose.yaml", "latest")],
        ),
        # the project's own image is not what a build makes, and a number in the tag says what is in it
        (
            {"compose.yaml": "services: {e: {build: ., image: 'lmsysorg/sglang:latest'}}\n"},
            [("compose.yaml", "latest")],
        ),
        ({"a.sh": "docker build -t acme/sglang:v0.5.2 .\ndocker run acme/sglang:v0.5.2 true\n"}, [("a.sh", None)]),
    ],
)
def test_an_image_that_its_own_file_makes(
    tmp_path: Path, files: dict[str, str], found: list[tuple[str, str | None]]
) -> None:
    result = scan_tree(lay(files, tmp_path), Config())
    told = [one for one in result.active if one.rule == "sglang-vulnerable-image"]
    assert [(one.span.path, one.properties["reason"]) for one in told] == found
