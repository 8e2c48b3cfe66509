"""Far more than fits: everybody is served, memory stays within its budget, mistakes are told."""

import re
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from server import Server, raw_post, wait_until
from test_info import parse_metrics
from test_preempt import check_nothing_is_left, long_request, metric

MIB = 1 << 20


def is_sanitized(server: Server) -> bool:
    return "libasan" in Path(f"/proc/{server.process.pid}/maps").read_text()


def rss_mib(server: Server) -> float:
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    found = re.search(r"^VmRSS:\s+(\d+) kB$", status, re.M)
    assert found
    return int(found.group(1)) / 1024


@contextmanager
def sampled(server: Server) -> Iterator[list[dict[str, float]]]:
    """Reads /metrics over and over as long as the block runs."""
    samples: list[dict[str, float]] = []
    done = threading.Event()

    def sample() -> None:
        while not done.wait(0.02):
            values = parse_metrics(server.get("/metrics").text)
            samples.append(values | {"rss_mib": rss_mib(server)})

    thread = threading.Thread(target=sample)
    thread.start()
    try:
        yield samples
    finally:
        done.set()
        thread.join()


@pytest.mark.parametrize("stream", [True, False])
def test_one_that_fills_the_pool_ends_alone(start: Callable[..., Server], stream: bool) -> None:
    # A1: one chat at its end ended all of them.
    server = start("-c", "256", "-np", "3", "--metrics")
    endless = {"prompt": [310] * 20, "n_predict": -1, "ignore_eos": True}
    with ThreadPoolExecutor(3) as pool:
        short = [pool.submit(server.complete, **long_request(i, n_predict=160)) for i in range(2)]
        if stream:
            events = list(server.stream("/completion", endless))
            last, n = events[-1], events[-1]["timings"]["predicted_n"]
            assert "".join(event["content"] for event in events) != ""
        else:
            last = server.complete(**endless)
            n = last["timings"]["predicted_n"]
            assert last["content"] != ""
        assert last["stop_type"] == "limit" and last["truncated"]
        assert n == 256 - 20, "all that the pool could hold; the last token takes no cell"
        for reply in [future.result() for future in short]:
            assert len(reply["tokens"]) == 160
            assert not reply["truncated"]
    check_nothing_is_left(server)


def test_one_that_can_never_fit_is_told_at_once(start: Callable[..., Server]) -> None:
    # A2: it waited for ever, and everybody behind it. 11: a notice had opened a 200 before the 4xx.
    server = start("-c", "256", "-np", "2", "--metrics")
    runners = [raw_post(server, "/completion", long_request(i, n_predict=200)) for i in range(2)]
    wait_until(lambda: metric(server, "requests_preempted") > 0, "a park")
    for stream in (True, False):
        answer = server.post("/completion", {"prompt": [320] * 300, "stream": stream})
        assert answer.status_code == 400
        error = answer.json()["error"]
        assert error["type"] == "exceed_context_size_error"
        assert error["n_prompt_tokens"] == 300 and error["n_ctx"] == 256
        bad = server.post("/completion", {"prompt": "x", "top_k": "many", "stream": stream})
        assert bad.status_code == 400 and "top_k" in bad.json()["error"]["message"]
    with ThreadPoolExecutor(10) as pool:
        replies = list(pool.map(lambda i: server.complete(prompt=[330 + i] * 5, n_predict=5,
                                                          ignore_eos=True), range(10)))
    assert [reply["tokens_predicted"] for reply in replies] == [5] * 10
    for sock in runners:
        sock.close()
    check_nothing_is_left(server)


def test_a_prompt_of_nearly_the_whole_pool_runs(start: Callable[..., Server]) -> None:
    # 3: within the margin of the pool's size it waited for ever.
    server = start("-c", "256", "-np", "2", "--metrics")
    with ThreadPoolExecutor(2) as pool:
        replies = list(pool.map(lambda i: server.complete(prompt=[320 + i] * 250, n_predict=4,
                                                          ignore_eos=True), range(2)))
    assert [reply["tokens_predicted"] for reply in replies] == [4, 4]
    check_nothing_is_left(server)


@pytest.mark.parametrize("budget", ["8192", "0"])
def test_no_thrashing(start: Callable[..., Server], budget: str) -> None:
    # A3: resumed into room that they could not keep.
    server = start("-c", "1100", "-np", "4", "--preempt-ram", budget, "--metrics")
    with ThreadPoolExecutor(4) as pool:
        replies = list(pool.map(lambda i: server.complete(
            prompt=[320 + i] * 200, n_predict=600, ignore_eos=True), range(4)))
    for reply in replies:
        assert reply["tokens_predicted"] == 600
        assert reply["fermata"]["parks"] <= 10
    assert sum(reply["fermata"]["parks"] for reply in replies) > 0
    check_nothing_is_left(server)


def test_the_budget_is_a_cap_at_every_moment(start: Callable[..., Server]) -> None:
    # A8: it was a hint. One MiB is about 540 tokens of this model; some images are larger alone.
    server = start("-c", "2048", "-np", "8", "--preempt-ram", "1", "--cache-ram", "1",
                   "--metrics")
    server.complete(**long_request(0, n_predict=1900))  # Everything that grows once has grown.
    before = rss_mib(server)
    with sampled(server) as samples, ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(
            lambda i: server.complete(**long_request(i, n_predict=[700, 400][i % 2])), range(8)))
    assert [len(reply["tokens"]) for reply in replies] == [700, 400] * 4
    held = [sample["llamacpp:preempt_ram_bytes"] for sample in samples]
    assert 0 < max(held) <= MIB
    assert metric(server, "n_preempt_swap_total") > 0
    assert metric(server, "n_preempt_recompute_total") > 0
    if not is_sanitized(server):  # The address sanitizer keeps what was freed.
        # The budget, and what eight requests and the sampling itself take.
        assert max(sample["rss_mib"] for sample in samples) < before + 1 + 24
    check_nothing_is_left(server)
