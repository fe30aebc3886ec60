"""Python source parsed by `ast`, with the failures of that parser put into words."""

from __future__ import annotations

import ast
import warnings

from auditor.errors import ReadError
from auditor.model.spans import SourceFile

# Files above this many bytes are generated tables; the grammar of a file that large takes seconds and finds nothing.
LARGEST_FILE = 4 * 1024 * 1024


def parse_python(source: SourceFile) -> ast.Module:
    """The module. Raises `ReadError`: not Python of this interpreter's version, or nested beyond the parser's bound."""
    if len(source.data) > LARGEST_FILE:
        raise ReadError(f"larger than {LARGEST_FILE // (1024 * 1024)} MiB", limit=True)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes are the author's affair
            return ast.parse(source.text)
    except SyntaxError as error:
        where = source.offset(error.lineno or 1, max(error.offset or 1, 1))
        if "nested" in (error.msg or "") and "many" in (error.msg or ""):
            raise ReadError("Python nested deeper than its parser allows", where, limit=True) from None
        raise ReadError(f"not valid Python 3: {error.msg}", where) from None
    except (RecursionError, MemoryError):  # both without a word of their own
        raise ReadError("Python nested deeper than its parser allows", limit=True) from None
    except ValueError as error:  # a null byte, a lone surrogate
        raise ReadError(f"not valid Python 3: {error}") from None
