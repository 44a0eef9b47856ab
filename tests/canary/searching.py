"""Everything that anybody could see, kept by where it was seen, and the search through it."""

from __future__ import annotations

import html.parser
from collections.abc import Iterable
from typing import Any

import httpx2
from django.db import connection


class Seen:
    """All texts so far."""

    def __init__(self) -> None:
        self.texts: list[tuple[str, str]] = []

    def keep(self, where: str, text: str) -> str:
        """Remember it; handed on."""
        self.texts.append((where, text))
        return text

    def keep_answer(self, answer: httpx2.Response) -> None:
        """For every answer of a client, streams aside: status, headers and body."""
        if answer.headers.get("content-type", "").startswith("text/event-stream"):
            return
        answer.read()
        where = f"{answer.request.method} {answer.request.url.path}"
        self.keep(where, f"{answer.status_code} {dict(answer.headers)}\n{answer.text}")

    def keep_tables(self) -> int:
        """Every column of every row of every table; how many values."""
        before = len(self.texts)
        with connection.cursor() as cursor:
            for table in connection.introspection.table_names(cursor):
                cursor.execute(f"SELECT * FROM {connection.ops.quote_name(table)}")
                names = [column[0] for column in cursor.description or ()]
                for row in cursor.fetchall():
                    for name, value in zip(names, row, strict=True):
                        self.keep(f"table {table}.{name}", _as_text(value))
        return len(self.texts) - before

    def places_of(self, needles: Iterable[str], where: str = "") -> list[str]:
        """Where any of them was seen, in capitals or not, with what stands around it."""
        found = []
        for needle in needles:
            for place, text in self.texts:
                at = text.lower().find(needle.lower())
                if at >= 0 and place.startswith(where):
                    found.append(f"{place}: ...{text[max(0, at - 80) : at + 80]!r}...")
        return found


def _as_text(value: Any) -> str:
    return bytes(value).decode("latin-1") if isinstance(value, bytes | memoryview) else str(value)


class _Links(html.parser.HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.targets: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.targets += [target for name, target in attrs if name == "href" and target]


def crawl(client: httpx2.Client, start: str, most: int = 150) -> list[str]:
    """The admin's pages that links lead to, each read once; a page that fails fails the test."""
    waiting, read = [start], list[str]()
    while waiting and len(read) < most:
        path = waiting.pop(0)
        page = client.get(path, follow_redirects=True)
        assert page.status_code == 200, (path, page.status_code)
        read.append(path)
        links = _Links()
        links.feed(page.text)
        for target in links.targets:
            joined = page.url.join(target.partition("#")[0])
            place = joined.raw_path.decode()
            inside = joined.host == page.url.host and place.startswith("/admin/")
            if inside and "/logout" not in place and place not in read and place not in waiting:
                waiting.append(place)
    return read
