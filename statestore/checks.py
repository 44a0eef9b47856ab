"""System checks of the database: what is configured, and what the live connection says (design 4).

Settings are checked on every start; the live connection with `check --database default` and before each migration.
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from statestore.conf import PREFIX, table, value

ENGINE = "statestore.sqlite"
SQLITE_ENGINES = {"django.db.backends.sqlite3", ENGINE}
MIN_SQLITE = (3, 35)
MIN_POSTGRES = 14
#: What Django reads beside OPTIONS; anything else in a database's settings is ignored in silence.
KNOWN = {
    "ENGINE", "NAME", "USER", "PASSWORD", "HOST", "PORT", "OPTIONS", "TEST", "TIME_ZONE", "CONN_MAX_AGE",
    "CONN_HEALTH_CHECKS", "AUTOCOMMIT", "ATOMIC_REQUESTS", "DISABLE_SERVER_SIDE_CURSORS",
}  # fmt: skip
SYNCHRONOUS = {"NORMAL": 1, "FULL": 2}
MIN_BUSY_MILLISECONDS = 5000
_LIVE_PRAGMAS = ("journal_mode", "synchronous", "busy_timeout", "foreign_keys")


def register_all() -> None:
    """Called once, from the app's `ready`."""
    register(check_settings)
    register(check_connection, Tags.database)


def check_settings(app_configs: Any = None, **kwargs: Any) -> list[CheckMessage]:
    """The configured databases: engine, misplaced options, transactions, time."""
    found: list[CheckMessage] = []
    for alias, config in settings.DATABASES.items():
        found += _check_database(f"DATABASES[{alias!r}]", config)
    if not settings.USE_TZ:
        found.append(
            Error(
                "USE_TZ is off, so stored times name no instant.",
                hint="Set USE_TZ = True; expiry and leases compare instants.",
                id="statestore.E004",
            )
        )
    chosen = value("KAMPONG_SQLITE_SYNCHRONOUS")
    if chosen not in SYNCHRONOUS:
        found.append(
            Error(
                f"KAMPONG_SQLITE_SYNCHRONOUS is {chosen!r}.",
                hint="Use FULL (a decision survives power loss) or NORMAL (it survives a crash of the process).",
                id="statestore.E005",
            )
        )
    return found + _unknown_settings()


def _unknown_settings() -> list[CheckMessage]:
    """A misspelt name in a settings module changes nothing, in silence."""
    known = {row.name for row in table()}
    return [
        Error(
            f"{name} is not a setting of Kampong.",
            hint=f"Did you mean {near[0]}?" if (near := get_close_matches(name, known, n=1)) else "Remove it.",
            id="statestore.E007",
        )
        for name in sorted(dir(settings))
        if name.startswith(PREFIX) and name not in known
    ]


def _check_database(where: str, config: dict[str, Any]) -> list[CheckMessage]:
    found: list[CheckMessage] = []
    sqlite = config.get("ENGINE") in SQLITE_ENGINES
    if sqlite and config["ENGINE"] != ENGINE:
        found.append(
            Error(
                f"{where} uses {config['ENGINE']}, which starves concurrent writers.",
                hint=f'Set "ENGINE": "{ENGINE}".',
                id="statestore.E001",
            )
        )
    misplaced = sorted(set(config) - KNOWN)
    if misplaced:
        found.append(
            Error(
                f"{where}: Django does not read {', '.join(misplaced)} there.",
                hint='Move them into "OPTIONS".',
                id="statestore.E002",
            )
        )
    if config.get("ATOMIC_REQUESTS") or not config.get("AUTOCOMMIT", True):
        found.append(
            Error(
                f"{where}: ATOMIC_REQUESTS is on or AUTOCOMMIT is off.",
                hint="Leave both at Django's defaults: a request that waits for a run must not hold a transaction.",
                id="statestore.E003",
            )
        )
    if sqlite and config.get("TIME_ZONE") not in {None, "UTC"}:
        found.append(
            Error(
                f"{where}: TIME_ZONE is {config['TIME_ZONE']}.",
                hint="Remove it: SQLite compares times as text, which is only right in UTC.",
                id="statestore.E006",
            )
        )
    if sqlite and (":memory:" in str(config.get("NAME")) or "mode=memory" in str(config.get("NAME"))):
        found.append(
            Warning(
                f"{where} lives in memory.",
                hint="Name a file: other processes cannot see this database, and what waits is lost with the process.",
                id="statestore.W001",
            )
        )
    return found


