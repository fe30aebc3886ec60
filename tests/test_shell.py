"""Shell text: words with exact places, variables, arms, and the launches and references that commands make."""

from __future__ import annotations

import contextlib
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auditor.errors import ReadError
from auditor.launch.script import script_facts
from auditor.model.facts import EngineLaunch, ImageReference, PackageReference, Unresolved, Value
from auditor.model.spans import SourceFile
from auditor.syntax.mapped import piece_of
from auditor.syntax.shell_words import DOCKERFILE, KUBERNETES, MAKEFILE, SHELL, Dialect, commands, known

SERVE = "python -m sglang.launch_server"


def words(text: str, dialect: Dialect = SHELL) -> list[list[str]]:
    """The words of each command; a variable as the text that stands when nothing outside sets it, else as written."""
    source = SourceFile("x.sh", text)
    found = commands(piece_of(source), source, dialect)
    return [
        [known(word) if known(word) is not None else word.text for word in each.words] for each in found if each.words
    ]  # type: ignore[misc]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a 'b c' \"d e\" f\\ g", [["a", "b c", "d e", "f g"]]),
        ("a \\\r\n  b \\  \n  c\r\nd", [["a", "b", "c"], ["d"]]),
        ("a --x \\\n  # cut off here\n  --y", [["a", "--x"], ["--y"]]),
        ("a && b; c | d & e || f", [["a"], ["b"], ["c"], ["d"], ["e"], ["f"]]),
        ("a # no word\n# none\nb", [["a"], ["b"]]),
        ("pip install vllm>=0.13.3 sglang>=0.5.6", [["pip", "install", "vllm", "sglang"]]),
        ("a 2>&1 >>log <in", [["a"]]),
        ("X=${Y:-${Z:-z}}; a $X", [["a", "z"]]),
        ("X='p q'\na $X \"$X\"", [["a", "p", "q", "p q"]]),
        ("A=(p 'q r')\nA+=(s)\na \"${A[@]}\"", [["a", "p", "q r", "s"]]),
        ('A=()\na ${A[@]+"${A[@]}"} ${N:+--n "$N"}', [["a"]]),
        ('N=2\na ${N:+--n "$N"}', [["a", "--n", "2"]]),
        ("a ${X:?must be set} $1 $@", [["a", "${X:?must be set}", "$1", "$@"]]),
        ("a $((128 * 1024))", [["a", "131072"]]),
        ("N=4\na $((N * 2))", [["a", "8"]]),
        (": ${X:=d}\na $X", [[":", "d"], ["a", "d"]]),
        ("X=a\nX=\"$X b\"\nX+=' c'\nrun $X", [["run", "a", "b", "c"]]),
        ('X=1; if [ -n "${Y:-}" ]; then X=2; fi; a $X', [["[", "-n", "", "]"], ["a", "1"]]),
        ("if $Q; then X=1; else X=2; fi; a $X", [["$Q"], ["a", "2"]]),
        ("case ${M:-p} in p) X=1;; *) X=2;; esac; a $X", [["a", "1"]]),
        ("if $Q; then X=$1; fi; a ${X:-d}", [["$Q"], ["a", "d"]]),
        ("for t in 4 8; do a $t; done", [["a", "4"]]),
        ("cat <<'EOF' > f\nX $Y\nEOF\na", [["cat"], ["a"]]),
        ("a $(b c) `d`", [["b", "c"], ["d"], ["a", "$(b c)", "`d`"]]),
        ("f() { a; }\nfunction g { b\n}", [["a"], ["b"]]),
        ("a $'x\\ty' {{ v | default('w') }}", [["a", "x\ty", "w"]]),
    ],
)
def test_words_of_shell_text(text: str, expected: list[list[str]]) -> None:
    assert words(text) == expected


def test_other_dialects() -> None:
    assert words("a $(VAR)", KUBERNETES) == [["a", "$(VAR)"]]
    assert words("a $$X $(VAR) $$$$", MAKEFILE) == [["a", "$$X", "$(VAR)", "$$"]]
    assert words("a \\\n# dropped\n\n  b", DOCKERFILE) == [["a", "b"]]


def test_a_word_stands_where_its_text_is() -> None:
    source = SourceFile("x.sh", 'run \'a b\' "$X" c="d"\\\n  last\n')
    (command,) = commands(piece_of(source), source)
    assert [source.slice(word.span) for word in command.words] == ["run", "a b", "$X", 'c="d', "last"]


def facts(text: str) -> list[Any]:
    source = SourceFile("x.sh", text)
    kept = (EngineLaunch, ImageReference, PackageReference)
    return [fact for fact in script_facts(piece_of(source), source) if isinstance(fact, kept)]


