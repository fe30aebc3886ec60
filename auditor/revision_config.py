"""The configuration of a past revision, and what of it judges the tree as against what it states of it."""

from __future__ import annotations

import os

from auditor.config import Config, PathSettings, config_in, load_config, read_bytes
from auditor.errors import ConfigError
from auditor.model.records import replace
from auditor.revisions import Repository


def committed_config(repository: Repository, commit: str, top: str, start: str) -> Config:
    """The configuration that holds for the folder `start` in a commit of the repository whose work tree is at `top`,
    with what it extends; a file outside of the repository is read as it is. Raises `ConfigError`."""

    def read(path: str) -> bytes:
        name = os.path.relpath(path, top).replace(os.sep, "/")
        return read_bytes(path) if name.startswith("../") else repository.read(commit, name)

    top = os.path.realpath(top)
    folder = os.path.realpath(start)
    while True:
        found = config_in(folder, read)
        if found is not None:
            try:
                return load_config(found, read=read)
            except ConfigError as error:
                raise ConfigError(f"at {commit[:12]}: {error}") from None
        if folder == top or os.path.dirname(folder) == folder:
            return Config()
        folder = os.path.dirname(folder)


def judged_by(own: Config, other: Config) -> Config:
    """What one configuration states of the tree (accelerators, models) with how another one judges it."""
    paths = [PathSettings(settings.match, settings.gpu) for settings in own.paths if settings.gpu]
    paths += [PathSettings(settings.match, None, settings.ignore) for settings in other.paths if settings.ignore]
    return replace(other, assume=own.assume, models=own.models, paths=tuple(paths))


def judgement(config: Config) -> Config:
    """What a configuration says of the audit and not of the tree, less the places where it says so: equal for two that
    judge alike."""
    return replace(
        config,
        fail_on="",
        assume={},
        models={},
        paths=tuple(
            PathSettings(settings.match, None, settings.ignore) for settings in config.paths if settings.ignore
        ),
        ignores=tuple(replace(entry, place="") for entry in config.ignores),
        baseline=None,
        file=None,
        said=frozenset(),
    )