def check_connection(
    app_configs: Any = None, databases: Sequence[str] | None = None, **kwargs: Any
) -> list[CheckMessage]:
    """The live connections of the given databases."""
    found: list[CheckMessage] = []
    for alias in databases or ():
        connection = connections[alias]
        if connection.vendor == "sqlite":
            found += _check_live_sqlite(alias, connection)
        elif connection.vendor == "postgresql":
            found += _check_live_postgres(alias, connection)
        else:
            found.append(
                Error(
                    f"Database {alias!r} is {connection.display_name}.",
                    hint="Use SQLite or PostgreSQL: no other database is tested.",
                    id="statestore.E019",
                )
            )
    return found


def _check_live_sqlite(alias: str, connection: BaseDatabaseWrapper) -> list[CheckMessage]:
    live = {name: _ask(connection, f"PRAGMA {name}") for name in _LIVE_PRAGMAS}
    mode = getattr(connection, "transaction_mode", None)
    expected = SYNCHRONOUS.get(str(value("KAMPONG_SQLITE_SYNCHRONOUS")), SYNCHRONOUS["FULL"])
    remedy = f'Use "ENGINE": "{ENGINE}" and drop what OPTIONS and init_command say about it.'
    in_memory = live["journal_mode"] == "memory"
    rules = (
        (
            "E010",
            in_memory or live["journal_mode"] == "wal",
            f"journal_mode is {live['journal_mode']}, not wal",
            remedy,
        ),
        ("E011", live["synchronous"] == expected, f"synchronous is {live['synchronous']}, not {expected}", remedy),
        (
            "E012",
            live["busy_timeout"] >= MIN_BUSY_MILLISECONDS,
            f"busy_timeout is {live['busy_timeout']} ms, under {MIN_BUSY_MILLISECONDS}",
            'Drop "timeout" from OPTIONS, or set it to 5 or more seconds.',
        ),
        ("E013", mode in {"IMMEDIATE", "EXCLUSIVE"}, f"transactions begin {mode or 'DEFERRED'}, not IMMEDIATE", remedy),
        ("E014", live["foreign_keys"] == 1, "foreign keys are not enforced", remedy),
        (
            "E015",
            connection.get_database_version() >= MIN_SQLITE,
            f"this is SQLite {'.'.join(map(str, connection.get_database_version()))}",
            "Use a Python with SQLite 3.35 or later (DELETE ... RETURNING).",
        ),
    )
    return _broken(alias, rules)


def _check_live_postgres(alias: str, connection: BaseDatabaseWrapper) -> list[CheckMessage]:
    version = int(_ask(connection, "SHOW server_version_num")) // 10000
    encoding = _ask(connection, "SHOW server_encoding")
    collation = _ask(
        connection,
        "SELECT COALESCE(collation_name, 'as the database') FROM information_schema.columns "
        "WHERE table_schema = current_schema() AND table_name = 'statestore_staterecord' AND column_name = 'key'",
    )
    rules = (
        ("E016", version >= MIN_POSTGRES, f"this is PostgreSQL {version}", f"Use PostgreSQL {MIN_POSTGRES} or later."),
        ("E017", encoding == "UTF8", f"its encoding is {encoding}", "Create the database with ENCODING 'UTF8'."),
        (
            "E018",
            collation in {None, "C"},  # None: there is no table yet
            f"keys are collated {collation}, so a list by prefix would miss some",
            'Run ALTER TABLE statestore_staterecord ALTER COLUMN key TYPE varchar(420) COLLATE "C".',
        ),
    )
    return _broken(alias, rules)


def _ask(connection: BaseDatabaseWrapper, sql: str) -> Any:
    """The one value of a query; None when there is no row."""
    with connection.cursor() as cursor:
        cursor.execute(sql)
        row = cursor.fetchone()
    return row[0] if row else None


def _broken(alias: str, rules: Sequence[tuple[str, bool, str, str]]) -> list[CheckMessage]:
    return [
        Error(f"Database {alias!r}: {problem}.", hint=hint, id=f"statestore.{number}")
        for number, holds, problem, hint in rules
        if not holds
    ]
