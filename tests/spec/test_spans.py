"""Where expressions stand in a text."""

from __future__ import annotations

import time

import pytest

from workflows.spec.spans import Span, parse


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", ()),
        ("plain", ("plain",)),
        ("Hi {{ input }}, {{trigger.n}}", ("Hi ", Span(" input "), ", ", Span("trigger.n"))),
        ("{{a}}{{b}}", (Span("a"), Span("b"))),
        ("{{ {'a':{'b':1}}.a }}", (Span(" {'a':{'b':1}}.a "),)),
        ("{{ 'a}}b' }}", (Span(" 'a}}b' "),)),
        ("{{ `a}}\\` }}!", (Span(" `a}}\\` "), "!")),
        ('{{ "say \\"hi }}\\"" }}', (Span(' "say \\"hi }}\\"" '),)),
        ("{{ input }} {{ open", (Span(" input "), " {{ open")),
        ("{{ 'never closed }} {{ x }}", ("{{ 'never closed }} {{ x }}",)),
        ("{{{ x }}}", (Span("{ x }"),)),
        ("{x} ${X} { { x } }", ("{x} ${X} { { x } }",)),
        ("}} {{ input }} }}", ("}} ", Span(" input "), " }}")),
        ("{{ a } b }}", (Span(" a } b "),)),
        ("{{ 'it\\'s }}' }}", (Span(" 'it\\'s }}' "),)),
        ("{{}}", (Span(""),)),
        ("{{ x }", ("{{ x }",)),
        ("{{ '\\", ("{{ '\\",)),
    ],
)
def test_it_finds_the_spans_and_keeps_the_rest(text: str, parts: tuple[str | Span, ...]) -> None:
    assert parse(text) == parts


def test_a_span_knows_its_line() -> None:
    assert [part.line for part in parse("{{ a }}\nb {{ c }}\n\n{{ d }}") if isinstance(part, Span)] == [1, 2, 4]


def test_a_text_of_many_spans_is_read_once_and_not_once_a_span() -> None:
    text = "\n" + "{{ 1 }}" * 120_000
    began = time.process_time()
    parts = parse(text)
    assert time.process_time() - began < 5  # a second or less; read once a span it takes over half a minute
    assert len(parts) == 120_001
    assert isinstance(parts[-1], Span)
    assert parts[-1].line == 2
