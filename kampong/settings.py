"""Settings of the Kampong project. Everything an operator sets comes from the environment."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import environ

import approvals.conf  # noqa: F401  (declares its rows of the settings table)
import workflows.conf  # noqa: F401
from statestore.conf import from_environment

BASE_DIR = Path(__file__).resolve().parent.parent
STATE_DIR = BASE_DIR / ".kampong"

env = environ.Env()
globals().update(from_environment(os.environ))
_production = bool(globals().get("KAMPONG_PRODUCTION", False))


def _secret_key() -> str:
    """`SECRET_KEY` from the environment; otherwise one made once and kept beside the local database."""
    given = os.environ.get("SECRET_KEY")
    if given:
        return given
    path = STATE_DIR / "secret_key"
    try:
        return path.read_text().strip()
    except FileNotFoundError:
        pass
    from django.core.management.utils import get_random_secret_key

    STATE_DIR.mkdir(parents=True, exist_ok=True)
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return path.read_text().strip()
    with os.fdopen(handle, "w") as file:
        file.write(get_random_secret_key())
    return path.read_text().strip()


SECRET_KEY = _secret_key()
DEBUG = False
ALLOWED_HOSTS = env.list("ALLOWED_HOSTS", default=["localhost", "127.0.0.1", "[::1]"])
CSRF_TRUSTED_ORIGINS = env.list("CSRF_TRUSTED_ORIGINS", default=[])

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
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]

ROOT_URLCONF = "kampong.urls"
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


def _database() -> dict[str, Any]:
    """`DATABASE_URL`, or a SQLite file in the project root. SQLite goes through the store's own backend."""
    config: dict[str, Any] = env.db_url("DATABASE_URL", default=f"sqlite:///{STATE_DIR / 'state.db'}")
    if config["ENGINE"].endswith("sqlite3"):
        config["ENGINE"] = "statestore.sqlite"
        if config["NAME"] != ":memory:":
            Path(config["NAME"]).parent.mkdir(parents=True, exist_ok=True)
    else:
        config.setdefault("CONN_MAX_AGE", 60)
        config["CONN_HEALTH_CHECKS"] = True
    return config


DATABASES = {"default": _database()}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 12}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]

LANGUAGE_CODE = "en-us"
TIME_ZONE = env.str("TIME_ZONE", default="UTC")
USE_TZ = True

STATIC_URL = "/static/"
STATIC_ROOT = BASE_DIR / "staticfiles"
WHITENOISE_USE_FINDERS = True

TASKS = {"default": {"BACKEND": "django_tasks_db.DatabaseBackend", "ENQUEUE_ON_COMMIT": False}}
CHANNEL_LAYERS = {"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}}

SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = _production
SECURE_CONTENT_TYPE_NOSNIFF = True
X_FRAME_OPTIONS = "DENY"

REST_FRAMEWORK: dict[str, Any] = {
    "DEFAULT_AUTHENTICATION_CLASSES": [],
    "DEFAULT_PERMISSION_CLASSES": [],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": [],
    "UNAUTHENTICATED_USER": None,
}
KNOX_TOKEN_MODEL = "approvals.ApiToken"
REST_KNOX = {"TOKEN_TTL": None, "AUTH_HEADER_PREFIX": "Bearer", "TOKEN_MODEL": KNOX_TOKEN_MODEL}

LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"plain": {"format": "%(asctime)s %(levelname)s %(name)s %(message)s"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "stream": sys.stderr, "formatter": "plain"}},
    "root": {"handlers": ["stderr"], "level": env.str("LOG_LEVEL", default="WARNING")},
}
