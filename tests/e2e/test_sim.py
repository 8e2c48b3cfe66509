"""fermata sim: what it prints, and that a failing seed can be played again from its line."""

import re
import shlex
import subprocess

import pytest

from server import BINARY, PATIENCE_S


def sim(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([BINARY, "sim", *args], capture_output=True, text=True,
                          timeout=PATIENCE_S, check=False)


def test_one_seed_tells_what_it_drew_first() -> None:
    done = sim("--seed", "7")
    assert done.returncode == 0, done.stdout
    lines = done.stdout.splitlines()
    assert lines[0] == "seed 7"
    for number, word in enumerate(("memory", "policy", "cache", "cost", "clients"), 1):
        assert lines[number].split()[0] == word
    assert lines[-1] == "everything held"
    assert sim("--seed", "7").stdout == done.stdout


def test_many_seeds_show_progress_and_a_summary() -> None:
    done = sim("--seeds", "100")
    assert done.returncode == 0, done.stdout
    assert re.fullmatch(r"seeds \d+ to \d+ on \d+ threads", done.stdout.splitlines()[0])
    assert re.fullmatch(r"100 seeds in [\d.]+ s: 0 failed", done.stdout.splitlines()[-1])
    assert done.stderr.splitlines()[-1] == "100 of 100 seeds, 0 failed"
    assert len(done.stderr.splitlines()) == 10


def test_two_runs_play_other_seeds() -> None:
    assert sim("--seeds", "1").stdout.splitlines()[0] != sim("--seeds", "1").stdout.splitlines()[0]


@pytest.mark.parametrize("plant", ["lost-final", "wrong-text", "leaked-cell"])
def test_a_planted_fault_is_found_and_its_line_plays_it_again(plant: str) -> None:
    done = sim("--seeds", "3", "--memory", "hybrid", "--plant", plant)
    assert done.returncode == 1, done.stdout
    assert done.stdout.splitlines()[-1].endswith("3 failed")
    again = re.findall(r"^again: (fermata sim --seed \d+ .*)$", done.stdout, re.MULTILINE)
    assert len(again) == 3
    once_more = sim(*shlex.split(again[0])[2:])
    assert once_more.returncode == 1
    assert "FAULT" in once_more.stdout
    assert f"again: {again[0]}" in once_more.stdout


def test_a_failed_check_ends_the_process_with_its_line() -> None:
    done = sim("--seed", "11", "--plant", "failed-check")
    assert done.returncode < 0
    assert "check failed" in done.stderr
    assert done.stderr.splitlines()[-1] == "again: fermata sim --seed 11 --plant failed-check"


def test_compare_prints_every_policy_for_every_workload() -> None:
    done = sim("--compare", "--days", "1")
    assert done.returncode == 0
    for policy in ("smallest", "youngest", "oldest", "largest", "cost", "admission-only"):
        rows = [line for line in done.stdout.splitlines() if f"| {policy} |" in line]
        assert len(rows) == 11, policy  # Five workloads, twice, and the summary.


@pytest.mark.parametrize("args", [["--seed", "0"], ["--seeds", "-1"], ["--memory", "paper"],
                                  ["--plant", "roses"], ["--sed", "1"], ["--days", "3"],
                                  ["--compare", "--seeds", "3"]])
def test_wrong_usage_is_refused(args: list[str]) -> None:
    assert sim(*args).returncode == 2
