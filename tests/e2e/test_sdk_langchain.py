"""LangChain's client for OpenAI-compatible servers."""

from collections.abc import Callable
from pathlib import Path

import pytest

import sdk
from sdk import COUNTED, OSLO, PERSON, Results, check_failure
from server import Server

SCRIPT = "langchain.mjs"
CASES = ["chat", "stream", "recall", "batch", "logprobs", "tool_turns", "tool_stream", "schema",
         "schema_tool", "abort", "bad_request", "too_long", "not_found"]


@pytest.fixture(scope="module")
def results(shared: Server, sdk_folder: Path) -> Results:
    return sdk.run(sdk_folder, SCRIPT, shared, *CASES)


def test_chat(results: Results) -> None:
    assert results["chat"]["content"] == COUNTED
    assert results["chat"]["response_metadata"]["finish_reason"] == "stop"


def test_stream(results: Results) -> None:
    assert results["stream"]["text"] == COUNTED
    used, streamed = results["chat"]["usage_metadata"], results["stream"]["usage"]
    for name in ("input_tokens", "output_tokens", "total_tokens"):
        assert streamed[name] == used[name] > 0


def test_second_turn(results: Results) -> None:
    assert "lantern" in results["recall"]


def test_a_batch(results: Results) -> None:
    assert results["batch"] == [COUNTED] * 3


def test_logprobs(results: Results) -> None:
    assert [len(token["top_logprobs"]) for token in results["logprobs"]] == [3] * 5
    assert COUNTED.startswith("".join(token["token"] for token in results["logprobs"]))


def test_leaving_frees_the_slot(results: Results, server: Server) -> None:
    assert results["abort"]["computed"] == 1
    assert results["abort"]["failed"] is not None
    assert server.is_idle()


@pytest.mark.parametrize(("case", "name", "status", "words"), [
    ("bad_request", "BadRequestError", 400, "top_k"),
    ("too_long", "BadRequestError", 400, "exceeds the available context size"),
    ("not_found", "NotFoundError", 404, "File Not Found")])
def test_errors(results: Results, case: str, name: str, status: int, words: str) -> None:
    check_failure(results[case], name, status, words)


def test_a_full_queue(start: Callable[..., Server], sdk_folder: Path) -> None:
    results = sdk.run(sdk_folder, SCRIPT, start(*sdk.NARROW), "queue_full", "retried")
    check_failure(results["queue_full"], "RateLimitError", 429, "try again later")
    assert results["retried"] == {"seen": [429, 200], "text": COUNTED}


def test_a_wrong_key(start: Callable[..., Server], sdk_folder: Path) -> None:
    results = sdk.run(sdk_folder, SCRIPT, start("--api-key", sdk.KEY), "chat", "wrong_key")
    assert results["chat"]["content"] == COUNTED
    check_failure(results["wrong_key"], "AuthenticationError", 401, "Invalid API Key")


def test_a_stream_over_parks(start: Callable[..., Server], sdk_folder: Path) -> None:
    # A5: after a resume the client's text was a splice.
    results = sdk.run(sdk_folder, SCRIPT, start(*sdk.PARKING), "stream")
    assert results["stream"]["text"] == COUNTED


def test_tools(results: Results) -> None:
    turns = results["tool_turns"]
    assert [(call["name"], call["args"]) for call in turns["calls"]] == [("get_weather", OSLO)]
    assert (turns["results"], turns["last"]) == (1, sdk.WEATHER)
    assert [(call["name"], call["args"]) for call in results["tool_stream"]] == \
        [("get_weather", OSLO)]


def test_a_schema(results: Results) -> None:
    assert results["schema"] == PERSON


def test_a_schema_as_a_tool(results: Results) -> None:
    assert results["schema_tool"] == OSLO
