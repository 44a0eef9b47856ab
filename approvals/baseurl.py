"""What KAMPONG_BASE_URL may say. Read by the settings module, before any app is there."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

_PATH = re.compile(r"(/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)*")
_WANTED = "it is https://HOST, with a port and a path where the site has them, such as https://example.org/kampong"


def read_base_url(text: str) -> str:
    """The address without a slash at its end; "" for none. ValueError for what no link can begin with."""
    given = text.strip().rstrip("/")
    if not given:
        return ""
    parts = urlsplit(given)
    try:
        sound = parts.port is None or parts.port > 0
    except ValueError:
        sound = False
    if parts.scheme not in ("http", "https") or not parts.hostname or not sound or re.search(r"[\s\\]", given):
        raise ValueError(f"it is no web address; {_WANTED}")
    if "@" in parts.netloc:
        raise ValueError(f"it holds a user name; {_WANTED}")
    if "?" in given or "#" in given:
        raise ValueError(f"nothing comes after its path; {_WANTED}")
    if not _PATH.fullmatch(parts.path):
        raise ValueError(f"its path is letters, digits, '.', '_', '~' and '-' between single slashes; {_WANTED}")
    return f"{parts.scheme}://{parts.netloc.lower()}{parts.path}"
