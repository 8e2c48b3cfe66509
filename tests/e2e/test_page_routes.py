"""Saved conversations by name: GET /pages, GET, POST and DELETE /pages/{name}."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from server import Server, raw_ask, wait_until
from test_cache import next_turn, prompt, turn, values_of

ARGS = ("-c", "2048", "-np", "2", "--metrics")
BAD_NAMES = ["..", ".", ".x", "a/b", "a\\b", "%2e%2e%2fx", "../x", "a/../../x", "x" * 129,
             "a%00b", "a%20", "%C3%A9", "%FF%FE", "", "a b"]


def start_in(start: Callable[..., Server], folder: Path, *more: str) -> Server:
    return start(*ARGS, "--page-dir", str(folder / "pages"), *more)


def pages(server: Server, query: str = "", **kwargs: Any) -> list[dict[str, Any]]:
    answer = server.get("/pages" + query, **kwargs)
    assert answer.status_code == 200, answer.text
    body = answer.json()
    assert body["object"] == "list"
    return body["data"]


def wait_pages(server: Server, n: int, **kwargs: Any) -> list[dict[str, Any]]:
    wait_until(lambda: len(pages(server, **kwargs)) == n, f"{n} pages")
    return pages(server, **kwargs)


def act(server: Server, name: str, action: str, **kwargs: Any) -> Any:
    return server.ask("POST", f"/pages/{name}?action={action}", **kwargs)


def test_a_page_is_listed_pinned_renamed_forked_and_deleted(start: Callable[..., Server],
                                                            tmp_path: Path) -> None:
    """B10: what becomes of a conversation can be seen and said, wherever it lives."""
    server = start_in(start, tmp_path)
    assert pages(server) == []
    turn(server, prompt(0))
    page, = wait_pages(server, 1)
    assert page["tokens"] == 223 and page["named"] is False and page["pinned"] is False
    assert page["bytes"]["disk"] > 0 and page["reason"] == "idle" and page["price"] > 0
    assert page["name"].startswith("id.") and len(page["fingerprint"]) == 64
    assert page["created"] > 0 and page["last_used"] >= page["created"]
    one = server.get("/pages/" + page["name"])
    assert one.status_code == 200 and one.json()["tokens"] == 223

    pinned = act(server, page["name"], "pin")
    assert pinned.status_code == 200 and pinned.json()["pinned"] is True
    named = act(server, page["name"], "rename&to=Chat_1.a-b")
    assert named.status_code == 200 and named.json()["name"] == "Chat_1.a-b"
    assert named.json()["named"] is True and named.json()["pinned"] is True
    assert act(server, "Chat_1.a-b", "unpin").json()["pinned"] is False

    fork = act(server, "Chat_1.a-b", "fork&to=other")
    assert fork.status_code == 200 and fork.json()["reason"] == "client_request"
    taken = act(server, "other", "rename&to=Chat_1.a-b")
    assert taken.status_code == 409 and "Chat_1.a-b" in taken.json()["error"]["message"]
    assert {p["name"] for p in pages(server)} == {"Chat_1.a-b", "other"}
    assert [p["name"] for p in pages(server, "?prefix=oth")] == ["other"]
    assert len(pages(server, "?limit=1")) == 1
    assert server.get("/pages?limit=1").json()["total"] == 2

    gone = server.ask("DELETE", "/pages/other")
    assert gone.status_code == 200 and gone.json() == {"deleted": True}
    assert server.get("/pages/other").status_code == 404
    # What both had in common is still whole.
    server.stop()
    again = start_in(start, tmp_path)
    assert [p["name"] for p in pages(again)] == ["Chat_1.a-b"]
    again.check_alive()


def test_a_deleted_page_is_nowhere(start: Callable[..., Server], tmp_path: Path) -> None:
    server = start_in(start, tmp_path)
    first = turn(server, prompt(0))
    page, = wait_pages(server, 1)
    assert server.ask("DELETE", "/pages/" + page["name"]).status_code == 200
    assert pages(server) == []
    after = turn(server, next_turn(first, prompt(0)))
    assert after["fermata"]["prefix"] == {"from": "none", "tokens": 0}


def test_spilling_leaves_the_disk_alone(start: Callable[..., Server], tmp_path: Path) -> None:
    server = start_in(start, tmp_path)
    for i in range(4):
        turn(server, prompt(i))
    wait_pages(server, 4)
    page = next(p for p in pages(server) if p["bytes"]["ram"] > 0)
    spilled = act(server, page["name"], "spill")
    assert spilled.status_code == 200
    assert spilled.json()["bytes"] == {"ram": 0, "disk": page["bytes"]["disk"]}


@pytest.mark.parametrize("name", BAD_NAMES)
def test_names_that_are_none(start: Callable[..., Server], tmp_path: Path, name: str) -> None:
    """B5: a name that leaves the folder."""
    canary = tmp_path / "x"
    canary.write_text("untouched")
    server = start_in(start, tmp_path)
    for method, path in (("GET", f"/pages/{name}"), ("DELETE", f"/pages/{name}"),
                         ("POST", f"/pages/{name}?action=pin")):
        # As it is: a client library would tidy the path first.
        answer = raw(server, method, path)
        assert answer.status in (400, 404), (method, name)
    assert act(server, "any", f"rename&to={name}").status_code in (400, 404)
    assert canary.read_text() == "untouched"
    assert sorted(f.name for f in tmp_path.iterdir()) == ["pages", "x"]
    server.check_alive()


def raw(server: Server, method: str, path: str) -> Any:
    path = path.replace(" ", "%20")
    return raw_ask(server, f"{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
                   .encode())


def test_what_is_not_there_and_what_cannot_be_asked(start: Callable[..., Server],
                                                    tmp_path: Path) -> None:
    server = start_in(start, tmp_path)
    for method, path, status in (
            ("GET", "/pages/nope", 404), ("DELETE", "/pages/nope", 404),
            ("POST", "/pages/nope?action=pin", 404), ("POST", "/pages/nope?action=dance", 400),
            ("POST", "/pages/nope", 400), ("POST", "/pages", 404), ("DELETE", "/pages", 404),
            ("POST", "/pages/nope?action=rename", 400),
            ("POST", "/pages/nope?action=rename&to=id.x", 400),
            ("GET", "/pages?limit=0", 400), ("GET", "/pages?limit=x", 400),
            ("GET", "/pages?owner=xyz", 400), ("GET", "/pagesx", 404)):
        answer = server.ask(method, path)
        assert answer.status_code == status, (method, path, answer.text)
        error = answer.json()["error"]
        assert error["code"] == status and error["message"]


def test_without_a_folder_there_are_none(start: Callable[..., Server]) -> None:
    server = start(*ARGS)
    for method, path in (("GET", "/pages"), ("GET", "/pages/x"), ("DELETE", "/pages/x"),
                         ("POST", "/pages/x?action=pin")):
        answer = server.ask(method, path)
        assert answer.status_code == 501
        assert answer.json()["error"]["message"] == (
            "This server keeps no pages. Start it with `--page-dir`")


def test_keys_do_not_see_each_other(start: Callable[..., Server], tmp_path: Path) -> None:
    """C1: what came by one key is nothing that another sees or changes."""
    server = start_in(start, tmp_path, "--api-key", "one,two")
    one, two = ({"Authorization": f"Bearer {key}"} for key in ("one", "two"))
    body = {"prompt": prompt(0), "n_predict": 8}
    headers = one | {"X-Conversation-Id": "mine"}
    assert server.post("/completion", body, headers=headers).status_code == 200
    page, = wait_pages(server, 1, headers=one)
    assert page["name"] == "mine"
    assert pages(server, headers=two) == []
    for method, path in (("GET", "/pages/mine"), ("DELETE", "/pages/mine"),
                         ("POST", "/pages/mine?action=fork&to=x")):
        assert server.ask(method, path, headers=two).status_code == 404
        assert server.ask(method, path).status_code == 401
    assert server.get("/pages").status_code == 401
    assert server.get("/pages?owner=" + page["owner"], headers=two).status_code == 403
    assert len(pages(server, "?owner=" + page["owner"], headers=one)) == 1
    server.headers = two
    assert turn(server, prompt(0))["timings"]["cache_n"] == 0
    server.headers = one


def test_their_count_has_a_limit(start: Callable[..., Server], tmp_path: Path) -> None:
    server = start_in(start, tmp_path, "--page-count", "2")
    for i in range(4):
        turn(server, prompt(i))
    evicted = 'fermata_store_evictions_total{reason="count"}'
    wait_until(lambda: values_of(server).get(evicted, 0) >= 2, "two evictions")
    wait_pages(server, 2)  # The last one is there after room was made for it.
