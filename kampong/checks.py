"""System checks: each thing an operator can get wrong, with a stable id and a hint that names the setting to fix."""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any
from urllib.parse import urlsplit

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register
from django.db import connections
from django.http.request import validate_host
from django.urls import Resolver404, resolve

from approvals.addresses import NoAddress, base_url
from approvals.baseurl import read_base_url
from statestore.conf import value
from workflows import webhooks
from workflows.adapters.addresses import PrivateAddresses
from workflows.conf import VARIABLE
from workflows.registry import registry
from workflows.retention import keeps
from workflows.spec.model import ApprovalNotifier
from workflows.spec.policy_model import EmailChannel, SlackChannel

SHORTEST_KEY = 32
LEASE_IN_TIMEOUTS = 3
HEARTBEATS_IN_LEASE = 3
LOCAL_HOSTS = {"localhost", "127.0.0.1", "[::1]"}

Apps = Sequence[AppConfig] | None


def _production() -> bool:
    return bool(value("KAMPONG_PRODUCTION"))


@register(Tags.security)
def check_secret_key(app_configs: Apps, **kwargs: Any) -> list[CheckMessage]:
    """E001: production signs with a key that was given, not with the one made on first start."""
    given = getattr(settings, "SECRET_KEY_GIVEN", True)
    if not _production() or (given and len(settings.SECRET_KEY) >= SHORTEST_KEY):
        return []
    return [
        Error(
            "Production needs a secret key of its own.",
            hint=f"Set SECRET_KEY to at least {SHORTEST_KEY} random characters, the same for every process.",
            id="kampong.E001",
        )
    ]


@register(Tags.security)
def check_allowed_hosts(app_configs: Apps, **kwargs: Any) -> list[CheckMessage]:
    """E002: the public host name is listed, and not every name is."""
    hosts = set(settings.ALLOWED_HOSTS)
    if not _production() or (hosts - LOCAL_HOSTS and "*" not in hosts):
        return []
    return [
        Error(
            "Production must name the hosts under which it is reached.",
            hint="Set ALLOWED_HOSTS to the public host names, separated by commas; `*` is refused.",
            id="kampong.E002",
        )
    ]


@register(Tags.security)
def check_trusted_origins(app_configs: Apps, **kwargs: Any) -> list[CheckMessage]:
    """E003: without the public origin, forms that come through a TLS proxy are refused."""
    if not _production() or any(origin.startswith("https://") for origin in settings.CSRF_TRUSTED_ORIGINS):
        return []
    return [
        Error(
            "Production must name the origins whose forms it accepts.",
            hint="Set CSRF_TRUSTED_ORIGINS to the public address with its scheme, such as https://kampong.example.org.",
            id="kampong.E003",
        )
    ]


@register(Tags.security)
def check_forwarded_proto(app_configs: Apps, **kwargs: Any) -> list[CheckMessage]:
    """W001: whether a TLS proxy sets the forwarded header is something only the operator knows."""
    if not _production() or hasattr(settings, "KAMPONG_TRUST_FORWARDED_PROTO"):
        return []
    return [
        Warning(
            "Nobody has said whether X-Forwarded-Proto can be believed; it is not.",
            hint="Set KAMPONG_TRUST_FORWARDED_PROTO to 1 behind a TLS proxy that sets the header itself, else to 0.",
            id="kampong.W001",
        )
    ]


@register(Tags.security)
def check_testing(app_configs: Apps, **kwargs: Any) -> list[CheckMessage]:
    """E004: the doors for tests (a shifted clock, crash points) stay shut in production."""
    if not _production() or not value("KAMPONG_TESTING"):
        return []
    return [
        Error(
            "KAMPONG_TESTING and KAMPONG_PRODUCTION exclude each other.",
            hint="Remove KAMPONG_TESTING from the environment of this deployment.",
            id="kampong.E004",
        )
    ]


@register(Tags.security)
def check_private_addresses(app_configs: Apps, **kwargs: Any) -> list[CheckMessage]:
    """E008: production says which private addresses tools may call; the default, all of them, is for a laptop."""
    if _production() and not hasattr(settings, "KAMPONG_PRIVATE_ADDRESSES"):
        message = "Nobody has said which private addresses the specs of this deployment may call."
        hint = "Set KAMPONG_PRIVATE_ADDRESSES: empty for none, the hosts and networks that tools need, or `*` for all."
        return [Error(message, hint=hint, id="kampong.E008")]
    try:
        PrivateAddresses(value("KAMPONG_PRIVATE_ADDRESSES"))
    except (ValueError, TypeError, AttributeError) as problem:
        hint = "Correct the list in KAMPONG_PRIVATE_ADDRESSES: hosts, addresses, networks, each with or without a port."
        return [Error(f"A place that tools may call cannot be read: {problem}.", hint=hint, id="kampong.E008")]
    return []


