"""C# that the grammar does not understand whole: what is left is judged, what was stepped over is listed."""

from __future__ import annotations

import pytest

from tests.test_code_rules import findings, module

POOL = """class SlotPool
{
    readonly Stack<int> freeSlots = new Stack<int>();
    %s
    public void Release(int slot)
    {
        freeSlots.Push(slot);
    }
}
"""


@pytest.mark.parametrize(
    ("member", "problem"),
    [
        ("", None),
        ("int Idle => ;", "C# that was not understood at line 4; the rest was read"),
        ("int Busy { get { return @@; } }", "C# that was not understood at line 4; the rest was read"),
        ("int Left() => /* nothing yet */ 3;", None),
    ],
)
def test_what_is_stepped_over_is_listed_and_the_rest_is_judged(member: str, problem: str | None) -> None:
    found, problems = findings([module("pool.cs", POOL % member)])
    assert found == [("pool.cs", 7, "release-without-invalidation", "medium")]
    assert [(entry.reason, entry.kind, entry.span.start.line if entry.span else 0) for entry in problems] == (
        [] if problem is None else [(problem, "unread", 4)]
    )


def test_a_directive_inside_of_a_statement_is_no_gap() -> None:
    member = "int Left() => Of(\n#if DEBUG\n    1,\n#else\n    2,\n#endif\n    3);"
    found, problems = findings([module("pool.cs", POOL % member)])
    assert found == [("pool.cs", 13, "release-without-invalidation", "medium")]
    assert problems == []


def test_what_is_no_csharp_is_unread() -> None:
    found, problems = findings([module("pool.cs", "{{ template }}\n%% not C# at all")])
    assert found == []
    assert [(entry.reason, entry.kind) for entry in problems] == [("not valid C# at line 1", "unread")]
