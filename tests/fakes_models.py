"""A model server on loopback that speaks the wire formats of openai, openrouter, ollama and anthropic.

    with FakeModels({"draft": "Dear Ms Lim", "judge": {"result": {"ok": True}, "confidence": 0.9}}) as models:
        settings.KAMPONG_OPENAI_API_URL = models.openai_url      # or openrouter_url, anthropic_url; ollama: base_url
        ...
    assert models.count("draft") == 1

Answers are scripted by the step that the prompt names (`Step: NAME`). An answer is a text; `{result, confidence}`;
`{object: X}`; `{malformed: {problems, raw}}` (the raw text goes out as the structured answer); `{error: text}` (status
500 with that text); or a list, one entry a call. On the wire level: `{status: N, json | text}` answers with just that,
`{drop: true}` closes the connection without an answer, `{hang: seconds}` waits first, `{truncated: text}` says
that the answer hit the length limit. A call without an entry, or past the end of its list, is noted in `failures`.
`keep_alive` as for the tools.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from tests.fakes_tools import content_of

_STEP = re.compile(r"^Step: (.*)$", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Asked:
    """One question as it arrived. `structured` says whether an answer of a given shape was asked for."""

    step: str
    path: str
    headers: Mapping[str, str]
    body: Any
    system: str
    prompt: str
    structured: bool


class FakeModels:
    """A scripted server in threads of this process. Reach it from any process by `url`."""

    def __init__(self, answers: Mapping[str, Any] | None = None, *, port: int = 0, keep_alive: bool = True) -> None:
        self.keep_alive = keep_alive
        self.answers: dict[str, Any] = dict(answers or {})
        self.requests: list[Asked] = []
        self.failures: list[str] = []
        self.closing = threading.Event()
        self._lock = threading.Lock()
        self._counts: dict[str, int] = {}
        self._server = _Server(("127.0.0.1", port), _Handler)
        self._server.models = self
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """The server's address: the base_url of an ollama model block."""
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def anthropic_url(self) -> str:
        return self.url

    @property
    def openai_url(self) -> str:
        return f"{self.url}/v1"

    @property
    def openrouter_url(self) -> str:
        return f"{self.url}/api/v1"

    def count(self, step: str) -> int:
        """How often the step's model call was made."""
        with self._lock:
            return self._counts.get(step, 0)

    def counts(self) -> dict[str, int]:
        """The number of calls by step."""
        with self._lock:
            return dict(self._counts)

    def close(self) -> None:
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def take(self, asked: Asked) -> Any:
        """Record a question and take its answer from the script."""
        with self._lock:
            self.requests.append(asked)
            number = self._counts.get(asked.step, 0)
            self._counts[asked.step] = number + 1
            if asked.step not in self.answers:
                return self._fail(f"no answer is scripted for step {asked.step!r}")
            answers = self.answers[asked.step]
            if not isinstance(answers, list):
                return answers
            if number >= len(answers):
                return self._fail(f"call {number + 1} of step {asked.step!r} is past the end of its answers")
            return answers[number]

    def _fail(self, problem: str) -> Any:
        self.failures.append(problem)
        return {"status": 599, "text": problem}


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128
    models: FakeModels

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no news."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        models = self.server.models
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)))
        asked = _asked(self.path, dict(self.headers.items()), body)
        answer = models.take(asked)
        if isinstance(answer, Mapping) and "hang" in answer:
            models.closing.wait(answer["hang"])
            answer = {key: value for key, value in answer.items() if key != "hang"} or "late"
        if models.closing.is_set() or (isinstance(answer, Mapping) and "drop" in answer):
            self.close_connection = True
            return
        status, content, kind = _on_the_wire(asked, answer)
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        if not models.keep_alive:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing on stderr."""


def _asked(path: str, headers: dict[str, str], body: Any) -> Asked:
    messages = {message["role"]: message["content"] for message in body["messages"]}
    prompt = messages.get("user", "")
    step = _STEP.search(prompt)
    return Asked(
        step=step.group(1) if step else "",
        path=path,
        headers={name.lower(): value for name, value in headers.items()},
        body=body,
        system=body.get("system") or messages.get("system", ""),
        prompt=prompt,
        structured="tools" in body or "response_format" in body,
    )


def _on_the_wire(asked: Asked, answer: Any) -> tuple[int, bytes, str]:
    if isinstance(answer, Mapping):
        if "error" in answer:
            return 500, json.dumps({"error": {"message": answer["error"]}}).encode(), "application/json"
        if "status" in answer:
            content, kind = content_of(answer)
            return answer["status"], content, kind or "text/plain"
    finish = "length" if isinstance(answer, Mapping) and "truncated" in answer else "stop"
    said, text = _said(asked, answer)
    shape = _message if asked.path.endswith("/messages") else _completion
    return 200, json.dumps(shape(asked, said, text, finish)).encode(), "application/json"


def _said(asked: Asked, answer: Any) -> tuple[Any, str]:
    """The answer as a value for a structured question, and as text."""
    if not isinstance(answer, Mapping):
        return answer, answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)
    if "malformed" in answer:
        raw = answer["malformed"].get("raw")
        return raw, raw if isinstance(raw, str) else json.dumps(raw, ensure_ascii=False)
    if "truncated" in answer:
        return answer["truncated"], answer["truncated"]
    value = answer["object"] if "object" in answer else dict(answer)
    return value, json.dumps(value, ensure_ascii=False)


def _completion(asked: Asked, said: Any, text: str, finish: str) -> Any:
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if "tools" in asked.body and not (isinstance(said, str) and finish == "stop"):
        function = {"name": asked.body["tools"][0]["function"]["name"], "arguments": text}
        message = {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "call_1", "type": "function", "function": function}],
        }
    choice = {"index": 0, "message": message, "finish_reason": finish}
    return {"id": "chatcmpl-1", "object": "chat.completion", "model": asked.body["model"], "choices": [choice]}


def _message(asked: Asked, said: Any, text: str, finish: str) -> Any:
    block: dict[str, Any] = {"type": "text", "text": text}
    stop = "max_tokens" if finish == "length" else "end_turn"
    if "tools" in asked.body and not isinstance(said, str):
        block = {"type": "tool_use", "id": "toolu_1", "name": asked.body["tools"][0]["name"], "input": said}
        stop = "tool_use"
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": asked.body["model"],
        "content": [block],
        "stop_reason": stop,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }
