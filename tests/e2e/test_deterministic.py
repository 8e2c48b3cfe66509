"""--deterministic: every reply has the bytes of the same request alone on a fresh server, whatever
is parked, cancelled or computed beside it; log-probabilities to the last bit."""

import random
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import requests

from server import PATIENCE_S, TINY, Server, force, parse_sse, turns
from test_preempt import check_nothing_is_left, metric

CHUNK = 16
# Wide cells, so that a budget of 1 MiB holds some of the parked and not all.
FLAGS = ["--deterministic", "-c", "2048", "-np", "4", "-ub", str(CHUNK), "-ctk", "f32",
         "-ctv", "f32", "--metrics"]
EMOJI = "So it went: 🙂👩‍👩‍👧 — naïve 日本 🏳️‍🌈 and so on, to the end 🙃."


def tokens(seed: int, count: int) -> list[int]:
    return [200 + (seed * 37 + i * 7) % 300 for i in range(count)]


def bodies() -> list[dict[str, Any]]:
    """Eight requests of all sorts."""
    long = {"n_predict": 120, "ignore_eos": True}
    chat = "<|im_start|>user\nCount from 1 to 40.<|im_end|>\n<|im_start|>assistant\n"
    return [{"return_tokens": True, "seed": 7, "n_probs": 5} | body for body in [
        {"prompt": tokens(1, 150), "temperature": 0} | long,
        {"prompt": tokens(2, 33), "temperature": 1.0} | long,
        {"prompt": tokens(3, 16), "temperature": 1.5, "top_k": 0} | long,
        {"prompt": chat, "temperature": 0, "n_predict": 200},
        {"prompt": chat, "temperature": 0, "n_predict": 200, "stop": ["31", "never this"]},
        {"prompt": EMOJI * 3, "temperature": 1.0, "repeat_penalty": 1.2} | long,
        {"prompt": "Say it", "grammar": force(EMOJI), "n_predict": 300},
        {"prompt": tokens(1, 150) + tokens(9, 60), "temperature": 0.7, "mirostat": 2} | long]]


