"""Tools of chats: calls are read out of replies, streams tell them in pieces."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from chats import ASK_OSLO, OSLO, WEATHER, put_together
from server import Server, force, turns

ASK = {"messages": turns(ASK_OSLO), "tools": [WEATHER], "temperature": 0, "max_tokens": 200}
TIME = {"type": "function", "function": {"name": "get_time", "parameters": {
    "type": "object", "properties": {"zone": {"type": "string"}}, "required": ["zone"]}}}


def message_of(server: Server, body: dict[str, Any]) -> dict[str, Any]:
    answer = server.post("/v1/chat/completions", body)
    assert answer.status_code == 200, answer.text
    choice = answer.json()["choices"][0]
    return choice["message"] | {"finish_reason": choice["finish_reason"]}


def test_the_model_calls_a_tool(server: Server) -> None:
    message = message_of(server, ASK)
    assert message["finish_reason"] == "tool_calls" and message["content"] is None
    [call] = message["tool_calls"]
    assert call["type"] == "function" and len(call["id"]) == 32
    assert call["function"]["name"] == "get_weather"
    assert json.loads(call["function"]["arguments"]) == OSLO


def test_a_streamed_call_is_the_same_call(server: Server) -> None:
    whole = message_of(server, ASK)
    events = list(server.stream("/v1/chat/completions", ASK))
    streamed = put_together(events)
    assert streamed["finish_reason"] == "tool_calls" and streamed["content"] == ""
    [call] = streamed["tool_calls"]
    assert call["pieces"] > 1
    assert call["function"] == whole["tool_calls"][0]["function"]
    assert "<tool_call>" not in json.dumps(events)


def test_the_answer_after_a_result_uses_it(server: Server) -> None:
    call = message_of(server, ASK)["tool_calls"][0]
    messages = [*ASK["messages"], {"role": "assistant", "content": None, "tool_calls": [call]},
                {"role": "tool", "tool_call_id": call["id"],
                 "content": '{"temperature": 7, "sky": "rainy"}'}]
    message = message_of(server, ASK | {"messages": messages})
    assert message["finish_reason"] == "stop" and "tool_calls" not in message
    assert "7" in message["content"]
    prompt = server.post("/apply-template", ASK | {"messages": messages}).json()["prompt"]
    assert '{"name": "get_weather", "arguments": {"city": "Oslo"}}' in prompt.replace(
        '{"city":"Oslo"}', '{"city": "Oslo"}')
    assert '"sky": "rainy"' in prompt


def test_text_with_tools_at_hand_is_only_text(server: Server) -> None:
    body = ASK | {"messages": turns("Count from 1 to 9.")}
    message = message_of(server, body)
    assert message["content"] == "1, 2, 3, 4, 5, 6, 7, 8, 9" and message["finish_reason"] == "stop"
    assert put_together(list(server.stream("/v1/chat/completions", body)))["content"] == \
        message["content"]


def test_without_a_call_there_is_no_end_where_one_is_demanded(server: Server) -> None:
    body = ASK | {"messages": turns("Hello"), "tool_choice": "required", "max_tokens": 100}
    assert message_of(server, body)["finish_reason"] == "length"
    assert message_of(server, body | {"tool_choice": "auto"})["finish_reason"] == "stop"


@pytest.mark.parametrize(("choice", "tools", "name"), [
    ("required", [WEATHER], "get_weather"), ("required", [TIME], "get_time"),
    ({"type": "function", "function": {"name": "get_time"}}, [WEATHER, TIME], "get_time")])
def test_a_call_can_be_demanded(server: Server, choice: Any, tools: list[Any], name: str) -> None:
    body = ASK | {"tools": tools, "tool_choice": choice}
    message = message_of(server, body)
    assert message["finish_reason"] == "tool_calls"
    assert message["tool_calls"][0]["function"]["name"] == name
    arguments = json.loads(message["tool_calls"][0]["function"]["arguments"])
    assert set(arguments) == {"city" if name == "get_weather" else "zone"}


def test_without_choice_a_call_is_text(server: Server) -> None:
    message = message_of(server, ASK | {"tool_choice": "none"})
    assert "tool_calls" not in message and message["finish_reason"] == "stop"
    assert message["content"]


def test_a_call_that_is_cut_says_so(server: Server) -> None:
    whole = message_of(server, ASK)["tool_calls"][0]["function"]["arguments"]
    seen_calls = 0
    for n in range(1, 30, 3):
        body = ASK | {"max_tokens": n}
        message = message_of(server, body)
        streamed = put_together(list(server.stream("/v1/chat/completions", body)))
        assert (streamed["content"] or None) == (message["content"] or None)
        calls = message.get("tool_calls", [])
        assert [call["function"] for call in calls] == \
            [call["function"] for call in streamed["tool_calls"]]
        assert message["finish_reason"] == streamed["finish_reason"]
        if message["finish_reason"] == "length":
            seen_calls += len(calls)
            assert all(whole.startswith(call["function"]["arguments"]) for call in calls)
    assert seen_calls > 0


def test_two_choices_each_have_their_call(server: Server) -> None:
    events = list(server.stream("/v1/chat/completions", ASK | {"n": 2}))
    for choice in range(2):
        [call] = put_together(events, choice)["tool_calls"]
        assert json.loads(call["function"]["arguments"]) == OSLO


def test_probabilities_of_a_call_are_all_there(server: Server) -> None:
    body = ASK | {"logprobs": True, "top_logprobs": 1}
    events = list(server.stream("/v1/chat/completions", body))
    streamed = [entry["token"] for event in events[:-1] for choice in event["choices"]
                for entry in (choice.get("logprobs") or {}).get("content", [])]
    whole = server.post("/v1/chat/completions", body).json()["choices"][0]["logprobs"]["content"]
    assert streamed == [entry["token"] for entry in whole] and len(streamed) > 10


@pytest.mark.parametrize("budget", ["8192", "0"], ids=["swap", "recompute"])
@pytest.mark.parametrize("every", ["1", "3", "7"])
def test_parks_change_nothing_in_a_call(start: Callable[..., Server], every: str,
                                        budget: str) -> None:
    # A5: the text was a splice of two generations, with status 200.
    server = start("-c", "2048", "-np", "2", "--preempt-ram", budget, "--preempt-every", every)
    events = list(server.stream("/v1/chat/completions", ASK))
    [call] = put_together(events)["tool_calls"]
    assert json.loads(call["function"]["arguments"]) == OSLO
    assert call["function"]["name"] == "get_weather"
    assert events[-2]["fermata"]["parks"] > 0
    server.check_clean()


def parameters(schema: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": "f", "parameters": schema}}


def of(name: str, **schema: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {name: schema}}


@pytest.mark.parametrize("tools", [
    [parameters({})], [parameters(None)], [{"type": "function", "function": {"name": "f"}}],
    [parameters({"type": "object", "properties": {}})],
    [parameters(of("a", type="string", maxLength=n)) for n in (1999, 2000, 65536)],
    [parameters(of("a", type="array", minItems=n, items={"type": "string"})) for n in (0, 1000)],
    [parameters(of("a", type="string", pattern=r"^\d{4}-\d{2}$"))],
    [parameters(of("a", type="string", pattern="(?i)x"))],
    [parameters(of("a", type="string", description='"\\] ' * 9))] * 30,
    [parameters(of("a b $c 🎼", type="string"))]])
def test_ordinary_tools_are_taken(server: Server, tools: list[Any]) -> None:
    # J3: a tool without parameters or with a large maxLength made the whole list fail.
    body = {"messages": turns("Hi"), "tools": tools, "max_tokens": 2}
    answer = server.post("/v1/chat/completions", body)
    assert answer.status_code == 200, answer.text


CALL = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}


@pytest.mark.parametrize(("field", "body"), [
    ("tools", {"tools": {}}), ("tools[0]", {"tools": [1]}),
    ("tools[0].type", {"tools": [{"type": "web_search"}]}),
    ("tools[0].function", {"tools": [{"type": "function"}]}),
    ("tools[0].function.name", {"tools": [{"type": "function", "function": {"name": ""}}]}),
    ("tools[0].function.name", {"tools": [{"type": "function", "function": {"name": 5}}]}),
    ("tools[0].function.parameters", {"tools": [parameters("x")]}),
    ("tool_choice", {"tools": [WEATHER], "tool_choice": "sometimes"}),
    ("tool_choice", {"tools": [WEATHER], "tool_choice": 7}),
    ("tool_choice", {"tool_choice": "required"}),
    ("tool_choice", {"tools": [WEATHER],
                     "tool_choice": {"type": "function", "function": {"name": "other"}}}),
    ("parallel_tool_calls", {"tools": [WEATHER], "parallel_tool_calls": "yes"}),
    ("grammar", {"tools": [WEATHER], "grammar": force("x")}),
    ("response_format", {"tools": [WEATHER], "response_format": {"type": "json_object"}}),
    ("messages[1].tool_calls", {"messages": [{"role": "user", "content": "x"},
                                             {"role": "assistant", "tool_calls": {}}]}),
    ("messages[0].tool_calls", {"messages": [
        {"role": "user", "content": "x", "tool_calls": [CALL]}]}),
    ("messages[0].tool_calls[0].function", {"messages": [
        {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]}]}),
    ("messages[0].tool_calls[0].function.arguments", {"messages": [
        {"role": "assistant", "tool_calls": [
            {"function": {"name": "f", "arguments": "{"}}]}]}),
    ("messages[0].tool_call_id", {"messages": [
        {"role": "tool", "content": "x", "tool_call_id": 5}]}),
    ("messages[0].name", {"messages": [{"role": "user", "content": "x", "name": []}]}),
    ("messages", {"messages": [{"role": "user", "content": "x"},
                               {"role": "assistant", "content": "", "tool_calls": [CALL]}]})])
def test_bad_tools_are_named(server: Server, field: str, body: dict[str, Any]) -> None:
    # J4: client mistakes came back as server errors.
    answer = server.post("/v1/chat/completions", {"messages": turns("x"), "max_tokens": 1} | body)
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]["message"].startswith(field + ":")


def test_a_call_without_result_and_a_result_without_id_are_legal(server: Server) -> None:
    messages = [{"role": "user", "content": "x"}, {"role": "assistant", "tool_calls": [CALL]},
                {"role": "tool", "content": [{"type": "text", "text": "found it"}]}]
    prompt = server.post("/apply-template", {"messages": messages, "tools": [WEATHER]})
    assert prompt.status_code == 200 and "found it" in prompt.json()["prompt"], prompt.text


def test_tokens_can_be_counted_before(server: Server) -> None:
    for path in ("/chat/completions/input_tokens", "/v1/chat/completions/input_tokens"):
        counted = server.post(path, ASK).json()
        assert counted["object"] == "response.input_tokens"
        usage = server.post("/v1/chat/completions", ASK | {"max_tokens": 1}).json()["usage"]
        assert counted["input_tokens"] == usage["prompt_tokens"]


@pytest.mark.parametrize("field", ["model", "user", "store", "metadata", "modalities"])
def test_idle_fields_have_types(server: Server, field: str) -> None:
    answer = server.post("/v1/chat/completions", {"messages": turns("x"), "max_tokens": 1,
                                                  field: 5})
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]["message"].startswith(field + ":")
    legal = {"model": "m", "user": "u", "store": True, "metadata": {"a": "b"},
             "modalities": ["text"]}
    server.chat("x", max_tokens=1, **{field: legal[field]})


def test_parsing_can_be_left_out(start: Callable[..., Server]) -> None:
    server = start("-c", "2048", "-np", "2", "--skip-chat-parsing")
    message = message_of(server, ASK | {"max_tokens": 60})
    assert "get_weather" in message["content"] and "tool_calls" not in message
