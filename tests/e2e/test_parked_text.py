"""What a client reads is the same, however often its request was parked in between."""

import json
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from server import TINY, Server, chat_text, count_text, force, turns
from test_preempt import check_nothing_is_left

EVERY = ["1", "3", "7", "50"]
EMOJI = "".join(f"{i}: 🎼é→漢 " for i in range(8))


@pytest.fixture(params=["8192", "0"], ids=["swap", "recompute"])
def parking(request: pytest.FixtureRequest,
            start: Callable[..., Server]) -> Callable[[str], Server]:
    """Starts a server that parks each sequence after so many tokens."""
    return lambda every: start("-c", "2048", "-np", "4", "--preempt-ram", request.param,
                               "--preempt-every", every, "--metrics")


@pytest.mark.parametrize("every", EVERY)
def test_no_character_is_lost_or_doubled(parking: Callable[[str], Server], every: str) -> None:
    # A5: the text was a splice of two generations, or too short, with status 200.
    server = parking(every)
    body = {"grammar": force(EMOJI), "max_tokens": 1000, "temperature": 0}
    message = {"messages": turns("Go on.")} | body
    events = list(server.stream("/v1/chat/completions", message))
    assert chat_text(iter(events)) == EMOJI
    chunks = [event["choices"][0] for event in events if event != "[DONE]"]
    assert sum("role" in chunk["delta"] for chunk in chunks) == 1
    assert sum(chunk["finish_reason"] is not None for chunk in chunks) == 1
    assert events.count("[DONE]") == 1 and events[-1] == "[DONE]"
    assert events[-2]["fermata"]["parks"] > 0

    reply = server.chat("Go on.", **body)
    assert reply["choices"][0]["message"]["content"] == EMOJI
    native = {"prompt": "x", "n_predict": 1000, "grammar": force(EMOJI), "n_probs": 1}
    reply = server.complete(**native)
    assert reply["content"] == EMOJI
    assert b"".join(bytes(entry["bytes"])
                    for entry in reply["completion_probabilities"]) == EMOJI.encode()
    assert "".join(event["content"] for event in server.stream("/completion", native)) == EMOJI
    check_nothing_is_left(server)


@pytest.mark.parametrize("every", EVERY)
def test_a_stop_word_may_straddle_parks(parking: Callable[[str], Server], every: str) -> None:
    server = parking(every)
    text = count_text(1, 60)
    body = {"prompt": "x", "n_predict": 400, "grammar": force(text), "stop": [" 58 59"]}
    reply = server.complete(**body)
    assert reply["content"] == count_text(1, 57)
    assert reply["stop_type"] == "word" and reply["stopping_word"] == " 58 59"
    assert reply["fermata"]["parks"] > 0
    assert "".join(e["content"] for e in server.stream("/completion", body)) == count_text(1, 57)
    check_nothing_is_left(server)


SCHEMA = {"type": "object", "additionalProperties": False,
          "required": ["a", "b", "c"],
          "properties": {name: {"type": "string", "maxLength": 12} for name in "abc"}}


def test_grammars_survive_parks_and_pressure(start: Callable[..., Server]) -> None:
    # A7: after a resume the grammar rejected what was left of before.
    for budget in ("8192", "0"):
        server = start("-c", "256", "-np", "4", "--preempt-ram", budget, "--preempt-every", "2",
                       "--metrics")
        with ThreadPoolExecutor(4) as pool:
            replies = list(pool.map(lambda i: server.complete(
                prompt=[320 + i] * 40, n_predict=200, json_schema=SCHEMA, seed=i,
                temperature=1.0), range(4)))
        for reply in replies:
            assert reply["fermata"]["parks"] > 0
            assert reply["stop_type"] == "eos", reply["content"]
            value = json.loads(reply["content"])
            assert sorted(value) == ["a", "b", "c"]
            assert all(isinstance(text, str) and len(text) <= 12 for text in value.values())
        check_nothing_is_left(server)


def lasting(reply: dict[str, Any]) -> dict[str, Any]:
    """A reply without what may differ from run to run."""
    return {name: value for name, value in reply.items()
            if name not in ("timings", "fermata", "id_slot")}


def bodies(server: Server, prompt: int, n_predict: int) -> list[dict[str, Any]]:
    """Requests with probabilities: plain, with a stop string that is met, with a grammar."""
    body = {"prompt": [210 + i % 200 for i in range(prompt)], "n_predict": n_predict, "seed": 3,
            "temperature": 1.0, "n_probs": 5, "return_tokens": True, "cache_prompt": False}
    plain = body | {"ignore_eos": True}
    text = server.complete(**plain)["content"]
    stop = re.search(r"[ -~]{2,3}", text[len(text) // 2:])
    assert stop is not None, text
    return [plain, plain | {"stop": ["never this", stop.group()]},
            body | {"grammar": force("🎼é→漢 👩‍👩‍👧"), "temperature": 0}]


# A window is 64 tokens, in 256 cells with -ub 16. Once the first of these were written over, a swap
# puts them into another order, and last bits differ, unless --swa-full keeps all. One slot: each
# reply begins in the first cell, whatever was before.
@pytest.mark.parametrize(("kind", "args", "prompt", "n_predict"), [
    ("default", [], 60, 110), ("dense", [], 60, 110), ("recurrent", [], 60, 110),
    ("hybrid", [], 60, 110), ("sliding-window", [], 18, 40),
    ("sliding-window", ["-ub", "16", "--swa-full"], 60, 250)])
def test_parks_change_no_bit_of_a_probability(
        start: Callable[..., Server], random_model: Callable[[str], Path], kind: str,
        args: list[str], prompt: int, n_predict: int) -> None:
    model = TINY if kind == "default" else random_model(kind)
    plain = start("-c", "1024", "-np", "1", *args, model=model)
    asked = bodies(plain, prompt, n_predict)
    expected = [plain.complete(**body) for body in asked]
    assert len(expected[0]["completion_probabilities"]) == n_predict
    assert expected[1]["stop_type"] == "word"
    assert "👩‍👩‍👧" in expected[2]["content"]
    streams = [[lasting(event) for event in plain.stream("/completion", body)] for body in asked]
    for every in EVERY:
        if int(every) >= n_predict:
            continue
        server = start("-c", "1024", "-np", "1", *args, "--preempt-every", every, "--metrics",
                       model=model)
        replies = [server.complete(**body) for body in asked]
        for reply, undisturbed in zip(replies, expected, strict=True):
            assert reply["fermata"]["parks"] == (reply["tokens_predicted"] - 1) // int(every)
            assert "recompute" not in reply["fermata"]["modes"]
            assert lasting(reply) == lasting(undisturbed)
        assert [[lasting(event) for event in server.stream("/completion", body)]
                for body in asked] == streams
        check_nothing_is_left(server)
        server.stop()
