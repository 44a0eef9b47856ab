"""Settings of the approvals app."""

from __future__ import annotations

from approvals.baseurl import read_base_url
from statestore.conf import Setting, declare, read_lifetime

declare(
    Setting(
        name="KAMPONG_APPROVAL_TTL",
        default=7 * 24 * 3600.0,
        read=read_lifetime,
        help="How long a pending approval can be decided, in seconds (7 days).",
    ),
    Setting(
        name="KAMPONG_CLI_USER",
        default="",
        help="The Django user under whose policy commands decide; `--as` overrides it.",
    ),
    Setting(
        name="KAMPONG_BASE_URL",
        default="",
        read=read_base_url,
        help="Where people reach this site, such as `https://example.org` or `https://example.org/kampong`: links in "
        "messages and mails begin with it, and pages answer under its path. Production must set it.",
    ),
)
