"""When tools/build configures and when it only builds, with stand-ins for cmake and ninja."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent

# Keeps what it was configured with, as cmake does; a name that is not given keeps its value.
CMAKE = """
folder=$4
mkdir -p "$folder"
touch "$folder/build.ninja" "$folder/CMakeCache.txt"
for argument; do
  case $argument in -D*=*)
    option=${argument#-D}
    sed -i "/^${option%%=*}:/d" "$folder/CMakeCache.txt"
    echo "${option%%=*}:STRING=${option#*=}" >>"$folder/CMakeCache.txt"
  esac
done
"""


class Tree:
    def __init__(self, root: Path) -> None:
        self.root, self.log = root, root / "log"
        (root / "tools" / "setup").mkdir(parents=True)
        shutil.copy(ROOT / "tools" / "build", root / "tools" / "build")
        self.script("tools/setup/libllama.sh", "echo /cache/libllama")
        self.script("bin/cmake", f'echo "cmake $*" >>{self.log}\n{CMAKE}')
        self.script("bin/ninja", f'echo "ninja $*" >>{self.log}')

    def script(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/bash\n{text}\n")
        path.chmod(0o755)

    def build(self, *arguments: str, **env: str) -> tuple[str, str]:
        """The calls of cmake ("" when there is none) and ninja."""
        self.log.write_text("")
        path = f"{self.root / 'bin'}:{os.environ['PATH']}"
        clean = {key: value for key, value in os.environ.items() if key != "LIBLLAMA"}
        subprocess.run([str(self.root / "tools" / "build"), "build/x", *arguments], check=True,
                       env=clean | {"PATH": path, "JOBS": "3"} | env, timeout=60)
        lines = self.log.read_text().splitlines()
        return "".join(line for line in lines if line.startswith("cmake")), lines[-1]


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


def test_a_new_folder_is_configured_without_tests(tree: Tree) -> None:
    cmake, ninja = tree.build("fermata")
    assert "-DFERMATA_TESTS=OFF" in cmake
    assert "-DFERMATA_LIBLLAMA_DIR=/cache/libllama" in cmake
    assert ninja == "ninja -C build/x -j 3 fermata"


def test_a_second_build_does_not_configure(tree: Tree) -> None:
    tree.build("fermata")
    assert tree.build("fermata") == ("", "ninja -C build/x -j 3 fermata")


def test_tests_that_were_asked_for_stay(tree: Tree) -> None:
    tree.build("fermata")
    assert "-DFERMATA_TESTS=ON" in tree.build("-DFERMATA_TESTS=ON")[0]
    assert tree.build("fermata")[0] == ""
    assert tree.build("-DFERMATA_TESTS=ON")[0] == ""


def test_another_option_or_another_libllama_configures_again(tree: Tree) -> None:
    tree.build()
    assert "-DFERMATA_SANITIZE=thread" in tree.build("-DFERMATA_SANITIZE=thread")[0]
    assert tree.build("-DFERMATA_SANITIZE=thread")[0] == ""
    tree.script("tools/setup/libllama.sh", "echo /elsewhere")
    assert "-DFERMATA_LIBLLAMA_DIR=/elsewhere" in tree.build()[0]


def test_an_installed_libllama_is_not_fetched(tree: Tree) -> None:
    tree.script("tools/setup/libllama.sh", "exit 1")
    cmake, _ = tree.build(LIBLLAMA="system")
    assert "-DFERMATA_LIBLLAMA=system" in cmake
    assert "LIBLLAMA_DIR" not in cmake
