"""Several choices of one request: `n`, or llama-server's `n_cmpl`."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from server import Server, count_text, raw_post, turns, wait_until
from test_info import parse_metrics
from test_preempt import check_nothing_is_left, metric

COUNT = "Count from 1 to 30."
SAMPLED = {"temperature": 1.0, "seed": 40, "max_tokens": 60}


def contents(reply: dict[str, Any]) -> list[str]:
    choices = sorted(reply["choices"], key=lambda choice: choice["index"])
    assert [choice["index"] for choice in choices] == list(range(len(choices)))
    return [choice["message"]["content"] for choice in choices]


@pytest.mark.parametrize("n", [2, 4])
def test_greedy_choices_all_count_right(server: Server, n: int) -> None:
    reply = server.chat(COUNT, temperature=0, n=n)
    texts = contents(reply)
    assert len(texts) == n
    for text in texts:
        assert count_text(1, 30) in text.replace(",", "")
    alone = server.chat(COUNT, temperature=0)
    usage = reply["usage"]
    assert usage["prompt_tokens"] == alone["usage"]["prompt_tokens"], "the prompt counts once"
    assert usage["completion_tokens"] == n * alone["usage"]["completion_tokens"]
    assert reply["timings"]["predicted_n"] == usage["completion_tokens"]
    assert {choice["finish_reason"] for choice in reply["choices"]} == {"stop"}


@pytest.mark.parametrize("n", [2, 4])
def test_sampled_choices_are_the_replies_of_the_next_seeds(server: Server, n: int) -> None:
    texts = contents(server.chat("Tell me a story.", n=n, **SAMPLED))
    alone = [contents(server.chat("Tell me a story.", **SAMPLED | {"seed": 40 + i}))[0]
             for i in range(n)]
    assert len(set(texts)) == n, "choices differ"
    # In company last bits can differ: at the least the beginnings are the same.
    for text, own in zip(texts, alone, strict=True):
        assert text.split()[:8] == own.split()[:8]


def test_sampled_choices_count_right(server: Server) -> None:
    sampled = {"temperature": 0.6, "top_p": 0.9, "seed": 7}
    texts = contents(server.chat(COUNT, n=4, **sampled))
    alone = [contents(server.chat(COUNT, **sampled | {"seed": 7 + i}))[0] for i in range(4)]
    for text in texts + alone:
        assert count_text(1, 30) in text.replace(",", "")


def test_a_stream_names_the_choice_of_every_chunk(server: Server) -> None:
    body = {"messages": turns(COUNT), "temperature": 0, "n": 3,
            "stream_options": {"include_usage": True}}
    events = list(server.stream("/v1/chat/completions", body))
    assert events[-1] == "[DONE]" and events.count("[DONE]") == 1
    assert events[-2]["choices"] == []
    whole = server.post("/v1/chat/completions", body | {"stream_options": None}).json()
    for key in ("prompt_tokens", "completion_tokens"):
        assert events[-2]["usage"][key] == whole["usage"][key]
    texts, roles, ends = [""] * 3, [0] * 3, [0] * 3
    for event in events[:-2]:
        (choice,) = event["choices"]
        texts[choice["index"]] += choice["delta"].get("content") or ""
        roles[choice["index"]] += "role" in choice["delta"]
        ends[choice["index"]] += choice["finish_reason"] is not None
    assert texts == contents(whole)
    assert roles == ends == [1, 1, 1]


def test_completions_know_it_too(server: Server) -> None:
    body = {"prompt": "1, 2, 3, 4,", "max_tokens": 12, "temperature": 0}
    alone = server.post("/v1/completions", body).json()["choices"][0]
    openai = server.post("/v1/completions", body | {"n": 2}).json()
    assert openai["choices"] == [alone, alone | {"index": 1}]
    assert openai["usage"]["completion_tokens"] == 24
    native = server.post("/completion", body | {"n_cmpl": 2}).json()
    assert [reply["index"] for reply in native] == [0, 1]
    assert [reply["content"] for reply in native] == [alone["text"]] * 2
    events = list(server.stream("/completion", body | {"n_cmpl": 2}))
    for i in range(2):
        own = [event for event in events if event["index"] == i]
        assert "".join(event["content"] for event in own) == alone["text"]
        assert [event["stop"] for event in own].count(True) == 1


def test_each_choice_ends_for_its_own_reason(server: Server) -> None:
    body = {"prompt": "Tell me a story. Once", "n_predict": 16, "temperature": 1.0,
            "stop": [" the"]}
    replies = server.post("/completion", body | {"n": 8, "seed": 5}).json()
    assert [reply["generation_settings"]["seed"] for reply in replies] == list(range(5, 13))
    assert len({reply["stop_type"] for reply in replies}) > 1
    for reply in replies:
        assert (reply["stopping_word"] == " the") == (reply["stop_type"] == "word")
        assert (reply["tokens_predicted"] == 16) or reply["stop_type"] in ("word", "eos")
        assert " the" not in reply["content"]
    # What is drawn differs from one machine to the next.
    reasons: set[str] = set()
    for seed in range(5, 85, 8):
        chat = {"messages": turns("Tell me a story."), "max_tokens": 40, "seed": seed,
                "stop": [" cat"]}
        choices = server.post("/v1/chat/completions", chat | {"n": 8}).json()["choices"]
        assert not any(" cat" in choice["message"]["content"] for choice in choices)
        reasons |= {choice["finish_reason"] for choice in choices}
        if len(reasons) > 1:
            break
    assert reasons == {"length", "stop"}


@pytest.mark.parametrize(("field", "words"), [
    ({"n": 9}, "n_cmpl cannot be greater than the number of slots, please increase -np"),
    ({"n_cmpl": 9}, "n_cmpl cannot be greater than the number of slots, please increase -np"),
    ({"n": 17}, "n: must be between 1 and 16"), ({"n": -1}, "n: must be"),
    ({"n": "2"}, "n: must be"), ({"n": 1.5}, "n: must be an integer"),
    ({"n": 2, "id_slot": 1}, "id_slot: several choices"),
    ({"n": 2, "grammar": "root ::= ("}, "grammar"), ({"n": 2, "prompt": [5] * 5000}, "exceeds")])
@pytest.mark.parametrize("stream", [True, False])
def test_bad_choices_are_told_before_anything_is_queued(server: Server, field: dict[str, Any],
                                                        words: str, stream: bool) -> None:
    before = parse_metrics(server.get("/metrics").text)
    answer = server.post("/completion", {"prompt": "x", "n_predict": 1, "stream": stream} | field)
    assert answer.status_code == 400, answer.text
    assert words in answer.json()["error"]["message"]
    after = parse_metrics(server.get("/metrics").text)
    assert after["llamacpp:prompt_tokens_total"] == before["llamacpp:prompt_tokens_total"]


def test_more_choices_than_may_wait_are_told(start: Callable[..., Server]) -> None:
    server = start("-c", "1024", "-np", "4", "--queue-max", "2")
    answer = server.post("/completion", {"prompt": "x", "n_predict": 1, "n": 3})
    assert answer.status_code == 400
    assert "--queue-max" in answer.json()["error"]["message"]
    assert len(server.complete(prompt="x", n_predict=1, n=2)) == 2


def test_every_choice_has_its_probabilities(server: Server) -> None:
    reply = server.chat(COUNT, temperature=0, n=2, max_tokens=8, logprobs=True, top_logprobs=2)
    for choice in reply["choices"]:
        tokens = choice["logprobs"]["content"]
        assert len(tokens) == 8
        assert "".join(token["token"] for token in tokens) == choice["message"]["content"]


@pytest.mark.parametrize("budget", ["8192", "0"])
def test_groups_that_overflow_the_pool_all_count_right(start: Callable[..., Server],
                                                       budget: str) -> None:
    server = start("-c", "1024", "-np", "6", "--preempt-ram", budget, "--metrics")
    with ThreadPoolExecutor(4) as pool:
        replies = list(pool.map(lambda n: server.chat("Count from 1 to 95.", temperature=0, n=n),
                                [3, 2, 4, 1]))
    for reply, n in zip(replies, [3, 2, 4, 1], strict=True):
        texts = contents(reply)
        assert len(texts) == n
        for text in texts:
            assert count_text(1, 95) in text.replace(",", "")
    parks = sum(reply["fermata"]["parks"] for reply in replies)
    assert parks == metric(server, "n_preempt_total") > 0
    check_nothing_is_left(server)


def test_forced_parks_of_a_group_lose_nothing(start: Callable[..., Server]) -> None:
    server = start("-c", "2048", "-np", "4", "--preempt-every", "7", "--metrics")
    body = {"messages": turns(COUNT), "temperature": 0, "n": 3, "stream": True}
    text = server.post("/v1/chat/completions", body).text
    notices = [line for line in text.split("\n\n") if line in (": preempted", ": resumed")]
    assert notices and notices == [": preempted", ": resumed"] * (len(notices) // 2)
    for reply in contents(server.chat(COUNT, temperature=0, n=3)):
        assert count_text(1, 30) in reply.replace(",", "")
    check_nothing_is_left(server)


@pytest.mark.parametrize("stream", [True, False])
def test_a_group_that_is_cancelled_while_parked_leaves_nothing(start: Callable[..., Server],
                                                               stream: bool) -> None:
    server = start("-c", "1024", "-np", "4", "--metrics")
    sockets = [raw_post(server, "/completion", {
        "prompt": [300 + i] * 60, "n_predict": 900, "ignore_eos": True, "n": 2, "stream": stream})
        for i in range(2)]
    wait_until(lambda: metric(server, "requests_preempted") > 0, "a park")
    for sock in sockets:
        sock.close()
    wait_until(lambda: metric(server, "requests_preempted") == 0, "nobody parked")
    check_nothing_is_left(server)
