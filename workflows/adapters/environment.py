"""The environment that a run may read: values for requests, fingerprints for digests."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Mapping

from django.conf import settings

UNSET = "unset"


class Environment:
    """Reads names from a mapping. A name that is unset or empty has no value."""

    def __init__(self, environ: Mapping[str, str], *, key: str | None = None) -> None:
        """`key` keys the fingerprints; without one it is Django's SECRET_KEY."""
        self._environ = environ
        self._secret_key = key

    def read(self, names: Iterable[str]) -> dict[str, str | None]:
        """Each name's text, None where it is unset or empty."""
        return {name: self._environ.get(name) or None for name in names}

    def fingerprint(self, names: Iterable[str]) -> dict[str, str]:
        """Each name's keyed HMAC: equal values give equal marks, and nobody learns or guesses a value from one."""
        return {name: self._mark(self._environ.get(name)) for name in names}

    def _mark(self, value: str | None) -> str:
        if not value:
            return UNSET
        raw = value.encode("utf-8", "surrogateescape")
        return hmac.new(self._key(), raw, hashlib.sha256).hexdigest()

    def _key(self) -> bytes:
        secret = settings.SECRET_KEY if self._secret_key is None else self._secret_key
        # A key of its own purpose: a mark cannot pass for a signature made with SECRET_KEY elsewhere.
        return hmac.new(secret.encode(), b"kampong.environment.fingerprint", hashlib.sha256).digest()
