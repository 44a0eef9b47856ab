"""Run the suites on SQLite and on PostgreSQL, and end with one summary: `python -m tests.run [--prove]`.

Both databases run whatever becomes of the other; the exit code is 0 only when all passed. They run side by side, and
PostgreSQL's output follows SQLite's; one after the other when proving, so that neither disturbs what the other
measures, and with `--pdb`. Suites that touch no database run once: in a process of their own beside the two, or with
one of the databases when proving, with `--pdb` and where the command line names files. Tests wait more than they
reckon, so each database has two processes, the second one for the surfaces. Tests marked `everyday` run on the database
that they name, and on both when proving or where the command line names files. `--prove` runs the full counts and
writes `prove-report.md`. Everything else on the command line goes to pytest.
"""

from __future__ import annotations

import datetime
import json
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
REPORT = ROOT / "prove-report.md"
DATABASES = ("sqlite", "postgres")
#: What the run of the suites below is called when it is one of its own; SQLite is there, as it costs nothing.
NO_DATABASE = "no database"
#: These know no database (a test holds them to it), so one run says all: in a process of its own, or with the database
#: named where there are only the two.
WITHOUT_DATABASE = {
    "tests/adapters": "postgres",
    "tests/architecture": "sqlite",
    "tests/engine": "sqlite",
    "tests/spec": "sqlite",
}
#: Each database's second process runs this, with a database of its own.
APART = "tests/surfaces"
#: pytest's exit code where nothing was left to run, as `-k` may leave it on one side.
NOTHING_TO_RUN = 5


class Suite:
    """One run of pytest in a process of its own; with `quiet`, its output is kept until `finish`.

    `shared`: what is marked `everyday` runs on the database that it names alone.
    """

    def __init__(
        self, name: str, arguments: list[str], *, prove: bool = False, shared: bool = False, quiet: bool = False
    ) -> None:
        self.name = name
        self._folder = tempfile.TemporaryDirectory(prefix="kampong-result-")
        self._result_file = Path(self._folder.name) / "result.json"
        database = DATABASES[0] if name == NO_DATABASE else name.partition(" ")[0]
        environment = dict(os.environ, KAMPONG_TEST_DB=database, KAMPONG_TEST_RESULT=str(self._result_file))
        environment["KAMPONG_TEST_SHARED"] = "1" if shared else "0"
        # Tests start hundreds of processes, and each would compile what the one before it had compiled.
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        command = [sys.executable, "-m", "pytest", *arguments]
        if prove:
            environment["KAMPONG_PROVE"] = "1"
            command.append("--timeout=1800")
        self._output = (Path(self._folder.name) / "output").open("w+", encoding="utf-8") if quiet else None
        if not quiet:
            print(self._title(), flush=True)
        self._process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=self._output, stderr=subprocess.STDOUT if quiet else None
        )

    def _title(self) -> str:
        return f"\n=== tests {'without a database' if self.name == NO_DATABASE else f'on {self.name}'} ==="

    def finish(self) -> dict[str, Any]:
        """Wait for the end; what pytest's plugin counted."""
        code = self._process.wait()
        if self._output is not None:
            self._output.seek(0)
            print(f"{self._title()}\n{self._output.read()}", flush=True)
            self._output.close()
        if self._result_file.exists():
            result: dict[str, Any] = json.loads(self._result_file.read_text(encoding="utf-8"))
        else:
            result = {"suites": {}, "facts": [], "skipped": {}, "seconds": 0.0, "server": "did not get to its end"}
        self._folder.cleanup()
        if self.name == NO_DATABASE:
            result["server"] = ", ".join(sorted(WITHOUT_DATABASE))
        return result | {"database": self.name, "exit": code}


def names_files(arguments: list[str]) -> bool:
    """Whether the command line says which files to run: what is no option and lies there."""
    return any(not word.startswith("-") and (ROOT / word.partition("::")[0]).exists() for word in arguments)


