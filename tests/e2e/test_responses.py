"""OpenAI's Responses API over the same chats."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from chats import ASK_OSLO, OSLO, THINKING_TEMPLATE, named_events
from server import Server, count_text, force

WEATHER = {"type": "function", "name": "get_weather", "description": "Get the weather in a city.",
           "parameters": {"type": "object", "properties": {"city": {"type": "string"}},
                          "required": ["city"]}}
ASK = {"model": "m", "input": ASK_OSLO, "tools": [WEATHER], "temperature": 0,
       "max_output_tokens": 200}


def create(server: Server, body: dict[str, Any], path: str = "/v1/responses") -> dict[str, Any]:
    answer = server.post(path, body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def text_of(response: dict[str, Any]) -> str:
    return "".join(part["text"] for item in response["output"] if item["type"] == "message"
                   for part in item["content"])


def put_together(events: list[tuple[str, dict[str, Any]]]) -> dict[str, Any]:
    """The response of a stream, whose order, numbers and items are checked."""
    names = [name for name, _ in events]
    assert names[:2] == ["response.created", "response.in_progress"]
    assert names[-1] in ("response.completed", "response.incomplete")
    assert [data["sequence_number"] for _, data in events] == list(range(len(events)))
    last = events[-1][1]["response"]
    assert events[0][1]["response"]["id"] == last["id"]
    pieces: list[str] = []
    for name, data in events[2:-1]:
        if name == "response.output_item.added":
            assert data["output_index"] == len(pieces)
            pieces.append("")
            item = data["item"]
            assert item["status"] == "in_progress"
            continue
        assert data["output_index"] == len(pieces) - 1, name
        if name.endswith(".delta"):
            assert data["item_id"] == item["id"]
            pieces[-1] += data["delta"]
        elif name == "response.function_call_arguments.done":
            assert data["arguments"] == pieces[-1]
        elif name in ("response.output_text.done", "response.reasoning_text.done"):
            assert data["text"] == pieces[-1]
        elif name == "response.output_item.done":
            assert data["item"] == last["output"][len(pieces) - 1]
            assert data["item"]["id"] == item["id"]
    assert names.count("response.output_item.done") == len(pieces) == len(last["output"])
    return last


def test_a_response_and_its_stream(server: Server) -> None:
    body = {"input": "Count from 1 to 20.", "instructions": "Be brief.", "temperature": 0}
    response = create(server, body)
    assert response["object"] == "response" and response["status"] == "completed"
    assert response["id"].startswith("resp_") and response["instructions"] == "Be brief."
    [item] = response["output"]
    assert item["type"] == "message" and item["role"] == "assistant"
    assert item["content"][0]["type"] == "output_text"
    assert count_text(1, 20) in text_of(response).replace(",", "")
    usage = response["usage"]
    assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"]
    for path in ("/responses/input_tokens", "/v1/responses/input_tokens"):
        assert server.post(path, body).json() == {
            "object": "response.input_tokens", "input_tokens": usage["input_tokens"]}
    streamed = put_together(list(named_events(server, "/responses", body)))
    assert text_of(streamed) == text_of(response)
    assert streamed["usage"]["output_tokens"] == usage["output_tokens"]


def test_a_function_is_called_and_its_output_read(server: Server) -> None:
    response = create(server, ASK)
    [call] = response["output"]
    assert call["type"] == "function_call" and call["name"] == "get_weather"
    assert json.loads(call["arguments"]) == OSLO
    events = list(named_events(server, "/v1/responses", ASK))
    streamed = put_together(events)
    assert streamed["output"][0]["arguments"] == call["arguments"]
    assert sum(name == "response.function_call_arguments.delta" for name, _ in events) > 1
    answer = create(server, ASK | {"input": [
        {"role": "user", "content": [{"type": "input_text", "text": ASK_OSLO}]}, call,
        {"type": "function_call_output", "call_id": call["call_id"],
         "output": '{"temperature": 7, "sky": "rainy"}'}]})
    assert "7" in text_of(answer)


def test_a_function_can_be_demanded(server: Server) -> None:
    for choice in ("required", {"type": "function", "name": "get_weather"}):
        response = create(server, ASK | {"tool_choice": choice})
        assert [item["type"] for item in response["output"]] == ["function_call"]
        cut = create(server, ASK | {"input": "Hello", "tool_choice": choice,
                                    "max_output_tokens": 100})
        assert cut["status"] == "incomplete", "it may not end without a call"
    none = create(server, ASK | {"tool_choice": "none"})
    assert [item["type"] for item in none["output"]] == ["message"]


def test_earlier_turns_are_items(server: Server) -> None:
    first = create(server, {"input": "My name is Anna.", "temperature": 0})
    second = create(server, {"temperature": 0, "input": [
        {"role": "user", "content": "My name is Anna."}, *first["output"],
        {"role": "user", "content": "What is my name?"}]})
    assert "Anna" in text_of(second)
    assert second["usage"]["input_tokens_details"]["cached_tokens"] > 10


def test_a_schema_shapes_the_text(server: Server) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer", "maximum": 9,
                                                     "minimum": 0}},
              "required": ["n"], "additionalProperties": False}
    response = create(server, {"input": "x", "text": {"format": {
        "type": "json_schema", "name": "number", "schema": schema, "strict": True}}})
    assert 0 <= json.loads(text_of(response))["n"] <= 9


def test_a_response_that_is_cut_is_incomplete(server: Server) -> None:
    body = {"input": "Tell me a story.", "max_output_tokens": 5, "ignore_eos": True}
    response = create(server, body)
    assert response["status"] == "incomplete"
    assert response["incomplete_details"] == {"reason": "max_output_tokens"}
    assert response["usage"]["output_tokens"] == 5
    events = list(named_events(server, "/v1/responses", body))
    put_together(events)
    assert events[-1][0] == "response.incomplete"


def test_thoughts_are_items(start: Callable[..., Server], tmp_path: Path) -> None:
    path = tmp_path / "thinking.jinja"
    path.write_text(THINKING_TEMPLATE)
    server = start("-c", "2048", "-np", "2", "--chat-template-file", str(path))
    body = {"input": "x", "grammar": force("<think>\nHm, so.\n</think>\n\nYes.")}
    response = create(server, body)
    thought, answer = response["output"]
    assert thought["type"] == "reasoning"
    assert thought["content"][0]["text"].strip() == "Hm, so." and text_of(response) == "Yes."
    assert text_of(put_together(list(named_events(server, "/v1/responses", body)))) == "Yes."
    again = server.post("/v1/responses/input_tokens", {
        "input": [{"role": "user", "content": "x"}, thought, answer,
                  {"role": "user", "content": "y"}]})
    plain = server.post("/v1/responses/input_tokens", {
        "input": [{"role": "user", "content": "x"}, answer, {"role": "user", "content": "y"}]})
    assert again.json()["input_tokens"] > plain.json()["input_tokens"]


def test_parks_change_nothing_in_a_call(start: Callable[..., Server]) -> None:
    # A5: the text was a splice of two generations, with status 200.
    server = start("-c", "2048", "-np", "2", "--preempt-every", "3")
    response = put_together(list(named_events(server, "/v1/responses", ASK)))
    assert json.loads(response["output"][0]["arguments"]) == OSLO
    assert response["fermata"]["parks"] > 0
    server.check_clean()


@pytest.mark.parametrize(("field", "status", "body"), [
    ("input", 400, {"input": None}), ("input", 400, {"input": []}), ("input", 400, {"input": 5}),
    ("input[0]", 400, {"input": [5]}), ("input[0].role", 400, {"input": [{"content": "x"}]}),
    ("input[0].type", 400, {"input": [{"type": "item_reference", "id": "x"}]}),
    ("input[0].content", 400, {"input": [{"role": "user"}]}),
    ("input[0].content[0]", 501, {"input": [{"role": "user",
                                             "content": [{"type": "input_image"}]}]}),
    ("input[0].arguments", 400, {"input": [{"type": "function_call", "call_id": "a",
                                            "name": "b"}]}),
    ("instructions", 400, {"instructions": 5}), ("tools", 400, {"tools": 5}),
    ("tools[0].type", 400, {"tools": [{"type": "web_search"}]}),
    ("tool_choice", 400, {"tools": [WEATHER], "tool_choice": {"type": "function", "name": "x"}}),
    ("text", 400, {"text": 5}), ("text.format", 400, {"text": {"format": 5}}),
    ("reasoning", 400, {"reasoning": "high"}), ("max_output_tokens", 400,
                                                {"max_output_tokens": "x"}),
    ("previous_response_id", 400, {"previous_response_id": "resp_1"}),
    ("background", 400, {"background": True}), ("store", 400, {"store": "x"})])
def test_errors_name_the_field(server: Server, field: str, status: int,
                               body: dict[str, Any]) -> None:
    answer = server.post("/v1/responses", {"input": "x", "max_output_tokens": 1} | body)
    assert answer.status_code == status, answer.text
    assert answer.json()["error"]["message"].startswith(field)
