"""Many runs are started through one door: each for what it could claim, none for what was taken."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.db import transaction

from tests.workbench import ASKING, work, write_spec
from workflows.actors import Actor
from workflows.errors import ModelUnavailable, TooLarge
from workflows.models import Run, SpecVersion, Status
from workflows.runs import INPUT_LIMIT, check_start, start_runs

pytestmark = pytest.mark.django_db(transaction=True)

ACTOR = Actor(label="poll of clerk", surface="poll")


def test_only_what_could_be_claimed_is_started_and_all_of_it_is_worked_on(tmp_path: Path) -> None:
    spec = write_spec(tmp_path, ASKING)
    asked: list[str] = []

    def take(run: Run) -> bool:
        asked.append(str(run.uuid))
        return len(asked) != 2

    with transaction.atomic():
        runs = start_runs(spec, ["a", {"b": 1}, [3]], actor=ACTOR, take=take)
    assert [str(run.uuid) for run in runs] == [asked[0], asked[2]]
    assert [run.input for run in Run.objects.order_by("id")] == ['"a"', "[3]"]
    assert SpecVersion.objects.get().hash == spec.hash
    assert work() == 2
    assert set(Run.objects.values_list("status", flat=True)) == {Status.AWAITING}


def test_where_nothing_could_be_claimed_nothing_is_written(tmp_path: Path) -> None:
    with transaction.atomic():
        assert start_runs(write_spec(tmp_path, ASKING), ["a"], actor=ACTOR, take=lambda run: False) == []
    assert not Run.objects.exists()
    assert not SpecVersion.objects.exists()


def test_an_item_that_is_too_large_takes_all_of_them_back(tmp_path: Path) -> None:
    spec = write_spec(tmp_path, ASKING)
    with pytest.raises(TooLarge), transaction.atomic():
        start_runs(spec, ["a", "x" * INPUT_LIMIT], actor=ACTOR, take=lambda run: True)
    assert not Run.objects.exists()


def test_what_could_not_start_is_known_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KEY_OF_MINE", raising=False)
    text = ASKING.replace("provider: ollama", 'provider: openai, api_key: "${{KEY_OF_MINE}}"')
    with pytest.raises(ModelUnavailable):
        check_start(write_spec(tmp_path, text), ACTOR)
