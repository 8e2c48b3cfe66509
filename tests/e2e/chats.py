"""What tests of chats share: a tool that the default model calls, streams put together again."""

import json
from collections.abc import Iterator
from typing import Any

import requests

from server import PATIENCE_S, Server

WEATHER = {"type": "function", "function": {
    "name": "get_weather", "description": "Get the weather in a city.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}},
                   "required": ["city"]}}}
ASK_OSLO = "What is the weather in Oslo?"
OSLO = {"city": "Oslo"}
# ChatML with thoughts, as many models of today have it.
THINKING_TEMPLATE = """\
{%- for message in messages -%}
{{- '<|im_start|>' + message.role + '\\n' -}}
{%- if message.role == 'assistant' and message.reasoning_content -%}
{{- '<think>\\n' + message.reasoning_content + '\\n</think>\\n\\n' -}}
{%- endif -%}
{{- message.content + '<|im_end|>\\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}
{{- '<|im_start|>assistant\\n' -}}
{%- if reasoning_effort is defined -%}{{- '(' + reasoning_effort + ')' -}}{%- endif -%}
{%- if enable_thinking is defined and enable_thinking is false -%}
{{- '<think>\\n\\n</think>\\n\\n' -}}
{%- endif -%}
{%- endif -%}"""


def put_together(events: list[Any], choice: int = 0) -> dict[str, Any]:
    """The message and the end of a streamed chat; checks the order that clients rely on."""
    assert events[-1] == "[DONE]" and events.count("[DONE]") == 1
    chunks = [one for event in events[:-1] for one in event["choices"] if one["index"] == choice]
    assert sum("role" in chunk["delta"] for chunk in chunks) == 1
    assert chunks[0]["delta"]["role"] == "assistant"
    assert [chunk["finish_reason"] is not None for chunk in chunks] == \
        [False] * (len(chunks) - 1) + [True]
    out: dict[str, Any] = {"content": "", "reasoning_content": "", "tool_calls": [],
                           "finish_reason": chunks[-1]["finish_reason"]}
    for chunk in chunks:
        delta = chunk["delta"]
        out["content"] += delta.get("content") or ""
        out["reasoning_content"] += delta.get("reasoning_content") or ""
        for call in delta.get("tool_calls", []):
            if "id" in call:
                assert call["index"] == len(out["tool_calls"]) and call["type"] == "function"
                assert call["function"]["arguments"] == ""
                out["tool_calls"].append({"id": call["id"], "pieces": 0, "type": "function",
                                          "function": dict(call["function"])})
            else:
                assert call["index"] == len(out["tool_calls"]) - 1
                out["tool_calls"][-1]["function"]["arguments"] += call["function"]["arguments"]
                out["tool_calls"][-1]["pieces"] += 1
    return out


def named_events(server: Server, path: str, body: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """The events of a stream that names them, strictly parsed."""
    with requests.post(server.url + path, json=body | {"stream": True}, stream=True,
                       timeout=PATIENCE_S) as answer:
        assert answer.status_code == 200, answer.text
        assert answer.headers["Content-Type"] == "text/event-stream"
        text = answer.content.decode()
    assert text.endswith("\n\n")
    for event in text.removesuffix("\n\n").split("\n\n"):
        if event.startswith(":"):
            continue
        first, second = event.split("\n")
        name, data = first.removeprefix("event: "), json.loads(second.removeprefix("data: "))
        assert first != name and data["type"] == name, event
        yield name, data
