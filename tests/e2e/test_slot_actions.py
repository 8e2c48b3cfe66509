"""An operator parks and unparks requests by hand: POST /slots/{id}?action=..."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import requests

from server import PATIENCE_S, Server, raw_post, wait_until
from test_preempt import check_nothing_is_left, metric


class Stream:
    """A streamed reply, read event by event."""

    def __init__(self, server: Server, path: str, body: dict[str, Any]) -> None:
        self.answer = requests.post(server.url + path, json=body | {"stream": True}, stream=True,
                                    timeout=PATIENCE_S)
        assert self.answer.status_code == 200, self.answer.text
        self.seen: list[str] = []
        self._events = self._split()

    def _split(self) -> Iterator[str]:
        text = b""
        for chunk in self.answer.iter_content(chunk_size=None):
            text += chunk
            while b"\n\n" in text:
                event, text = text.split(b"\n\n", 1)
                yield event.decode()

    def read_until(self, wanted: Callable[[str], bool]) -> str:
        for event in self._events:
            self.seen.append(event)
            if wanted(event):
                return event
        raise AssertionError(f"the stream ended without it: {self.seen[-3:]}")

    def rest(self) -> list[str]:
        self.seen += list(self._events)
        return self.seen


LONG = {"prompt": [300] * 20, "n_predict": 600, "ignore_eos": True, "temperature": 0}


def act(server: Server, where: str) -> requests.Response:
    return server.post(f"/slots{where}", None)


def has_text(event: str) -> bool:
    return event.startswith("data: ") and bool(json.loads(event[6:]).get("content"))


def text_of(events: list[str]) -> str:
    """The text of a stream of any flavour."""
    out = ""
    for event in events:
        if not event.startswith("data: {"):
            continue
        data = json.loads(event.removeprefix("data: "))
        for choice in data.get("choices", []):
            out += choice.get("text") or choice.get("delta", {}).get("content") or ""
        out += data.get("content", "")
    return out


@pytest.mark.parametrize("budget", ["8192", "0"])
def test_park_and_unpark_a_running_stream(start: Callable[..., Server], budget: str) -> None:
    server = start("-c", "1024", "-np", "2", "--preempt-ram", budget, "--metrics")
    plain = server.complete(**LONG, cache_prompt=False)["content"]
    stream = Stream(server, "/completion", LONG | {"cache_prompt": False})
    stream.read_until(has_text)
    slot = next(slot for slot in server.slots() if slot["is_processing"])
    receipt = act(server, f"/{slot['id']}?action=park")
    assert receipt.status_code == 200, receipt.text
    parked = receipt.json()
    assert parked["id_slot"] == slot["id"] and parked["id_task"] == slot["id_task"]
    assert parked["action"] == "park" and parked["is_preempted"] and parked["ms"] >= 0
    assert parked["mode"] == ("swap" if budget != "0" else "recompute")
    assert parked["n_tokens"] >= 20
    assert parked["bytes"] == metric(server, "preempt_ram_bytes")
    assert (parked["bytes"] > 0) == (budget != "0")
    entry = server.slots()[-1]
    assert entry["id"] == -1 and entry["is_held"] and entry["id_task"] == slot["id_task"]
    stream.read_until(lambda event: event == ": preempted")
    # A keepalive comes; a resume by itself does not.
    assert stream.read_until(lambda event: True) == ":"
    assert act(server, f"?action=park&id_task={slot['id_task']}").status_code == 200, "once more"

    back = act(server, f"/-1?action=unpark&id_task={slot['id_task']}")
    assert back.status_code == 200, back.text
    assert back.json()["action"] == "unpark"
    assert not back.json()["is_preempted"] and back.json()["id_slot"] >= 0
    events = stream.rest()
    assert [e for e in events if e in (": preempted", ": resumed")] == [": preempted", ": resumed"]
    last = json.loads(events[-1].removeprefix("data: "))
    assert last["timings"]["predicted_n"] == 600 and last["fermata"]["parks"] == 1
    if budget != "0":
        assert text_of(events) == plain
    check_nothing_is_left(server)


def test_a_queued_request_is_held_and_others_pass_it(start: Callable[..., Server]) -> None:
    server = start("-c", "2048", "-np", "1", "--metrics")
    runner = Stream(server, "/completion", LONG | {"n_predict": 1500})
    runner.read_until(has_text)
    first = server.slots()[0]["id_task"]
    held = Stream(server, "/completion", LONG | {"n_predict": 5})
    wait_until(lambda: metric(server, "requests_deferred") == 1, "one to wait")
    receipt = act(server, f"?action=park&id_task={first + 1}").json()
    assert receipt["is_preempted"] and receipt["id_slot"] == -1
    assert receipt["mode"] is None and receipt["n_tokens"] == receipt["bytes"] == 0
    assert [slot["id"] for slot in server.slots()] == [0, -1]
    act(server, "/0?action=park")
    assert server.complete(prompt="x", n_predict=3, ignore_eos=True)["tokens_predicted"] == 3
    assert [slot["id_task"] for slot in server.slots()[1:]] == [first, first + 1]
    held.read_until(lambda event: event == ": preempted")
    assert act(server, f"?action=unpark&id_task={first + 1}").json()["action"] == "unpark"
    assert ": resumed" in held.rest()
    act(server, "/0?action=unpark")  # Who was parked from this slot.
    assert ": resumed" in runner.rest()
    check_nothing_is_left(server)


def test_mistakes_are_named(start: Callable[..., Server]) -> None:
    server = start("-c", "1024", "-np", "2", "--metrics")
    stream = Stream(server, "/completion", LONG | {"n_predict": 900})
    stream.read_until(has_text)
    task = next(slot["id_task"] for slot in server.slots() if slot["is_processing"])
    busy = next(slot["id"] for slot in server.slots() if slot["is_processing"])
    for where, status, words in [
            (f"/{1 - busy}?action=park", 404, f"no request runs on slot {1 - busy}"),
            (f"/{busy}?action=unpark", 404, "by hand"),
            ("?action=park&id_task=999", 404, "request 999"),
            (f"?action=unpark&id_task={task}", 400, "is not parked"),
            (f"/{1 - busy}?action=park&id_task={task}", 400, "is not the one of slot"),
            ("/2?action=park", 400, "Invalid slot ID"),
            ("/-2?action=park", 400, "Invalid slot ID"),
            ("/x?action=park", 400, "Invalid slot ID"),
            ("/99999999999999999999?action=park", 400, "Invalid slot ID"),
            ("/0?action=freeze", 400, "Invalid action"),
            ("/0", 400, "Invalid action"),
            ("?action=park", 400, "id_task"),
            ("?action=park&id_task=-1", 400, "id_task"),
            ("?action=park&id_task=", 400, "id_task"),
            ("/0?action=save", 501, "--slot-save-path"),
            ("/0/1?action=park", 404, "File Not Found")]:
        answer = act(server, where)
        assert answer.status_code == status, (where, answer.text)
        error = answer.json()["error"]
        assert error["code"] == status and words in error["message"], (where, error)
    assert ": preempted" not in stream.rest()
    check_nothing_is_left(server)


@pytest.mark.parametrize("flags", [["--no-preempt"], ["--no-slots"],
                                   ["--preempt-policy", "admission-only"]])
def test_a_server_that_does_not_park_names_the_flag(start: Callable[..., Server],
                                                    flags: list[str]) -> None:
    answer = act(start(*flags), "/0?action=park")
    assert answer.status_code == 501
    assert " ".join(flags).replace("no-slots", "slots") in answer.json()["error"]["message"]


@pytest.mark.parametrize("stream", [True, False])
def test_a_client_that_leaves_while_held_leaves_nothing(start: Callable[..., Server],
                                                        stream: bool) -> None:
    server = start("-c", "1024", "-np", "1", "--metrics")
    sock = raw_post(server, "/completion", LONG | {"stream": stream})
    wait_until(lambda: server.slots()[0]["next_token"][0]["n_decoded"] > 3, "some tokens")
    first = server.slots()[0]["id_task"]
    queued = raw_post(server, "/completion", LONG | {"stream": stream})
    wait_until(lambda: metric(server, "requests_deferred") == 1, "one to wait")
    assert act(server, f"?action=park&id_task={first + 1}").status_code == 200
    assert act(server, "/0?action=park").status_code == 200
    assert metric(server, "requests_preempted") == 1
    assert [slot["id_task"] for slot in server.slots()[1:]] == [first, first + 1]
    sock.close()
    queued.close()
    wait_until(lambda: len(server.slots()) == 1, "nobody to be held")
    check_nothing_is_left(server)


def test_shutdown_ends_who_is_held(start: Callable[..., Server]) -> None:
    server = start("-c", "1024", "-np", "1", "--metrics", "--shutdown-timeout", "300")
    stream = Stream(server, "/completion", LONG)
    stream.read_until(has_text)
    assert act(server, "/0?action=park").status_code == 200
    assert server.stop() == 0, "it waited for one that nobody can let back"
    assert "shutting down" in stream.rest()[-1]


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/completions", "/completion"])
def test_keepalive_chunks_reach_a_parked_stream(start: Callable[..., Server], path: str) -> None:
    """Some clients do not count comments as life."""
    server = start("-c", "1024", "-np", "1", "--metrics", "--keepalive", "chunk",
                   "--sse-ping-interval", "-1")
    body = {"messages": [{"role": "user", "content": "Count from 1 to 95."}], "temperature": 0}
    if "chat" not in path:
        body = LONG
    plain = Stream(server, path, body).rest()
    stream = Stream(server, path, body)
    stream.read_until(lambda event: event.startswith("data: "))
    assert act(server, "/0?action=park").status_code == 200
    stream.read_until(lambda event: event == ": preempted")
    chunk = json.loads(stream.read_until(lambda event: True).removeprefix("data: "))
    if path == "/completion":
        assert chunk == {"index": 0, "content": "", "tokens": [], "stop": False}
    else:
        choice = chunk["choices"][0]
        assert choice["finish_reason"] is None
        assert choice.get("delta", {}) == {} and choice.get("text", "") == ""
        assert chunk["id"] == json.loads(stream.seen[0].removeprefix("data: "))["id"]
    assert act(server, "/0?action=unpark").status_code == 200
    assert text_of(stream.rest()) == text_of(plain)
    assert ":" not in stream.seen
    check_nothing_is_left(server)


def test_another_key_cannot_park_it(start: Callable[..., Server]) -> None:
    """Any key could hold another key's request for ever."""
    server = start("-c", "1024", "-np", "2", "--metrics", "--api-key", "one,two")
    one, two = ({"Authorization": f"Bearer {key}"} for key in ("one", "two"))
    server.headers = one
    body = {"prompt": "x", "n_predict": 400, "ignore_eos": True, "stream": True, "id_slot": 1}
    with server.post("/completion", body, stream=True) as answer:
        events = answer.iter_lines()
        next(events)
        task = next(slot["id_task"] for slot in server.slots() if slot["is_processing"])
        for query in (f"/slots?action=park&id_task={task}", "/slots/1?action=park"):
            refused = server.post(query, None, headers=two)
            assert refused.status_code in (400, 404), refused.text
        parked = server.post("/slots/1?action=park", None)
        assert parked.status_code == 200, parked.text
        for query in (f"/slots?action=unpark&id_task={task}", "/slots/1?action=unpark"):
            refused = server.post(query, None, headers=two)
            assert refused.status_code in (400, 404), refused.text
        assert server.post("/slots/1?action=unpark", None).status_code == 200
        assert any(b'"stop":true' in line for line in events)
    check_nothing_is_left(server)
