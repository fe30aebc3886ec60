"""Templates: masking keeps every offset, and the little of the language that is evaluated says what Helm would say."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auditor.errors import ReadError
from auditor.model.spans import SourceFile
from auditor.syntax.go_eval import Chart, defines_of, evaluate
from auditor.syntax.go_templates import masked
from auditor.syntax.hcl import parse

PLACE = SourceFile("values.yaml", "x").span(0, 1)
VALUES = {
    name: (value, PLACE)
    for name, value in {
        "image.repository": "lmsysorg/sglang",
        "image.tag": "",
        "image.registry": "r.example",
        "global.registry": "",
        "engine.v": "0.5.19",
        "on": "true",
        "off": "false",
    }.items()
}
HELPERS = """
{{- define "img" -}}{{ .repository }}:{{ .tag | default "v0.5.18" }}{{- end -}}
{{- define "root" -}}{{ with .Values.image }}{{ .registry }}/{{ .repository }}{{ end }}{{- end -}}
{{- define "loop" -}}{{ include "loop" . }}{{- end -}}
"""


@pytest.mark.parametrize(
    ("template", "text"),
    [
        (
            "{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}",
            "lmsysorg/sglang:v0.5.19",
        ),
        ("{{ default .Chart.AppVersion .Values.image.tag | quote }}", "v0.5.19"),
        ('{{ printf "%s:v%s" .Values.image.repository (.Values.engine.v | toString) }}', "lmsysorg/sglang:v0.5.19"),
        ('{{ include "img" .Values.image }}', "lmsysorg/sglang:v0.5.18"),
        ('{{ include "img" (dict "repository" "a" "tag" .Values.engine.v) }}', "a:0.5.19"),
        ('{{ template "root" . }}', "r.example/lmsysorg/sglang"),
        ("{{ coalesce .Values.global.registry .Values.image.registry }}/x", "r.example/x"),
        ("{{ if .Values.on }}a{{ else }}b{{ end }}{{ if .Values.off }}c{{ else if .Values.on }}d{{ end }}", "ad"),
        ("{{- $t := .Values.engine.v -}}x:{{ $t }}", "x:0.5.19"),
        ("{{ $root.Values.engine.v }}", "0.5.19"),
        ("{{ .Values.none.x }}|{{ .Values.none | default `y` }}", "|y"),
        ('{{ ternary "a" "b" (eq .Values.engine.v "0.5.19") }}', "a"),
        ('{{ tpl "{{ .Values.engine.v }}" . }}', "0.5.19"),
    ],
)
def test_a_template_says_what_helm_would_say(template: str, text: str) -> None:
    chart = Chart(VALUES, {"AppVersion": ("v0.5.19", PLACE)}, defines_of(HELPERS))
    assert evaluate(template, chart).known == text


@pytest.mark.parametrize(
    "template",
    [
        "{{ .Release.Name }}",
        "{{ lookup `v1` `Pod` `` `` }}",
        '{{ include "missing" . }}',
        '{{ include "loop" . }}',
        "{{ range .Values.list }}x{{ end }}",
        "{{ .Values.image | toYaml }}",
    ],
)
def test_what_is_not_known_stays_unknown(template: str) -> None:
    chart = Chart(VALUES, {}, defines_of(HELPERS))
    assert evaluate(template, chart).known is None


PIECES = st.lists(
    st.sampled_from(
        ["{{", "}}", "{{-", "-}}", "{%", "%}", "<%", "%>", " if ", " end ", " else ", "define ", '"x"', "(", ")", "|",
         ".Values.a",
         "$x", ":=", "\n", "\r\n", "`", "/*", "*/", "a: ", "é", "include ", "with ", "range ", "<<", ">>"]
    ),
    max_size=30,
).map("".join)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(PIECES)
def test_masking_keeps_length_and_line_ends(text: str) -> None:
    result = masked(text)
    assert len(result) == len(text)
    assert all(result[index] == char for index, char in enumerate(text) if char in "\r\n")


@settings(max_examples=150, deadline=None)
@given(PIECES)
def test_any_template_ends(text: str) -> None:
    evaluate(text, Chart(VALUES, {}, defines_of(text)))


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            [*'{}[]()"=:,.?\n $#', "<<E\n", "E\n", "a", "b ", "for x in y : x", "${", "}", "1", "true", "//", "/*"]
        ),
        max_size=25,
    ).map("".join)
)
def test_any_hcl_is_read_or_refused(text: str) -> None:
    with suppress(ReadError):
        parse(SourceFile("x.tf", text))