def plain(value: Value | None) -> object:
    return value.text if isinstance(value, Unresolved) else value


def launches(text: str) -> list[tuple[str, dict[str, object], int]]:
    return [
        (fact.entrypoint, {name: plain(flag.value) for name, flag in fact.flags.items()}, fact.span.start.line)
        for fact in facts(text)
        if isinstance(fact, EngineLaunch)
    ]


@pytest.mark.parametrize(
    ("text", "flags"),
    [
        (f"{SERVE} --tp 8 --context-length=131072", {"tp-size": 8, "context-length": 131072}),
        (f"{SERVE} --tp 4 --tensor-parallel-size 8", {"tp-size": 8}),
        (f"{SERVE} --context-length 1M --max-total-tokens 1Mi", {"context-length": 10**6, "max-total-tokens": 2**20}),
        (f"{SERVE} --mem-frac .8 --trust-remote-code", {"mem-fraction-static": 0.8, "trust-remote-code": True}),
        (f"{SERVE} --cuda-graph-bs 1 2 4 --tp 2", {"cuda-graph-bs-decode": "1 2 4", "tp-size": 2}),
        (f"{SERVE} --tp $N", {"tp-size": "$N"}),
        (f"bash -lc 'cd /x && exec {SERVE} --tp 2'", {"tp-size": 2}),
        (f'ssh host "{SERVE} --tp 2"', {"tp-size": 2}),
        (f"CMD='{SERVE} --tp 2'\nCMD=\"$CMD --ep 4\"\neval $CMD", {"tp-size": 2, "ep-size": 4}),
        (f"CMD='{SERVE}'\n$CMD --tp 2 &", {"tp-size": 2}),
        (f'ARGS=({SERVE} --tp 2)\n"${{ARGS[@]}}"', {"tp-size": 2}),
        (f"docker run --gpus all -e A=b img {SERVE} --tp 2", {"tp-size": 2}),
        (f"nohup numactl -N 0 {SERVE} --tp 2 > log 2>&1 &", {"tp-size": 2}),
        ("sglang serve org/model --tp 2", {"model-path": "org/model", "tp-size": 2}),
        (f"srun bash <<EOF\n{SERVE} --tp 2\nEOF", {"tp-size": 2}),
        (f'sbatch --wrap="{SERVE} --tp 2"', {"tp-size": 2}),
    ],
)
def test_a_launch_is_read_in_any_form(text: str, flags: dict[str, object]) -> None:
    assert [found for _, found, _ in launches(text)] == [flags]


@pytest.mark.parametrize(
    "text",
    [
        f"# {SERVE} --tp 2",
        f"echo '{SERVE} --tp 2'",
        f'log_info "starting {SERVE} --tp 2"',
        f"pkill -f '{SERVE}'",
        f"git commit -m '{SERVE} --tp 2'",
        f"cat > notes.md <<EOF\n{SERVE} --tp 2\nEOF",
        f"{SERVE} --help",
        "python -m sglang_router.launch_router --worker-urls a b",
        "python -m sglang.bench_serving --backend sglang",
    ],
)
def test_what_starts_no_engine_is_no_launch(text: str) -> None:
    assert launches(text) == []


def test_the_projects_own_image_counts_under_any_name() -> None:
    text = (
        'REGISTRY_ADDR_SGLANG=${REGISTRY_ADDR_SGLANG:-"lmsysorg/sglang:latest"}\n'
        "ADDR=lmsysorg/sglang:v0.5.2\nexport ADDR\n"
        # another's name, prose, an address: no image where the name does not say so
        "BASE=acme/sglang:v0.5.3\nDOC='use lmsysorg/sglang:v0.5.4'\nURL=https://hub.docker.com/r/lmsysorg/sglang\n"
    )
    source = SourceFile("x.sh", text)
    found = [source.slice(fact.span) for fact in facts(text) if isinstance(fact, ImageReference)]
    assert found == ["lmsysorg/sglang:latest", "lmsysorg/sglang:v0.5.2"]


