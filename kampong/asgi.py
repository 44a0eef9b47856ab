"""The ASGI application: HTTP by Django; websockets join here."""

from __future__ import annotations

import os

from channels.routing import ProtocolTypeRouter
from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kampong.settings")

application = ProtocolTypeRouter({"http": get_asgi_application()})
