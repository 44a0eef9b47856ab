"""Settings of the project itself, and the usual names that have no prefix."""

from __future__ import annotations

from dataclasses import dataclass

from statestore.conf import Setting, declare, read_bool


def read_log_format(text: str) -> str:
    """`text` or `json`."""
    word = text.strip().lower()
    if word not in ("text", "json"):
        raise ValueError(f"{text!r} is neither text nor json")
    return word


declare(
    Setting(
        name="KAMPONG_LOG_FORMAT",
        default="text",
        read=read_log_format,
        help="How the log is written: `text`, or `json` with one object a line; see `docs/operations.md`.",
    ),
    Setting(
        name="KAMPONG_TRUST_FORWARDED_PROTO",
        default=False,
        read=read_bool,
        help="Believe the `X-Forwarded-Proto` header. Set it to 1 only if every request comes through a TLS proxy "
        "that sets the header itself; set it to 0 to say that none does.",
    ),
)


@dataclass(frozen=True, kw_only=True)
class Usual:
    """A variable that keeps the name it has everywhere."""

    name: str
    default: str
    help: str


USUAL = (
    Usual(
        name="DATABASE_URL",
        default="sqlite:///.kampong/state.db",
        help="Where all state lives: a SQLite file (a relative path counts from the project root) or "
        "`postgres://USER:PASSWORD@HOST:5432/NAME`.",
    ),
    Usual(
        name="BROKER_URL",
        default="(empty)",
        help="With KAMPONG_QUEUE=celery, the broker: `amqp://USER:PASSWORD@HOST:5672/VHOST` (`amqps` with TLS) or "
        "`redis://USER:PASSWORD@HOST:6379/0` (`rediss` with TLS), what is special in the password percent-encoded.",
    ),
    Usual(
        name="CHANNEL_REDIS_URL",
        default="(empty)",
        help="A Redis through which processes wake each other's watchers: `redis://USER:PASSWORD@HOST:6379/0` "
        "(`rediss` with TLS). Without it they look by themselves; see `docs/deployment.md`.",
    ),
    Usual(
        name="SECRET_KEY",
        default="made once, kept in .kampong/secret_key",
        help="Signs sessions and forms. Production wants one of its own, of at least 32 characters.",
    ),
    Usual(
        name="ALLOWED_HOSTS",
        default="localhost,127.0.0.1,[::1]",
        help="Host names under which the site is reached, separated by commas.",
    ),
    Usual(
        name="CSRF_TRUSTED_ORIGINS",
        default="(empty)",
        help="Origins that may post forms, with their scheme (`https://kampong.example.org`), separated by commas.",
    ),
    Usual(
        name="EMAIL_URL",
        default="(none: every mail fails, and says so)",
        help="How mail leaves: `smtp+tls://USER:PASSWORD@HOST:587`, `smtp+ssl://USER:PASSWORD@HOST:465`, "
        "`smtp://HOST:25`; to try things out `consolemail://` (the terminal) or `filemail:///FOLDER`.",
    ),
    Usual(
        name="DEFAULT_FROM_EMAIL",
        default="Kampong <kampong@localhost>",
        help="Whom mails come from: an address that the mail server lets through.",
    ),
    Usual(
        name="SLACK_SIGNING_SECRET",
        default="(empty)",
        help="Signs what Slack sends to `/slack/interactions`, from the app's page at Slack; without it nothing is "
        "believed. The tokens of channels are variables that the specs name.",
    ),
    Usual(name="TIME_ZONE", default="UTC", help="The time zone of pages; stored times are UTC."),
    Usual(
        name="LOG_LEVEL",
        default="WARNING",
        help="DEBUG, INFO, WARNING, ERROR or CRITICAL, to standard error.",
    ),
)
