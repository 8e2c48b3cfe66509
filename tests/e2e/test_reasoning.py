"""Thoughts of models that think: where they go, how they are switched off, how they are bounded."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from chats import THINKING_TEMPLATE, put_together
from server import TINY, Server, force, turns

THOUGHT, ANSWER = "First I look at 🎼 it.", "It is blue."
REPLY = f"<think>\n{THOUGHT}\n</think>\n\n{ANSWER}"
ASK = {"messages": turns("What colour?"), "grammar": force(REPLY), "max_tokens": 300}


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("template") / "thinking.jinja"
    path.write_text(THINKING_TEMPLATE)
    return path


@pytest.fixture(scope="module")
def thinking(template: Path) -> Iterator[Server]:
    one = Server("-c", "4096", "-np", "4", "--chat-template-file", str(template))
    yield one
    assert one.stop() == 0, "".join(one.errors)


def message_of(server: Server, **body: Any) -> dict[str, Any]:
    answer = server.post("/v1/chat/completions", ASK | body)
    assert answer.status_code == 200, answer.text
    return answer.json()["choices"][0]["message"]


def prompt_of(server: Server, **body: Any) -> str:
    answer = server.post("/apply-template", {"messages": turns("Hi")} | body)
    assert answer.status_code == 200, answer.text
    return answer.json()["prompt"]


def test_thoughts_come_apart_from_the_answer(thinking: Server) -> None:
    message = message_of(thinking)
    assert message["reasoning_content"].strip() == THOUGHT
    assert message["content"] == ANSWER


def test_streamed_thoughts_are_the_same(thinking: Server) -> None:
    events = list(thinking.stream("/v1/chat/completions", ASK))
    streamed = put_together(events)
    message = message_of(thinking)
    assert streamed["reasoning_content"] == message["reasoning_content"]
    assert streamed["content"] == message["content"]
    kinds = [next(iter(choice["delta"]), "") for event in events[:-1]
             for choice in event["choices"]][1:]
    assert kinds.count("reasoning_content") > 3 and kinds.count("content") > 3
    assert kinds.index("content") > kinds.index("reasoning_content")


def test_formats_of_thoughts(thinking: Server) -> None:
    kept = message_of(thinking, reasoning_format="none")
    assert kept["content"] == REPLY and "reasoning_content" not in kept
    for name in ("auto", "deepseek", "deepseek-legacy"):
        assert message_of(thinking, reasoning_format=name)["content"] == ANSWER
    assert put_together(list(thinking.stream(
        "/v1/chat/completions", ASK | {"reasoning_format": "none"})))["content"] == REPLY


def test_thoughts_that_are_cut_are_no_answer(thinking: Server) -> None:
    message = message_of(thinking, max_tokens=14)
    assert THOUGHT.startswith(message["reasoning_content"].strip())
    assert message["reasoning_content"] and not message["content"]


def test_thinking_can_be_switched_off(thinking: Server, template: Path,
                                      start: Callable[..., Server]) -> None:
    closed = "<think>\n\n</think>"
    assert closed not in prompt_of(thinking)
    assert closed in prompt_of(thinking, chat_template_kwargs={"enable_thinking": False})
    assert closed in prompt_of(thinking, reasoning_effort="none")
    off = start("-c", "1024", "-np", "2", "--chat-template-file", str(template),
                "--reasoning", "off", "--chat-template-kwargs", '{"reasoning_effort": "low"}')
    assert closed in prompt_of(off) and "(low)" in prompt_of(off)
    assert closed not in prompt_of(off, chat_template_kwargs={"enable_thinking": True})
    assert "(high)" in prompt_of(off, reasoning_effort="high")


def test_effort_reaches_the_template(thinking: Server, template: Path,
                                     start: Callable[..., Server]) -> None:
    assert "(high)" in prompt_of(thinking, reasoning_effort="high")
    low = start("-c", "1024", "-np", "2", "--chat-template-file", str(template),
                "--reasoning-effort", "low")
    assert "(low)" in prompt_of(low)


def test_earlier_thoughts_reach_the_template(thinking: Server) -> None:
    messages = [*turns("a", "b", "c")]
    messages[1]["reasoning_content"] = THOUGHT
    assert f"<think>\n{THOUGHT}\n</think>\n\nb" in prompt_of(thinking, messages=messages)


def test_a_budget_ends_thoughts(start: Callable[..., Server], tmp_path: Path) -> None:
    server = start("-c", "1024", "-np", "2", "--chat-template-file",
                   str(opened_template(tmp_path)),
                   "--reasoning-budget", "5", "--reasoning-budget-message", " Enough!")
    body = {"messages": turns("Count from 1 to 90."), "temperature": 0, "max_tokens": 60,
            "ignore_eos": True}
    reply = server.post("/v1/chat/completions", body).json()
    thought = reply["choices"][0]["message"]["reasoning_content"]
    assert thought.endswith(" Enough!") and reply["choices"][0]["message"]["content"]
    longer = server.post("/v1/chat/completions", body | {"reasoning_budget_tokens": 20}).json()
    more = longer["choices"][0]["message"]["reasoning_content"]
    assert more.endswith(" Enough!") and len(more) > len(thought)
    assert more.startswith(thought.removesuffix(" Enough!"))
    unbound = {"reasoning_budget_tokens": 1000}
    free = server.post("/v1/chat/completions", body | unbound).json()["choices"][0]["message"]
    assert " Enough!" not in free["reasoning_content"]


def opened_template(folder: Path) -> Path:
    """Every reply begins in the middle of thoughts."""
    path = folder / "opened.jinja"
    path.write_text(THINKING_TEMPLATE.replace(
        "{%- if enable_thinking", "{{- '<think>' -}}{%- if enable_thinking"))
    return path


def control(server: Server, **body: Any) -> requests.Response:
    return server.post("/v1/chat/completions/control", body)


@pytest.mark.parametrize("parked", [False, True])
def test_a_client_ends_the_thoughts_of_a_running_chat(start: Callable[..., Server],
                                                      tmp_path: Path, parked: bool) -> None:
    server = start("-c", "8192", "-np", "2", "--chat-template-file",
                   str(opened_template(tmp_path)), "--reasoning-budget-message", " Enough!")
    body = {"messages": turns("Count from 1 to 90."), "temperature": 0, "max_tokens": 6000,
            "ignore_eos": True, "reasoning_control": True}
    thoughts, ident = "", ""
    for event in server.stream("/v1/chat/completions", body):
        delta = event["choices"][0]["delta"]
        thoughts += delta.get("reasoning_content") or ""
        if thoughts and not ident:
            ident = event["id"]
            if parked:
                assert server.post("/slots/0?action=park", None).status_code == 200
            answer = control(server, id=ident, action="reasoning_end", model="any")
            assert answer.status_code == 200 and answer.json() == {"success": True}
            if parked:
                assert server.post("/slots/0?action=unpark", None).status_code == 200
        if delta.get("content"):
            break
    else:
        raise AssertionError("the thoughts did not end")
    assert thoughts.endswith(" Enough!")
    server.check_clean()
    gone = control(server, id=ident, action="reasoning_end").json()
    assert gone == {"success": False, "message": "no active completion for this id"}


def test_chats_that_did_not_ask_are_not_controlled(start: Callable[..., Server],
                                                   tmp_path: Path) -> None:
    server = start("-c", "8192", "-np", "2", "--chat-template-file",
                   str(opened_template(tmp_path)))
    body = {"messages": turns("x"), "max_tokens": 6000, "ignore_eos": True}
    for event in server.stream("/v1/chat/completions", body):
        answer = control(server, id=event["id"], action="reasoning_end")
        assert answer.status_code == 200
        assert answer.json() == {"success": False, "message":
                                 "reasoning control not enabled for this completion"}
        break
    for wrong in ({}, {"id": ""}, {"action": "reasoning_end"}, {"id": 5}):
        answer = control(server, **wrong)
        assert answer.status_code == 400 and answer.json()["error"]["message"].startswith("id:")
    for action in ("stop", "", 5, None):
        answer = control(server, id="chatcmpl-x", action=action)
        assert answer.status_code == 400
        assert answer.json()["error"]["message"].startswith("action:")
    refused = server.post("/v1/chat/completions", body | {"reasoning_control": "yes"})
    assert refused.status_code == 400
    assert refused.json()["error"]["message"].startswith("reasoning_control:")


def test_bad_reasoning_fields_are_named(thinking: Server) -> None:
    for field, value in [("reasoning_format", "other"), ("reasoning_format", 5),
                         ("reasoning_effort", 5), ("chat_template_kwargs", "x"),
                         ("chat_template_kwargs", {"enable_thinking": "yes"}),
                         ("reasoning_budget_tokens", -2), ("reasoning_budget_message", 1)]:
        answer = thinking.post("/v1/chat/completions", ASK | {field: value})
        assert answer.status_code == 400, answer.text
        assert answer.json()["error"]["message"].startswith(field + ":")


def test_bad_template_arguments_end_the_start(start: Callable[..., Server]) -> None:
    with pytest.raises(RuntimeError, match="--chat-template-kwargs"):
        start("--chat-template-kwargs", "[1]", model=TINY)


def prefill(*contents: str, **body: Any) -> dict[str, Any]:
    return {"messages": turns(*contents), "temperature": 0, "max_tokens": 100} | body


def test_a_begun_answer_is_gone_on_with(server: Server, start: Callable[..., Server]) -> None:
    ask = "Count from 1 to 9."
    whole = server.post("/v1/chat/completions", prefill(ask)).json()
    text = whole["choices"][0]["message"]["content"]
    begun, rest = text[:len(text) // 2], text[len(text) // 2:]
    assert prompt_of(server, messages=turns(ask, begun)).endswith("assistant\n" + begun)
    reply = server.post("/v1/chat/completions", prefill(ask, begun)).json()
    assert reply["choices"][0]["message"]["content"] == rest
    named = prefill(ask, begun, continue_final_message=True)
    assert put_together(list(server.stream("/v1/chat/completions", named)))["content"] == rest
    off = start("-c", "1024", "-np", "2", "--no-prefill-assistant")
    assert not prompt_of(off, messages=turns(ask, begun)).endswith(begun)


@pytest.mark.parametrize(("field", "body"), [
    ("messages", prefill("x") | {"messages": [*turns("x", "y"), {"role": "assistant",
                                                                 "content": "z"}]}),
    ("continue_final_message", prefill("x", continue_final_message=True)),
    ("continue_final_message", prefill("x", "y", continue_final_message=True,
                                       add_generation_prompt=True)),
    ("continue_final_message", prefill("x", "y", continue_final_message=5))])
def test_what_cannot_be_gone_on_with(server: Server, field: str, body: dict[str, Any]) -> None:
    answer = server.post("/v1/chat/completions", body)
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]["message"].startswith(field + ":")


def test_parks_change_no_thought(start: Callable[..., Server], template: Path) -> None:
    # A5: the text was a splice of two generations, with status 200.
    server = start("-c", "2048", "-np", "2", "--chat-template-file", str(template),
                   "--preempt-every", "3")
    events = list(server.stream("/v1/chat/completions", ASK))
    streamed = put_together(events)
    assert streamed["reasoning_content"].strip() == THOUGHT and streamed["content"] == ANSWER
    assert events[-2]["fermata"]["parks"] > 0
    server.check_clean()
