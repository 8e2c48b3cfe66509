"""Probabilities of tokens: llama-server's shapes, streamed and not, beside the text they are of."""

import math
from collections.abc import Iterator
from typing import Any

import pytest

from server import Server, force, turns

COUNT = {"prompt": "Count from 1 to 40.", "n_predict": 12, "temperature": 0, "cache_prompt": False}
SKY = "The sky is blue?\nNext"
EMOJI = "é 🎼 👩‍👩‍👧 漢 →"


def said(entries: list[dict[str, Any]]) -> bytes:
    return b"".join(bytes(entry["bytes"]) for entry in entries)


def check_shape(entries: list[dict[str, Any]], top: int) -> None:
    for entry in entries:
        assert list(entry) == ["id", "token", "bytes", "logprob", "top_logprobs"]
        assert len(entry["top_logprobs"]) == top
        for one in entry["top_logprobs"]:
            assert list(one) == ["id", "token", "bytes", "logprob"]
        values = [one["logprob"] for one in entry["top_logprobs"]]
        assert values == sorted(values, reverse=True)
        assert all(isinstance(value, float) and value <= 0 for value in [*values, entry["logprob"]])
        assert sum(math.exp(value) for value in values) <= 1.0001


def streamed(events: Iterator[Any]) -> list[dict[str, Any]]:
    """The entries of a native stream; each chunk's are those of its own text."""
    out: list[dict[str, Any]] = []
    for event in events:
        entries = event.get("completion_probabilities", [])
        assert said(entries).decode() == event["content"]
        out += entries
    return out


def logprobs(events: Iterator[Any]) -> list[dict[str, Any]]:
    """The entries of an OpenAI stream."""
    choices = [choice for event in events if event != "[DONE]" for choice in event["choices"]]
    return [entry for choice in choices if choice.get("logprobs")
            for entry in choice["logprobs"]["content"]]


def test_native(server: Server) -> None:
    body = COUNT | {"n_probs": 3, "return_tokens": True}
    reply = server.complete(**body)
    entries = reply["completion_probabilities"]
    check_shape(entries, 3)
    assert [entry["id"] for entry in entries] == reply["tokens"]
    assert said(entries).decode() == reply["content"]
    assert "".join(entry["token"] for entry in entries) == reply["content"]
    for entry in entries:  # Greedy: the best was taken.
        assert {name: entry[name] for name in ("id", "token", "bytes", "logprob")} == \
            entry["top_logprobs"][0]
    assert streamed(server.stream("/completion", body)) == entries
    assert reply["generation_settings"]["n_probs"] == 3


def test_nobody_asked(server: Server) -> None:
    assert "completion_probabilities" not in server.complete(**COUNT)
    assert all("completion_probabilities" not in event
               for event in server.stream("/completion", COUNT))
    assert server.post("/v1/completions", COUNT).json()["choices"][0]["logprobs"] is None
    assert "logprobs" not in server.chat("Hi", max_tokens=2)["choices"][0]


def test_after_sampling(server: Server) -> None:
    body = COUNT | {"n_probs": 10, "post_sampling_probs": True, "temperature": 1.5, "top_k": 4,
                    "top_p": 1, "min_p": 0, "seed": 5}
    entries = server.complete(**body)["completion_probabilities"]
    for entry in entries:
        assert list(entry) == ["id", "token", "bytes", "prob", "top_probs"]
        assert list(entry["top_probs"][0]) == ["id", "token", "bytes", "prob"]
        assert len(entry["top_probs"]) == 4, "the samplers left so many"
        assert abs(sum(one["prob"] for one in entry["top_probs"]) - 1) < 1e-4
        assert entry["prob"] == next(
            one["prob"] for one in entry["top_probs"] if one["id"] == entry["id"])
    assert streamed(server.stream("/completion", body)) == entries


def test_openai_completions(server: Server) -> None:
    entries = server.complete(n_probs=2, **COUNT)["completion_probabilities"]
    body = COUNT | {"logprobs": 2}
    choice = server.post("/v1/completions", body).json()["choices"][0]
    assert choice["logprobs"] == {"content": entries}
    assert logprobs(server.stream("/v1/completions", body)) == entries
    assert server.complete(**body)["completion_probabilities"] == entries


