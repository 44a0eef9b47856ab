"""Run the suites on SQLite and on PostgreSQL, and end with one summary: `python -m tests.run [--prove]`.

Both databases run whatever becomes of the other; the exit code is 0 only when both passed. They run side by side, and
PostgreSQL's output follows SQLite's; one after the other when proving, so that neither disturbs what the other
measures, and with `--pdb`. Suites that touch no database run once, beside one of them. `--prove` runs the full counts
and writes `prove-report.md`. Everything else on the command line goes to pytest.
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
#: These know no database (a test holds them to it), so one run says all: beside the database named, which spreads the
#: work over two processes.
WITHOUT_DATABASE = {
    "tests/adapters": "postgres",
    "tests/architecture": "sqlite",
    "tests/engine": "sqlite",
    "tests/spec": "sqlite",
}


class Suite:
    """One run of pytest in a process of its own; with `quiet`, its output is kept until `finish`."""

    def __init__(self, database: str, *, prove: bool, arguments: list[str], quiet: bool = False) -> None:
        self.database = database
        self._folder = tempfile.TemporaryDirectory(prefix="kampong-result-")
        self._result_file = Path(self._folder.name) / "result.json"
        environment = dict(os.environ, KAMPONG_TEST_DB=database, KAMPONG_TEST_RESULT=str(self._result_file))
        command = [sys.executable, "-m", "pytest", *arguments]
        command += [f"--ignore={folder}" for folder, beside in WITHOUT_DATABASE.items() if beside != database]
        if prove:
            environment["KAMPONG_PROVE"] = "1"
            command.append("--timeout=1800")
        self._output = (Path(self._folder.name) / "output").open("w+", encoding="utf-8") if quiet else None
        if not quiet:
            print(f"\n=== tests on {database} ===", flush=True)
        self._process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=self._output, stderr=subprocess.STDOUT if quiet else None
        )

    def finish(self) -> dict[str, Any]:
        """Wait for the end; what pytest's plugin counted."""
        code = self._process.wait()
        if self._output is not None:
            self._output.seek(0)
            print(f"\n=== tests on {self.database} ===\n{self._output.read()}", flush=True)
            self._output.close()
        if self._result_file.exists():
            result: dict[str, Any] = json.loads(self._result_file.read_text(encoding="utf-8"))
        else:
            result = {"suites": {}, "facts": [], "skipped": {}, "seconds": 0.0, "server": "did not get to its end"}
        self._folder.cleanup()
        return result | {"database": self.database, "exit": code}


def run_all(*, prove: bool, arguments: list[str]) -> list[dict[str, Any]]:
    """Every database's result."""
    if prove or "--pdb" in arguments:
        return [Suite(database, prove=prove, arguments=arguments).finish() for database in DATABASES]
    suites = [
        Suite(database, prove=prove, arguments=arguments, quiet=database != DATABASES[0]) for database in DATABASES
    ]
    return [suite.finish() for suite in suites]


def total(result: dict[str, Any], outcome: str) -> int:
    """How many tests of a run ended so."""
    return sum(int(row[outcome]) for row in result["suites"].values())


def summary(results: list[dict[str, Any]]) -> list[str]:
    """One line for each database, and one for each thing this machine lacks."""
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
    return 0 if all(result["exit"] == 0 for result in results) else 1


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
