"""The benchmarks run to their end and say what they measured; their figures are no test."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from server import BINARY, PATIENCE_S, TINY


def bench(tmp_path: Path, workload: str, *args: str, peer: bool = False) -> dict[str, Any]:
    """The closing line of a workload over the tiny model; this build is its own peer."""
    env = os.environ | {"FERMATA_BENCH_MODEL": str(TINY), "FERMATA_TINY_MODEL": str(TINY)}
    env.pop("LLAMA_SERVER", None)
    if peer:
        env["LLAMA_SERVER"] = str(BINARY)
    done = subprocess.run([BINARY, "bench", workload, *args], cwd=tmp_path, env=env, text=True,
                          capture_output=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout.splitlines()[-1])
    assert figures["workload"] == workload
    assert figures["machine"]["libllama"]
    return figures


@pytest.mark.parametrize("peer", [False, True])
@pytest.mark.parametrize("workload", ["throughput", "ttft"])
def test_against_a_peer_or_a_bare_loop(tmp_path: Path, workload: str, peer: bool) -> None:
    figures = bench(tmp_path, workload, "--pairs", "1", peer=peer)
    assert figures["ratio"] > 0
    assert ("peer" in figures, "bare" in figures) == (peer, not peer)


def test_a_second_turn_computes_what_was_added(tmp_path: Path) -> None:
    figures = bench(tmp_path, "prefix", "--pairs", "1", peer=True)
    added = figures["added_tokens"]
    for name in ("computed_tokens", "peer_computed_tokens"):
        # The last token of the reply was chosen and not computed.
        assert added <= figures[name] <= added + 1
    assert figures["over_peer"] > 0


def test_what_surrounds_the_model(tmp_path: Path) -> None:
    figures = bench(tmp_path, "http", peer=True)
    for side in (figures["ours"], figures["peer"]):
        assert side["health_cpu_us"] > 0 and side["token_cpu_us"] > 0
        assert side["threads"] >= 2
    # Whoever has the seat may finish on a slow machine, and one of them gets it.
    assert 1990 <= figures["ours"]["idle_streams"] <= 2000


def test_a_conversation_comes_back_from_ram_and_from_disk(tmp_path: Path) -> None:
    figures = bench(tmp_path, "restore", "--pairs", "1")
    assert figures["ratio"] > 0 and figures["disk_ratio"] > 0


def test_a_second_turn_after_a_restart_computes_what_was_added(tmp_path: Path) -> None:
    figures = bench(tmp_path, "restart", "--pairs", "1")
    added = figures["added_tokens"]
    assert added <= figures["computed_tokens"] <= added + 1


def test_agents_share_what_their_prompts_begin_with(tmp_path: Path) -> None:
    figures = bench(tmp_path, "agents", "--pairs", "1", peer=True)
    assert figures["wall_over_peer"] > 0
    assert figures["computed_tokens"] < 16 * 2020


def test_a_stream_beside_the_writing_of_pages(tmp_path: Path) -> None:
    figures = bench(tmp_path, "decode-pages", "--pairs", "1")
    assert figures["ratio"] > 0 and figures["written_bytes"] > 0
