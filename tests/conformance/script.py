"""The script of a persisted case: start, restart, resolve by key, look at records, on the database under test.

After `restart` nothing in memory is left: every later decision, and the work behind it, happens in a fresh process
that finds the store and the spec file. Over HTTP (`surface: serve`) the caches are dropped and the workers are new.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

from django.contrib.auth.models import User
from django.db import connection

from approvals.narrowing import Narrowing
from approvals.queue import waiting
from approvals.services import decide_run
from statestore.models import StateRecord
from tests.conformance import in_memory
from tests.conformance.cases import HEAD, known
from tests.conformance.deciding import FreshProcesses, decide_and_work
from tests.conformance.expectations import Outcome
from tests.conformance.matching import CaseError, Unmet
from tests.conformance.scriptexpectations import Found, check_act, check_last
from tests.conformance.service import Service, forget
from tests.conformance.stage import Stage
from tests.conftest import Clock
from tests.workbench import STARTER, acting, work
from workflows import reading
from workflows.errors import Refusal
from workflows.models import Run
from workflows.registry import read_spec
from workflows.runs import find_run, start_run

INPUTS: Final = HEAD | {"spec", "input", "trigger", "vars", "env", "model", "http", "clock", "surface", "script"}
Act: TypeAlias = Mapping[str, Any]


class Script:
    """Plays the acts of one case. `elsewhere` decides in other processes; `service` is there for cases over HTTP."""

    def __init__(
        self,
        stage: Stage,
        folder: Path,
        user: User,
        clock: Clock,
        elsewhere: FreshProcesses,
        service: Service | None = None,
    ) -> None:
        known(stage.case["id"], stage.case, INPUTS)
        if stage.tells:
            raise CaseError("what a client reports cannot be told to other processes")
        self._stage = stage
        self._user = user
        self._clock = clock
        self._elsewhere = elsewhere
        self._service = service
        self._names: dict[str, str] = service.names if service else {}
        self._file = folder / "spec.yaml"
        self._file.write_text(stage.spec, encoding="utf-8")
        self._workflow: str | None = None
        self._restarted = False
        self._started: Run | None = None
        self._last: Run | None = None
        self._left_open: Outcome | None = None

    def play(self) -> None:
        """All acts in order, each checked; then what the case expects of the whole."""
        for number, act in enumerate(self._stage.case["script"]):
            where = f"script[{number}] {act['do']}"
            known(where, [act["do"]], _ACTS)
            do, keys = _ACTS[act["do"]]
            known(where, act, keys | {"do", "expect"})
            check_act(where, act.get("expect") or {}, do(self, act), self._names)
        check_last(self._stage.case["expect"], self._outcome())
        self._stage.surprises()

    # Acts ------------------------------------------------------------------------------------------------------

    def start(self, act: Act) -> Found:
        if not act.get("persist", True):
            return self._start_in_memory()
        if self._service:
            return self._start_over_http(self._service)
        case = self._stage.case
        trigger = in_memory.situation_of(case).trigger
        started = start_run(
            read_spec(self._file),
            input=case["input"],
            actor=STARTER,
            headers=trigger.headers,
            body=trigger.body,
            overrides=case.get("vars"),
        )
        work()
        self._started = started.run
        return self._saw(started.run)

    def _start_in_memory(self) -> Found:
        """Persisting is off: the run must not so much as look at the database."""

        def refuse(*_: Any) -> Any:
            raise Unmet("a run that persists nothing used the database")

        with connection.execute_wrapper(refuse):
            self._left_open = in_memory.run(self._stage, in_memory.Decisions([]))
        return Found(state=self._left_open.state)

    def _start_over_http(self, service: Service) -> Found:
        line = {"call": "POST /webhook", "headers": {"content-type": "text/plain"}, "raw": self._stage.case["input"]}
        first_id = service.call("start", line).body["id"]
        service.names["first_id"] = first_id
        service.call("start", {"call": "GET /runs/{first_id}", "until_status": "awaiting_approval"})
        return self._saw(find_run(first_id))

    def restart(self, act: Act) -> Found:
        if self._service:
            self._service.restart()
        forget()
        self._restarted = True
        return Found()

    def resolve(self, act: Act) -> Found:
        return self._resolved(act, self._elsewhere.decide if self._restarted else decide_and_work)

    def resolve_in_other_process(self, act: Act) -> Found:
        return self._resolved(act, self._elsewhere.decide)

    def resume_in_process(self, act: Act) -> Found:
        """With the run object of start in hand: on a persisted run that is a decision like any other."""
        if self._started is None or self._restarted:
            raise CaseError("there is no run object of start in this process")
        try:
            outcome = decide_run(self._started, approved=act["approved"], actor=acting(self._user))
        except Refusal as refusal:
            return Found(refused=refusal.code)
        work()
        return self._saw(outcome.run)

    def edit_spec(self, act: Act) -> Found:
        old, new = act["replace"]
        text = self._file.read_text(encoding="utf-8")
        if text.count(old) != 1:
            raise CaseError(f"the spec does not hold {old!r} once")
        self._file.write_text(text.replace(old, new), encoding="utf-8")
        return Found()

    def advance(self, act: Act) -> Found:
        self._clock.advance(act["seconds"])
        return Found()

    def list_waiting(self, act: Act) -> Found:
        return Found(keys=[item["key"] for item in waiting(by=Narrowing(agent=self._workflow or "")).items])

    def check_record(self, act: Act) -> Found:
        key = f"approval:{self._names[act['key']]}"
        return Found(record=StateRecord.objects.get(key=key).value)

    def as_workflow(self, act: Act) -> Found:
        self._workflow = act["id"]
        return Found()

    def http(self, act: Act) -> Found:
        if self._service is None:
            raise CaseError("`http` needs `surface: serve`")
        return Found(answer=self._service.call("http", {key: act[key] for key in act if key not in ("do", "expect")}))

    # Beneath ---------------------------------------------------------------------------------------------------

    def _resolved(self, act: Act, decide: Callable[..., dict[str, Any]]) -> Found:
        key = self._names.get(act["key"], act["key"])
        result = decide(
            key,
            approved=act["approved"],
            user=self._user.username,
            reason=act.get("reason"),
            agent_id=self._workflow,
        )
        if result["code"] != "ok":
            return Found(result=result)
        return self._saw(find_run(result["run"]), result)

    def _saw(self, run: Run, result: Mapping[str, Any] | None = None) -> Found:
        """This run is the last one now; the first key of the case is `k1`."""
        self._last = run
        state = reading.run_state(run)
        if "pendingApproval" in state:
            self._names.setdefault("k1", state["pendingApproval"]["key"])
        return Found(state=state, result=result or {"code": "ok", "http": 200})

    def _outcome(self) -> Outcome:
        if self._left_open is not None:
            return self._left_open
        frames = list(reading.frames(self._last)) if self._last is not None else []
        return Outcome(
            state=reading.run_state(self._last) if self._last is not None else {},
            events=tuple(frame.event for frame in frames),
            requests=tuple(self._stage.tools.requests),
            questions=tuple(self._stage.models.requests),
        )


_DECISION: Final = {"key", "approved", "reason", "via"}
#: Each act, and what it may be given.
_ACTS: Final[Mapping[str, tuple[Callable[[Script, Act], Found], set[str]]]] = {
    "start": (Script.start, {"persist"}),
    "restart": (Script.restart, set()),
    "resolve": (Script.resolve, _DECISION),
    "resolve_in_other_process": (Script.resolve_in_other_process, _DECISION),
    "resume_in_process": (Script.resume_in_process, {"approved"}),
    "edit_spec": (Script.edit_spec, {"replace"}),
    "advance": (Script.advance, {"seconds"}),
    "list": (Script.list_waiting, set()),
    "check_record": (Script.check_record, {"key"}),
    "as_workflow": (Script.as_workflow, {"id"}),
    "http": (Script.http, {"call", "headers", "json", "raw"}),
}
