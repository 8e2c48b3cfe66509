"""Anthropic's own client against /v1/messages."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import sdk
from sdk import COUNTED, OSLO, Results, check_failure
from server import Server

SCRIPT = "anthropic.mjs"
CASES = ["message", "system", "stream", "recall", "stop", "count", "tool_turns", "tool_stream",
         "tool_any", "abort", "bad_request", "bad_stream", "too_long", "not_found"]


@pytest.fixture(scope="module")
def results(shared: Server, sdk_folder: Path) -> Results:
    return sdk.run(sdk_folder, SCRIPT, shared, *CASES)


def text_of(message: dict[str, Any]) -> str:
    return "".join(part["text"] for part in message["content"] if part["type"] == "text")


def test_a_message(results: Results) -> None:
    message = results["message"]
    assert text_of(message) == COUNTED
    assert (message["type"], message["role"]) == ("message", "assistant")
    assert message["stop_reason"] == "end_turn"
    assert message["usage"]["output_tokens"] > 40
    assert results["system"]["usage"]["input_tokens"] > 0


def test_a_stream(results: Results) -> None:
    stream = results["stream"]
    assert stream["text"] == text_of(stream["final"]) == COUNTED
    assert stream["final"]["stop_reason"] == "end_turn"
    assert stream["final"]["usage"]["output_tokens"] == \
        results["message"]["usage"]["output_tokens"]
    events = stream["events"]
    assert events[:2] == ["message_start", "content_block_start"]
    assert events[-3:] == ["content_block_stop", "message_delta", "message_stop"]


def test_second_turn(results: Results) -> None:
    assert "lantern" in text_of(results["recall"])


def test_stop_sequences(results: Results) -> None:
    assert text_of(results["stop"]) == COUNTED.split("7")[0]
    assert results["stop"]["stop_reason"] == "stop_sequence"
    assert results["stop"]["stop_sequence"] == "7"


def test_counting_tokens(results: Results) -> None:
    usage = results["message"]["usage"]
    cached = usage.get("cache_read_input_tokens") or 0
    assert results["count"]["input_tokens"] == usage["input_tokens"] + cached


def test_tools(results: Results) -> None:
    first = results["tool_turns"]["first"]
    assert first["stop_reason"] == "tool_use"
    [call] = [part for part in first["content"] if part["type"] == "tool_use"]
    assert (call["name"], call["input"]) == ("get_weather", OSLO)
    assert text_of(results["tool_turns"]["last"]) == sdk.WEATHER


def test_tools_in_a_stream(results: Results) -> None:
    [call] = [part for part in results["tool_stream"]["final"]["content"]
              if part["type"] == "tool_use"]
    assert (call["name"], call["input"]) == ("get_weather", OSLO)
    assert results["tool_stream"]["pieces"]


def test_any_tool(results: Results) -> None:
    [call] = [part for part in results["tool_any"]["content"] if part["type"] == "tool_use"]
    assert call["name"] == "get_weather"
    assert call["input"] == OSLO


def test_leaving_frees_the_slot(results: Results, server: Server) -> None:
    assert results["abort"] == {"deltas": 5, "computed": 1}
    assert server.is_idle()


@pytest.mark.parametrize(("case", "name", "status", "words"), [
    ("bad_request", "BadRequestError", 400, "temperature"),
    ("bad_stream", "BadRequestError", 400, "temperature"),
    ("too_long", "BadRequestError", 400, "exceeds the available context size"),
    ("not_found", "NotFoundError", 404, "File Not Found")])
def test_errors(results: Results, case: str, name: str, status: int, words: str) -> None:
    check_failure(results[case], name, status, words)


def test_a_full_queue(start: Callable[..., Server], sdk_folder: Path) -> None:
    results = sdk.run(sdk_folder, SCRIPT, start(*sdk.NARROW), "queue_full", "retried")
    check_failure(results["queue_full"], "RateLimitError", 429, "try again later")
    assert results["retried"] == {"seen": [429, 200], "text": COUNTED}


def test_a_wrong_key(start: Callable[..., Server], sdk_folder: Path) -> None:
    results = sdk.run(sdk_folder, SCRIPT, start("--api-key", sdk.KEY), "message", "wrong_key")
    assert text_of(results["message"]) == COUNTED
    check_failure(results["wrong_key"], "AuthenticationError", 401, "Invalid API Key")


def test_a_stream_over_parks(start: Callable[..., Server], sdk_folder: Path) -> None:
    # A5: after a resume the client's text was a splice.
    results = sdk.run(sdk_folder, SCRIPT, start(*sdk.PARKING), "stream")
    assert results["stream"]["text"] == COUNTED
