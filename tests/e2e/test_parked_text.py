"""What a client reads is the same, however often its request was parked in between."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from server import Server, chat_text, count_text, force, turns
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
    native = {"prompt": "x", "n_predict": 1000, "grammar": force(EMOJI)}
    assert server.complete(**native)["content"] == EMOJI
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
