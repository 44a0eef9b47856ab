"""No recording of a tool call holds a secret, in whatever form a service repeats it."""

from __future__ import annotations

import json
import socket
import time
import tracemalloc
from base64 import b64decode, b64encode
from typing import Any, cast

import pytest

from tests.adapters.raw_server import RawServer, ok
from tests.adapters.recordings import Desk, post, request
from tests.fakes_tools import FakeTools
from workflows.engine.effects import HttpCall, ToolOutput
from workflows.engine.httpcall import RenderedRequest, build
from workflows.engine.redact import MARK, redact
from workflows.engine.references import author

SECRET = 'hum "ming/bird+é'


def bare(desk: Desk) -> str:
    """Everything that can be read in the one fixture."""
    content = desk.content()
    packed = b64decode(content["bodyRaw"]) if content["bodyFormat"] == "base64" else b""
    return desk.files()[0].read_text("utf-8") + str(content) + packed.decode("utf-8", "replace")


@pytest.mark.parametrize(
    "body",
    [
        json.dumps({"said": SECRET, SECRET: [SECRET]}).encode(),
        json.dumps({"said": SECRET}, ensure_ascii=False).encode(),
        ('{"said": "' + "".join(f"\\u{ord(character):04x}" for character in SECRET) + '"}').encode(),
        f"the text {SECRET}".encode(),
        b"\xff binary " + SECRET.encode() + b"\x00",
        SECRET.encode("utf-16"),
    ],
)
def test_a_secret_that_is_repeated_is_hidden(body: bytes, desk: Desk, tools: FakeTools) -> None:
    tools.script["GET /a"] = {"base64": b64encode(body).decode()}
    call = request(tools.url + "/a", secrets=frozenset([SECRET]), mode="text")
    desk.record(call)
    assert SECRET not in bare(desk)
    assert "ming" not in bare(desk).replace("\x00", "")
    assert "[REDACTED]" in bare(desk).replace("\x00", "")
    assert isinstance(desk.replay(call), ToolOutput)


def test_the_models_key_is_hidden_in_what_tools_send_and_are_told(desk: Desk, tools: FakeTools) -> None:
    tools.script["POST /a"] = {"json": "the model key"}
    desk.record(post(tools.url + "/a?k=model+key", b"a model key"))
    assert "model" not in bare(desk).replace("model_", "")
    assert desk.content()["url"] == tools.url + "/a?k=[REDACTED]"


@pytest.mark.parametrize("secret", ["12", "5", "true", "a", "100", '"', "{", ":", "[REDACTED]", "\\"])
def test_json_stays_json_whatever_a_secret_is(secret: str, desk: Desk, tools: FakeTools) -> None:
    tools.script["GET /x"] = {"text": '{"k": [512, 1e2, true, "a", "12"], "b:": {"{": "\\""}}'}
    call = request(tools.url + "/x", secrets=frozenset([secret]))
    desk.record(call)
    replayed = desk.replay(call)
    assert isinstance(replayed, ToolOutput), replayed
    items = cast(dict[str, Any], replayed.value)["k"]
    assert len(items) == 5
    assert items[1] == ("[REDACTED]" if secret == "100" else 100)
    assert items[0] == {"12": "5[REDACTED]", "5": "[REDACTED]12"}.get(secret, 512)
    assert desk.content()["body"] == json.loads(desk.content()["bodyRaw"]) == replayed.value


def test_what_a_recorded_mail_must_not_hold_is_taken_out_of_its_text(
    desk: Desk, tools: FakeTools, settings: Any
) -> None:
    settings.KAMPONG_GMAIL_API_URL = tools.mounted("https://gmail.googleapis.com")
    url = "https://gmail.googleapis.com/gmail/v1/users/me/messages/send"
    tools.script["POST /gmail/v1/users/me/messages/send"] = {"json": {"id": "m"}}

    def mail(text: str) -> HttpCall:
        raw = b64encode(f"To: a\r\n\r\n{text}".encode(), b"-_").rstrip(b"=").decode()
        return post(url, json.dumps({"raw": raw}).encode(), service="gmail", secrets=frozenset([SECRET]))

    assert desk.record(mail(f"it is {SECRET}")) == ToolOutput(value={"id": "m"})
    kept = json.loads(desk.content()["requestBody"])["raw"]
    assert b64decode(kept + "==", b"-_") == b"To: a\r\n\r\nit is [REDACTED]"
    assert desk.replay(mail("it is [REDACTED]")) == ToolOutput(value={"id": "m"})


def test_a_long_answer_full_of_escapes_is_recorded_in_seconds(desk: Desk, tools: FakeTools) -> None:
    """Each of its hundred thousand texts is looked through for each spelling of each secret."""
    said = [{"id": number, "path": f"C:\\{number}", "name": "somebody or other"} for number in range(50_000)]
    tools.script["GET /x"] = {"json": said}
    call = request(tools.url + "/x", secrets=frozenset([SECRET, "another one", "http://127.0.0.1:5000"]))
    before = time.process_time()
    desk.record(call)
    assert time.process_time() - before < 20
    assert desk.replay(call) == ToolOutput(value=said)


def test_a_password_in_the_address_is_hidden_as_it_is_sent(desk: Desk) -> None:
    def echo(connection: socket.socket, _: int) -> None:
        sent = server.requests[-1].partition(b"Authorization: ")[2].partition(b"\r\n")[0]
        connection.sendall(ok(b'{"sent": "' + sent + b'"}'))

    with RawServer(echo) as server:
        text = server.url.replace("http://", "http://clerk:${PASSWORD}@")
        tool = RenderedRequest(
            tool="t", method="GET", url=author(text), headers={}, query={}, body=None,
            mode="json", extract=None, failure_when=(), retry=None, pace=None,
        )  # fmt: skip
        outcome = desk.record(build(tool, {"PASSWORD": "humming"}, approved=False))
    packed = b64encode(b"clerk:humming").decode()
    assert outcome == ToolOutput(value={"sent": f"Basic {packed}"})
    assert desk.content()["body"] == {"sent": f"Basic {MARK}"}
    assert packed not in bare(desk)


def test_a_short_secret_that_occurs_everywhere_does_not_fill_the_memory() -> None:
    times = 100_000
    tracemalloc.start()
    try:
        hidden = redact("1" * times, ["1"])
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert hidden == MARK * times
    assert most < 60 * times, "the answer, and a little for each piece of it"
