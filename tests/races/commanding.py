"""Somebody at a terminal, ready before the others press: a process that runs one command each time it is told to.

A command takes a second to start, by which time every race is over. This process has started already: it reads a
command's words (JSON) from stdin, says `ready`, waits for one more line, and does what the terminal would do.
"""

from __future__ import annotations

import io
import json
import os
import sys

import django


def main() -> None:
    """Until stdin ends."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kampong.settings")
    django.setup()

    from django.core.management import CommandError, call_command
    from django.db import connection

    connection.ensure_connection()
    for line in sys.stdin:
        words = json.loads(line)
        print("ready", flush=True)  # noqa: T201  (the parent reads it)
        sys.stdin.readline()
        out, err, code = io.StringIO(), io.StringIO(), 0
        try:
            call_command(*words, stdout=out, stderr=err)
        except CommandError as error:
            code = error.returncode
            err.write(str(error))
        told = {"code": code, "out": out.getvalue(), "err": err.getvalue()}
        print(json.dumps(told), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
