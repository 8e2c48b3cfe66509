"""Runs the scripts of tests/sdk: other people's clients against a server of ours."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from server import PATIENCE_S, ROOT, Server, count_text

SOURCES = ROOT / "tests" / "sdk"
KEY = "sk-test"
COUNTED = count_text(1, 40).replace(" ", ", ")
PERSON = {"name": "Ben", "age": 7}
OSLO = {"city": "Oslo"}
# What the model makes of the tool's result in cases.mjs.
WEATHER = "The weather in Oslo is cloudy with 7 degrees."
# One slot and one place to wait, for the cases that fill the queue.
NARROW = ("-c", "4096", "-np", "1", "--queue-max", "1", "--metrics")
PARKING = ("-c", "1024", "-np", "2", "--preempt-every", "3", "--metrics")


def prepare(folder: Path) -> Path:
    """The scripts beside the clients that they import; fetches the clients when they are new."""
    clients = subprocess.run([ROOT / "tools" / "setup" / "sdk.sh"], check=True, text=True,
                             stdout=subprocess.PIPE).stdout.strip()
    (folder / "node_modules").symlink_to(Path(clients) / "node_modules")
    for script in SOURCES.glob("*.mjs"):
        (folder / script.name).write_bytes(script.read_bytes())
    return folder


class Results:
    """What each case of a script came to; asking for one that threw fails the test."""

    def __init__(self, results: dict[str, Any]) -> None:
        self._results = results

    def __getitem__(self, case: str) -> Any:
        result = self._results[case]
        if isinstance(result, dict) and "stack" in result:
            raise AssertionError(f"{case}: {result['stack']}")
        return result


def run(folder: Path, script: str, server: Server, *cases: str) -> Results:
    """Runs the cases in one process, one after another; those of a script that are not named in
    any call do not run."""
    # The clients' own settings may lie in the environment.
    env = {name: value for name, value in os.environ.items()
           if not name.startswith(("OPENAI_", "ANTHROPIC_", "LANGCHAIN_", "LANGSMITH_"))}
    done = subprocess.run(["node", script, server.url, KEY, *cases], cwd=folder, env=env,
                          capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0, done.stderr
    return Results(json.loads(done.stdout.splitlines()[-1]))


def check_failure(failure: dict[str, Any], name: str, status: int, *words: str) -> None:
    """The client's own class, and our message in it."""
    assert (failure["class"], failure["status"]) == (name, status), failure
    for word in words:
        assert word in failure["message"], failure
