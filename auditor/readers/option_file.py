"""Files of engine options: what `--config` names, or a chart is given as a file. The engine is not named in them."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.errors import ReadError
from auditor.launch.flags import spelled
from auditor.launch.parse import LaunchContext, mapping_launch
from auditor.model.facts import Fact
from auditor.model.spans import SourceFile
from auditor.readers.option_maps import OWN, options_of
from auditor.readers.yaml_kinds import is_template
from auditor.syntax.yaml_nodes import MapNode, documents

ENTRYPOINT = "options file"
FEWEST = 3  # options; fewer say too little of what a file is for
SHARE = 0.7  # of the keys that have to be options


def read(source: SourceFile) -> Iterator[Fact | ReadError]:
    """One launch for a file whose top level is a mapping of engine options, one of them the engine's alone."""
    if is_template(source.path, source.text):
        return
    for root in documents(source).roots:
        if not isinstance(root, MapNode):
            continue
        options = options_of(root)
        known = {spelled(name).name for name, _, _ in options if spelled(name).option is not None}
        if len(known) < FEWEST or len(known) < SHARE * len(root.entries) or known.isdisjoint(OWN):
            continue
        first, last = options[0][2], options[-1][2]
        span = source.span(first.start.offset, max(last.end.offset, first.end.offset))
        yield mapping_launch(options, source, span, LaunchContext(), entrypoint=ENTRYPOINT)
