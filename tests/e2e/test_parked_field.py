"""Field reports that parking could repeat: strangers' text, wrong bills, starvation."""

import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from server import Server, count_text, raw_post, reset
from test_info import parse_metrics
from test_preempt import check_nothing_is_left

# Company and a warm start change the shapes of a step, and so the last digits; a stranger's text
# would change the first ones.
TOLERANCE = 0.05


def first_tokens(reply: dict[str, Any]) -> dict[int, float]:
    """The likeliest ones with their log-probabilities."""
    entry = reply["completion_probabilities"][0]
    return {other["id"]: other["logprob"] for other in entry["top_logprobs"]}


def unrelated_prompts(count: int) -> list[list[int]]:
    """Token lists without a common beginning."""
    rng = random.Random(5)
    return [[300 + i] + [rng.randrange(300, 900) for _ in range(rng.randrange(20, 180))]
            for i in range(count)]


def ask(server: Server, prompt: list[int], **more: Any) -> dict[str, Any]:
    return server.complete(prompt=prompt, n_predict=12, temperature=0, n_probs=5, ignore_eos=True,
                           **more)


def test_a_new_request_never_continues_somebody_elses(start: Callable[..., Server]) -> None:
    # C1: a slot kept the old conversation, and the reply went on with a stranger's chat.
    prompts = unrelated_prompts(30)
    alone = start("-c", "1024", "-np", "1")
    expected = [first_tokens(ask(alone, prompt, cache_prompt=False)) for prompt in prompts]
    server = start("-c", "512", "-np", "3", "--preempt-every", "5", "--metrics")

    def check(index: int) -> None:
        reply = ask(server, prompts[index])
        got, wanted = first_tokens(reply), expected[index]
        likeliest = max(wanted, key=lambda token: wanted[token])
        assert got[likeliest] == pytest.approx(wanted[likeliest], abs=TOLERANCE)
        assert reply["timings"]["cache_n"] in (0, len(prompts[index]) - 1)  # Its own, or nothing.

    for index in range(10):
        check(index)
    rng = random.Random(6)
    with ThreadPoolExecutor(8) as pool:
        futures = []
        for index in range(30):
            futures.append(pool.submit(check, index))
            if rng.random() < 0.3:
                left = raw_post(server, "/completion",
                                {"prompt": prompts[rng.randrange(30)], "n_predict": 200})
                reset(left)
        for future in futures:
            future.result()
    check_nothing_is_left(server)


@pytest.mark.parametrize("parking", [(), ("--preempt-every", "9"),
                                     ("--preempt-every", "9", "--preempt-ram", "0")],
                         ids=["none", "swap", "recompute"])
def test_usage_describes_the_request_as_made(start: Callable[..., Server],
                                             parking: tuple[str, ...]) -> None:
    # I2: after a pause the prompt was billed again.
    server = start("-c", "1024", "-np", "2", "--metrics", *parking)
    prompt = [300 + i % 500 for i in range(300)]
    for _ in range(2):  # Cold, then warm.
        reply = server.post("/v1/completions", {"prompt": prompt, "max_tokens": 50,
                                                "ignore_eos": True, "temperature": 0}).json()
        usage, timings = reply["usage"], reply["timings"]
        assert usage["prompt_tokens"] == 300
        assert usage["completion_tokens"] == 50
        assert usage["total_tokens"] == 350
        assert timings["prompt_n"] + timings["cache_n"] == 300
        assert usage["prompt_tokens_details"]["cached_tokens"] == timings["cache_n"]
        assert (reply["fermata"]["parks"] > 0) == bool(parking)
    check_nothing_is_left(server)


@pytest.mark.parametrize("budget", ["8192", "0"], ids=["swap", "recompute"])
def test_counters_tell_what_was_done_and_replays_apart(start: Callable[..., Server],
                                                       budget: str) -> None:
    # I1: prompt tokens were counted again with every resume.
    server = start("-c", "1024", "-np", "3", "--preempt-every", "10", "--preempt-ram", budget,
                   "--metrics", "--no-warmup")
    replies = [server.complete(prompt=[300 + 40 * i + j for j in range(20)], n_predict=30,
                               ignore_eos=True, cache_prompt=False) for i in range(3)]
    values = parse_metrics(server.get("/metrics").text)
    assert values["llamacpp:prompt_tokens_total"] == 60
    assert values["llamacpp:tokens_predicted_total"] == 90
    assert values["llamacpp:n_preempt_total"] == sum(r["fermata"]["parks"] for r in replies) > 0
    recomputed = sum(r["fermata"]["recomputed_tokens"] for r in replies)
    assert values["llamacpp:n_recompute_tokens_total"] == recomputed
    assert (recomputed > 0) == (budget == "0")
    check_nothing_is_left(server)


def test_a_long_chat_among_short_ones_gets_its_turn(start: Callable[..., Server]) -> None:
    # K5: a parked chat waited while a stream of short requests went by.
    server = start("-c", "256", "-np", "3", "--metrics")
    text = count_text(1, 60)

    def short(i: int) -> None:
        for _ in range(6):
            reply = server.complete(prompt=[300 + i] * 40, n_predict=30, ignore_eos=True)
            assert reply["tokens_predicted"] == 30

    with ThreadPoolExecutor(6) as pool:
        others = [pool.submit(short, i) for i in range(5)]
        long = server.chat("Count from 1 to 60.", temperature=0)
        for other in others:
            other.result()
    assert long["choices"][0]["message"]["content"].replace(",", "") == text
    check_nothing_is_left(server)
