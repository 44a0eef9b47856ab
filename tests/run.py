"""Run the whole suite on SQLite and then on PostgreSQL, and end with one summary: `python -m tests.run [--prove]`.

The second database runs even if the first one failed; the exit code is 0 only when both passed. `--prove` runs the
full counts and writes `prove-report.md`. Everything else on the command line goes to pytest.
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


def run_on(database: str, *, prove: bool, arguments: list[str]) -> dict[str, Any]:
    """Run pytest once in a process of its own and return what its plugin counted."""
    print(f"\n=== tests on {database} ===", flush=True)
    with tempfile.TemporaryDirectory(prefix="kampong-result-") as folder:
        result_file = Path(folder) / "result.json"
        environment = dict(os.environ, KAMPONG_TEST_DB=database, KAMPONG_TEST_RESULT=str(result_file))
        command = [sys.executable, "-m", "pytest", *arguments]
        if prove:
            environment["KAMPONG_PROVE"] = "1"
            command.append("--timeout=1800")
        finished = subprocess.run(command, cwd=ROOT, env=environment, check=False)
        if result_file.exists():
            result: dict[str, Any] = json.loads(result_file.read_text(encoding="utf-8"))
        else:
            result = {"suites": {}, "facts": [], "skipped": {}, "seconds": 0.0, "server": "did not get to its end"}
    return result | {"database": database, "exit": finished.returncode}


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
    results = [run_on(database, prove=prove, arguments=rest) for database in DATABASES]
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
