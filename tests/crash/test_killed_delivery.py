"""A delivery whose process is killed has started its run and is known, or neither: what is sent again gets one run."""

from __future__ import annotations

import pytest

from statestore.models import StateRecord
from tests.crash.conftest import Child, dies
from tests.workbench import work
from workflows.idempotency import Delivery
from workflows.models import Run, SpecVersion
from workflows.registry import SpecFile
from workflows.runs import Started, start_run
from workflows.webhooks import sender

pytestmark = pytest.mark.django_db(transaction=True)


def again(spec: SpecFile) -> Started:
    return start_run(spec, input="{}", actor=sender("clerk"), delivery=Delivery(key="msg_1", seconds=3600))


def keys() -> int:
    return StateRecord.objects.filter(key__startswith="hook:").count()


def test_between_the_key_and_the_run(spec: SpecFile, child: Child) -> None:
    dies(child("deliver", str(spec.path), "msg_1", faults="start.key_taken=kill"))
    assert not Run.objects.exists()
    assert not SpecVersion.objects.exists()
    assert keys() == 0
    first = again(spec)
    assert not first.repeated
    assert again(spec).run == first.run


def test_after_the_commit(spec: SpecFile, child: Child) -> None:
    dies(child("deliver", str(spec.path), "msg_1", faults="start.committed=kill"))
    run = Run.objects.get()
    second = again(spec)
    assert (second.repeated, second.run) == (True, run)
    assert keys() == 1
    work()
    assert Run.objects.get().status == "awaiting_approval"
