"""What tools/run-tests counts, from outside: a small tree with suites that behave and misbehave."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent


class Tree:
    """A tree in which every suite that has to exist passes one test, until a test changes that."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "tools").mkdir()
        shutil.copy(ROOT / "tools" / "run-tests", root / "tools" / "run-tests")
        self.script(root / "tools" / "tidy", "exit 0")
        (root / "src" / "kv").mkdir(parents=True)
        (root / "src" / "kv" / "kv.cpp").touch()
        (root / "src" / "sim").mkdir()
        names = self.run("--list", "--only", "cpp").stdout.split()
        assert names == []  # None has a folder yet.
        for suite in ("unit/base", "unit/metrics", "unit/scheduler", "unit/sim", "unit/api",
                      "unit/http", "unit/app", "unit/kv", "unit/reconfigure", "unit/store",
                      "property", "conformance"):
            (root / "tests" / suite).mkdir(parents=True)
            self.gtest(suite.rsplit("/", 1)[-1], passing("one"))
        self.script(root / "build" / "release" / "fermata", "exit 0")
        for suite in ("tools", "e2e"):
            self.pytest(suite, "def test_one(): pass\n")

    def script(self, path: Path, text: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/bash\n{text}\n")
        path.chmod(0o755)

    def gtest(self, name: str, text: str) -> None:
        self.script(self.root / "build" / "release" / "tests" / f"{name}_test", text)

    def pytest(self, name: str, text: str) -> None:
        folder = self.root / "tests" / name
        folder.mkdir(exist_ok=True)
        (folder / f"test_{name}.py").write_text(text)

    def run(self, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
        clean = {key: value for key, value in os.environ.items() if not key.startswith("FERMATA_")}
        return subprocess.run([str(self.root / "tools" / "run-tests"), *arguments], text=True,
                              capture_output=True, check=False, env=clean | env, timeout=60)

    def total(self, *arguments: str) -> tuple[int, str]:
        done = self.run(*arguments)
        return done.returncode, done.stdout.splitlines()[-1]


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


def passing(name: str) -> str:
    return f'echo "[ RUN      ] A.{name}"; echo noise; echo "[       OK ] A.{name} (0 ms)"'


def failing(name: str) -> str:
    return f'echo "[ RUN      ] A.{name}"; echo why; echo "[  FAILED  ] A.{name} (0 ms)"'


def test_everything_passes(tree: Tree) -> None:
    done = tree.run()
    assert done.stdout.splitlines()[-1] == "16 passed, 0 failed"
    assert done.returncode == 0
    assert "noise" not in done.stdout


def test_a_failure_shows_its_own_output_alone(tree: Tree) -> None:
    tree.gtest("kv", f"{passing('good')}; {failing('bad')}; exit 1")
    done = tree.run("--only", "kv_test")
    assert done.stdout.splitlines()[-1] == "1 passed, 1 failed"
    assert done.returncode == 1
    assert "why" in done.stdout and "noise" not in done.stdout


def test_a_test_that_ends_the_process_failed(tree: Tree) -> None:
    tree.gtest("kv", passing("good") + '; echo "[ RUN      ] A.crash"; echo last words; kill -6 $$')
    assert tree.total("--only", "kv_test") == (1, "1 passed, 1 failed")
    assert "last words" in tree.run("--only", "kv_test").stdout


def test_trouble_after_the_last_test_counts(tree: Tree) -> None:
    tree.gtest("kv", passing("good") + "; echo leaked; exit 23")
    assert tree.total("--only", "kv_test") == (1, "1 passed, 1 failed")
    assert "leaked" in tree.run("--only", "kv_test").stdout


def test_a_skipped_test_failed(tree: Tree) -> None:
    tree.gtest("kv", 'echo "[ RUN      ] A.s"; echo "[  SKIPPED ] A.s (0 ms)"')
    assert tree.total("--only", "kv_test") == (1, "0 passed, 1 failed")
    tree.pytest("e2e", "import pytest\n@pytest.mark.skip\ndef test_one(): pass\n")
    assert tree.total("--only", "e2e") == (1, "0 passed, 1 failed")


def test_a_suite_without_tests_failed(tree: Tree) -> None:
    tree.gtest("kv", "exit 0")
    assert tree.total("--only", "kv_test") == (1, "0 passed, 1 failed")
    tree.pytest("e2e", "")
    assert tree.total("--only", "e2e") == (1, "0 passed, 1 failed")


def test_python_failures_and_errors_count(tree: Tree) -> None:
    tree.pytest("e2e", "def test_a(): pass\ndef test_b(): assert 1 == 2\ndef test_c(none): pass\n")
    assert tree.total("--only", "e2e") == (1, "1 passed, 2 failed")
    tree.pytest("e2e", "import nothing_of_the_kind\n")
    assert tree.total("--only", "e2e") == (1, "0 passed, 1 failed")


def test_a_missing_suite_is_named_and_failed(tree: Tree) -> None:
    shutil.rmtree(tree.root / "tests" / "e2e")
    shutil.rmtree(tree.root / "tests" / "unit" / "kv")  # src/kv has code.
    done = tree.run("--only", "e2e", "kv_test")
    assert "there is no tests/e2e" in done.stdout
    assert "there is no tests/unit/kv" in done.stdout
    assert done.stdout.splitlines()[-1] == "0 passed, 2 failed"
    assert done.returncode == 1


def test_a_suite_that_was_not_built_failed(tree: Tree) -> None:
    (tree.root / "build" / "release" / "tests" / "kv_test").unlink()
    assert tree.total("--only", "kv_test") == (1, "0 passed, 1 failed")


def test_the_style_gate_is_one_test(tree: Tree) -> None:
    tree.script(tree.root / "tools" / "tidy", 'echo "src/a.h:1: [length] long"; exit 1')
    assert tree.total("--only", "tidy") == (1, "0 passed, 1 failed")
    assert "src/a.h:1" in tree.run("--only", "tidy").stdout


def test_a_seed_that_fails_is_shown(tree: Tree) -> None:
    fermata = tree.root / "build" / "release" / "fermata"
    tree.script(fermata, 'echo "$@"; echo "again: fermata sim --seed 7"; exit 1')
    assert tree.total("--only", "sim") == (1, "0 passed, 1 failed")
    output = tree.run("--only", "sim").stdout
    assert "sim --seeds 10000" in output and "again: fermata sim --seed 7" in output
    fermata.unlink()
    assert tree.total("--only", "sim") == (1, "0 passed, 1 failed")


def test_an_unknown_suite_is_refused(tree: Tree) -> None:
    done = tree.run("--only", "nonsense")
    assert done.returncode != 0
    assert "kv_test" in done.stderr


def test_tests_know_the_binaries_of_their_build(tree: Tree) -> None:
    tree.pytest("e2e", "import os\ndef test_one():\n"
                "  assert os.environ['FERMATA_BINARY'].endswith('/other/fermata')\n"
                "  assert os.environ['FERMATA_MAKE_MODEL'].endswith('/other/make-model')\n")
    other = tree.root / "build" / "other"
    assert tree.total("--build", str(other), "--only", "e2e") == (1, "0 passed, 1 failed")
    tree.script(other / "fermata", "exit 0")
    assert tree.total("--build", str(other), "--only", "e2e") == (0, "1 passed, 0 failed")


def test_counts_go_to_the_file_that_asks_for_them(tree: Tree) -> None:
    counts = tree.root / "counts"
    done = tree.run("--only", "kv_test", FERMATA_COUNTS=str(counts))
    assert counts.read_text() == "1 0\n"
    assert "0 failed" not in done.stdout
