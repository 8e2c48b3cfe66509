"""Replies of a shape that the client asks for."""

import json
from typing import Any

import pytest

from chats import WEATHER, put_together
from server import Server, force, turns

PERSON = {"type": "object", "additionalProperties": False, "required": ["name", "age"],
          "properties": {"name": {"type": "string", "maxLength": 8},
                         "age": {"type": "integer", "minimum": 0, "maximum": 99}}}
FORMATS: list[dict[str, Any]] = [
    {"response_format": {"type": "json_schema",
                         "json_schema": {"name": "person", "schema": PERSON, "strict": True}}},
    {"response_format": {"type": "json_object", "schema": PERSON}},
    {"json_schema": PERSON}]


@pytest.mark.parametrize("body", FORMATS)
def test_a_schema_shapes_the_reply(server: Server, body: dict[str, Any]) -> None:
    body = body | {"messages": turns("Who?"), "max_tokens": 300, "temperature": 0}
    reply = server.post("/v1/chat/completions", body)
    assert reply.status_code == 200, reply.text
    text = reply.json()["choices"][0]["message"]["content"]
    value = json.loads(text)
    assert set(value) == {"name", "age"} and len(value["name"]) <= 8 and 0 <= value["age"] <= 99
    assert put_together(list(server.stream("/v1/chat/completions", body)))["content"] == text


def test_any_object_and_plain_text(server: Server) -> None:
    reply = server.chat("Give me JSON with a = 1.", response_format={"type": "json_object"},
                        temperature=0, max_tokens=200)
    choice = reply["choices"][0]
    if choice["finish_reason"] == "stop":
        assert isinstance(json.loads(choice["message"]["content"]), dict)
    assert choice["message"]["content"].lstrip().startswith("{")
    text = server.chat("Say the days of the week.", response_format={"type": "text"},
                       temperature=0)
    assert "Monday" in text["choices"][0]["message"]["content"]


def test_a_grammar_in_a_chat(server: Server) -> None:
    reply = server.chat("Hi", grammar=force("yes or no"), max_tokens=50)
    assert reply["choices"][0]["message"]["content"] == "yes or no"


@pytest.mark.parametrize("pattern", ["abc", "^(?=x)y$", r"^\d+$", "^a^b$", "^a{x}$", "^(a$"])
def test_an_unsupported_pattern_is_told(server: Server, pattern: str) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string", "pattern": pattern}}}
    lines = len(server.errors)
    for body in ({"json_schema": schema},
                 {"response_format": {"type": "json_schema", "json_schema": {"schema": schema}}}):
        answer = server.post("/v1/chat/completions",
                             {"messages": turns("x"), "max_tokens": 1} | body)
        assert answer.status_code == 400, answer.text
        assert "pattern" in answer.json()["error"]["message"]
    assert server.post("/completion", {"prompt": "x", "n_predict": 1,
                                       "json_schema": schema}).status_code == 400
    server.check_alive()
    assert not any("WARNING" in line for line in server.errors[lines:])


def test_a_supported_pattern_shapes_the_reply(server: Server) -> None:
    schema = {"type": "string", "pattern": "^[a-c]{3}-[0-9]{2}$"}
    reply = server.chat("x", json_schema=schema, max_tokens=60)
    value = json.loads(reply["choices"][0]["message"]["content"])
    assert value[3] == "-" and len(value) == 6 and value[4:].isdigit()


@pytest.mark.parametrize(("field", "body"), [
    ("response_format", {"response_format": "json"}), ("response_format", {"response_format": {}}),
    ("response_format", {"response_format": {"type": "xml"}}),
    ("response_format", {"response_format": {"type": "json_object", "schema": 5}}),
    ("response_format", {"response_format": {"type": "json_schema"}}),
    ("response_format", {"response_format": {"type": "json_schema",
                                             "json_schema": {"schema": []}}}),
    ("json_schema", {"json_schema": 5}),
    ("json_schema", {"json_schema": {}, "grammar": force("x")}),
    ("json_schema", {"json_schema": {"type": "unheard of"}}),
    ("json_schema", {"response_format": {"type": "json_object"}, "grammar": force("x")}),
    ("response_format", {"response_format": {"type": "json_object"}, "tools": [WEATHER]}),
    ("json_schema", {"json_schema": PERSON, "tools": [WEATHER]})])
def test_bad_formats_are_named(server: Server, field: str, body: dict[str, Any]) -> None:
    answer = server.post("/v1/chat/completions", {"messages": turns("x"), "max_tokens": 1} | body)
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]["message"].startswith(field)