def test_references_of_a_script() -> None:
    text = (
        'IMAGE="${IMG:-lmsysorg/sglang:v0.5.9}"\n'
        'docker run -it --gpus \'"device=0,1"\' "$IMAGE" bash\n'
        "srun --container-image=docker://lmsysorg/sglang:v0.5.10 true\n"
        'uv pip install --system -U "sglang[all]==0.5.8"\n'
        "git clone https://github.com/sgl-project/sglang.git\ncd sglang\ngit checkout v0.5.7\n"
    )
    source = SourceFile("x.sh", text)
    assert [(type(fact).__name__, source.slice(fact.span)) for fact in facts(text)] == [
        ("ImageReference", "lmsysorg/sglang:v0.5.9"),
        ("ImageReference", "lmsysorg/sglang:v0.5.9"),
        ("ImageReference", "lmsysorg/sglang:v0.5.10"),
        ("PackageReference", "sglang[all]==0.5.8"),
        ("PackageReference", "https://github.com/sgl-project/sglang.git\ncd sglang\ngit checkout v0.5.7"),
    ]


def test_the_image_says_which_options_there_are() -> None:
    text = f"docker run lmsysorg/sglang:v0.5.22-cu129 {SERVE} --cuda-graph-max-bs 8 --tp 2 --context-len 1k"
    (launch,) = [fact for fact in facts(text) if isinstance(fact, EngineLaunch)]
    assert [(problem.spelling, problem.reason) for problem in launch.problems] == [
        (
            "--cuda-graph-max-bs",
            "`--cuda-graph-max-bs` is ambiguous in sglang 0.5.22: `--cuda-graph-max-bs-decode`, "
            "`--cuda-graph-max-bs-prefill`",
        )
    ]
    assert {name: flag.value for name, flag in launch.flags.items()} == {
        "cuda-graph-max-bs-decode": 8,
        "tp-size": 2,
        "context-length": 1000,
    }


def test_secrets_of_the_environment_are_not_kept() -> None:
    (launch,) = [
        fact
        for fact in facts(f"export HF_TOKEN=t SGLANG_X=1\n{SERVE} --api-key s3cret")
        if isinstance(fact, EngineLaunch)
    ]
    assert dict(launch.env).keys() == {"SGLANG_X"}
    assert "s3cret" not in str(launch.flags)


DEEP = [
    "$(",
    '"$(',
    "${a:-",
    "`",
    "(",
    "{ ",
    "if x; then ",
    "case x in ",
    "cat <<A\n",
    "A=(",
    "[[ ",
    "a@(",
    "f() {\n",
    "$((",
    "{{ ",
]


@pytest.mark.parametrize("piece", DEEP)
def test_deep_nesting_ends_soon(piece: str) -> None:
    began = time.process_time()
    source = SourceFile("x.sh", piece * 3000 + " sglang")
    with contextlib.suppress(ReadError):
        list(script_facts(piece_of(source), source))
    assert time.process_time() - began < 5


@pytest.mark.parametrize(
    "text",
    [
        "A0='a b'\n" + "".join(f'A{i + 1}="$A{i} $A{i}"\n' for i in range(80)) + "sglang $A80\n",
        "A0=(a b)\n"
        + "".join(f'A{i + 1}=("${{A{i}[@]}}" "${{A{i}[@]}}")\n' for i in range(60))
        + 'sglang "${A60[@]}"\n',
        'A="$A$A x"\n' * 200 + "sglang $A\n",
        'X="' + "sglang a " * 1000 + '"\n' + "run $X\n" * 200,
    ],
    ids=["doubled-text", "doubled-array", "itself", "used-often"],
)
def test_expansion_is_bounded(text: str) -> None:
    began = time.process_time()
    source = SourceFile("x.sh", text)
    list(script_facts(piece_of(source), source))
    assert time.process_time() - began < 8


PIECES = r"""a sglang ' " $X ${X:- } $( ) ( ` # ; && | X= X+= A=( ;; { } ${A[@]} ] {{ }} é -c"""
STARTS = ["if ", "then ", "fi ", "else ", "case ", "esac ", "for ", "do ", "done ", "[ ", "pip install ", "docker run "]
BREAKS = [" ", "\n", "\\\n", "\r\n", "<<E\n", "E\n", "bash -c ", "python -m sglang.launch_server ", "--tp "]
ALPHABET = st.lists(st.sampled_from([*PIECES.split(), *STARTS, *BREAKS]), max_size=40).map("".join)


@settings(deadline=None, max_examples=150)
@given(text=ALPHABET)
def test_any_text_gives_words_inside_of_it(text: str) -> None:
    source = SourceFile("x.sh", text)
    for dialect in (SHELL, DOCKERFILE, KUBERNETES, MAKEFILE):
        for command in commands(piece_of(source), source, dialect):
            for word in command.words:
                assert 0 <= word.span.start.offset <= word.span.end.offset <= len(text)
                for fragment in word.fragments:
                    assert fragment.text == "".join(text[offset] for offset in fragment.offsets)
    for fact in script_facts(piece_of(source), source):
        assert fact.span.end.offset <= len(text)
