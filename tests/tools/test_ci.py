"""How .ci/run adds up its parts, with stand-ins for them."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent


def run(folder: Path, **parts: str) -> tuple[int, str]:
    """Exit code and closing line; a part that is not given passes two tests."""
    (folder / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "run", folder / ".ci" / "run")
    recipes = {"test": counts(2, 0), "tidy": "true", "asan": counts(2, 0), "tsan": counts(2, 0),
               "fuzz": counts(3, 0)}
    (folder / "Makefile").write_text(
        "".join(f"{name}:\n\t@{recipe}\n" for name, recipe in (recipes | parts).items()))
    done = subprocess.run([str(folder / ".ci" / "run")], capture_output=True, text=True,
                          check=False, timeout=60)
    lines = done.stdout.splitlines()
    assert sum(line.endswith(" failed") and "passed, " in line for line in lines) == 1
    return done.returncode, lines[-1]


def counts(passed: int, failed: int) -> str:
    return f'echo "{passed} {failed}" >>"$$FERMATA_COUNTS"; exit {min(failed, 1)}'


def test_all_parts_add_up(tmp_path: Path) -> None:
    assert run(tmp_path) == (0, "9 passed, 0 failed")


@pytest.mark.parametrize("part", ["test", "tidy", "asan", "tsan", "fuzz"])
def test_a_part_that_cannot_count_is_one_failure(tmp_path: Path, part: str) -> None:
    code, line = run(tmp_path, **{part: "false"})
    assert code == 1
    assert line.endswith(" passed, 1 failed")


def test_failures_are_counted_once_and_later_parts_run(tmp_path: Path) -> None:
    assert run(tmp_path, test=counts(5, 3)) == (1, "12 passed, 3 failed")


def test_nothing_run_is_a_failure(tmp_path: Path) -> None:
    assert run(tmp_path, test="true", asan="true", tsan="true", fuzz="true")[0] == 1