@pytest.mark.parametrize(("asked", "top"), [({}, 20), ({"top_logprobs": 0}, 0),
                                            ({"top_logprobs": 2}, 2), ({"top_logprobs": 20}, 20)])
def test_chat(server: Server, asked: dict[str, int], top: int) -> None:
    body = {"messages": turns("Count from 1 to 40."), "max_tokens": 12, "temperature": 0,
            "cache_prompt": False, "logprobs": True} | asked
    choice = server.post("/v1/chat/completions", body).json()["choices"][0]
    entries = choice["logprobs"]["content"]
    check_shape(entries, top)
    assert said(entries).decode() == choice["message"]["content"] != ""
    events = list(server.stream("/v1/chat/completions", body))
    assert logprobs(iter(events)) == entries
    for event in events[:-1]:
        for one in event["choices"]:
            shown = one.get("logprobs", {"content": []})["content"]
            assert said(shown).decode() == one["delta"].get("content", "")


def test_characters_of_several_tokens(server: Server) -> None:
    body = {"prompt": "x", "grammar": force(EMOJI), "n_predict": 100, "n_probs": 1}
    reply = server.complete(**body)
    entries = reply["completion_probabilities"]
    assert said(entries).decode() == reply["content"] == EMOJI
    parts = [entry for entry in entries if bytes(entry["bytes"]).decode(errors="ignore") == ""]
    assert parts, "some token is no whole character"
    for entry in entries:
        if entry not in parts:
            assert entry["token"].encode() == bytes(entry["bytes"])
        entry["token"].encode()  # No lone surrogate.
    assert streamed(server.stream("/completion", body | {"seed": 1})) == \
        server.complete(seed=1, **body)["completion_probabilities"]


@pytest.mark.parametrize(("stop", "text"), [
    (["\n"], "The sky is blue?"), (["e?\nN"], "The sky is blu"), (["blue"], "The sky is "),
    (["zzz"], SKY), (["Next and more"], SKY), (["T"], ""), (["sky is blue, or", "is"], "The sky ")])
def test_stop_words(server: Server, stop: list[str], text: str) -> None:
    """Every token that begins in the reply, and no other; held back ones come with their text."""
    body = {"prompt": "x", "grammar": force(SKY), "n_predict": 100, "stop": stop, "n_probs": 2,
            "temperature": 0, "cache_prompt": False}
    reply = server.complete(**body)
    assert reply["content"] == text
    entries = reply.get("completion_probabilities", [])
    assert said(entries).decode().startswith(text)
    assert not text or len(said(entries[:-1]).decode()) < len(text)
    assert text or not entries
    events = list(server.stream("/completion", body))
    assert [entry for event in events
            for entry in event.get("completion_probabilities", [])] == entries
    assert all(event["content"] for event in events if "completion_probabilities" in event)


@pytest.mark.parametrize("field", [
    {"top_logprobs": 3}, {"logprobs": False, "top_logprobs": 3}, {"top_logprobs": 21},
    {"top_logprobs": -1, "logprobs": True}, {"top_logprobs": 21, "logprobs": True},
    {"logprobs": 5}, {"n_probs": 1001}])
def test_bad_values_in_chat(server: Server, field: dict[str, Any]) -> None:
    answer = server.post("/v1/chat/completions", {"messages": turns("x"), "max_tokens": 1} | field)
    assert answer.status_code == 400, answer.text
    assert next(iter(field)) in answer.json()["error"]["message"]


@pytest.mark.parametrize("field", [{"logprobs": -1}, {"logprobs": 1001}, {"logprobs": "many"},
                                   {"post_sampling_probs": 1}])
def test_bad_values_in_completions(server: Server, field: dict[str, Any]) -> None:
    answer = server.post("/v1/completions", {"prompt": "x", "max_tokens": 1} | field)
    assert answer.status_code == 400, answer.text
    assert next(iter(field)) in answer.json()["error"]["message"]
