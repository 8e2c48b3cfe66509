"""What a request is billed: of itself, whatever was cached, parked or asked beside it."""

from collections.abc import Callable
from typing import Any

import pytest

from server import Server, raw_post, reset, wait_until
from test_info import parse_metrics

PROMPT = [300 + i % 500 for i in range(300)]
OTHER = [500 - i % 200 for i in range(100)]
BODY = {"max_tokens": 50, "ignore_eos": True, "temperature": 0}
PARKING = [(), ("--preempt-every", "9"), ("--preempt-every", "9", "--preempt-ram", "0")]


def check(reply: dict[str, Any], prompt: int, completion: int) -> None:
    usage, timings = reply["usage"], reply["timings"]
    assert usage["prompt_tokens"] == prompt
    assert usage["completion_tokens"] == timings["predicted_n"] == completion
    assert usage["total_tokens"] == prompt + completion
    assert timings["prompt_n"] + timings["cache_n"] == prompt
    assert usage["prompt_tokens_details"]["cached_tokens"] == timings["cache_n"] <= prompt
    assert all(value >= 0 for value in timings.values())


def usage_chunk(server: Server, body: dict[str, Any]) -> dict[str, Any]:
    asked = body | {"stream_options": {"include_usage": True}}
    events = list(server.stream("/v1/completions", asked))
    assert events[-1] == "[DONE]" and events[-2]["choices"] == []
    assert not any("usage" in event for event in events[:-2])
    return events[-2]


@pytest.mark.parametrize("parking", PARKING, ids=["none", "swap", "recompute"])
def test_one_prompt_several_choices_several_prompts(start: Callable[..., Server],
                                                    parking: tuple[str, ...]) -> None:
    # I2: after a pause only the last stretch was counted; of several prompts only one.
    server = start("-c", "2048", "-np", "4", *parking)
    for prompt, n, prompts, replies in ((PROMPT, 1, 300, 1), (PROMPT, 3, 300, 3),
                                        ([PROMPT, OTHER], 1, 400, 2), ([PROMPT, OTHER], 2, 400, 4),
                                        ([OTHER, OTHER], 1, 200, 2)):
        body = BODY | {"prompt": prompt, "n": n}
        for _ in range(2):  # Cold, then warm.
            whole = server.post("/v1/completions", body).json()
            check(whole, prompts, 50 * replies)
            assert len(whole["choices"]) == replies
            assert (whole["fermata"]["parks"] > 0) == bool(parking)
        check(usage_chunk(server, body), prompts, 50 * replies)
    server.check_clean()


def test_warm_prompts_are_billed_whole(server: Server) -> None:
    # I2: the prompt shrank to what was not cached.
    cold = server.post("/v1/completions", BODY | {"prompt": PROMPT, "cache_prompt": False}).json()
    check(cold, 300, 50)
    assert cold["usage"]["prompt_tokens_details"]["cached_tokens"] == 0
    warm = server.post("/v1/completions", BODY | {"prompt": PROMPT}).json()
    check(warm, 300, 50)
    assert warm["usage"]["prompt_tokens_details"]["cached_tokens"] == 299
    native = server.complete(prompt=PROMPT, n_predict=50, ignore_eos=True)
    assert native["tokens_evaluated"] == 300 and native["tokens_cached"] == 350
    assert native["timings"]["cache_n"] == 299


def test_counters_are_sums_of_what_was_done(start: Callable[..., Server]) -> None:
    # I1: cancelled and refused requests made the counters drift.
    server = start("-c", "2048", "-np", "3", "--metrics", "--no-warmup", "--preempt-every", "20")
    for i in range(3):
        server.complete(prompt=[300 + 30 * i + j for j in range(20)], n_predict=30,
                        ignore_eos=True, cache_prompt=False)
    assert server.post("/completion", {"prompt": [-1]}).status_code == 400
    done = parse_metrics(server.get("/metrics").text)
    assert done["llamacpp:prompt_tokens_total"] == 60
    assert done["llamacpp:tokens_predicted_total"] == 90
    assert done["llamacpp:n_preempt_total"] == 3
    assert done["fermata_requests_finished_total"] == 3

    sock = raw_post(server, "/completion", {"prompt": [900] * 20, "n_predict": 1500, "stream": True,
                                            "ignore_eos": True, "cache_prompt": False})
    wait_until(lambda: any(slot["next_token"][0]["n_decoded"] >= 10 for slot in server.slots()),
               "ten tokens")
    reset(sock)
    server.check_clean()
    after = parse_metrics(server.get("/metrics").text)
    assert after["llamacpp:prompt_tokens_total"] == 80, "a replay is no prompt"
    assert 100 <= after["llamacpp:tokens_predicted_total"] < 90 + 1500
    assert after["fermata_requests_cancelled_total"] == 1
    for name, value in done.items():
        if name.endswith("_total"):
            assert after[name] >= value, name
    idle = parse_metrics(server.get("/metrics").text)
    for name in ("llamacpp:predicted_tokens_seconds", "llamacpp:prompt_tokens_seconds",
                 "llamacpp:requests_processing", "llamacpp:requests_deferred",
                 "llamacpp:requests_preempted", "llamacpp:preempt_ram_bytes"):
        assert idle[name] == 0, name
