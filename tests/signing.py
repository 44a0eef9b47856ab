"""Signs what a sender of webhooks sends, as the two ways of signing say, without our own code."""

from __future__ import annotations

import base64
import hashlib
import hmac

from statestore.clock import now

#: The example of the libraries of Standard Webhooks, with its signature at that time.
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
EXAMPLE_ID = "msg_p5jXN8AQM9LWM0D4loKWxJek"
EXAMPLE_TIME = 1614265330
EXAMPLE_BODY = b'{"test": 2432232314}'
EXAMPLE_SIGNATURE = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def mac(key: bytes, signed: bytes) -> bytes:
    return hmac.new(key, signed, hashlib.sha256).digest()


def standard(body: bytes, *, secret: str = SECRET, id: str = "msg_1", away: float = 0) -> dict[str, str]:
    """The three headers; `away` shifts the sender's clock."""
    time = str(int(now().timestamp() + away))
    key = base64.b64decode(secret[6:]) if secret.startswith("whsec_") else secret.encode()
    signature = base64.b64encode(mac(key, f"{id}.{time}.".encode() + body)).decode()
    return {"webhook-id": id, "webhook-timestamp": time, "webhook-signature": f"v1,{signature}"}


def github(body: bytes, *, secret: str = SECRET) -> dict[str, str]:
    return {"X-Hub-Signature-256": f"sha256={mac(secret.encode(), body).hex()}"}
