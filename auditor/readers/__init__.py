"""The readers: one a file format. Each says what is written in a file, with exact spans, and has no opinion.

The registry below is the whole list, in order: where two readers state the same fact at the same span, the first one is
kept, so formats stand before shapes. A reader's module is imported when a file needs it and not before.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from auditor.errors import ReadError
    from auditor.model.facts import Fact
    from auditor.model.spans import SourceFile

    ReadFunction = Callable[[SourceFile], Iterator[Fact | ReadError]]


class Reader(NamedTuple):  # not a dataclass: the short way of the hook has no time for that import
    """One format. `patterns` are globs on the path relative to the root, in lower case: without a `/` they match the
    file name, with one the end of the path. `needles` are byte strings (lower case; the file is compared in lower
    case) of which the file must hold one; `None` stands for the names that the rules watch, `()` reads always.
    `module` holds `read(source) -> Iterator[Fact]`, which may raise `ReadError` and nothing else, or yield one and go
    on (a bad document among good ones). `reads` and `skips` are the row of the format in docs/formats.md. Raise
    `version` when the output changes: it is part of the cache key.
    """

    name: str
    module: str
    patterns: tuple[str, ...]
    title: str
    reads: str
    skips: str
    needles: tuple[bytes, ...] | None = None
    excludes: tuple[str, ...] = ()
    version: int = 1

    def load(self) -> ReadFunction:
        """The reader's function; imports its module."""
        return importlib.import_module(self.module).read  # type: ignore[no-any-return]


_YAML = ("*.yaml", "*.yml", "*.yaml.*", "*.yml.*")

