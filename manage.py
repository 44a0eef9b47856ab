#!/usr/bin/env python
"""Kampong's command line: `python manage.py help` lists the commands."""

import os
import sys


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kampong.settings")
    try:
        from django.core.exceptions import ImproperlyConfigured
        from django.core.management import execute_from_command_line
    except ImportError:
        sys.exit("Django is not installed for this Python. Run `make test` or `make demo` once, then .venv/bin/python.")
    try:
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as error:
        if "--traceback" in sys.argv:
            raise
        sys.exit(f"Settings: {error}")


if __name__ == "__main__":
    main()
