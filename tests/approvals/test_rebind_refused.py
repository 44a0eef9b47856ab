"""Who may bind a request to its changed spec, and what cannot be bound: said why, and nothing changed (scenario 16)."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.contrib.auth.models import User

from approvals.errors import ActionChanged, ApprovalNotFound
from approvals.models import AuditEntry
from approvals.rebinding import rebind
from approvals.records import peek
from statestore.models import StateRecord
from tests.approvals.rebinding import INSERTED, PAY, calls, rewrite, the_request
from tests.fakes_tools import FakeTools
from tests.workbench import acting, key_of, to_pause
from workflows.errors import Invalid, NotAllowed, NotPossible
from workflows.models import Run, Status
from workflows.registry import SpecFile
from workflows.runs import newest

pytestmark = pytest.mark.django_db(transaction=True)


def test_the_permission_is_asked_before_any_look_up_and_the_starter_never_may(
    spec: SpecFile, tools: FakeTools, asha: User
) -> None:
    root = User.objects.create(username="root", is_superuser=True)
    _, key = to_pause(spec, actor=acting(root))
    rewrite(spec, ("[1, two]", "[1, three]"))
    unknown = "00000000-0000-4000-8000-000000000000"
    for one in (key, unknown):
        with pytest.raises(NotAllowed, match=r"approvals\.rebind is needed"):
            rebind(one, actor=acting(asha), reason="please")
    with pytest.raises(NotAllowed, match="whoever started the run"):
        rebind(key, actor=acting(root), reason="mine")
    with pytest.raises(ApprovalNotFound):
        rebind(unknown, actor=acting(root), reason="mine")
    assert not AuditEntry.objects.exists()


def test_a_reason_is_needed_and_a_stale_page_is_refused(spec: SpecFile, olga: User) -> None:
    _, key = to_pause(spec)
    rewrite(spec, ("[1, two]", "[1, three]"))
    with pytest.raises(Invalid, match="a reason is needed"):
        rebind(key, actor=acting(olga), reason="  ")
    with pytest.raises(ActionChanged):
        rebind(key, actor=acting(olga), reason="why", digest="1:other")


REFUSED: list[tuple[list[tuple[str, str]], str]] = [
    ([], "the spec did not change"),
    ([("approval: {", "requires_approval: false #{")], "the run would go on here without asking anybody"),
    ([("type: tool, tool: pay}", 'type: action, action: "Think"}')], "without asking anybody"),
    ([(PAY, PAY.replace("pay, type: tool, tool: pay", "pay, type: approval, mode: record"))], "only recorded"),
    ([("    - {step: pay,", INSERTED), ("draft.amount", "extra.amount")], "amount"),
    ([("id: clerk", "id: other")], "another agent now, other"),
    ([("version:", "nonsense:")], "no valid spec now"),
]


@pytest.mark.parametrize(("changes", "words"), REFUSED)
def test_what_cannot_be_bound_says_why_and_changes_nothing(
    spec: SpecFile, tools: FakeTools, olga: User, changes: list[tuple[str, str]], words: str
) -> None:
    run, key = to_pause(spec)
    rewrite(spec, *changes)
    before = (StateRecord.objects.get().value, the_request(key).revision)
    with pytest.raises(NotPossible) as refused:
        rebind(key, actor=acting(olga), reason="new version")
    assert words in refused.value.message
    assert "tok-canary" not in refused.value.message
    assert (StateRecord.objects.get().value, the_request(key).revision) == before
    assert newest(run).status == Status.AWAITING
    assert not AuditEntry.objects.exists()
    assert calls(tools) == ["/draft"]


def test_a_file_that_is_gone_or_a_request_that_is_only_recorded(tmp_path: Path, spec: SpecFile, olga: User) -> None:
    _, key = to_pause(spec)
    spec.path.unlink()
    with pytest.raises(NotPossible, match="its file is gone"):
        rebind(key, actor=acting(olga), reason="new version")
    assert peek(the_request(key)) is not None


def test_the_key_stays_and_the_request_is_the_one_of_the_run(spec: SpecFile, olga: User) -> None:
    run, key = to_pause(spec)
    rewrite(spec, ("[1, two]", "[1, three]"))
    rebind(key, actor=acting(olga), reason="three it is")
    assert key_of(Run.objects.get(pk=run.pk)) == key
    assert the_request(key).revision == 1
