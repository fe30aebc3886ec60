"""docs/formats.md from the reader registry: `python -m auditor.docs` writes it, a test keeps it current."""

from __future__ import annotations

from auditor.limits import MAX_FILE_BYTES
from auditor.readers import READERS, Reader

HEAD = """# Formats

Made from the reader registry by `python -m auditor.docs`. A file is looked at when its name matches and it holds a
word that some rule watches (a reader that defines values for others reads always). Several readers may read one file;
what two of them say of one place counts once.
"""

TAIL = """## Which files are looked at

- Below a folder: every file that git tracks or would not ignore; a tracked file counts although a pattern of
  `.gitignore` names it. A file given by name is always looked at.
- Installed and generated trees are left out by name (`.git`, `.venv`, `node_modules`, `site-packages`, `__pycache__`,
  caches); links are not followed unless they are named; submodules are left out, and said so, without `--submodules`.
- Baselines, reports of `auditor` and SARIF logs report on a tree and are no part of it.
- Text for readers is not: Markdown, reStructuredText and HTML may show a command or an image that nothing deploys.
  Neither are languages without a row above (JavaScript, Go, Java, Rust, PowerShell): a launch put together there is
  not seen.

## How texts are read

- A byte-order mark decides first (UTF-16 and UTF-32 are known without one too), then a coding comment, then UTF-8; what
  is neither is read byte by byte, and said so.
- CRLF, LF and CR end lines. Lines and columns count characters from 1.
- A file larger than {limit} MiB, one that is not text, or one that names the engine and is broken is listed under
  `unread`; it is never left out in silence.
- Names match without regard to case; patterns with a `/` match the end of the path.

## How versions are judged

- A pin is ordered by PEP 440: pre-releases and development releases sort before the fix, post releases and local builds
  do not. `0.5.9` is older than `0.5.22`.
- A range is the set of published releases that it admits, from a dated catalogue. A version that the range names
  itself, and the next post release of an affected one, count as admitted: `>=0.5.21,!=0.5.21` admits a 0.5.21.post1.
- A range whose releases are all affected has the verdict `admits-vulnerable` and, as a finding, the outcome
  `vulnerable`: it is as certain as a pin.
- A tag of a source checkout is its version; a branch and a commit are `unverifiable`, with what would decide.
- In a lock the finding runs from the name to the version, so that a comment or an annotation fits on either line.
"""


def formats_markdown() -> str:
    """The whole page."""
    rows = "\n".join(map(_row, READERS))
    table = f"| format | files | what is read | what is not |\n| --- | --- | --- | --- |\n{rows}"
    tail = TAIL.format(limit=MAX_FILE_BYTES // (1024 * 1024))
    return "\n\n".join(part.strip() for part in (HEAD, table, tail)) + "\n"


def _row(reader: Reader) -> str:
    names = ", ".join(f"`{pattern}`" for pattern in reader.patterns)
    if reader.excludes:
        names += " but not " + ", ".join(f"`{pattern}`" for pattern in reader.excludes)
    cells = (reader.title, names, reader.reads, reader.skips)
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"
