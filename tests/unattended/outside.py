"""The demo's service as a process of its own: what it was told and did survives it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx2

from tests.conftest import ROOT
from tests.demo.starting import free_ports
from tests.served import until

SERVICE = ROOT / "examples" / "demo" / "service.py"
#: Where the examples reach it beside `make demo`.
ADDRESS = "127.0.0.1:8787"
#: What the tests themselves tell the services, and what changes nothing.
_NO_RUN = ("GET ", "POST /service/orders", "POST /service/market", "POST /v1/")


class Outside:
    """Running. `told()` is what each of its services did, by its own count."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_ports(1)[0]
        self.url = f"http://127.0.0.1:{self.port}"
        self._client = httpx2.Client(base_url=self.url, timeout=30)
        self.start()

    def start(self, slow: float = 0) -> None:
        """Go on with what an earlier process kept. So many seconds pass between what a call does and its answer."""
        words = ["--port", str(self.port), "--calls", str(self.folder / "calls"), "--slow", str(slow)]
        with (self.folder / "service.err").open("a") as err:
            self.process = subprocess.Popen([sys.executable, str(SERVICE), *words], stderr=err)
        until(self._answers, 30)

    def kill(self) -> None:
        """As `kill -9`."""
        self.process.kill()
        self.process.wait(30)

    def close(self) -> None:
        """Leave nothing behind."""
        self._client.close()
        self.kill()

    def told(self) -> Any:
        """What was done, for each ticket, incident, order and line."""
        return self._client.get("/counts").json()

    def calls(self) -> dict[str, int]:
        """How often each route was called, without those that were not."""
        counts = self._client.get("/").json()["calls"]
        return {route: count for route, count in counts.items() if count}

    def changes(self) -> int:
        """How many calls of runs came that change something."""
        return sum(count for route, count in self.calls().items() if not route.startswith(_NO_RUN))

    def ticket(self, name: str) -> Any:
        """What was written on a ticket."""
        return self._client.get(f"/service/tickets/{name}").json()

    def tell(self, path: str, body: Any) -> Any:
        """What anybody outside may do: place an order, move a price."""
        answer = self._client.post(f"/service/{path}", json=body)
        assert answer.status_code == 201, answer.text
        return answer.json()

    def example(self, name: str) -> Path:
        """A folder with the example in it, nothing changed but the port of the service."""
        folder = self.folder / "specs"
        folder.mkdir(exist_ok=True)
        text = (ROOT / "examples" / name).read_text(encoding="utf-8")
        assert ADDRESS in text
        (folder / name).write_text(text.replace(ADDRESS, f"127.0.0.1:{self.port}"), encoding="utf-8")
        return folder

    def _answers(self) -> bool:
        try:
            return self._client.get("/").status_code == 200
        except httpx2.TransportError:
            assert self.process.poll() is None, (self.folder / "service.err").read_text()
            return False