def bytes_of(reply: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(reply[name] for name in ("content", "tokens", "stop_type", "stopping_word",
                                          "tokens_predicted", "truncated",
                                          "completion_probabilities"))


def alone(body: dict[str, Any], *args: str, model: Path = TINY) -> tuple[Any, ...]:
    server = Server(*FLAGS, *args, model=model)
    try:
        return bytes_of(server.complete(**body))
    finally:
        server.stop()


def leave_early(server: Server, seed: int) -> None:
    """Reads some events of a stream, or none, and goes away."""
    body = {"prompt": tokens(seed, 20 + seed * 9), "n_predict": 300, "ignore_eos": True,
            "stream": True}
    with requests.post(server.url + "/completion", json=body, stream=True,
                       timeout=PATIENCE_S) as answer:
        events = parse_sse(answer.iter_content(chunk_size=None))
        for _ in range(random.Random(seed).randrange(30)):
            next(events)


@pytest.fixture(scope="module")
def solo() -> Iterator[list[tuple[Any, ...]]]:
    yield [alone(body) for body in bodies()]


def test_the_requests_are_what_they_should_be(solo: list[tuple[Any, ...]]) -> None:
    assert solo[3][0].rstrip(".").endswith("39, 40")
    assert solo[4][2:4] == ("word", "31") and solo[4][0].endswith("30, ")
    assert solo[6][0] == EMOJI
    assert [len(reply[1]) for reply in solo[:3]] == [120] * 3
    assert [len(reply[6]) for reply in solo[:3]] == [120] * 3
    assert all(len(entry["top_logprobs"]) == 5 for entry in solo[2][6])


@pytest.mark.parametrize("budget", ["-1", "1", "0"])
def test_eight_at_once_have_the_bytes_of_their_solo_runs(
        start: Callable[..., Server], solo: list[tuple[Any, ...]], budget: str) -> None:
    wanted, expected = bodies(), solo
    if budget == "1":  # One that is larger than a MiB by itself, whoever else is parked.
        wanted.append(wanted[0] | {"prompt": tokens(1, 350)})
        expected = [*solo, alone(wanted[-1])]
    server = start(*FLAGS, "--preempt-every", "13", "--preempt-ram", budget)
    late = requests.post(server.url + "/completion", json=bodies()[1] | {"stream": True},
                         stream=True, timeout=PATIENCE_S)
    with ThreadPoolExecutor(15) as pool:
        leavers = [pool.submit(leave_early, server, seed) for seed in range(1, 7)]
        replies = list(pool.map(lambda body: server.complete(**body), wanted))
        for leaver in leavers:
            leaver.result()
    # Who reads only now.
    events = list(parse_sse(late.iter_content(chunk_size=None)))
    assert "".join(event["content"] for event in events) == solo[1][0]
    assert [token for event in events for token in event["tokens"]] == solo[1][1]
    assert [entry for event in events
            for entry in event.get("completion_probabilities", [])] == solo[1][6]
    for reply, right in zip(replies, expected, strict=True):
        assert bytes_of(reply) == right
        assert reply["fermata"]["parks"] > 0
        assert reply["fermata"]["exactness"] == "exact"
        assert reply["timings"]["cache_n"] % CHUNK == 0
    swaps, recomputes = (metric(server, f"n_preempt_{mode}_total")
                         for mode in ("swap", "recompute"))
    assert (swaps > 0) == (budget != "0")
    assert (recomputes > 0) == (budget != "-1")
    if budget == "0":
        assert all(reply["fermata"]["recomputed_tokens"] > 0 for reply in replies)
    check_nothing_is_left(server)


@pytest.mark.parametrize("kind", ["dense", "sliding-window", "recurrent", "hybrid"])
def test_every_memory_has_the_bytes_of_its_solo_run(
        start: Callable[..., Server], random_model: Callable[[str], Path], kind: str) -> None:
    wanted = [{"prompt": tokens(i, 30 + i * 60), "n_predict": 60, "ignore_eos": True, "seed": i,
               "temperature": 1.0, "return_tokens": True, "n_probs": 5} for i in range(5)]
    model = random_model(kind)
    expected = [alone(body, model=model) for body in wanted]
    for budget in ("-1", "0"):
        server = start(*FLAGS, "--preempt-every", "9", "--preempt-ram", budget, model=model)
        with ThreadPoolExecutor(5) as pool:
            replies = list(pool.map(lambda body: server.complete(**body), wanted))
        assert [bytes_of(reply) for reply in replies] == expected
        # The cells of a window would come back in other places: it never swaps here.
        swaps = budget == "-1" and kind != "sliding-window"
        assert {mode for reply in replies for mode in reply["fermata"]["modes"]} == {
            "swap" if swaps else "recompute"}
        check_nothing_is_left(server)


@pytest.mark.parametrize("every", ["1", "3", "7", "50", "99"])
def test_recomputing_changes_no_byte(start: Callable[..., Server], every: str,
                                     solo: list[tuple[Any, ...]]) -> None:
    server = start(*FLAGS, "--preempt-every", every, "--preempt-ram", "0")
    reply = server.complete(**bodies()[1])
    assert bytes_of(reply) == solo[1]
    assert reply["fermata"]["parks"] == 119 // int(every)
    check_nothing_is_left(server)


def test_two_threads(start: Callable[..., Server]) -> None:
    """Short: two threads wait for each other, which takes long beside a busy process."""
    wanted = [{"prompt": tokens(i, 40), "n_predict": 20, "ignore_eos": True, "temperature": 0,
               "return_tokens": True, "n_probs": 5} for i in range(3)]
    expected = [alone(body, "-t", "2") for body in wanted]
    server = start(*FLAGS, "-t", "2", "--preempt-every", "8", "--preempt-ram", "0")
    with ThreadPoolExecutor(3) as pool:
        replies = list(pool.map(lambda body: server.complete(**body), wanted))
    assert [bytes_of(reply) for reply in replies] == expected


def test_a_next_turn_reuses_whole_chunks_of_prompts_only(start: Callable[..., Server]) -> None:
    first = "Count from 1 to 20."
    server = start(*FLAGS, "-np", "1")
    reply = server.chat(first, temperature=0)
    said = reply["choices"][0]["message"]["content"]
    conversation = {"messages": turns(first, said, "Count from 5 to 15."), "temperature": 0}
    second = server.post("/v1/chat/completions", conversation).json()
    reused = second["timings"]["cache_n"]
    assert 0 < reused <= reply["usage"]["prompt_tokens"] and reused % CHUNK == 0
    fresh = start(*FLAGS, "-np", "1").post("/v1/chat/completions", conversation).json()
    assert fresh["timings"]["cache_n"] == 0
    assert second["choices"] == fresh["choices"]


def test_props_tell_the_mode(start: Callable[..., Server]) -> None:
    props = start(env={"FERMATA_DETERMINISTIC": "1"}).get("/props").json()
    assert props["deterministic"] is True
    assert props["context_geometry"]["kv_unified"] is False


def test_it_refuses_the_shared_pool() -> None:
    with pytest.raises(RuntimeError, match="leave --kv-unified out"):
        Server("--deterministic", "--kv-unified")


@pytest.mark.parametrize("path", ["beside", "in_place"])
def test_eight_keep_their_bytes_while_the_geometry_changes(
        start: Callable[..., Server], solo: list[tuple[Any, ...]], path: str) -> None:
    server = start(*FLAGS, "--preempt-every", "29", "--reconfigure-path", path)
    drawn = random.Random(5)
    changes: list[int] = []

    def keep_changing() -> None:
        for number in range(16):
            # What would cut somebody short is refused.
            fields: dict[str, Any] = {"n_ctx": drawn.randrange(8, 20) * 256}
            if number % 6 == 2:  # Then everybody is computed again.
                fields |= {"n_parallel": drawn.randrange(2, 7), "force": True}
            changes.append(server.post("/reconfigure", fields).status_code)

    changer = threading.Thread(target=keep_changing)
    changer.start()
    with ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(lambda body: server.complete(**body), bodies()))
    changer.join(PATIENCE_S)
    assert set(changes) <= {200, 409} and changes.count(200) > 3
    for reply, expected in zip(replies, solo, strict=True):
        assert bytes_of(reply) == expected
        assert reply["fermata"]["exactness"] == "exact"
    check_nothing_is_left(server)
