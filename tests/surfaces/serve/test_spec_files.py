"""Files are the source: what becomes of them is picked up by every process without a restart (design 5.4)."""

from __future__ import annotations

from pathlib import Path

import httpx2
import pytest

from approvals.models import ApprovalRequest
from tests.conftest import Clock, People, Processes
from tests.served import Served, until
from tests.surfaces.admin import unattended
from tests.triggers.scheduling import move, row, scheduled, started
from tests.triggers.timewalk import utc
from tests.workbench import ASKING
from workflows.models import Run, Status
from workflows.triggers.schedules import fire_due

pytestmark = pytest.mark.django_db(transaction=True)


def text(agent_id: str, question: str = "Go on") -> str:
    return ASKING.format(agent_id=agent_id).replace("Go on with", f"{question} with")


def replace(path: Path, content: str) -> None:
    """As an editor does it: a file beside it takes its place."""
    beside = path.with_suffix(".tmp")
    beside.write_text(content)
    beside.replace(path)


def start(api: httpx2.Client, agent_id: str) -> tuple[int, str]:
    """Ask for a run; the status, and the run's id or the code of the refusal."""
    answer = api.post("/runs", json={"agent": agent_id, "input": "it"})
    return answer.status_code, str(answer.json().get("id", answer.json().get("code")))


def test_web_and_worker_follow_the_files_while_runs_keep_the_text_they_began_with(
    tmp_path: Path, manage: Processes, people: People
) -> None:
    folder = tmp_path / "specs"
    folder.mkdir()
    clerk = folder / "clerk.yaml"
    clerk.write_text(text("clerk"))
    (folder / "good.yaml").write_text(text("good"))
    web = Served(manage, tmp_path, "--web-only", str(folder))
    with web.as_token(people.requester) as api:
        queued, first = start(api, "clerk")
        assert queued == 201
        clerk.write_text(text("clerk").replace("type: approval", "type: dance", 1))
        assert start(api, "clerk") == (503, "spec_broken")
        assert start(api, "good")[0] == 201
        (told,) = api.get("/readyz").json()["specs"]["broken"]
        assert (told["file"], told["agent"]) == ("clerk.yaml", "clerk")
        until(lambda: f"WARNING kampong.specs {clerk} is broken: 9:27: agent.workflow.0.type: " in web.said())

        out = (tmp_path / "worker.log").open("w")
        manage.start("worker", env={"KAMPONG_SPECS": str(folder)}, stdout=out, stderr=out)
        until(lambda: Run.objects.filter(status=Status.AWAITING).count() == 2)  # the broken one's too
        assert str(Run.objects.get(agent_id="clerk").uuid) == first

        replace(clerk, text("clerk", "Go further"))
        second = start(api, "clerk")
        assert second[0] == 201
        until(lambda: ApprovalRequest.objects.filter(run__uuid=second[1]).exists())
        with web.as_token(people.approver) as reader:
            messages = {one.run.agent_id + str(one.pk): reader.get(f"/approvals/{one.key}").json() for one in waiting()}
        assert sum("Go further with it" in str(message) for message in messages.values()) == 1
        assert sum("Go on with it" in str(message) for message in messages.values()) == 2

        (folder / "new.yaml").write_text(text("new"))
        assert start(api, "new")[0] == 201
        (folder / "new.yaml").rename(folder / "newer.yaml")
        assert start(api, "new")[0] == 201
        (folder / "newer.yaml").unlink()
        assert start(api, "new") == (503, "spec_broken")
        (folder / "double.yaml").write_text(text("good"))
        assert start(api, "good")[0] == 201
        assert [one["file"] for one in api.get("/readyz").json()["specs"]["broken"]] == ["good.yaml"]
    out.close()
    until(lambda: f"{clerk} is mended: agent clerk is served" in web.said())
    until(lambda: f"{clerk} is broken" in (tmp_path / "worker.log").read_text())
    assert web.trouble() == []


def waiting() -> list[ApprovalRequest]:
    return list(ApprovalRequest.objects.select_related("run").order_by("pk"))


def test_the_scheduler_starts_nothing_by_a_broken_file_and_makes_up_for_it_once_when_it_is_mended(
    tmp_path: Path, clock: Clock
) -> None:
    with unattended.served(tmp_path):
        path = scheduled(tmp_path, "*/10 * * * *").path
        good = path.read_text()
        move(clock, utc("2026-11-27 06:55"))
        assert fire_due() == 0
        path.write_text("version: [")
        move(clock, utc("2026-11-27 07:25"))
        assert (fire_due(), started()) == (0, [])
        replace(path, good)
        assert (fire_due(), fire_due()) == (1, 0)
        assert started() == [utc("2026-11-27 07:20")]
        path.unlink()
        move(clock, utc("2026-11-27 07:45"))
        assert fire_due() == 0
        assert row().due_at == utc("2026-11-27 07:30")
