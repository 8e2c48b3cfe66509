"""Several prompts in one request: replies in their order, one bill, one fate."""

from collections.abc import Callable
from typing import Any

import pytest

from server import Server, force, raw_post, reset, wait_until
from test_info import parse_metrics

COUNTS = ["1, 2, 3, 4,", "5, 6, 7, 8,", "20, 21, 22,"]
GREEDY = {"n_predict": 10, "temperature": 0}


def texts(server: Server, prompts: list[Any], **body: Any) -> list[str]:
    replies = server.complete(prompt=prompts, **GREEDY | body)
    assert [reply["index"] for reply in replies] == list(range(len(replies)))
    return [reply["content"] for reply in replies]


def test_each_prompt_has_the_reply_that_it_has_alone(server: Server) -> None:
    alone = [server.complete(prompt=prompt, **GREEDY)["content"] for prompt in COUNTS]
    assert texts(server, COUNTS) == alone
    openai = server.post("/v1/completions", {"prompt": COUNTS, "max_tokens": 10,
                                             "temperature": 0}).json()
    assert [choice["index"] for choice in openai["choices"]] == [0, 1, 2]
    assert [choice["text"] for choice in openai["choices"]] == alone


def test_chunks_tell_their_slot_and_prompt(server: Server) -> None:
    alone = [server.complete(prompt=prompt, **GREEDY) for prompt in COUNTS]
    events = list(server.stream("/completion", {"prompt": COUNTS, "return_progress": True,
                                                "return_tokens": True} | GREEDY))
    chunks = [event for event in events if not event["stop"]]
    last = {event["index"]: event for event in events if event["stop"]}
    slots: dict[int, set[int]] = {}
    for chunk in chunks:
        assert set(chunk) - {"prompt_progress"} == {
            "index", "content", "tokens", "stop", "id_slot", "tokens_predicted",
            "tokens_evaluated"}
        assert chunk["tokens_evaluated"] == alone[chunk["index"]]["tokens_evaluated"]
        assert chunk["id_slot"] == last[chunk["index"]]["id_slot"]
        slots.setdefault(chunk["index"], set()).add(chunk["id_slot"])
    assert len(slots) == 3 and all(len(of) == 1 for of in slots.values())


def test_every_way_to_write_prompts(server: Server) -> None:
    tokens = [server.post("/tokenize", {"content": text}).json()["tokens"] for text in COUNTS]
    want = texts(server, COUNTS)
    assert texts(server, tokens) == want
    mixed = [COUNTS[0], tokens[1], {"prompt_string": COUNTS[2]}]
    assert texts(server, mixed) == want
    # A list with a token id is one prompt, whatever else it holds.
    one = server.complete(prompt=[*tokens[0], COUNTS[1]], **GREEDY)
    assert one["tokens_evaluated"] == len(tokens[0]) + len(tokens[1])
    assert texts(server, [[*tokens[0][:3], "5"], COUNTS[0]])[1] == want[0]
    # A list of one is one prompt, and its reply no list.
    for single in ([COUNTS[0]], [tokens[0]], {"prompt_string": COUNTS[0], "multimodal_data": []}):
        assert server.complete(prompt=single, **GREEDY)["content"] == want[0]


def test_prompts_times_choices(server: Server) -> None:
    body = {"prompt": COUNTS[:2], "n": 3, "max_tokens": 12, "temperature": 1.0, "seed": 11}
    reply = server.post("/v1/completions", body).json()
    assert [choice["index"] for choice in reply["choices"]] == list(range(6))
    native = server.post("/completion", body).json()
    assert [one["generation_settings"]["seed"] for one in native] == [11, 12, 13] * 2
    assert [one["prompt"] for one in native] == [COUNTS[0]] * 3 + [COUNTS[1]] * 3


@pytest.mark.parametrize("n", [1, 2])
def test_streams_carry_the_index(server: Server, n: int) -> None:
    whole = [text for text in texts(server, COUNTS) for _ in range(n)]
    events = list(server.stream("/completion", {"prompt": COUNTS, "n": n} | GREEDY))
    got = [""] * 3 * n
    for event in events:
        got[event["index"]] += event["content"]
    assert got == whole
    assert sorted(event["index"] for event in events if event["stop"]) == list(range(3 * n))
    got = [""] * 3 * n
    events = list(server.stream("/v1/completions", {"prompt": COUNTS, "n": n} | GREEDY))
    assert events[-1] == "[DONE]"
    for event in events[:-1]:
        (choice,) = event["choices"]
        got[choice["index"]] += choice["text"]
    assert got == whole


def test_more_prompts_than_slots_come_in_turn(start: Callable[..., Server]) -> None:
    server = start("-c", "512", "-np", "2")
    prompts = [f"{n}, {n + 1}, {n + 2}," for n in range(1, 41)]
    replies = server.complete(prompt=prompts, n_predict=20, ignore_eos=True, temperature=0)
    assert [reply["index"] for reply in replies] == list(range(40))
    assert [reply["prompt"] for reply in replies] == prompts
    assert all(reply["tokens_predicted"] == 20 for reply in replies)
    pinned = server.complete(prompt=prompts[:3], n_predict=4, id_slot=1, ignore_eos=True)
    assert [reply["id_slot"] for reply in pinned] == [1, 1, 1]
    server.check_clean()