@register(Tags.security)
def check_base_url(app_configs: Apps, **kwargs: Any) -> list[CheckMessage]:
    """E009: links in messages and mails lead to this site: production says where it is reached, encrypted."""
    wrong = ""
    given = ""
    try:
        given = read_base_url(value("KAMPONG_BASE_URL"))
    except ValueError as problem:
        wrong = f"KAMPONG_BASE_URL cannot be used: {problem}."
    if not wrong and _production() and not given.startswith("https://"):
        wrong = "Production must say at which encrypted address it is reached: links in messages begin with it."
    if not wrong and _is_ours(urlsplit(given).path):
        wrong = "The path of KAMPONG_BASE_URL is that of one of this site's own pages; the two could not be told apart."
    if not wrong:
        return []
    hint = "Set KAMPONG_BASE_URL to the public address with its scheme and path, such as https://kampong.example.org."
    return [Error(wrong, hint=hint, id="kampong.E009")]


def _is_ours(path: str) -> bool:
    """Whether a page of ours answers below this path."""
    if not path:
        return False
    try:
        resolve(f"{path}/")
    except Resolver404:
        return False
    return True


@register(Tags.security)
def check_base_host(app_configs: Apps, **kwargs: Any) -> list[CheckMessage]:
    """E010: this site answers at the host to which its own links lead."""
    try:
        host = urlsplit(read_base_url(value("KAMPONG_BASE_URL"))).hostname
    except ValueError:
        return []
    shown = f"[{host}]" if host and ":" in host else host
    if not shown or validate_host(shown, settings.ALLOWED_HOSTS) or check_allowed_hosts(None):
        return []
    return [
        Error(
            f"Links lead to {shown}, and requests to that host are refused.",
            hint=f"Add {shown} to ALLOWED_HOSTS, or correct KAMPONG_BASE_URL.",
            id="kampong.E010",
        )
    ]


@register()
def check_links(app_configs: Apps, **kwargs: Any) -> list[CheckMessage]:
    """W002: where a served spec tells people by Slack or email, links can be made for them."""
    if _production() or not _channels():
        return []
    try:
        base_url()
    except NoAddress:
        message = "A served spec tells people that it waits, and nobody has said where this site is reached."
        hint = "Set KAMPONG_BASE_URL to the address at which people open this site, for every process."
        return [Warning(message, hint=hint, id="kampong.W002")]
    return []


@register()
def check_mail(app_configs: Apps, **kwargs: Any) -> list[CheckMessage]:
    """W003: where a served spec sends mails to approvers, there is a way to send them."""
    unset = settings.EMAIL_BACKEND == "approvals.notices.mail_unset.NoMailServer"
    if not unset or not any(isinstance(channel, EmailChannel) for channel in _channels()):
        return []
    message = "A served spec tells people by email, and no mail server is named: none of these mails will leave."
    hint = "Set EMAIL_URL, such as smtp+tls://USER:PASSWORD@HOST:587, and DEFAULT_FROM_EMAIL, for every process."
    return [Warning(message, hint=hint, id="kampong.W003")]


@register()
def check_slack(app_configs: Apps, **kwargs: Any) -> list[CheckMessage]:
    """W004: where a served spec asks in Slack, what Slack answers can be believed."""
    if os.environ.get("SLACK_SIGNING_SECRET", "").strip():
        return []
    if not any(isinstance(channel, SlackChannel | ApprovalNotifier) for channel in _channels()):
        return []
    message = "A served spec asks in Slack, and every click there will be refused: its signature cannot be checked."
    hint = "Set SLACK_SIGNING_SECRET, from the page of the app at Slack, for the processes that serve."
    return [Warning(message, hint=hint, id="kampong.W004")]


@register()
def check_webhooks(app_configs: Apps, **kwargs: Any) -> list[CheckMessage]:
    """W005: where a served spec takes signed webhooks, the secret that signs them is there and can be used."""
    found: list[CheckMessage] = []
    for file in registry().files() if not check_webhook_secrets(None) else ():
        variable = webhooks.secret_variable(file.spec)
        problem = webhooks.problem_with(os.environ.get(variable, "")) if variable is not None else ""
        if problem:
            message = (
                f"Every webhook of {file.agent_id} will be refused: the environment variable {variable} {problem}."
            )
            hint = f"Set {variable} to the secret that the sender signs with, for the processes that serve."
            found.append(Warning(message, hint=hint, id="kampong.W005"))
    return found


@register(Tags.security)
def check_webhook_secrets(app_configs: Apps, **kwargs: Any) -> list[CheckMessage]:
    """E011: the setting for the secrets of webhooks names variables, and holds no secret itself."""
    given = value(webhooks.SETTING)
    if isinstance(given, dict) and all(isinstance(one, str) and VARIABLE.fullmatch(one) for one in given.values()):
        return []
    hint = f"Make {webhooks.SETTING} a mapping from agent ids to names of environment variables."
    return [Error("What is said of the secrets of webhooks cannot be used.", hint=hint, id="kampong.E011")]


@register()
def check_kept(app_configs: Apps, **kwargs: Any) -> list[CheckMessage]:
    """E012: how long finished runs and decisions are kept can be read: what is deleted does not come back."""
    found: list[CheckMessage] = []
    for name, read in [*((name, keeps.keep_of) for name in keeps.SETTINGS.values()), (keeps.DECISIONS, keeps.age_of)]:
        try:
            read(value(name))
        except (ValueError, AttributeError) as problem:
            hint = f"Set {name} to a text: `forever`, an age such as `90d`, or for runs also a number such as `10000`."
            found.append(Error(f"{name} cannot be read: {problem}.", hint=hint, id="kampong.E012"))
    return found


