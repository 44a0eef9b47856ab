"""The WSGI application, for servers without streams."""

from __future__ import annotations

import os

from django.conf import settings
from django.core.wsgi import get_wsgi_application

from kampong.prefix import PrefixedWsgi
from kampong.requestids import RequestIdsWsgi

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kampong.settings")

application = RequestIdsWsgi(PrefixedWsgi(get_wsgi_application(), settings.FORCE_SCRIPT_NAME))
