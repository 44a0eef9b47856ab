"""Settings of the workflows app."""

from __future__ import annotations

import re

from statestore.conf import Setting, declare, read_bool, read_list, read_positive_int, read_seconds
from workflows.adapters import addresses
from workflows.retention import keeps

#: The name of a variable of the environment.
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def read_port(text: str) -> int:
    """A number from 0 to 65535."""
    if not text.strip().isdecimal() or int(text) > 65535:
        raise ValueError(f"{text!r} is not a number from 0 to 65535")
    return int(text)


def read_variables(text: str) -> dict[str, str]:
    """`AGENT=NAME` parts between commas. What is no name may be a secret, and is not repeated."""
    found: dict[str, str] = {}
    for number, part in enumerate((part.strip() for part in text.split(",")), start=1):
        agent_id, _, name = (word.strip() for word in part.partition("="))
        if part and (not agent_id or not VARIABLE.fullmatch(name)):
            raise ValueError(f"part {number} is not AGENT=NAME, with the name of a variable and never a secret")
        if agent_id in found:
            raise ValueError(f"part {number} names an agent for the second time")
        if part:
            found[agent_id] = name
    return found


def read_queue(text: str) -> str:
    """`database` or `celery`."""
    word = text.strip().lower()
    if word not in ("database", "celery"):
        raise ValueError(f"{text!r} is neither database nor celery")
    return word


def _kept(status: str) -> Setting:
    return Setting(
        name=keeps.SETTINGS[status],
        default=keeps.FOREVER,
        read=keeps.read_keep,
        help=f"How long runs that ended as {status} are kept: `forever`, an age (`90d`), a number of runs of each "
        "agent (`10000`), or both (`90d 10000`), and what is over either goes.",
    )


declare(
    *map(_kept, keeps.SETTINGS),
    Setting(
        name=keeps.DECISIONS,
        default=keeps.FOREVER,
        read=keeps.read_age,
        help="How long after their end decisions of runs that are kept no longer stay: `forever` or an age (`3650d`). "
        "The audit stays in any case.",
    ),
)

declare(
    Setting(
        name="KAMPONG_SPECS",
        default=[],
        read=read_list,
        help="Spec files and folders to serve, separated by colons or commas.",
    ),
    Setting(
        name="KAMPONG_LEASE_SECONDS",
        default=60.0,
        read=read_seconds,
        help="How long a worker's hold on a run lasts without renewal; at least three times the SQLite busy timeout.",
    ),
    Setting(
        name="KAMPONG_HEARTBEAT_SECONDS",
        default=10.0,
        read=read_seconds,
        help="How often a process renews the leases of its runs; at most a third of the lease.",
    ),
    Setting(
        name="KAMPONG_WORKERS",
        default=2,
        read=read_positive_int,
        help="Worker threads that `serve` and `worker` start.",
    ),
    Setting(
        name="KAMPONG_QUEUE",
        default="database",
        read=read_queue,
        help="Where messages to workers wait: `database`, or `celery` with the broker of BROKER_URL; see "
        "`docs/deployment.md`.",
    ),
    Setting(
        name="KAMPONG_QUEUE_NAME",
        default="kampong",
        help="The name of the queue at the broker; another one for each installation that shares a broker.",
    ),
    Setting(
        name="KAMPONG_POLL_SECONDS",
        default=0.1,
        read=read_seconds,
        help="How often an idle worker looks for work.",
    ),
    Setting(
        name="KAMPONG_RECOVER_SECONDS",
        default=5.0,
        read=read_seconds,
        help="How often a worker process looks for lost runs and forgotten tasks.",
    ),
    Setting(
        name="KAMPONG_SCHEDULER_SECONDS",
        default=1.0,
        read=read_seconds,
        help="How often the scheduler looks for due triggers, locks to renew and changed files.",
    ),
    Setting(
        name="KAMPONG_POLLERS",
        default=2,
        read=read_positive_int,
        help="Polls that one scheduler makes at the same time.",
    ),
    Setting(
        name="KAMPONG_DRAIN_SECONDS",
        default=30.0,
        read=read_seconds,
        help="How long SIGTERM waits for running steps before the process ends.",
    ),
    Setting(
        name="KAMPONG_TOOL_TIMEOUT",
        default=30.0,
        read=read_seconds,
        help="Total time limit of one tool call, in seconds.",
    ),
    Setting(
        name="KAMPONG_PRIVATE_ADDRESSES",
        default=["*"],
        read=addresses.read_entries,
        help=(
            "Private places that tools may call, separated by commas: `*` for all but link-local and metadata "
            "addresses, or host names, addresses, networks, and `host:port`. Empty for none; production must say."
        ),
    ),
    Setting(
        name="KAMPONG_SLACK_API_URL",
        default="https://slack.com/api",
        help="Base address of Slack's API; tests point it at a local server.",
    ),
    Setting(
        name="KAMPONG_GMAIL_API_URL",
        default="https://gmail.googleapis.com",
        help="Base address of Gmail's API; tests point it at a local server.",
    ),
    Setting(
        name="KAMPONG_OPENAI_API_URL",
        default="https://api.openai.com/v1",
        help="Base address of OpenAI's API; tests point it at a local server.",
    ),
    Setting(
        name="KAMPONG_ANTHROPIC_API_URL",
        default="https://api.anthropic.com",
        help="Base address of Anthropic's API; tests point it at a local server.",
    ),
    Setting(
        name="KAMPONG_OPENROUTER_API_URL",
        default="https://openrouter.ai/api/v1",
        help="Base address of OpenRouter's API; tests point it at a local server.",
    ),
    Setting(
        name="KAMPONG_METRICS_PORT",
        default=0,
        read=read_port,
        help="A port on which `serve`, `worker` and `scheduler` each tell what they have counted themselves, for "
        "Prometheus and without a token; 0 for none. Everything else is at `GET /metrics`.",
    ),
    Setting(
        name="KAMPONG_METRICS_HOST",
        default="127.0.0.1",
        help="The address on which that port listens. Whoever reaches it reads the names of agents.",
    ),
    Setting(
        name="KAMPONG_WEBHOOK_SECRETS",
        default={},
        read=read_variables,
        help=(
            "For specs of version 1.0 and 1.1, the variables with the secrets that sign their webhooks: "
            "`AGENT=NAME,AGENT=NAME`, with agent ids and names of variables; in another project's settings a mapping."
        ),
    ),
    Setting(
        name="KAMPONG_PRODUCTION",
        default=False,
        read=read_bool,
        help="Turns the checks for a public deployment into errors.",
    ),
)
