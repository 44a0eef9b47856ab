"""Writes `.importlinter` out of the floors' table: `python -m tests.architecture.contract`.

import-linter refuses a package and its child as two layers, and does not look at what is not listed. So the list is
flat: the leaves directly below `workflows` and `approvals`, and the packages that lie on one floor as a whole.
"""

from __future__ import annotations

from itertools import groupby

from tests.architecture.floors import EMPTY, PACKAGES, ROOT, floor, modules

CONTRACT = ROOT / ".importlinter"
HEAD = """# Written by `make format` from tests/architecture/floors.py; a test keeps the two equal.
[importlinter]
root_packages =
{packages}
include_external_packages = True

[importlinter:contract:floors]
name = A module imports its own floor or a lower one
type = layers
layers =
{layers}

[importlinter:contract:plain-engine]
name = The spec and the engine know no framework
type = forbidden
source_modules =
    workflows.engine
    workflows.spec
forbidden_modules =
    asgiref
    channels
    django
    django_tasks
    httpx2
    psycopg
    rest_framework
    statestore
"""


def leaves() -> list[str]:
    """The packages and modules that each lie on one floor as a whole, none inside another."""
    whole = [package for package in PACKAGES if package not in EMPTY]
    return whole + [name for name in modules() if name.count(".") == 1 and name.split(".")[0] in EMPTY]


def contract() -> str:
    """The file's text. A colon joins the places of one floor, which may import each other."""
    by_height = sorted(leaves(), key=lambda name: (-floor(name), name))
    layers = ["    " + " : ".join(group) for _, group in groupby(by_height, key=floor)]
    return HEAD.format(packages="\n".join(f"    {name}" for name in PACKAGES), layers="\n".join(layers))


if __name__ == "__main__":
    CONTRACT.write_text(contract(), encoding="utf-8")
