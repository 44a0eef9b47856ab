"""The small grammars that single texts of a spec must follow. All match the whole text, ASCII only."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

import regress

ENV_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
ENV_PLACEHOLDER = re.compile(rf"\$\{{({ENV_NAME})\}}")
HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+\-.^_`|~]+")
COMPONENT = re.compile(
    r"[a-z0-9]+(?:[-.][a-z0-9]+)*/[a-z0-9]+(?:-[a-z0-9]+)*@[0-9]+\.[0-9]+\.[0-9]+(?:-[A-Za-z0-9.-]+)?"
)
RESPONSE_PATH = re.compile(
    r"""(?:[A-Za-z0-9_$-]++|\["(?:[^"\\]|\\.)*+"\]|\[[0-9]++\])"""
    r"""(?:\.[A-Za-z0-9_$-]++|\["(?:[^"\\]|\\.)*+"\]|\[[0-9]++\])*+""",
    re.DOTALL,
)
# It begins with the brace, not with what must not stand before it: so most of a text is skipped at once.
LEGACY_PLACEHOLDER = re.compile(r"\{(?<![{$]\{)[A-Za-z0-9_.]+\}(?!\})")
#: Section 7 of the engine semantics. The operator is taken whole: `a.b >=` is no comparison of `a.b` with the text `=`.
CONDITION_10 = re.compile(r"([A-Za-z0-9_]+)\.([A-Za-z0-9_]+)\s*(?>(==|!=|>=|<=|>|<))\s*([^\n\r\u2028\u2029]+)")
EXECUTE_TOOL = re.compile(r"execute_tool\(([A-Za-z0-9_]+)\)")
ASK_A_PERSON = "request_human_approval"
#: `$${NAME}` is the text `${NAME}`, and reads nothing.
ENV_REFERENCE = re.compile(rf"\$(?P<escaped>\$?)\{{(?P<name>{ENV_NAME})\}}")
#: The expressions of a trigger are given the vars where this finds them named.
NAMES_VARS = re.compile(r"\bvars\b")
_LONGEST_REGEX = 50_000
_SECRET_NAME = re.compile("KEY|TOKEN|SECRET|PASSW|CREDENTIAL|PRIVATE", re.IGNORECASE)

CREDENTIAL_WORDS = ("token", "secret", "password", "passwd", "credential", "apikey", "api-key", "api_key")
CREDENTIAL_HEADERS = frozenset({"authorization", "proxy-authorization", "cookie"})
CREDENTIAL_PARAMETERS = frozenset({"key", "auth", "authorization"})
CREDENTIAL_PARAMETER_WORDS = (*CREDENTIAL_WORDS, "signature", "accesskey", "access-key", "access_key")

_URL = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.\-]*):[^\x00-\x1f]*")
_NEEDS_HOST = frozenset({"http", "https", "ws", "wss", "ftp"})
_NOT_IN_HOST = re.compile(r"""[\s#%/<>?@\[\\\]^|"`{}]""")


def header_is_credential(name: str) -> bool:
    return name.lower() in CREDENTIAL_HEADERS or any(word in name.lower() for word in CREDENTIAL_WORDS)


def parameter_is_credential(name: str) -> bool:
    return name.lower() in CREDENTIAL_PARAMETERS or any(word in name.lower() for word in CREDENTIAL_PARAMETER_WORDS)


def variable_is_secret(name: str) -> bool:
    return _SECRET_NAME.search(name) is not None


def is_absolute_url(text: str) -> bool:
    """Whether a text is a URL with a scheme; the usual network schemes also need a host."""
    url = _URL.fullmatch(text)
    if url is None:
        return False
    if url["scheme"].lower() not in _NEEDS_HOST:
        return True
    try:
        parts = urlsplit(text)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return False
    return bool(host) and (":" in (host or "") or _NOT_IN_HOST.search(host or "") is None)


def regex_problem(pattern: str) -> str | None:
    """Why a text is not an ECMAScript regular expression; None when it is one."""
    if len(pattern) > _LONGEST_REGEX:
        return f"it has {len(pattern)} characters; at most {_LONGEST_REGEX} are compiled"
    try:
        regress.Regex(pattern)
    except regress.RegressError as error:
        return str(error)
    return None