def plan(arguments: list[str], *, alone: bool) -> dict[str, list[str]]:
    """Every run by name, with its arguments: each suite without a database in exactly one, each other one in both.

    A name begins with its database. A server that was given has one test database, so its tests stay together.
    """
    if alone or names_files(arguments):
        return {
            database: [
                *arguments,
                *(f"--ignore={folder}" for folder, beside in WITHOUT_DATABASE.items() if beside != database),
            ]
            for database in DATABASES
        }
    ignored = [f"--ignore={folder}" for folder in WITHOUT_DATABASE]
    planned = {}
    for database in DATABASES:
        planned[database] = [*arguments, *ignored]
        if database == "sqlite" or "KAMPONG_TEST_POSTGRES_URL" not in os.environ:
            planned[database].append(f"--ignore={APART}")
            planned[f"{database} ({APART})"] = [*arguments, APART]
    return planned | {NO_DATABASE: [*arguments, *WITHOUT_DATABASE]}


def run_all(*, prove: bool, arguments: list[str]) -> list[dict[str, Any]]:
    """Every run's result."""
    alone = prove or "--pdb" in arguments
    planned = plan(arguments, alone=alone)
    if alone:
        return [Suite(name, words, prove=prove).finish() for name, words in planned.items()]
    shared = not names_files(arguments)
    suites = [Suite(name, words, shared=shared, quiet=name != DATABASES[0]) for name, words in planned.items()]
    return [suite.finish() for suite in suites]


def passed(results: list[dict[str, Any]]) -> bool:
    """Whether something ran and nothing failed; a run that had nothing to do has not failed."""
    codes = {result["exit"] for result in results}
    return 0 in codes and codes <= {0, NOTHING_TO_RUN}


def total(result: dict[str, Any], outcome: str) -> int:
    """How many tests of a run ended so."""
    return sum(int(row[outcome]) for row in result["suites"].values())


def summary(results: list[dict[str, Any]]) -> list[str]:
    """Two lines for each run, and one for each thing this machine lacks."""
    lines = []
    for result in results:
        counts = ", ".join(f"{total(result, outcome)} {outcome}" for outcome in ("passed", "failed", "skipped"))
        lines.append(f"{result['database']}: {counts}")
        lines.append(f"    {result['server']}, {result['seconds']:.0f} s, exit code {result['exit']}")
        lines += [f"    skipped {number} times: {reason}" for reason, number in sorted(result["skipped"].items())]
    return lines


def report(results: list[dict[str, Any]]) -> str:
    """The proving report as Markdown: what ran, where, how often, how long, and what the tests measured."""
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.strip()
    now = datetime.datetime.now(datetime.UTC)
    lines = [
        "# Proving report",
        "",
        f"- Date: {now:%Y-%m-%d %H:%M} UTC",
        f"- Commit: {commit or 'not a git checkout'}",
        f"- Python {platform.python_version()}, {platform.system()} {platform.machine()}, {os.cpu_count()} cores",
    ]
    for result in results:
        lines += ["", f"## {result['server']}", ""]
        lines += ["| suite | passed | failed | skipped | seconds |", "| --- | ---: | ---: | ---: | ---: |"]
        for suite, row in sorted(result["suites"].items()):
            counts = f"{row['passed']} | {row['failed']} | {row['skipped']}"
            lines.append(f"| {suite} | {counts} | {row['seconds']:.1f} |")
        counts = " | ".join(str(total(result, outcome)) for outcome in ("passed", "failed", "skipped"))
        lines.append(f"| all | {counts} | {result['seconds']:.1f} |")
        lines += [""] if result["facts"] else []
        lines += [f"- {fact['suite']}, `{fact['test']}`: {fact['text']}" for fact in result["facts"]]
        lines += [f"- skipped {number} times: {reason}" for reason, number in sorted(result["skipped"].items())]
    return "\n".join(lines) + "\n"


def main(arguments: list[str]) -> int:
    prove = "--prove" in arguments
    rest = [argument for argument in arguments if argument != "--prove"]
    results = run_all(prove=prove, arguments=rest)
    print("\n=== summary ===")
    print("\n".join(summary(results)))
    if prove:
        REPORT.write_text(report(results), encoding="utf-8")
        print(f"written: {REPORT.name}")
    return 0 if passed(results) else 1


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
