"""Taking secrets out of what is kept of a call: texts, JSON, bytes (engine semantics 14.5, 16)."""

from __future__ import annotations

from collections.abc import Iterable

from workflows.engine import jsontext
from workflows.engine.redact import MARK, redact
from workflows.engine.values import NOTHING, Json, MaybeJson


class Redactor:
    """Replaces a set of secrets by `[REDACTED]`, in every spelling."""

    def __init__(self, secrets: Iterable[str]) -> None:
        self._secrets = frozenset(filter(None, secrets))
        # No spelling is shorter than what it spells.
        self._shortest = min(map(len, self._secrets), default=0)

    def also(self, secrets: Iterable[str]) -> Redactor:
        """One that hides these as well."""
        return Redactor(self._secrets.union(secrets))

    def for_keys(self) -> Redactor:
        """One that also takes an encoded `[REDACTED]` for what it stands for.

        A replay hands on `[REDACTED]` where the recorded run handed on a secret, and encodes it on the way.
        """
        return self.also([MARK])

    def text(self, text: str) -> str:
        if not self._secrets or len(text) < self._shortest:
            return text
        return redact(text, self._secrets)

    def tree(self, value: MaybeJson) -> MaybeJson:
        """The value with its texts and keys redacted; a number that holds a secret becomes text."""
        if not self._secrets:
            return value
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.text(key): self.tree(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.tree(item) for item in value]
        if isinstance(value, int | float) and not isinstance(value, bool):
            number = jsontext.number_text(value)
            hidden = self.text(number)
            return value if hidden == number else hidden
        return value

    def document(self, text: str) -> tuple[str, MaybeJson]:
        """A text that may be JSON: redacted, and the value in it, NOTHING when it is none.

        JSON stays JSON, and both say the same: a secret may stand in it as a number, or in escapes that only a parser
        sees through.
        """
        hidden = self.text(text)
        try:
            value = jsontext.loads(text)
        except ValueError:
            return hidden, NOTHING
        if hidden == text and "\\" not in text and self._is_clean(value):
            return text, value
        clean: Json = self.tree(value)
        return (hidden if _says(hidden, clean) else jsontext.dumps(clean)), clean

    def _is_clean(self, value: Json) -> bool:
        """Whether it may be written again as it is: `1e2` then becomes `100`."""
        written = jsontext.dumps(value)
        return self.text(written) == written

    def bytes(self, raw: bytes) -> bytes:
        """Exactly these bytes, unless a secret stands in them."""
        if not self._secrets:
            return raw
        spelled = {secret.encode(code, "replace").decode("latin-1") for secret in self._secrets for code in _ENCODINGS}
        return redact(raw.decode("latin-1"), spelled | self._secrets).encode("latin-1", "replace")


_ENCODINGS = ("utf-8", "utf-16-le", "utf-16-be")


def _says(text: str, value: Json) -> bool:
    try:
        return jsontext.same(jsontext.loads(text), value)
    except ValueError:
        return False
