"""What the keys that version 1.2 adds are for, as `key_texts` says it of the others."""

from __future__ import annotations

_POLICY = {
    "approvers": "Who may decide, how many of them, and whether the starter may. The permission is needed, too.",
    "form": "A schema of answers to be given with an approval; later steps read them as STEP.answers.",
    "editable": "Paths of what may be changed before approving.",
    "require_reason": "When a decision needs a reason.",
    "expires_in": "How long the request lives, such as 4h.",
    "on_expire": "What happens then: expire, reject, fail, or execute_tool(NAME).",
    "remind_every": "Remind those who may decide, such as every 4h.",
    "escalate": "Who else may decide after a while.",
    "on_decision": "Tools that are called when it is decided, before anything else.",
    "on_reject": "stop ends the run as rejected; continue goes on with {approved: false, reason}.",
    "mode": "gate waits for the decision; record (approval steps only) goes on without it.",
    "auto": "What decides without a person.",
    "recall": "How long an approval can be withdrawn before the run goes on.",
    "valid_for": "How long an approval may be acted upon.",
    "digest": "Whether a decision over HTTP must send the digest of what was read.",
    "notify": "Who is told that a run waits.",
}
_STEP = {"step": "The step's name. Later steps read its output by it."}
_KEY = {"key": "What is claimed or open, unique within this agent; {{ expressions }} may stand in it."}

TEXTS: dict[str, dict[str, str]] = {
    "agent": {"approvals": "Defaults for every approval of this spec; the nearer place wins key by key."},
    "http_request tool": {"approval": "How its calls are approved; implies requires_approval."},
    "slack_post_message tool": {"approval": "How its calls are approved; implies requires_approval."},
    "gmail_send tool": {"approval": "How its calls are approved; implies requires_approval."},
    "component tool": {"approval": "How its calls are approved; implies requires_approval."},
    "condition step": _POLICY,
    "approval step": _POLICY,
    "action step": {"type": "action, or left out."},
    "approval policy": _POLICY,
    "approvers": {
        "users": "Only these users, and the groups beside them.",
        "groups": "Only members of these groups, and the users beside them.",
        "quorum": "How many different people must approve; 1 when left out.",
        "four_eyes": "Whoever started the run may not approve it.",
        "delegate": "Whether someone who may decide can hand the request on.",
    },
    "escalation": {"after": "After how long, such as 2h.", "groups": "The groups that may decide as well then."},
    "tools called on a decision": {
        "approved": "execute_tool(NAME), called after an approval.",
        "rejected": "execute_tool(NAME), called after a rejection.",
    },
    "automatic decision": {
        "approve_if": "An expression; true approves at once.",
        "reject_if": "An expression; true rejects at once.",
        "check": "execute_tool(NAME), asked for {decision: approve, reject or ask, reason}.",
    },
    "Slack channel": {
        "type": "slack.",
        "token": "The bot's token: ${NAME}, read from the environment.",
        "channel": "The channel's name or id.",
    },
    "mail addresses": {"type": "email.", "to": "Who gets the mail."},
    "webhook trigger": {
        "type": "webhook: an HTTP request starts a run.",
        "secret": "With it, requests must be signed: ${NAME}, read from the environment.",
        "dedupe": "A text that is the same for the same event; repeats start nothing.",
        "dedupe_ttl": "How long a repeat is known as one, such as 1d.",
    },
    "schedule trigger": {
        "type": "schedule: a run starts at certain times.",
        "cron": "Five fields: minute, hour, day of the month, month, day of the week.",
        "timezone": "The zone of these times, such as Asia/Singapore.",
        "input": "The run's input.",
        "overlap": "What to do while the run before still goes on.",
        "lock_ttl": "How long the lock of a run that is lost holds, such as 1h.",
    },
    "poll trigger": {
        "type": "poll: a tool is asked for new items, and each starts a run.",
        "every": "How often, such as 5m.",
        "tool": "The tool to call; none that needs an approval.",
        "items": "An expression for the list in its answer.",
        "key": "An expression for what tells an item from another.",
        "cursor": "An expression for what the next call reads as cursor.",
        "seen_ttl": "How long an item is known as seen, such as 30d.",
    },
    "once step": {
        **_STEP,
        "type": "once: go on the first time only.",
        **_KEY,
        "ttl": "How long the key is taken, such as 1d.",
        "on_repeat": "What a repeat does: stop ends the run as completed, continue goes on.",
        "release_on_failure": "Whether a chain that failed without an outside call gives the key back.",
    },
    "open step": {
        **_STEP,
        "type": "open: record an incident unless one is open.",
        **_KEY,
        "value": "What is kept with it.",
        "ttl": "How long it stays open at most, such as 7d.",
    },
    "close step": {**_STEP, "type": "close: take the open incident away.", **_KEY},
}
