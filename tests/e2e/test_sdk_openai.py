"""OpenAI's own client for JavaScript against the server."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import sdk
from sdk import COUNTED, OSLO, PERSON, Results, check_failure
from server import Server

SCRIPT = "openai.mjs"
PLAIN = ["models", "chat", "stream", "recall", "choices", "completion", "abort", "signal",
         "logprobs", "bad_request", "bad_stream", "too_long", "not_found", "unsupported"]
TOOLS = ["tool_call", "tool_turns", "run_tools", "tool_required", "schema", "schema_stream"]
RESPONSES = ["response", "response_stream", "response_tool"]


@pytest.fixture(scope="module")
def results(shared: Server, sdk_folder: Path) -> Results:
    return sdk.run(sdk_folder, SCRIPT, shared, *PLAIN, *TOOLS, *RESPONSES, "prompts")


@pytest.fixture(scope="module")
def narrow(sdk_folder: Path) -> Results:
    server = Server(*sdk.NARROW)
    try:
        return sdk.run(sdk_folder, SCRIPT, server, "queue_full", "retried")
    finally:
        assert server.stop() == 0


@pytest.fixture(scope="module")
def embedding(sdk_folder: Path) -> Results:
    server = Server("-c", "256", "-np", "1", "--embeddings", "--pooling", "mean")
    try:
        return sdk.run(sdk_folder, SCRIPT, server, "embeddings")
    finally:
        assert server.stop() == 0


def content(answer: dict[str, Any]) -> str:
    return answer["choices"][0]["message"]["content"]


def test_models(results: Results) -> None:
    assert results["models"] == ["fermata-tiny.gguf"]


def test_chat(results: Results) -> None:
    answer = results["chat"]
    assert content(answer) == COUNTED
    assert answer["choices"][0]["finish_reason"] == "stop"
    assert answer["usage"]["completion_tokens"] > 40


def test_stream(results: Results) -> None:
    stream = results["stream"]
    assert stream["text"] == COUNTED
    assert (stream["roles"], stream["reasons"]) == (["assistant"], ["stop"])
    assert [usage["completion_tokens"] for usage in stream["usages"]] == \
        [results["chat"]["usage"]["completion_tokens"]]
    assert stream["chunks"] > 40


def test_second_turn(results: Results) -> None:
    assert "lantern" in results["recall"]["content"]


def test_several_choices(results: Results) -> None:
    assert [choice["message"]["content"] for choice in results["choices"]["choices"]] == \
        [COUNTED] * 2


def test_completions(results: Results) -> None:
    assert results["completion"]["usage"]["completion_tokens"] == 8
    assert results["completion"]["choices"][0]["finish_reason"] == "length"


def test_several_prompts(results: Results) -> None:
    one, two = results["prompts"]["choices"]
    assert (one["index"], two["index"]) == (0, 1)
    assert one["text"] == results["completion"]["choices"][0]["text"]


@pytest.mark.parametrize("case", ["abort", "signal"])
def test_leaving_frees_the_slot(results: Results, server: Server, case: str) -> None:
    # D1: a client that left was served to the end.
    if case == "abort":
        assert results[case] == {"chunks": 5, "computed": 1}
    else:
        assert results[case]["class"] == "APIUserAbortError"
    assert server.is_idle()


def test_logprobs(results: Results) -> None:
    tokens = results["logprobs"]["choices"][0]["logprobs"]["content"]
    assert len(tokens) == 5
    assert "".join(token["token"] for token in tokens) == content(results["logprobs"])
    for token in tokens:
        assert len(token["top_logprobs"]) == 3
        assert token["logprob"] <= 0
        assert token["logprob"] == token["top_logprobs"][0]["logprob"], "greedy takes the best"


@pytest.mark.parametrize(("case", "name", "status", "words"), [
    ("bad_request", "BadRequestError", 400, "temperature"),
    ("bad_stream", "BadRequestError", 400, "temperature"),
    ("too_long", "BadRequestError", 400, "exceeds the available context size"),
    ("not_found", "NotFoundError", 404, "File Not Found"),
    ("unsupported", "InternalServerError", 501, "does not support embeddings")])
def test_errors(results: Results, case: str, name: str, status: int, words: str) -> None:
    check_failure(results[case], name, status, words)


def test_embeddings(embedding: Results) -> None:
    plain, floats = embedding["embeddings"]["plain"], embedding["embeddings"]["floats"]
    assert plain["usage"] == floats["usage"] and plain["usage"]["total_tokens"] > 5
    assert len(plain["data"]) == len(floats["data"]) == 2
    for one, other in zip(plain["data"], floats["data"], strict=True):
        assert one["embedding"] == pytest.approx(other["embedding"], abs=1e-6)
        assert sum(x * x for x in one["embedding"]) == pytest.approx(1, abs=1e-4)


def test_a_full_queue(narrow: Results) -> None:
    check_failure(narrow["queue_full"], "RateLimitError", 429, "try again later")


def test_a_full_queue_is_tried_again(narrow: Results) -> None:
    assert narrow["retried"] == {"seen": [429, 200], "text": COUNTED}


def test_a_wrong_key(start: Callable[..., Server], sdk_folder: Path) -> None:
    server = start("--api-key", sdk.KEY)
    results = sdk.run(sdk_folder, SCRIPT, server, "chat", "wrong_key")
    assert content(results["chat"]) == COUNTED
    check_failure(results["wrong_key"], "AuthenticationError", 401, "Invalid API Key")


def test_a_stream_over_parks(start: Callable[..., Server], sdk_folder: Path) -> None:
    # A5: after a resume the client's text was a splice.
    results = sdk.run(sdk_folder, SCRIPT, start(*sdk.PARKING), "stream", "chat", "logprobs")
    assert results["stream"]["text"] == COUNTED
    assert results["stream"]["reasons"] == ["stop"]
    assert content(results["chat"]) == COUNTED
    assert results["chat"]["fermata"]["parks"] > 10


def check_call(call: dict[str, Any]) -> None:
    assert call["type"] == "function" and call["id"]
    assert call["function"]["name"] == "get_weather"
    assert json.loads(call["function"]["arguments"]) == OSLO


def test_a_tool_is_called(results: Results) -> None:
    choice = results["tool_call"]["choices"][0]
    assert choice["finish_reason"] == "tool_calls"
    assert not choice["message"]["content"]
    [call] = choice["message"]["tool_calls"]
    check_call(call)


def test_a_tool_result_is_used(results: Results) -> None:
    assert len(results["tool_turns"]["calls"]) == 1
    last = results["tool_turns"]["last"]
    assert (last["message"]["content"], last["finish_reason"]) == (sdk.WEATHER, "stop")


def test_the_client_runs_tools_in_streams(results: Results) -> None:
    assert results["run_tools"] == {"text": sdk.WEATHER, "cities": ["Oslo"]}


def test_a_required_tool(results: Results) -> None:
    [call] = results["tool_required"]["choices"][0]["message"]["tool_calls"]
    assert call["function"]["name"] == "get_weather"
    assert json.loads(call["function"]["arguments"]) == OSLO


def test_a_schema(results: Results) -> None:
    assert json.loads(content(results["schema"])) == PERSON
    assert json.loads(results["schema_stream"]["text"]) == PERSON


def test_responses(results: Results) -> None:
    response = results["response"]
    assert response["output_text"] == COUNTED
    assert response["status"] == "completed"
    assert response["usage"]["output_tokens"] == results["chat"]["usage"]["completion_tokens"]


def test_responses_stream(results: Results) -> None:
    stream = results["response_stream"]
    assert stream["text"] == stream["whole"] == COUNTED
    assert stream["types"][0] == "response.created"
    assert stream["types"][-1] == "response.completed"


def test_responses_call_a_tool(results: Results) -> None:
    [call] = [item for item in results["response_tool"]["output"]
              if item["type"] == "function_call"]
    assert call["name"] == "get_weather" and call["call_id"]
    assert json.loads(call["arguments"]) == OSLO
