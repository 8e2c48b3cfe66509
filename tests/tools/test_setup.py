"""tools/setup from outside: what it says when something is missing. No test needs a network."""

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
LIBLLAMA = ROOT / "tools" / "setup" / "libllama.sh"
SETUP = ROOT / "tools" / "setup" / "setup.sh"
SDK = ROOT / "tools" / "setup" / "sdk.sh"
TOOLS = ["bash", "base64", "cat", "cp", "cut", "dirname", "find", "flock", "git", "grep", "head",
         "id", "mkdir", "mktemp", "mv", "openssl", "realpath", "rm", "sed", "sha256sum", "sort",
         "tar", "uname", "xargs"]


class Machine:
    """A folder that is the whole PATH: the usual tools and the stand-ins that a test puts there."""

    def __init__(self, folder: Path) -> None:
        self.bin, self.cache = folder / "bin", folder / "cache"
        self.bin.mkdir()
        for tool in TOOLS:
            (self.bin / tool).symlink_to(Path("/usr/bin") / tool)

    def put(self, name: str, text: str) -> None:
        path = self.bin / name
        path.unlink(missing_ok=True)
        path.write_text(f"#!/bin/bash\n{text}\n")
        path.chmod(0o755)

    def run(self, script: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
        env = {"PATH": str(self.bin), "HOME": str(self.bin), "FERMATA_CACHE": str(self.cache)}
        return subprocess.run([str(script), *arguments], env=env, capture_output=True, text=True,
                              check=False, timeout=60)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_a_package_with_a_wrong_checksum_is_refused(machine: Machine) -> None:
    machine.put("npm", "echo junk >junk.tgz; echo junk.tgz")
    done = machine.run(LIBLLAMA)
    assert done.returncode == 1
    assert done.stdout == ""
    assert "wrong checksum" in done.stderr.splitlines()[-1]
    assert [path.name for path in machine.cache.iterdir()] == [".libllama.lock"]


def test_no_network_is_one_line_with_the_reason(machine: Machine) -> None:
    machine.put("npm", 'echo "npm error code ENOTFOUND" >&2; echo "npm error more" >&2; exit 1')
    done = machine.run(LIBLLAMA)
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert re.search(r"could not fetch .*ENOTFOUND.*check the network", last)


def test_no_npm_names_the_mend(machine: Machine) -> None:
    done = machine.run(LIBLLAMA)
    assert (done.returncode, done.stderr) == (
        1, "libllama: the command npm is missing; run: make setup\n")


def test_an_unknown_platform_names_the_mend(machine: Machine) -> None:
    machine.put("uname", "echo Plan9")
    done = machine.run(LIBLLAMA)
    assert done.returncode == 1
    assert "make LIBLLAMA=system" in done.stderr


def test_a_damaged_folder_is_never_handed_out(machine: Machine) -> None:
    machine.put("npm", "exit 1")
    machine.put("uname", 'case $1 in -s) echo Linux ;; -m) echo x86_64 ;; esac')
    folder = machine.cache / "libllama-0.4.0-linux-x64"
    (folder / "lib").mkdir(parents=True)
    (folder / "lib" / "libllama.v0.4.0.so").write_text("torn")
    done = machine.run(LIBLLAMA)
    assert (done.returncode, done.stdout) == (1, "")
    assert "is damaged; fetching it again" in done.stderr
    assert folder.exists()  # Kept until there is something better.


def test_a_good_folder_needs_no_network(machine: Machine) -> None:
    """The folder that this build was made with, with an npm that cannot do anything."""
    machine.put("npm", "exit 1")
    inherited = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    machine.cache = Path(os.environ.get("FERMATA_CACHE") or Path(inherited) / "fermata")
    done = machine.run(LIBLLAMA)
    assert (done.returncode, done.stderr) == (0, "")
    assert (Path(done.stdout.strip()) / "include" / "llama.h").exists()
    assert done.stdout.startswith(str(machine.cache))


def installed(*without: str) -> str:
    """A dpkg-query that knows every package of the list but some."""
    packages = (SETUP.parent / "packages.txt").read_text()
    listed = re.findall(r"^([a-z][\w.+-]*)", packages, re.MULTILINE)
    assert set(without) <= set(listed)
    return "\n".join(f"echo installed {name}" for name in listed if name not in without)


def test_setup_does_nothing_when_all_is_there(machine: Machine) -> None:
    machine.put("dpkg-query", installed())
    machine.put("apt-get", "exit 1")
    done = machine.run(SETUP)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_setup_installs_only_what_is_missing(machine: Machine) -> None:
    machine.put("dpkg-query", installed("mold", "librapidcheck-dev"))
    machine.put("apt-get", 'echo "apt-get $*"')
    machine.put("id", "echo 0")
    machine.put("env", 'shift; exec "$@"')
    done = machine.run(SETUP)
    assert done.returncode == 0
    assert re.search(r"^apt-get install .*recommends mold librapidcheck-dev$", done.stdout, re.M)


def test_serving_needs_no_test_packages(machine: Machine) -> None:
    machine.put("dpkg-query", installed("librapidcheck-dev"))
    machine.put("apt-get", "exit 1")
    assert machine.run(SETUP, "serve").returncode == 0


def test_a_command_from_elsewhere_counts(machine: Machine) -> None:
    machine.put("dpkg-query", installed("npm", "nodejs"))
    machine.put("apt-get", "exit 1")
    machine.put("id", "echo 0")
    assert machine.run(SETUP).returncode == 1
    machine.put("npm", "")
    machine.put("node", "")
    assert machine.run(SETUP).returncode == 0


def test_setup_without_rights_names_the_mend(machine: Machine) -> None:
    machine.put("dpkg-query", installed("mold"))
    machine.put("apt-get", "exit 1")
    machine.put("id", "echo 1000")
    done = machine.run(SETUP)
    assert done.returncode == 1
    assert "ask root to run:" in done.stderr
    machine.put("sudo", 'echo "sudo $*"')
    assert "sudo apt-get update" in machine.run(SETUP).stdout


def test_setup_elsewhere_than_on_debian(machine: Machine) -> None:
    done = machine.run(SETUP)
    assert done.returncode == 1
    assert "packages.txt" in done.stderr


def test_clients_that_cannot_be_fetched_are_one_line_with_the_reason(machine: Machine) -> None:
    machine.put("node", "exit 1")
    machine.put("npm", 'echo "npm error code ENOTFOUND" >&2; exit 1')
    done = machine.run(SDK)
    assert (done.returncode, done.stdout) == (1, "")
    assert re.search(r"npm failed \(ENOTFOUND\); check the network", done.stderr.splitlines()[-1])
    assert [path.name for path in machine.cache.iterdir()] == [".sdk.lock"]


def test_clients_are_fetched_once_for_a_lock_file(machine: Machine) -> None:
    machine.put("node", "exit 1")
    machine.put("npm", '[ "$1 $2" = "ci --ignore-scripts" ] && mkdir node_modules')
    first = machine.run(SDK)
    assert first.returncode == 0, first.stderr
    assert (Path(first.stdout.strip()) / "node_modules").is_dir()
    machine.put("npm", "exit 1")
    assert machine.run(SDK).stdout == first.stdout


def test_the_lock_file_names_no_host() -> None:
    lock = (ROOT / "tests" / "sdk" / "package-lock.json").read_text(encoding="utf-8")
    assert '"resolved"' not in lock
    assert lock.count('"integrity"') > 40
