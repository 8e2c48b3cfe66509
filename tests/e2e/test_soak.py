"""The short form of tools/soak: twenty seconds of random load, everything accounted for."""

import subprocess
import sys

from server import BINARY, PATIENCE_S, ROOT


def test_twenty_seconds_of_soak() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "soak"), "--minutes", "0.33", "--seed", "7",
         "--binary", str(BINARY)],
        capture_output=True, text=True, check=False, timeout=20 + 5 * PATIENCE_S)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.rstrip().endswith(" 0 faults"), done.stdout