def test_prompts_that_overflow_the_pool_all_finish(start: Callable[..., Server]) -> None:
    server = start("-c", "256", "-np", "4", "--metrics")
    body = {"prompt": [[300 + i] * 40 for i in range(4)], "n_predict": 100, "ignore_eos": True}
    replies = server.complete(**body)
    assert [reply["tokens_predicted"] for reply in replies] == [100] * 4
    assert not any(reply["truncated"] for reply in replies)
    assert sum(reply["fermata"]["parks"] for reply in replies) > 0
    server.check_clean()


def test_a_client_that_leaves_takes_all_its_prompts_along(start: Callable[..., Server]) -> None:
    # D1: of a list of prompts, those behind the first were generated for nobody.
    server = start("-c", "2048", "-np", "2", "--metrics")
    body = {"prompt": COUNTS * 4, "n_predict": 600, "ignore_eos": True, "stream": True}
    sock = raw_post(server, "/completion", body)
    assert sock.recv(100)
    wait_until(lambda: not server.is_idle(), "the request to run")
    reset(sock)
    server.check_clean()
    finished = parse_metrics(server.get("/metrics").text)
    assert finished["fermata_requests_cancelled_total"] > 0
    assert finished["fermata_requests_finished_total"] == 12
    assert finished["llamacpp:requests_deferred"] == 0


@pytest.mark.parametrize("prompt", ["", [], [""], [[]]])
def test_one_empty_prompt(server: Server, prompt: Any) -> None:
    # G4: an empty prompt made the request hang. Here it is the token that begins a text.
    assert server.complete(prompt=prompt, n_predict=1)["tokens_evaluated"] == 1


def test_empty_prompts_in_a_list(server: Server) -> None:
    # G4: the same, several at once.
    for prompts in (["", ""], [[], []], ["", []]):
        replies = server.complete(prompt=prompts, n_predict=1)
        assert [reply["tokens_evaluated"] for reply in replies] == [1, 1]
    for path in ("/completion", "/v1/completions"):
        answer = server.post(path, {"n_predict": 1})
        assert answer.status_code == 400
        assert answer.json()["error"]["message"].startswith("prompt: ")


@pytest.mark.parametrize(("body", "status", "words"), [
    ({"prompt": ["a", 1.5]}, 400, "prompt"), ({"prompt": ["a", None]}, 400, "prompt"),
    ({"prompt": ["a", True]}, 400, "prompt"), ({"prompt": [["a", [1]], "b"]}, 400, "prompt"),
    ({"prompt": ["a", [10**6]]}, 400, "prompt"), ({"prompt": [2**64]}, 400, "prompt"),
    ({"prompt": ["a", {"text": "b"}]}, 400, "prompt.prompt_string"),
    ({"prompt": {"prompt_string": "a", "multimodal_data": ["QQ=="]}}, 501, "prompt.multimodal"),
    ({"prompt": {"prompt_string": "a", "multimodal_data": "x"}}, 400, "prompt.multimodal"),
    ({"prompt": ["x"] * 129}, 400, "prompt: more than 128"),
    ({"prompt": ["x"] * 65, "n": 2}, 400, "prompt: more than 128"),
    ({"prompt": ["x", "y"], "n": 2, "id_slot": 0}, 400, "id_slot"),
    ({"prompt": ["x", [5] * 5000]}, 400, "request (5000 tokens) exceeds"),
    ({"prompt": ["x", "y"], "grammar": "root ::= ("}, 400, "grammar")])
def test_one_bad_prompt_is_told_before_any_runs(server: Server, body: dict[str, Any], status: int,
                                                words: str) -> None:
    before = parse_metrics(server.get("/metrics").text)
    for path in ("/completion", "/v1/completions"):
        for stream in (False, True):
            answer = server.post(path, {"n_predict": 1, "stream": stream} | body)
            assert answer.status_code == status, answer.text
            assert answer.json()["error"]["message"].startswith(words)
    after = parse_metrics(server.get("/metrics").text)
    assert after["fermata_requests_accepted_total"] == before["fermata_requests_accepted_total"]


def test_more_than_may_wait_are_told(start: Callable[..., Server]) -> None:
    server = start("-c", "1024", "-np", "4", "--queue-max", "3")
    answer = server.post("/completion", {"prompt": ["x"] * 4, "n_predict": 1})
    assert answer.status_code == 400
    assert "--queue-max" in answer.json()["error"]["message"]
    assert len(server.complete(prompt=["x"] * 3, n_predict=1)) == 3


def test_probabilities_belong_to_their_prompt(server: Server) -> None:
    words = ["alpha", "beta"]
    body = {"grammar": f'root ::= "{words[0]}" | "{words[1]}"', "n_probs": 1, "n_predict": 20}
    for reply in server.complete(prompt=["x", "y"], **body):
        said = b"".join(bytes(one["bytes"]) for one in reply["completion_probabilities"])
        assert said.decode() == reply["content"] in words
    both = server.complete(prompt=["x", "y"], grammar=force("é 🎼"), n_predict=40)
    assert [reply["content"] for reply in both] == ["é 🎼"] * 2
