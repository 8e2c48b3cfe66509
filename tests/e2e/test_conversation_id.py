"""A conversation that its client names: X-Conversation-Id, or "conversation" in the body."""

import hashlib
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from server import Server, turns, wait_until
from test_cache import next_turn, prompt, turn
from test_page_routes import pages, start_in, wait_pages


def named(server: Server, tokens: list[int], name: str, **more: Any) -> dict[str, Any]:
    return turn(server, tokens, conversation=name, **more)


def tokens_of(server: Server, name: str) -> int:
    answer = server.get("/pages/" + name)
    return answer.json()["tokens"] if answer.status_code == 200 else 0


def wait_tokens(server: Server, name: str, n: int) -> None:
    wait_until(lambda: tokens_of(server, name) == n, f"{n} tokens under {name}")


def test_a_page_grows_with_its_own_turns_alone(start: Callable[..., Server],
                                               tmp_path: Path) -> None:
    """C1: a request of another branch wrote over the conversation whose name it carried."""
    server = start_in(start, tmp_path)
    first = named(server, prompt(0), "chat")
    wait_tokens(server, "chat", 223)
    after = next_turn(first, prompt(0))
    second = named(server, after, "chat")
    wait_tokens(server, "chat", len(after) + 23)
    assert len(pages(server)) == 1
    # The first turn once more, with another end: no extension, so it forks.
    other = prompt(0)[:150] + [777] * 20
    named(server, other, "chat")
    both = {p["named"]: p["tokens"] for p in wait_pages(server, 2)}
    assert both == {True: len(after) + 23, False: len(other) + 23}
    assert tokens_of(server, "chat") == len(after) + 23
    named(server, next_turn(second, after), "chat")
    wait_tokens(server, "chat", len(after) + 24 + 4 + 23)


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL], ids=["stopped", "killed"])
def test_it_is_there_after_a_restart(start: Callable[..., Server], tmp_path: Path,
                                     how: int) -> None:
    """B1: after a restart every conversation was computed again."""
    server = start_in(start, tmp_path)
    first = named(server, prompt(0), "chat")
    wait_tokens(server, "chat", 223)
    server.stop(how)
    again = start_in(start, tmp_path)
    assert tokens_of(again, "chat") == 223
    after = next_turn(first, prompt(0))
    second = named(again, after, "chat")
    assert second["fermata"]["prefix"] == {"from": "disk", "tokens": 223}
    assert second["timings"]["prompt_n"] == 5
    wait_tokens(again, "chat", len(after) + 23)
    assert len(pages(again)) == 1


def test_a_pin_stays_with_the_name(start: Callable[..., Server], tmp_path: Path) -> None:
    server = start_in(start, tmp_path)
    first = named(server, prompt(0), "chat")
    wait_tokens(server, "chat", 223)
    assert server.ask("POST", "/pages/chat?action=pin").status_code == 200
    after = next_turn(first, prompt(0))
    named(server, after, "chat")
    wait_tokens(server, "chat", len(after) + 23)
    assert server.get("/pages/chat").json()["pinned"] is True


@pytest.mark.parametrize(("given", "name"), [
    ("chat", "chat"),
    ("chat::some-model", "chat"),
    ("../../etc/passwd", "sha256-" + hashlib.sha256(b"../../etc/passwd").hexdigest()),
    ("x" * 256, "sha256-" + hashlib.sha256(b"x" * 256).hexdigest()),
    ("id.abc", "sha256-" + hashlib.sha256(b"id.abc").hexdigest()),
    ("two words", "sha256-" + hashlib.sha256(b"two words").hexdigest()),
])
def test_what_its_page_is_called(start: Callable[..., Server], tmp_path: Path, given: str,
                                 name: str) -> None:
    """B5: a name that leaves the folder."""
    server = start_in(start, tmp_path)
    body = {"prompt": prompt(0), "n_predict": 4}
    answer = server.post("/completion", body, headers={"X-Conversation-Id": given})
    assert answer.status_code == 200, answer.text
    assert [p["name"] for p in wait_pages(server, 1)] == [name]
    assert [f.name for f in tmp_path.iterdir()] == ["pages"]


def test_every_route_takes_it(start: Callable[..., Server], tmp_path: Path) -> None:
    server = start_in(start, tmp_path)
    text = "A long story about a small river that ran through a town of many bridges. " * 8
    bodies = {
        "/completion": {"prompt": text, "n_predict": 2},
        "/v1/completions": {"prompt": text, "max_tokens": 2},
        "/v1/chat/completions": {"messages": turns(text), "max_tokens": 2},
        "/v1/messages": {"messages": turns(text), "max_tokens": 2},
        "/v1/responses": {"input": text, "max_output_tokens": 2},
    }
    for route, body in bodies.items():
        name = route.replace("/", "-")
        answer = server.post(route, body, headers={"X-Conversation-Id": name})
        assert answer.status_code == 200, answer.text
        wait_until(lambda name=name: tokens_of(server, name) > 0, f"a page of {route}")


@pytest.mark.parametrize("bad", ["", "x" * 257, 5, ["a"], "::model"])
def test_what_is_no_id(start: Callable[..., Server], bad: Any) -> None:
    server = start("-c", "512")
    answer = server.post("/completion", {"prompt": "x", "n_predict": 1, "conversation": bad})
    assert answer.status_code == 400
    assert "conversation" in answer.json()["error"]["message"]
    assert server.complete(prompt="x", n_predict=1, conversation=None)["content"] is not None


def test_two_at_once_do_not_overwrite_each_other(start: Callable[..., Server],
                                                 tmp_path: Path) -> None:
    """C1: two turns of one conversation at once; the second must not take the first one's place."""
    server = start_in(start, tmp_path)
    first = named(server, prompt(0), "chat")
    wait_tokens(server, "chat", 223)
    after = next_turn(first, prompt(0))
    branches = [after + [360 + i] * 40 for i in range(2)]
    threads = [threading.Thread(target=named, args=(server, branch, "chat")) for branch in branches]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    both = wait_pages(server, 2)
    assert sorted(p["named"] for p in both) == [False, True]
    assert {p["tokens"] for p in both} == {len(after) + 40 + 23}


def test_other_weights_leave_the_page(start: Callable[..., Server], tmp_path: Path) -> None:
    """B8: a conversation of another model is neither used nor replaced."""
    server = start_in(start, tmp_path)
    named(server, prompt(0), "chat")
    wait_tokens(server, "chat", 223)
    fingerprint = server.get("/pages/chat").json()["fingerprint"]
    server.stop()
    other = start_in(start, tmp_path, "-ctk", "q8_0")
    assert named(other, prompt(0) + [350], "chat")["timings"]["cache_n"] == 0
    wait_pages(other, 2)
    assert other.get("/pages/chat").json()["fingerprint"] == fingerprint
