"""The AI SDK with its provider for OpenAI-compatible servers."""

from collections.abc import Callable
from pathlib import Path

import pytest

import sdk
from sdk import COUNTED, PERSON, Results, check_failure
from server import Server

SCRIPT = "ai.mjs"
CASES = ["chat", "stream", "recall", "tool_turns", "tool_stream", "schema", "schema_stream",
         "abort", "bad_request", "too_long", "not_found"]


@pytest.fixture(scope="module")
def results(shared: Server, sdk_folder: Path) -> Results:
    return sdk.run(sdk_folder, SCRIPT, shared, *CASES)


@pytest.mark.parametrize("case", ["chat", "stream"])
def test_text(results: Results, case: str) -> None:
    assert results[case]["text"] == COUNTED
    assert results[case]["finishReason"] == "stop"
    usage = results[case]["usage"]
    assert usage["inputTokens"] > 10 and usage["outputTokens"] > 40
    assert usage["totalTokens"] == usage["inputTokens"] + usage["outputTokens"]


def test_second_turn(results: Results) -> None:
    assert "lantern" in results["recall"]


def test_leaving_frees_the_slot(results: Results, server: Server) -> None:
    assert results["abort"]["computed"] == 1
    assert server.is_idle()


@pytest.mark.parametrize(("case", "status", "words"), [
    ("bad_request", 400, "top_k"), ("too_long", 400, "exceeds the available context size"),
    ("not_found", 404, "File Not Found")])
def test_errors(results: Results, case: str, status: int, words: str) -> None:
    check_failure(results[case], "APICallError", status, words)


def test_a_full_queue(start: Callable[..., Server], sdk_folder: Path) -> None:
    results = sdk.run(sdk_folder, SCRIPT, start(*sdk.NARROW), "queue_full", "retried")
    check_failure(results["queue_full"], "APICallError", 429, "try again later")
    assert results["retried"] == {"seen": [429, 200], "text": COUNTED}


def test_a_wrong_key(start: Callable[..., Server], sdk_folder: Path) -> None:
    results = sdk.run(sdk_folder, SCRIPT, start("--api-key", sdk.KEY), "chat", "wrong_key")
    assert results["chat"]["text"] == COUNTED
    check_failure(results["wrong_key"], "APICallError", 401, "Invalid API Key")


def test_a_stream_over_parks(start: Callable[..., Server], sdk_folder: Path) -> None:
    # A5: after a resume the client's text was a splice.
    results = sdk.run(sdk_folder, SCRIPT, start(*sdk.PARKING), "stream")
    assert results["stream"]["text"] == COUNTED


def test_tools(results: Results) -> None:
    assert results["tool_turns"] == {
        "text": sdk.WEATHER, "cities": ["Oslo"], "reasons": ["tool-calls", "stop"]}
    assert results["tool_stream"] == {"text": sdk.WEATHER, "cities": ["Oslo"]}


@pytest.mark.parametrize("case", ["schema", "schema_stream"])
def test_a_schema(results: Results, case: str) -> None:
    assert results[case] == PERSON
