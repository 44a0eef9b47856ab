"""The mail that Gmail is handed: MIME text to the letter, names and subjects as readers show them (semantics 15.2)."""

from __future__ import annotations

import base64
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workflows.engine import mail


def mime(to: str = "bo@example.org", subject: str = "Hello", body: str = "Hi") -> bytes:
    text = mail.raw(to=to, subject=subject, body=body)
    assert "=" not in text
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def read(**texts: str) -> Any:
    message = message_from_bytes(mime(**texts), policy=policy.default)
    assert isinstance(message, EmailMessage)
    return message


def test_an_ascii_mail_is_exactly_these_lines() -> None:
    assert mime(body="Dear café") == (
        b'To: bo@example.org\r\nSubject: Hello\r\nContent-Type: text/plain; charset="UTF-8"\r\n\r\nDear caf\xc3\xa9'
    )


def test_what_is_ascii_stands_as_it_is_whatever_it_looks_like() -> None:
    to, subject = '"Lim, A" <a@example.org>,b@example.org', "  =?utf-8?q?x?=\t${TOKEN} {{ y }} " + "long " * 300
    assert f"To: {to}\r\nSubject: {subject}\r\n".encode() in mime(to, subject)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_every_line_end_of_the_body_is_cr_lf(end: str) -> None:
    assert mime(body=f"a{end}{end}b{end}").endswith(b"\r\n\r\na\r\n\r\nb\r\n")


@pytest.mark.parametrize("subject", ["Grüße", " ü ", "日本語" * 60, "a" * 200 + "ü", "x  ü  y", "=?utf-8?q?x?= ü"])
def test_a_subject_that_is_not_ascii_is_read_as_it_was_meant(subject: str) -> None:
    head = mime(subject=subject).partition(b"\r\n\r\n")[0]
    assert head.isascii()
    assert all(len(line) <= 78 for line in head.split(b"\r\n"))
    assert read(subject=subject)["subject"] == subject


@given(st.text(st.characters(exclude_categories=("Cs", "Cc", "Zl", "Zp")), min_size=1))
def test_no_subject_makes_another_header_line(subject: str) -> None:
    head = mime(subject=subject).partition(b"\r\n\r\n")[0].replace(b"\r\n ", b" ")
    assert [line.partition(b":")[0] for line in head.split(b"\r\n")] == [b"To", b"Subject", b"Content-Type"]
    if not subject.isascii():
        assert read(subject=subject)["subject"] == subject


@pytest.mark.parametrize(
    ("to", "recipients"),
    [
        ("Bo Müller <bo@x.org>", [("Bo Müller", "bo@x.org")]),
        ('"Lim, Ä" <l@x.org>, a@b.c', [("Lim, Ä", "l@x.org"), ("", "a@b.c")]),
        ("Ann <a@x.org>,Ö<o@x.org>", [("Ann", "a@x.org"), ("Ö", "o@x.org")]),
    ],
)
def test_a_name_that_is_not_ascii_is_encoded_and_its_address_is_not(to: str, recipients: list[tuple[str, str]]) -> None:
    assert mime(to).partition(b"\r\nSubject")[0].isascii()
    assert [(one.display_name, one.addr_spec) for one in read(to=to)["to"].addresses] == recipients


@pytest.mark.parametrize("to", ["bö@x.org", "<bö@x.org>", 'Bo "the ü" M <b@x.org>', 'ü", <x', "ü < <", 'x"ü', "ü"])
def test_what_is_no_name_before_an_address_stays_as_it_is(to: str) -> None:
    assert mime(to).startswith(f"To: {to}\r\n".encode())


@pytest.mark.parametrize("character", [*"\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"])
def test_a_line_break_of_any_kind_is_a_problem_of_its_field(character: str) -> None:
    problem = mail.header_problem("to", f"a{character}Bcc: b")
    assert problem is not None
    assert '"to"' in problem
    assert "line break" in problem


def test_other_control_characters_are_named_by_their_code_and_a_tab_is_none_of_them() -> None:
    assert "U+0000" in (mail.header_problem("subject", "a\x00") or "")
    assert "U+0007" in (mail.header_problem("subject", "\x07") or "")
    assert mail.header_problem("subject", "a\tb ü 日") is None
    assert "NUL" in (mail.body_problem("a\x00") or "")
    assert mail.body_problem("a\r\n\u2028\x07") is None
