"""`GET /runs/<id>/events`: a run's events as they happen (engine semantics 18, design 5.2).

A plain async view: a stream holds a coroutine and no thread of its own, and asks the database only when it connects.
Frames carry `id: <run>/<number>`. First the state now, or with `Last-Event-ID` the events after that one. The stream
ends after the frame of a final status; whoever comes back with that frame's id is answered 204, which stops a browser.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from asgiref.sync import sync_to_async
from django.db import connections
from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.views.decorators.csrf import csrf_exempt
from rest_framework.exceptions import MethodNotAllowed

from workflows import reading, runs
from workflows.api.authentication import Caller, Standing, caller_of, need_permission, standing
from workflows.api.errors import failure_of, finished, to_response
from workflows.api.runviews import VIEW
from workflows.draining import draining
from workflows.engine import jsontext
from workflows.errors import Busy, Invalid, RunNotFound
from workflows.live import Closed, Item, Watch, tailer
from workflows.models import FINAL, Run

logger = logging.getLogger(__name__)

HEARTBEAT_SECONDS = 15.0
#: Items that a slow reader may lag behind before it has to connect again.
BACKLOG = 1000
HEADERS = {"Cache-Control": "no-cache, no-store", "X-Accel-Buffering": "no"}
METHODS = ("GET", "HEAD")
_FINAL_EVENTS = frozenset(status.value for status in FINAL)

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class _Plan:
    """`after`: the run and the number of the last event that the client has; None for a first connection."""

    run: Run
    after: tuple[Run, int] | None
    standing: Standing


@dataclass(frozen=True, kw_only=True)
class _Past:
    """What was there when the stream connected, and from where it goes on; `over` when nothing will follow."""

    frames: list[str]
    run_id: int
    position: int
    over: bool


@csrf_exempt  # asked by `caller_of`, of sessions only, and answered in our shape
async def run_events(request: HttpRequest, run_id: str) -> HttpResponseBase:
    """The stream, or an error in the one shape."""
    try:
        plan = await _apart(lambda: _prepare(request, run_id))
    except Exception as error:  # noqa: BLE001
        # The error table knows what to say to each, and logs what it does not know.
        refused = to_response(failure_of(error))
        refused.headers["Allow"] = ", ".join(METHODS)
        return refused
    if plan is None:
        return finished(HttpResponse(status=204))
    if request.method == "HEAD":
        return HttpResponse(content_type="text/event-stream", headers=HEADERS)
    return StreamingHttpResponse(_stream(plan), content_type="text/event-stream", headers=HEADERS)


async def _apart(work: Callable[[], T]) -> T:
    """Do it in a thread of the shared pool and give its connection back.

    The request's own thread lives as long as the stream: a connection opened there would be held for hours.
    """

    def whole() -> T:
        try:
            return work()
        finally:
            connections.close_all()

    return await sync_to_async(whole, thread_sensitive=False)()


def _prepare(request: HttpRequest, run_id: str) -> _Plan | None:
    """Who asks, for what, from where; None when the client has seen the end."""
    caller: Caller = caller_of(request)
    if request.method not in METHODS:
        raise MethodNotAllowed(request.method or "")
    need_permission(caller, VIEW)
    run = runs.find_run(run_id)
    if draining.is_set():
        raise Busy("the server is going away; connect again")
    after = _last_seen(request, run)
    if after is not None:
        seen, number = after
        if seen.status in FINAL and seen.resumed_as_id is None and number >= seen.last_event:
            return None
    return _Plan(run=run, after=after, standing=standing(caller, VIEW))


def _last_seen(request: HttpRequest, run: Run) -> tuple[Run, int] | None:
    """Which event the client saw last; Invalid for an id that no stream of this chain has sent."""
    given = request.headers.get("Last-Event-ID")
    if not given:
        return None
    uuid, _, number = given.partition("/")
    try:
        seen = runs.find_run(uuid, run.workspace)
    except RunNotFound:
        seen = None
    known = number.isascii() and number.isdigit() and len(number) < 10
    if seen is None or not known or seen.root_id_or_own != run.root_id_or_own or int(number) > seen.last_event:
        message = "not the id of an event of this run"
        raise Invalid(f"Last-Event-ID: {message}", [{"path": "Last-Event-ID", "message": message}])
    return seen, int(number)


# The past ----------------------------------------------------------------------------------------------------


def _past(plan: _Plan) -> _Past:
    return _state_now(plan.run) if plan.after is None else _since(*plan.after)


def _state_now(run: Run) -> _Past:
    """One frame with the state of the newest run."""
    tip = runs.newest(Run.objects.get(pk=run.pk))
    frames = list(reading.frames(tip))
    number = tip.last_event if tip.pruned_at is not None else frames[-1].number if frames else 0
    state = reading.own_state(tip) if not frames else frames[-1].state
    text = _frame(str(tip.uuid), number, {"type": "state", "state": state})
    return _Past(frames=[text], run_id=tip.pk, position=number, over=state["status"] in _FINAL_EVENTS)


def _since(seen: Run, number: int) -> _Past:
    """The events after the one that the client has, along the chain."""
    run, texts, last = Run.objects.get(pk=seen.pk), [], ""
    if run.pruned_at is not None:
        return _state_now(run)  # the events are gone; how it ended is told
    while True:
        for frame in reading.frames(run, after=number):
            number, last = frame.number, frame.state["status"]
            texts.append(_event_frame(str(run.uuid), frame))
        if run.resumed_as_id is None:
            return _Past(frames=texts, run_id=run.pk, position=number, over=last in _FINAL_EVENTS)
        run, number, last = Run.objects.get(pk=run.resumed_as_id), 0, ""


# The stream --------------------------------------------------------------------------------------------------


async def _stream(plan: _Plan) -> AsyncIterator[str]:
    try:
        past = await _apart(lambda: _past(plan))
    except Exception:
        # The headers are out: the client connects again, and is told then what is wrong.
        logger.exception("a stream could not read the run's past")
        return
    for text in past.frames:
        yield text
    if past.over:
        return
    loop, inbox = asyncio.get_running_loop(), asyncio.Queue[Item]()
    watch = Watch(run_id=past.run_id, position=past.position, standing=plan.standing, deliver=_into(inbox, loop))
    tailer.watch(watch)
    try:
        async for text in _news(inbox):
            yield text
    finally:
        tailer.leave(watch)


def _into(inbox: asyncio.Queue[Item], loop: asyncio.AbstractEventLoop) -> Callable[[Item], bool]:
    """Puts an item in the stream's inbox from another thread; False when the reader is gone or lags too far."""

    def deliver(item: Item) -> bool:
        room = inbox.qsize() < BACKLOG
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody reads
            loop.call_soon_threadsafe(inbox.put_nowait, item if room else Closed(reason="too slow; connect again"))
            return room
        return False

    return deliver


async def _news(inbox: asyncio.Queue[Item]) -> AsyncIterator[str]:
    while True:
        try:
            item = await asyncio.wait_for(inbox.get(), HEARTBEAT_SECONDS)
        except TimeoutError:
            yield ": still here\n\n"
            continue
        if isinstance(item, Closed):
            yield f": {item.reason}\n\n"
            return
        yield _event_frame(item.run_uuid, item.frame)
        if item.frame.state["status"] in _FINAL_EVENTS:
            return


def _event_frame(run_uuid: str, frame: reading.Frame) -> str:
    return _frame(run_uuid, frame.number, {"type": "event", "event": frame.event, "state": frame.state})


def _frame(run_uuid: str, number: int, content: dict[str, Any]) -> str:
    return f"id: {run_uuid}/{number}\ndata: {jsontext.dumps(content)}\n\n"
