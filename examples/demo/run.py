"""`make demo`: the examples, a service for them to call, the server, and one run that waits for you.

DEMO_PORT and DEMO_SERVICE_PORT choose other ports than 8080 and 8787. Nothing outside this machine is contacted.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from pathlib import Path
from types import FrameType

from children import Children, ends_with_parent
from server import Refused, Server, Waiting

ROOT = Path(__file__).resolve().parents[2]
STATE = ROOT / ".kampong"
EXAMPLES = ROOT / "examples"
KEPT = STATE / "demo.json"
PORT, SERVICE_PORT = 8080, 8787
_START_SECONDS = 60.0
_STOP_SECONDS = 10.0


class Stop(Exception):
    """The demo cannot go on; the text says why and what to do."""


class Ended(BaseException):
    """Somebody asked the demo to end."""


class Signals:
    """The first Ctrl-C, SIGTERM or SIGHUP raises Ended where the demo stands; the next one kills what is left."""

    def __init__(self, children: Children) -> None:
        self._children = children
        self._ending = False
        signal.signal(signal.SIGINT, self._handle)
        signal.signal(signal.SIGTERM, self._handle)
        if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # as `nohup` wants it
            signal.signal(signal.SIGHUP, self._handle)

    def ending(self) -> None:
        """From here on a signal means: at once."""
        self._ending = True

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self._ending:
            self._children.kill()
            return
        self._ending = True
        raise Ended


def say(line: str) -> None:
    print(line, flush=True)


def port_named(variable: str, default: int) -> int:
    """The port in this variable of the environment."""
    text = os.environ.get(variable) or str(default)
    if not text.isdecimal() or not 0 < int(text) < 65536:
        raise Stop(f"{variable} is {text!r}; a port is a number from 1 to 65535.")
    return int(text)


def is_free(port: int) -> bool:
    """Whether nothing listens on this port of the loopback address."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
            probe.listen(1)
        except OSError:
            return False
    return True


def check_ports(port: int, service_port: int) -> None:
    """Stop with the next move when one of them cannot be had."""
    if port == service_port:
        raise Stop(f"DEMO_PORT and DEMO_SERVICE_PORT are both {port}; give them two numbers.")
    problems = []
    other_port, other_service = port, service_port
    if not is_free(service_port):
        other_service = free_port(service_port, {port})
        problems.append(
            f"Port {service_port} is in use, and the examples call their service there. Perhaps another `make demo` "
            f"runs: stop it. Or take another port (the demo then serves copies of the examples that call that one):"
        )
    if not is_free(port):
        other_port = free_port(port, {other_service})
        problems.append(f"Port {port} is in use. Stop what uses it, or take another one:")
    if problems:
        raise Stop("\n".join([*problems, f"  {again(other_port, other_service)}"]))


def free_port(after: int, other_than: set[int]) -> int:
    """The next port that can be had; the next number if there is none."""
    later = range(after + 1, min(after + 100, 65536))
    return next((port for port in later if port not in other_than and is_free(port)), after + 1)


def again(port: int, service_port: int) -> str:
    """The line that starts the demo on these ports."""
    words = [f"DEMO_PORT={port}"] if port != PORT else []
    words += [f"DEMO_SERVICE_PORT={service_port}"] if service_port != SERVICE_PORT else []
    return " ".join([*words, "make demo"])


def specs_for(service_port: int) -> Path:
    """The folder of specs to serve: the examples, or copies of them that call the service on another port."""
    if service_port == SERVICE_PORT:
        return EXAMPLES
    folder = STATE / "demo-specs"
    folder.mkdir(exist_ok=True)
    for example in sorted(EXAMPLES.glob("*.yaml")):
        text = example.read_text(encoding="utf-8")
        copy = text.replace(f"127.0.0.1:{SERVICE_PORT}", f"127.0.0.1:{service_port}")
        (folder / example.name).write_text(copy, encoding="utf-8")
    return folder


def wait_until_ready(server: Server, children: Children) -> None:
    """Until the server has migrated the database and a worker is at work."""
    until = time.monotonic() + _START_SECONDS
    while not server.is_ready():
        if ended := children.ended():
            raise Stop(f"{ended} What it said stands above.")
        if time.monotonic() > until:
            raise Stop(f"The server was not ready within {_START_SECONDS:.0f} s.")
        time.sleep(0.05)


def waiting_run(server: Server, token: str) -> Waiting:
    """What waits from an earlier start, or a run started now."""
    found = server.first_waiting(token)
    if found is None:
        say("starting a run that will wait for you ...")
        found = server.start_first_run(token)
    return found


def demo(children: Children) -> None:
    """Start everything, say what to try, and stay until something ends."""
    port, service_port = port_named("DEMO_PORT", PORT), port_named("DEMO_SERVICE_PORT", SERVICE_PORT)
    check_ports(port, service_port)
    STATE.mkdir(exist_ok=True)
    specs = specs_for(service_port)
    say("starting the service that the examples call ...")
    here = Path(__file__).parent
    calls = str(STATE / "demo-calls")
    children.start("service", str(here / "service.py"), "--port", str(service_port), "--calls", calls)
    say("starting Kampong: database, web, workers ...")
    words = ("manage.py", "serve", str(specs), "--port", str(port))
    drain = os.environ.get("KAMPONG_DRAIN_SECONDS", "5")
    # The demo's own service stands for Slack, whatever this shell has.
    slack = {"KAMPONG_SLACK_API_URL": f"http://127.0.0.1:{service_port}/slack", "SLACK_BOT_TOKEN": "demo"}
    process = children.start("server", *words, env={"KAMPONG_DRAIN_SECONDS": drain, **slack})
    prepare_django()
    from account import ready  # it needs Django, which is prepared while the server starts
    from guide import Guide

    server = Server(port)
    wait_until_ready(server, children)
    account = ready(KEPT)
    guide = Guide(
        port=port,
        service_port=service_port,
        account=account,
        waiting=waiting_run(server, account.token),
        specs=specs,
        kept=KEPT,
        server_pid=process.pid,
    )
    say("\n" + guide.text())
    while (ended := children.ended()) is None:
        time.sleep(0.2)
    raise Stop(f"{ended} What waits is stored: `make demo` goes on from there.")


def prepare_django() -> None:
    """Make the project's models usable here."""
    sys.path.insert(0, str(ROOT))
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kampong.settings")
    import django

    django.setup()


def main() -> int:
    os.chdir(ROOT)
    if "MAKELEVEL" in os.environ:
        ends_with_parent(os.getppid())()  # `make` may be killed as well
    children = Children(ROOT)
    signals = Signals(children)
    code = 0
    try:
        demo(children)
    except Ended:
        say("\nStopping ...")
    except (Stop, Refused) as problem:
        print(f"\n{problem}", file=sys.stderr, flush=True)
        code = 1
    finally:
        signals.ending()
        children.end(_STOP_SECONDS)
    if code == 0:
        say("Stopped. What waits is stored: `make demo` goes on from there.")
    return code


if __name__ == "__main__":
    sys.exit(main())
