"""Anthropic's Messages API over the same chats."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from chats import ASK_OSLO, OSLO, THINKING_TEMPLATE, named_events
from server import Server, count_text, force, turns

WEATHER = {"name": "get_weather", "description": "Get the weather in a city.",
           "input_schema": {"type": "object", "properties": {"city": {"type": "string"}},
                            "required": ["city"]}}
ASK = {"model": "m", "messages": turns(ASK_OSLO), "tools": [WEATHER], "temperature": 0,
       "max_tokens": 200}


def create(server: Server, body: dict[str, Any]) -> dict[str, Any]:
    answer = server.post("/v1/messages", body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def put_together(events: list[tuple[str, dict[str, Any]]]) -> dict[str, Any]:
    """The message of a stream, whose order is checked."""
    names = [name for name, _ in events if name != "ping"]
    assert names[0] == "message_start" and names[-2:] == ["message_delta", "message_stop"]
    assert "ping" in [name for name, _ in events]
    message = events[0][1]["message"]
    assert message["content"] == [] and message["stop_reason"] is None
    pieces: list[str] = []
    for name, data in events[1:]:
        if name == "content_block_start":
            assert data["index"] == len(message["content"]) == len(pieces)
            message["content"].append(data["content_block"])
            pieces.append("")
        elif name == "content_block_delta":
            assert data["index"] == len(pieces) - 1
            block, delta = message["content"][-1], data["delta"]
            kind = {"text": "text_delta", "thinking": "thinking_delta",
                    "tool_use": "input_json_delta"}[block["type"]]
            if delta["type"] == "signature_delta":
                assert block["type"] == "thinking"
                continue
            assert delta["type"] == kind
            member = "partial_json" if block["type"] == "tool_use" else block["type"]
            pieces[-1] += delta[member]
        elif name == "message_delta":
            message |= data["delta"]
            message["usage"] = data["usage"]
    assert names.count("content_block_stop") == len(pieces)
    for block, text in zip(message["content"], pieces, strict=True):
        if block["type"] == "tool_use":
            block["input"] = json.loads(text)
        else:
            block[block["type"]] = text
    return message


def same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    def lasting(message: dict[str, Any]) -> list[Any]:
        content = [{k: v for k, v in block.items() if k != "id"} for block in message["content"]]
        return [content, message["stop_reason"], message["stop_sequence"],
                message["usage"]["output_tokens"]]
    return lasting(one) == lasting(other)


def test_a_message_and_its_stream(server: Server) -> None:
    body = {"messages": turns("Count from 1 to 20."), "system": "Be brief.", "max_tokens": 200,
            "temperature": 0}
    message = create(server, body)
    assert message["type"] == "message" and message["role"] == "assistant"
    assert message["id"].startswith("msg_")
    [block] = message["content"]
    assert block["type"] == "text" and count_text(1, 20) in block["text"].replace(",", "")
    assert message["stop_reason"] == "end_turn" and message["stop_sequence"] is None
    usage = message["usage"]
    counted = server.post("/v1/messages/count_tokens", body).json()
    assert counted == {"input_tokens": usage["input_tokens"] + usage["cache_read_input_tokens"]}
    assert usage["output_tokens"] > 20
    assert same(put_together(list(named_events(server, "/v1/messages", body))), message)
    again = create(server, body)["usage"]
    assert again["cache_read_input_tokens"] > 0


def test_a_tool_is_used_and_its_result_read(server: Server) -> None:
    message = create(server, ASK)
    [block] = message["content"]
    assert message["stop_reason"] == "tool_use" and block["type"] == "tool_use"
    assert block["name"] == "get_weather" and block["input"] == OSLO and block["id"]
    events = list(named_events(server, "/v1/messages", ASK))
    assert same(put_together(events), message)
    assert sum(data.get("delta", {}).get("type") == "input_json_delta" for _, data in events) > 1
    answer = create(server, ASK | {"messages": [
        *ASK["messages"], {"role": "assistant", "content": [block]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": block["id"],
             "content": [{"type": "text", "text": '{"temperature": 7, "sky": "rainy"}'}]}]}]})
    assert answer["stop_reason"] == "end_turn" and "7" in answer["content"][0]["text"]


@pytest.mark.parametrize("choice", [{"type": "any"}, {"type": "tool", "name": "get_weather"}])
def test_a_tool_can_be_demanded(server: Server, choice: dict[str, Any]) -> None:
    hello = ASK | {"messages": turns("Hello"), "max_tokens": 100}
    assert create(server, hello)["stop_reason"] == "end_turn"
    assert create(server, hello | {"tool_choice": choice})["stop_reason"] == "max_tokens"
    assert create(server, ASK | {"tool_choice": choice})["stop_reason"] == "tool_use"
    none = create(server, ASK | {"tool_choice": {"type": "none"}})
    assert [block["type"] for block in none["content"]] == ["text"]


def test_ends_are_told(server: Server) -> None:
    body = {"messages": turns("x"), "grammar": force("one two three"), "max_tokens": 50,
            "temperature": 0}
    stopped = create(server, body | {"stop_sequences": ["never", " three"]})
    assert stopped["content"][0]["text"] == "one two"
    assert (stopped["stop_reason"], stopped["stop_sequence"]) == ("stop_sequence", " three")
    streamed = put_together(list(named_events(server, "/v1/messages",
                                              body | {"stop_sequences": [" three"]})))
    assert same(streamed, stopped)
    cut = create(server, body | {"max_tokens": 2})
    assert cut["stop_reason"] == "max_tokens" and cut["usage"]["output_tokens"] == 2


def test_system_blocks_and_text_blocks_reach_the_prompt(server: Server) -> None:
    def count(**body: Any) -> int:
        answer = server.post("/v1/messages/count_tokens", body)
        assert answer.status_code == 200, answer.text
        return answer.json()["input_tokens"]

    blocks = [{"type": "text", "text": "Say hello.", "cache_control": {"type": "ephemeral"}}]
    plain = count(messages=turns("Say hello."))
    assert count(messages=[{"role": "user", "content": blocks}]) == plain
    assert count(messages=turns("Say hello."), system=blocks) > plain
    assert count(messages=turns("Say hello."), tools=[WEATHER]) > plain + 20


def test_thoughts_are_blocks(start: Callable[..., Server], tmp_path: Path) -> None:
    path = tmp_path / "thinking.jinja"
    path.write_text(THINKING_TEMPLATE)
    server = start("-c", "2048", "-np", "2", "--chat-template-file", str(path))
    body = {"messages": turns("x"), "max_tokens": 100, "temperature": 0,
            "grammar": force("<think>\nHm, so.\n</think>\n\nYes.")}
    message = create(server, body)
    thought, answer = message["content"]
    assert thought["type"] == "thinking" and thought["thinking"].strip() == "Hm, so."
    assert answer == {"type": "text", "text": "Yes."}
    assert same(put_together(list(named_events(server, "/v1/messages", body))), message)
    back = {"messages": [*turns("x"), {"role": "assistant", "content": message["content"]},
                         *turns("y")], "thinking": {"type": "disabled"}}
    assert server.post("/v1/messages/count_tokens", back).status_code == 200


def test_parks_change_nothing_in_a_tool_use(start: Callable[..., Server]) -> None:
    # A5: the text was a splice of two generations, with status 200.
    server = start("-c", "2048", "-np", "2", "--preempt-every", "3")
    events = list(named_events(server, "/v1/messages", ASK))
    message = put_together(events)
    assert message["content"][0]["input"] == OSLO
    assert events[-2][1]["fermata"]["parks"] > 0
    server.check_clean()


IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": ""}}


@pytest.mark.parametrize(("field", "status", "body"), [
    ("messages", 400, {"messages": None}), ("messages", 400, {"messages": []}),
    ("messages[0]", 400, {"messages": [5]}),
    ("messages[0].role", 400, {"messages": [{"role": "system", "content": "x"}]}),
    ("messages[0].content", 400, {"messages": [{"role": "user"}]}),
    ("messages[0].content[0]", 501, {"messages": [{"role": "user", "content": [IMAGE]}]}),
    ("messages[0].content[0]", 400, {"messages": [{"role": "user",
                                                   "content": [{"type": "x"}]}]}),
    ("messages[0].content[0].input", 400, {"messages": [
        {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "b",
                                           "input": "c"}]}]}),
    ("messages[0].content[0].tool_use_id", 400, {"messages": [
        {"role": "user", "content": [{"type": "tool_result"}]}]}),
    ("system", 400, {"system": 5}), ("tools", 400, {"tools": {}}),
    ("tools[0].name", 400, {"tools": [{"input_schema": {}}]}),
    ("tools[0].input_schema", 400, {"tools": [{"name": "a", "input_schema": 5}]}),
    ("tools[0].type", 400, {"tools": [{"type": "web_search_20250305", "name": "a"}]}),
    ("tool_choice", 400, {"tools": [WEATHER], "tool_choice": "any"}),
    ("tool_choice", 400, {"tools": [WEATHER], "tool_choice": {"type": "some"}}),
    ("tool_choice", 400, {"tools": [WEATHER], "tool_choice": {"type": "tool", "name": "x"}}),
    ("stop_sequences", 400, {"stop_sequences": [5]}), ("max_tokens", 400, {"max_tokens": "x"}),
    ("thinking", 400, {"thinking": {"type": "maybe"}})])
def test_errors_have_both_shapes(server: Server, field: str, status: int,
                                 body: dict[str, Any]) -> None:
    answer = server.post("/v1/messages", {"messages": turns("x"), "max_tokens": 1} | body)
    assert answer.status_code == status, answer.text
    error = answer.json()
    assert error["type"] == "error" and error["error"]["code"] == status
    assert error["error"]["message"].startswith(field)


def test_an_error_in_mid_stream_is_an_error_event(server: Server) -> None:
    # E1: an error in mid-stream was sent as an unknown field.
    letters = {token for text in ("c", "cd", "cde", "e", "d", "de")
               for token in server.post("/tokenize", {"content": text}).json()["tokens"]}
    body = {"messages": turns("x"), "grammar": 'root ::= "ab" "cde"', "max_tokens": 9,
            "logit_bias": [[token, False] for token in letters]}
    events = list(named_events(server, "/v1/messages", body))
    assert [name for name, _ in events if name != "ping"][0] == "message_start"
    name, data = events[-1]
    assert name == "error" and data["error"]["code"] == 400
    whole = server.post("/v1/messages", body)
    assert whole.status_code == 400 and whole.json()["type"] == "error"
