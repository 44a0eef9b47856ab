"""Settings of the Kampong project. Everything an operator sets comes from the environment."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured

import approvals.conf  # noqa: F401  (each declares its rows of the settings table)
import kampong.conf  # noqa: F401
import workflows.conf  # noqa: F401
from kampong import environment
from statestore.conf import from_environment

BASE_DIR = Path(__file__).resolve().parent.parent
STATE_DIR = BASE_DIR / ".kampong"

_given = from_environment(os.environ)
globals().update(_given)
_production = bool(_given.get("KAMPONG_PRODUCTION"))
_tls_proxy = bool(_given.get("KAMPONG_TRUST_FORWARDED_PROTO"))
if _production and _given.get("KAMPONG_TESTING"):
    raise ImproperlyConfigured("KAMPONG_TESTING and KAMPONG_PRODUCTION exclude each other: unset one of them.")

# Under a path prefix: pages answer there and link there, and the cookies are for nobody else at this host.
_prefix = urlsplit(_given.get("KAMPONG_BASE_URL", "")).path
FORCE_SCRIPT_NAME = _prefix or None
SESSION_COOKIE_PATH = CSRF_COOKIE_PATH = f"{_prefix}/"
MESSAGE_STORAGE = "kampong.prefix.Messages"

SECRET_KEY = environment.secret_key(os.environ, STATE_DIR)
SECRET_KEY_GIVEN = bool(os.environ.get("SECRET_KEY"))  # asked by check kampong.E001
DEBUG = False
ALLOWED_HOSTS = environment.names(os.environ, "ALLOWED_HOSTS", ["localhost", "127.0.0.1", "[::1]"])
CSRF_TRUSTED_ORIGINS = environment.names(os.environ, "CSRF_TRUSTED_ORIGINS", [])

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "channels",
    "rest_framework",
    "knox",
    "django_tasks",
    "django_tasks_db",
    "statestore",
    "workflows",
    "approvals",
    "kampong",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "kampong.security.ContentSecurityPolicyMiddleware",
    "kampong.static.StaticFiles",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]

ROOT_URLCONF = "kampong.urls"
LOGIN_URL = "sign-in"  # the admin has its own, for staff alone
LOGIN_REDIRECT_URL = "admin:index"  # where somebody lands whose `next` led away from this site
APPEND_SLASH = False
TEMPLATES: list[dict[str, Any]] = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]
WSGI_APPLICATION = "kampong.wsgi.application"
ASGI_APPLICATION = "kampong.asgi.application"

DATABASES = {"default": environment.database(os.environ, BASE_DIR, STATE_DIR)}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 12}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]

LANGUAGE_CODE = "en-us"
TIME_ZONE = environment.time_zone(os.environ)
USE_TZ = True

STATIC_URL = f"{_prefix}/static/"
WHITENOISE_USE_FINDERS = True  # straight out of the apps: nothing to collect before the first start
WHITENOISE_ALLOW_ALL_ORIGINS = False

BROKER_URL = environment.broker(os.environ)
TASKS = {"default": environment.queue(_given.get("KAMPONG_QUEUE", "database"))}
CHANNEL_LAYERS = {"default": environment.channel_layer(os.environ)}

SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = _production
# A proxy's word is taken only when the operator says that every request comes through it; only then can a plain
# request be told from one that was encrypted up to the proxy, and sent to the encrypted address.
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if _tls_proxy else None
SECURE_SSL_REDIRECT = _production and _tls_proxy
SECURE_REDIRECT_EXEMPT = [rf"^{re.escape(f'{_prefix}/'[1:])}(healthz|readyz)/?$"]
SECURE_HSTS_SECONDS = 30 * 24 * 3600 if _production else 0
SECURE_CONTENT_TYPE_NOSNIFF = True
X_FRAME_OPTIONS = "DENY"

globals().update(environment.email(os.environ, BASE_DIR))
DEFAULT_FROM_EMAIL = os.environ.get("DEFAULT_FROM_EMAIL") or "Kampong <kampong@localhost>"

REST_FRAMEWORK: dict[str, Any] = {
    "DEFAULT_AUTHENTICATION_CLASSES": [],
    "DEFAULT_PERMISSION_CLASSES": [],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": [],
    "UNAUTHENTICATED_USER": None,
}
KNOX_TOKEN_MODEL = "approvals.ApiToken"  # noqa: S105  (a model, not a token)
# Our token model replaces Knox's. Its migrations would make the unused table all the same, with a foreign key that no
# model knows of: PostgreSQL then refuses to empty the users' table.
MIGRATION_MODULES = {"knox": None}
REST_KNOX = {"TOKEN_TTL": None, "AUTH_HEADER_PREFIX": "Bearer", "TOKEN_MODEL": KNOX_TOKEN_MODEL}

LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"chosen": {"()": f"kampong.logs.{_given.get('KAMPONG_LOG_FORMAT', 'text').capitalize()}"}},
    "filters": {
        "hide_links": {"()": "kampong.security.HideLinks"},
        "refused": {"()": "kampong.security.Refused"},
    },
    "handlers": {
        "stderr": {
            "class": "logging.StreamHandler",
            "stream": sys.stderr,
            "formatter": "chosen",
            "filters": ["hide_links", "refused"],
        }
    },
    "root": {"handlers": ["stderr"], "level": environment.log_level(os.environ)},
    "loggers": {
        # A refusal (403, 404, 409) is answered, not logged: the line would carry a traceback, and paths can hold keys.
        "django.request": {"level": "ERROR"},
        # At DEBUG the server logs the headers and the frames of sockets: tokens, cookies, keys.
        # It tells of an outage with a traceback every second; ours tells it once.
        "channels_redis": {"level": "CRITICAL"},
        **{name: {"level": environment.no_debug(environment.log_level(os.environ))} for name in ("amqp", "kombu")},
        "uvicorn": {"level": environment.no_debug(environment.log_level(os.environ))},
        "websockets": {"level": environment.no_debug(environment.log_level(os.environ))},
    },
}
