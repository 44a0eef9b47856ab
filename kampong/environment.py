"""Reads the variables without a prefix. A value that cannot work is refused here, with the name to correct."""

from __future__ import annotations

import os
import tempfile
import warnings
import zoneinfo
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import environ
from django.core.exceptions import ImproperlyConfigured
from django.core.management.utils import get_random_secret_key

LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
#: How mail leaves, with the port of each; `smtps` is left out, because it means either of the two that are safe.
MAIL_PORTS = {"smtp": 25, "smtp+tls": 587, "smtp+ssl": 465}
MAIL_ELSEWHERE = ("consolemail", "filemail", "memorymail", "dummymail")
MAIL_SECONDS = 20
#: RabbitMQ and Redis, plain and with TLS.
BROKERS = ("amqp", "amqps", "redis", "rediss")


def _make_folder(folder: Path, purpose: str, setting: str) -> None:
    """Make it for this user alone if it is not there: runs' inputs and outputs lie in it."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise ImproperlyConfigured(f"{folder} cannot be made for {purpose}: {error.strerror}. {setting}") from error
    if not os.access(folder, os.W_OK | os.X_OK):
        raise ImproperlyConfigured(f"{folder} cannot be written, and {purpose} needs it. {setting}")


def secret_key(environment: Mapping[str, str], state_dir: Path) -> str:
    """`SECRET_KEY` from the environment; otherwise one made once and kept beside the local database.

    Two processes that start together agree on one key: it is written aside and linked into place whole.
    """
    given = environment.get("SECRET_KEY")
    if given:
        return given
    path = state_dir / "secret_key"
    if not path.exists():
        _make_folder(state_dir, "the secret key", "Set SECRET_KEY instead.")
        handle, beside = tempfile.mkstemp(dir=state_dir, prefix="secret_key-")  # mode 0600
        with os.fdopen(handle, "w") as file:
            file.write(get_random_secret_key())
        try:
            os.link(beside, path)
        except FileExistsError:
            pass  # another process was quicker; its key is the one
        finally:
            os.unlink(beside)
    try:
        key = path.read_text().strip()
    except OSError as error:
        raise ImproperlyConfigured(f"{path} cannot be read: {error.strerror}. Set SECRET_KEY instead.") from error
    if not key:
        raise ImproperlyConfigured(f"{path} is empty. Remove it, or set SECRET_KEY.")
    return key


def database(environment: Mapping[str, str], base_dir: Path, state_dir: Path) -> dict[str, Any]:
    """Django's database settings for `DATABASE_URL`: SQLite through the store's own backend, or PostgreSQL.

    A relative SQLite path counts from the project root, so that every command finds the same file.
    """
    url = environment.get("DATABASE_URL") or f"sqlite:///{state_dir / 'state.db'}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an unknown engine is a warning there and a refusal below
        config: dict[str, Any] = environ.Env.db_url_config(url)
    engine = config.get("ENGINE", "")
    if engine == "django.db.backends.postgresql":
        # Under ASGI every request has a thread of its own: connections are kept in a pool, opened as they are needed.
        # One attempt at a time opens them, and waits longer after every failure: a short limit begins again, so that a
        # database that was away for an hour is found again within seconds, not minutes.
        pool = {"min_size": 0, "max_size": 32, "timeout": 5, "reconnect_timeout": 2}
        options = {"pool": pool} | config.get("OPTIONS", {})
        # Our backend tries a connection before it hands it out; the pool's own check is too slow after a restart.
        ours = {"ENGINE": "statestore.postgres", "CONN_MAX_AGE": 0, "CONN_HEALTH_CHECKS": False}
        return config | ours | {"OPTIONS": options}
    if engine != "django.db.backends.sqlite3":
        raise ImproperlyConfigured(
            "DATABASE_URL must be sqlite:///PATH or postgres://USER:PASSWORD@HOST:PORT/NAME; its scheme is not one "
            f"that Kampong runs on ({url.partition(':')[0][:20]!r})."
        )
    config["ENGINE"] = "statestore.sqlite"
    if config["NAME"] != ":memory:":
        path = base_dir / config["NAME"]
        _make_folder(path.parent, "the database", "Set DATABASE_URL to a place that can be written.")
        config["NAME"] = str(path)
        # Tests use a file as well: threads and child processes must share it.
        config["TEST"] = {"NAME": str(path.with_name(f"test-{path.name}"))}
    return config


def broker(environment: Mapping[str, str]) -> str:
    """`BROKER_URL`, which has to be of a kind that Kampong runs on; empty when it is not set."""
    url = environment.get("BROKER_URL", "").strip()
    scheme = url.partition(":")[0]
    if url and (scheme not in BROKERS or "://" not in url):
        raise ImproperlyConfigured(
            "BROKER_URL must be amqp://USER:PASSWORD@HOST:5672/VHOST or redis://USER:PASSWORD@HOST:6379/0; its scheme "
            f"is not one that Kampong runs on ({scheme[:20]!r})."
        )
    return url


def channel_layer(environment: Mapping[str, str]) -> dict[str, Any]:
    """The channel layer at `CHANNEL_REDIS_URL`; without it, one that stays inside the process."""
    url = environment.get("CHANNEL_REDIS_URL", "").strip()
    if not url:
        return {"BACKEND": "channels.layers.InMemoryChannelLayer"}
    if not url.startswith(("redis://", "rediss://")):
        raise ImproperlyConfigured(
            "CHANNEL_REDIS_URL must be redis://USER:PASSWORD@HOST:6379/0, or rediss:// with TLS; its scheme is neither "
            f"({url.partition(':')[0][:20]!r})."
        )
    return {"BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer", "CONFIG": {"hosts": [url], "prefix": "kampong"}}


def queue(kind: str) -> dict[str, Any]:
    """The backend of the Tasks API for `KAMPONG_QUEUE`."""
    if kind == "celery":
        return {"BACKEND": "workflows.brokers.backend.CeleryBackend"}
    return {"BACKEND": "django_tasks_db.DatabaseBackend", "ENQUEUE_ON_COMMIT": False}


def email(environment: Mapping[str, str], base_dir: Path) -> dict[str, Any]:
    """Django's mail settings for `EMAIL_URL`; without it every mail fails with a sentence that names the variable."""
    url = environment.get("EMAIL_URL", "").strip()
    if not url:
        return {"EMAIL_BACKEND": "approvals.notices.mail_unset.NoMailServer"}
    scheme = url.partition(":")[0]
    if scheme not in MAIL_PORTS and scheme not in MAIL_ELSEWHERE:
        known = ", ".join([*MAIL_PORTS, *MAIL_ELSEWHERE])
        raise ImproperlyConfigured(f"EMAIL_URL: {scheme[:20]!r} is no way to send mail that is known here: {known}.")
    try:
        config: dict[str, Any] = environ.Env.email_url_config(url)
    except ValueError:
        config = {}
    if not config or (scheme in MAIL_PORTS and not config["EMAIL_HOST"]) or "?" in url or "#" in url:
        raise ImproperlyConfigured(
            "EMAIL_URL must be smtp+tls://USER:PASSWORD@HOST:587 (or smtp+ssl and 465 where the server wants that), "
            "what is special in the password percent-encoded; or consolemail:// to see mails in the terminal."
        )
    config["EMAIL_PORT"] = config["EMAIL_PORT"] or MAIL_PORTS.get(scheme, 25)
    for name in ("EMAIL_HOST", "EMAIL_HOST_USER", "EMAIL_HOST_PASSWORD"):
        config[name] = config[name] or ""
    if config.get("EMAIL_FILE_PATH"):
        config["EMAIL_FILE_PATH"] = str(base_dir / config["EMAIL_FILE_PATH"])
    return config | {"EMAIL_TIMEOUT": MAIL_SECONDS}


def time_zone(environment: Mapping[str, str]) -> str:
    """`TIME_ZONE`, a name of the time zone database."""
    name = environment.get("TIME_ZONE") or "UTC"
    try:
        zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError) as error:
        raise ImproperlyConfigured(f"TIME_ZONE: {name!r} is no time zone; Europe/Berlin would be one.") from error
    return name


def log_level(environment: Mapping[str, str]) -> str:
    """`LOG_LEVEL`, in capitals."""
    level = (environment.get("LOG_LEVEL") or "WARNING").upper()
    if level not in LOG_LEVELS:
        raise ImproperlyConfigured(f"LOG_LEVEL: {level!r} is not one of {', '.join(LOG_LEVELS)}.")
    return level


def no_debug(level: str) -> str:
    """This level, or INFO where it is DEBUG: for libraries whose DEBUG tells secrets."""
    return "INFO" if level == "DEBUG" else level


def names(environment: Mapping[str, str], name: str, default: list[str]) -> list[str]:
    """A list of names between commas, trimmed, empty ones dropped; `default` when the variable is not set."""
    if name not in environment:
        return default
    return [part.strip() for part in environment[name].split(",") if part.strip()]