def _channels() -> list[object]:
    """Every place where a served spec announces that it waits."""
    specs = [file.spec for file in registry().files()]
    found: list[object] = [one for spec in specs for policy in spec.agent.policies() for one in policy.notify or ()]
    return found + [spec.agent.approval_notifier for spec in specs if spec.agent.approval_notifier is not None]


@register()
def check_lease(app_configs: Apps, **kwargs: Any) -> list[CheckMessage]:
    """E005: a lease outlives a worker that waits for SQLite's write lock."""
    lease = float(value("KAMPONG_LEASE_SECONDS"))
    for connection in connections.all():
        if connection.vendor != "sqlite":
            continue
        timeout = float(connection.settings_dict["OPTIONS"].get("timeout", 5.0))  # 5 s is the driver's own default
        if lease < LEASE_IN_TIMEOUTS * timeout:
            return [
                Error(
                    f"A lease of {lease:g} s is less than three times the SQLite busy timeout of {timeout:g} s.",
                    hint=f"Set KAMPONG_LEASE_SECONDS to at least {LEASE_IN_TIMEOUTS * timeout:g}.",
                    id="kampong.E005",
                )
            ]
    return []


@register()
def check_heartbeat(app_configs: Apps, **kwargs: Any) -> list[CheckMessage]:
    """E006: a lease survives two missed renewals."""
    lease, heartbeat = float(value("KAMPONG_LEASE_SECONDS")), float(value("KAMPONG_HEARTBEAT_SECONDS"))
    if 0 < heartbeat <= lease / HEARTBEATS_IN_LEASE:
        return []
    return [
        Error(
            f"A heartbeat every {heartbeat:g} s is too slow for a lease of {lease:g} s.",
            hint=f"Set KAMPONG_HEARTBEAT_SECONDS above 0 and to at most {lease / HEARTBEATS_IN_LEASE:g}.",
            id="kampong.E006",
        )
    ]


@register()
def check_queue(app_configs: Apps, **kwargs: Any) -> list[CheckMessage]:
    """E020: where messages go through a broker, Celery is installed and the broker is named."""
    if value("KAMPONG_QUEUE") != "celery":
        return []
    found: list[CheckMessage] = []
    if find_spec("celery") is None:
        message = "KAMPONG_QUEUE is celery, and Celery is not installed."
        hint = "Run `pip install -r requirements-scale.txt`, or set KAMPONG_QUEUE to database."
        found.append(Error(message, hint=hint, id="kampong.E020"))
    if not getattr(settings, "BROKER_URL", ""):
        message = "KAMPONG_QUEUE is celery, and nobody has said where the broker is."
        hint = "Set BROKER_URL, such as amqp://USER:PASSWORD@HOST:5672/VHOST, or set KAMPONG_QUEUE to database."
        found.append(Error(message, hint=hint, id="kampong.E020"))
    return found


@register()
def check_channel_layer(app_configs: Apps, **kwargs: Any) -> list[CheckMessage]:
    """E022: where processes wake each other through Redis, the package that speaks to it is installed."""
    layer = getattr(settings, "CHANNEL_LAYERS", {}).get("default", {}).get("BACKEND", "")
    if not layer.startswith("channels_redis.") or find_spec("channels_redis") is not None:
        return []
    message = "CHANNEL_REDIS_URL is set, and channels-redis is not installed."
    hint = "Run `pip install -r requirements-scale.txt`, or unset CHANNEL_REDIS_URL."
    return [Error(message, hint=hint, id="kampong.E022")]


@register()
def check_shared_database(app_configs: Apps, **kwargs: Any) -> list[CheckMessage]:
    """E021: production with a broker, which is for many machines, has a database that they can share."""
    if not _production() or value("KAMPONG_QUEUE") != "celery" or connections["default"].vendor != "sqlite":
        return []
    message = "Production takes messages from a broker and keeps its state in SQLite, a file on one machine."
    hint = "Set DATABASE_URL to a PostgreSQL, or set KAMPONG_QUEUE to database."
    return [Error(message, hint=hint, id="kampong.E021")]


@register(Tags.database)
def check_database_role(app_configs: Apps, databases: Sequence[str] | None = None, **kwargs: Any) -> list[CheckMessage]:
    """E007: production does not connect as a role to whom no policy of the database applies."""
    found: list[CheckMessage] = []
    for alias in databases or ():
        connection = connections[alias]
        if not _production() or connection.vendor != "postgresql":
            continue
        with connection.cursor() as cursor:
            cursor.execute("SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user")
            row = cursor.fetchone()
        if row and row[0]:
            found.append(
                Error(
                    "Production connects to PostgreSQL as a superuser, or as a role that bypasses row security.",
                    hint="Create a plain role that owns only this database and name it in DATABASE_URL.",
                    id="kampong.E007",
                )
            )
    return found
