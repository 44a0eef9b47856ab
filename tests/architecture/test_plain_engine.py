"""Floor 1 is plain Python: it imports in an interpreter that has no Django."""

from __future__ import annotations

import json
import subprocess
import sys

from tests.architecture.floors import ROOT, modules

SCRIPT = """
import importlib, json, sys

class Blocked:
    names = {"django", "rest_framework", "channels", "django_tasks", "knox", "environ"}
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in self.names:
            raise ImportError(f"{name} is blocked")

sys.meta_path.insert(0, Blocked())
for name in json.loads(sys.argv[1]):
    importlib.import_module(name)
print(json.dumps(sorted(sys.modules)))
"""
PLACES = ("workflows.spec", "workflows.engine")


def load(names: list[str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", SCRIPT, json.dumps(names)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)


def test_every_module_of_floor_one_imports_without_django() -> None:
    names = [name for name in modules() if any(name == place or name.startswith(f"{place}.") for place in PLACES)]
    assert len(names) > len(PLACES)
    finished = load(names)
    assert finished.returncode == 0, finished.stderr
    loaded = {name for name in json.loads(finished.stdout) if name in modules()}
    assert loaded - {"workflows"} == set(names)


def test_the_block_would_be_felt() -> None:
    finished = load(["workflows.models"])
    assert finished.returncode != 0
    assert "django" in finished.stderr