READERS: tuple[Reader, ...] = (
    Reader(
        "dockerfile",
        "auditor.readers.dockerfile",
        ("*dockerfile*", "*containerfile*", "earthfile"),
        "Dockerfile, Containerfile",
        "`FROM`, `COPY --from`, `RUN --mount=from=`, `ARG` and `ENV` by stage, `ADD` of wheels, installs, checkouts, "
        "launches in `RUN`, `CMD`, `ENTRYPOINT`, here-documents, `ONBUILD`",
        "what a script that is copied in does (it is read as a script)",
        excludes=("*.dockerignore", "*.md", "*.rst", "*.py", "*.yaml", "*.yml", "*.json", "*.sh", "*.toml", "*.go"),
    ),
    Reader(
        "apptainer",
        "auditor.readers.apptainer",
        ("*apptainerfile*", "apptainer*", "singularity*", "*.def"),
        "Apptainer and Singularity definitions",
        "`From:`, `%post`, `%environment`, `%runscript`, `%startscript`",
        "local and library bootstraps",
        excludes=("*.md", "*.py", "*.yaml", "*.yml", "*.json", "*.sh", "*.go"),
    ),
    Reader(
        "compose",
        "auditor.readers.compose",
        _YAML,
        "Compose",
        "images, commands, environment, build arguments, devices, health checks; anchors, several merges, `extends`, "
        "`${NAME:-default}` with the `.env` beside or above the file",
        "`include` and `extends` of other files (they are read for themselves)",
    ),
    Reader(
        "kubernetes",
        "auditor.readers.kubernetes",
        _YAML,
        "Kubernetes manifests and custom resources",
        "containers by their shape in any resource: images in one key or several, commands, environment, probes, "
        "accelerators, group sizes; lists, ConfigMaps with scripts",
        "admission and operators that change a resource in the cluster",
    ),
    Reader(
        "helm-chart",
        "auditor.readers.helm",
        ("chart.yaml", "chart.yml"),
        "Helm chart file",
        "`appVersion` and `version`, for the templates that refer to them",
        "dependencies (a chart that is fetched is not in the tree)",
        needles=(),
    ),
    Reader(
        "helm-values",
        "auditor.readers.helm",
        ("*values*.yaml", "*values*.yml"),
        "Helm values",
        "images joined from registry, repository, tag and digest; every value, for the templates that use it; overlays",
        "values given on the command line or by a cluster",
        needles=(b"sglang", b"sgl-dev", b"image", b"tag:"),
    ),
    Reader(
        "helm",
        "auditor.readers.helm",
        (*_YAML, "templates/*.tpl", "templates/*.txt", "*.gotmpl", "*.j2", "*.jinja", "*.tmpl"),
        "Helm templates, other templates of YAML",
        "documents through a mask; values, `appVersion` and named templates joined with their use",
        "functions beyond the common ones, `range`, values from outside of the tree",
        needles=(b"sglang", b"sgl-dev", b".values.", b".chart.appversion"),
        excludes=("*values*.yaml", "*values*.yml", "chart.yaml", "chart.yml"),
    ),
    Reader(
        "kustomize",
        "auditor.readers.kustomize",
        ("kustomization.yaml", "kustomization.yml", "kustomization"),
        "Kustomize",
        "`images:` entries over the bases below them, inline patches",
        "remote bases, replacements, generators and transformers of other kinds",
        needles=(),
    ),
    Reader(
        "hcl",
        "auditor.readers.hcl",
        ("*.tf", "*.tofu", "*.hcl", "*.nomad", "*.tfvars"),
        "Terraform, OpenTofu, Nomad, docker-bake",
        "images, commands, environment and devices by shape; variables, locals and `.tfvars`; bake arguments for the "
        "Dockerfile of the target",
        "what functions, modules and `for` expressions compute",
    ),
    Reader(
        "model-config",
        "auditor.readers.model_config",
        ("config.json",),
        "A model's `config.json`",
        "context length, layers, heads, for the launches that name its folder",
        "weights, tokenizers, code beside it",
        needles=(b"num_hidden_layers", b'"n_layer"'),
    ),
    Reader(
        "json-other",
        "auditor.readers.json_other",
        ("*.json", "*.jsonc", "*.json5"),
        "JSON by shape: manifests, compose, bake, task definitions, dev containers",
        "engine images under any key, commands, environment, launches",
        "prose, data sets",
        excludes=("package.json", "package-lock.json", "pipfile.lock", "tsconfig*.json", "*.geojson"),
    ),
    Reader(
        "option-file",
        "auditor.readers.option_file",
        _YAML,
        "files of engine options",
        "options as keys at the top level, one of them the engine's alone; joined with the launch whose `--config` "
        "names the file",
        "files with fewer than three options, or more other keys than these",
        needles=(
            b"mem-fraction-static",
            b"mem_fraction_static",
            b"max-total-tokens",
            b"max_total_tokens",
            b"disaggregation-mode",
        ),
    ),
    Reader(
        "yaml-other",
        "auditor.readers.yaml_other",
        _YAML,
        "Other YAML: workflows, GitLab, Ansible, SkyPilot, dstack, Truss, Slurm recipes",
        "engine images under any key, `run`, `script`, `commands` and their like, launches in any text, engine options "
        "as keys, accelerators",
        "descriptions, comments, changelogs",
    ),
    Reader(
        "requirements",
        "auditor.readers.requirements",
        ("*.txt", "*.in", "*.pip", "*requirements*", "*constraints*", "*requirements*.lock", "requirements/*"),
        "pip requirements and constraints",
        "names, extras, specifiers, markers, URLs, `git+` sources, wheel and sdist names, continuations, hashes",
        "included files (`-r`) are read by their own name, constraints (`-c`) bind requirements; local paths",
        excludes=("*.py", "*.toml", "*.md", "*.rst", "*.yaml", "*.yml", "*.json", "*.sh"),
    ),
    Reader(
        "pyproject",
        "auditor.readers.pyproject",
        ("pyproject.toml", "*pyproject*.toml"),
        "pyproject.toml",
        "PEP 621, extras, PEP 735 groups, Poetry, PDM, Hatch environments, uv (sources, overrides, constraints), pixi, "
        "flit, tox, build requirements, the project's own name and version",
        "dynamic dependencies from files (those files are read by their own name), `include-group`",
    ),
    Reader(
        "toml-manifests",
        "auditor.readers.toml_manifests",
        ("pipfile", "pixi.toml", "hatch.toml", "uv.toml", "tox.toml"),
        "Pipfile, pixi.toml, hatch.toml, uv.toml, tox.toml",
        "packages with specifiers, extras, `git` with its ref, wheels by URL or path",
        "local paths and workspace members",
    ),
    Reader(
        "locks",
        "auditor.readers.locks",
        ("*uv.lock", "*poetry.lock", "*pdm*.lock", "pylock.toml", "pylock.*.toml"),
        "uv.lock, poetry.lock, pdm.lock, pylock.toml",
        "every locked copy with its version, or its repository and ref",
        "edges between packages, `requires-dist`, the manifest's overrides and metadata, local projects",
    ),
    Reader(
        "setup-cfg",
        "auditor.readers.setup_cfg",
        ("setup.cfg", "tox.ini"),
        "setup.cfg, tox.ini",
        "install, setup, test and extra requirements, tox `deps`, the project's own name and version",
        "`file:` and `attr:` directives",
    ),
    Reader(
        "setup-py",
        "auditor.readers.setup_py",
        ("*setup.py", "setup_*.py"),
        "setup.py",
        "requirement texts that are literals or f-strings over module constants; the project's own name and version",
        "lists that are computed or read from files; nothing is run",
    ),
    Reader(
        "pipfile-lock",
        "auditor.readers.pipfile_lock",
        ("pipfile.lock", "*pipfile*.lock"),
        "Pipfile.lock",
        "every category: version, or repository and ref",
        "hashes, indexes, local paths",
    ),
    Reader(
        "conda",
        "auditor.readers.conda",
        ("environment*.yml", "environment*.yaml", "conda*.yml", "conda*.yaml", "*conda-lock*.yml", "pixi.lock"),
        "conda environment.yml, conda-lock.yml, pixi.lock",
        "match specifications with channel and build, the `pip:` list, locked conda and PyPI packages",
        "selectors in comments, local packages",
    ),
    Reader(
        "sbom",
        "auditor.readers.sbom",
        ("*.json", "*.cdx", "*.spdx"),
        "CycloneDX and SPDX as JSON",
        "Python packages by purl or by name and version; container images",
        "components of other ecosystems; the XML and tag-value forms",
        needles=(b'"cyclonedx"', b'"spdxversion"'),
    ),
    Reader(
        "json-lists",
        "auditor.readers.requirement_lists",
        ("*.json", "*.json5", "*.jsonc"),
        "requirement texts inside JSON of any schema",
        "texts that are a requirement as a whole, in lists and as values; bare names under keys such as `requirements`",
        "prose keys such as `description`, Node manifests and locks",
        excludes=("package.json", "package-lock.json", "pipfile.lock", "tsconfig*.json", "*.geojson"),
    ),
    Reader(
        "yaml-lists",
        "auditor.readers.yaml_lists",
        ("*.yml", "*.yaml"),
        "requirement texts inside YAML of any schema (Truss, BentoML, Cog, Ray, Ansible, MLflow)",
        "texts that are a requirement as a whole, in lists and as values; bare names under keys such as "
        "`requirements`; Ansible's pip module; conda environments by their shape",
        "prose keys such as `description`, issue templates, pnpm and yarn locks",
        excludes=("*/.github/issue_template/*", "pnpm-lock.yaml", "conda-lock.yml"),
    ),
    Reader(
        "nix",
        "auditor.readers.nix",
        ("*.nix",),
        "Nix expressions",
        "literal `pname` and `version` of a derivation",
        "computed versions, overlays, fetched sources",
    ),
    Reader(
        "shell",
        "auditor.readers.shell",
        ("*.sh", "*.bash", "*.zsh", "*.ksh", "*.sbatch", "*.slurm", "*.job"),
        "shell and batch scripts",
        "installs, git checkouts, images that are run or pulled, `#SBATCH` images, launches, variables with defaults",
        "what is only printed; what other files define, unless a variable of theirs is named",
    ),
    Reader(
        "shell-without-ending",
        "auditor.readers.shell",
        ("[!.]*",),
        "scripts without an ending",
        "the same, where the first line begins with `#!`",
        "files without `#!`",
        excludes=("*.*", "dockerfile", "containerfile", "makefile", "justfile", "*requirements*", "*constraints*"),
    ),
    Reader(
        "toml-other",
        "auditor.readers.toml_other",
        ("*.toml",),
        "TOML by shape: fly.toml, tables of containers",
        "engine images under any key, commands, environment, launches",
        "prose; dependency tables (they have readers of their own)",
        excludes=("pyproject.toml", "pylock*.toml", "cargo.toml", "pdm.lock"),
    ),
    Reader(
        "env-file",
        "auditor.readers.env_file",
        (".env", ".env.*", "*.env", "env.*.example"),
        "environment files",
        "definitions, for the files beside and below them that use them; engine images among their values",
        "variables inside values",
        needles=(),
    ),
    Reader(
        "engine-source",
        "auditor.readers.engine_source",
        ("*.py",),
        "the engine's own code, vendored or forked",
        "the prefill and decode doors, and the admission guards that are defined and asked",
        "everything else in Python files, which other readers and the code rules look at",
        needles=(b"class schedulerdisaggregation", b"def is_unadmitted_reject", b"def _retire_aborted_prefill_result"),
    ),
    Reader(
        "python-source",
        "auditor.readers.python_source",
        ("*.py",),
        "Python source",
        "launches in lists, command texts and `Engine(...)` calls, images, `pip_install`, accelerators",
        "values that are computed, sums of numbers excepted; docstrings, printed text; what a program says it works "
        "with; images and packages in test code",
    ),
    Reader(
        "systemd",
        "auditor.readers.systemd",
        ("*.service", "*.container", "*.service.j2", "*.service.in"),
        "systemd units",
        "commands of `ExecStart` and its kin with the unit's environment, images of container units",
        "drop-ins joined with their unit, environment files that are not in the tree",
    ),
    Reader(
        "recipes",
        "auditor.readers.recipes",
        ("makefile", "gnumakefile", "*.mk", "makefile.*", "justfile", "*.just", "*justfile"),
        "Makefiles and justfiles",
        "recipes as shell text, variables that the same file defines",
        "functions of make, included files, recipes in other languages",
    ),
    Reader(
        "script-metadata",
        "auditor.readers.script_metadata",
        ("*.py",),
        "inline metadata of scripts (PEP 723)",
        "the dependencies of a `# /// script` block, with uv's sources and overrides",
        "blocks of other types",
        needles=(b"# /// script",),
    ),
    Reader(
        "notebook",
        "auditor.readers.notebook",
        ("*.ipynb",),
        "Jupyter notebooks",
        "installs, images and launches in shell lines and shell cells",
        "Python code of the cells, text cells, outputs",
    ),
    Reader(
        "gates",
        "auditor.readers.gates",
        (
            *_YAML,
            "*.sh",
            "*.bash",
            "*.py",
            "*.service",
            "*dockerfile*",
            "makefile",
            "justfile",
            "*.tf",
            "*.toml",
            "*.json",
        ),
        "steps that gate a running engine",
        "`auditor gate` with the front's `--edge-limit`, and scripts that fail where the pool is under the context",
        "gates that stand outside of the tree",
        needles=(b"auditor", b"max_total_num_tokens"),
    ),
)
