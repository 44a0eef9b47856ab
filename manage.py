#!/usr/bin/env python
"""Kampong's command line: `python manage.py help` lists the commands."""

import gc
import json
import os
import sys
from typing import Any

REFUSED = 2
WRONG_USE = 64


def execute(words: list[str]) -> None:
    """As Django does, but no command and an unknown one are wrong use: exit 64, as with our commands' options."""
    from django.core.management import ManagementUtility

    class CommandLine(ManagementUtility):
        def fetch_command(self, subcommand: str) -> Any:
            gc.freeze()
            gc.enable()
            try:
                return super().fetch_command(subcommand)
            except SystemExit:
                sys.exit(WRONG_USE)

    if words[1:] == ["--version"]:
        words = [words[0], "run_spec", "--version"]  # Django would name itself alone
    utility = CommandLine(words)
    if len(words) < 2 and "DJANGO_AUTO_COMPLETE" not in os.environ:
        sys.stderr.write(utility.main_help_text() + "\n")
        sys.exit(WRONG_USE)
    utility.execute()


def refuse(message: str) -> None:
    """Nothing can start, whatever the command: one line, with `--json` an object as well."""
    if "--json" in sys.argv:
        answer = {"success": False, "code": "settings", "error": message}
        sys.stdout.write(json.dumps(answer, ensure_ascii=False, separators=(",", ":")) + "\n")
    sys.stderr.write(message + "\n")
    sys.exit(REFUSED)


def main() -> None:
    gc.disable()  # until the project is loaded: to look again and again for garbage that is not there takes its time
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kampong.settings")
    try:
        from django.core.exceptions import ImproperlyConfigured
    except ImportError:
        sys.exit("Django is not installed for this Python. Run `make test` or `make demo` once, then .venv/bin/python.")
    try:
        execute(sys.argv)
    except ImproperlyConfigured as error:
        if "--traceback" in sys.argv:
            raise
        refuse(f"Settings: {error}")


if __name__ == "__main__":
    main()
