"""GET /pages/{name}/export and PUT /pages/{name}: a conversation moves to another server."""

import http.client
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import requests

from server import PATIENCE_S, Server, wait_until
from test_cache import next_turn, prompt, turn, values_of
from test_page_routes import ARGS, BAD_NAMES, pages, wait_pages

LONG = 1000


def start_in(start: Callable[..., Server], folder: Path, *more: str) -> Server:
    folder.mkdir(exist_ok=True)
    return start(*ARGS, "--page-dir", str(folder / "pages"), *more)


def export(server: Server, name: str, **kwargs: Any) -> requests.Response:
    return server.get(f"/pages/{name}/export", **kwargs)


def put(server: Server, name: str, body: bytes, **kwargs: Any) -> requests.Response:
    return server.ask("PUT", f"/pages/{name}", data=body, **kwargs)


def with_chat(start: Callable[..., Server], folder: Path, length: int = LONG,
              *more: str) -> tuple[Server, dict[str, Any]]:
    server = start_in(start, folder, *more)
    first = turn(server, prompt(0, length), conversation="chat")
    wait_pages(server, 1)
    return server, first


@pytest.fixture
def parcel(start: Callable[..., Server], tmp_path: Path) -> bytes:
    """Of a conversation of 1,023 tokens."""
    server, _ = with_chat(start, tmp_path / "origin")
    body = export(server, "chat").content
    assert server.stop() == 0
    return body


def test_a_conversation_goes_on_on_another_server(start: Callable[..., Server],
                                                  tmp_path: Path) -> None:
    """A conversation could not leave the machine that computed it."""
    here, first = with_chat(start, tmp_path / "here")
    answer = export(here, "chat")
    assert answer.status_code == 200 and len(answer.content) > 100_000
    assert answer.headers["Content-Type"] == "application/octet-stream"
    assert 'filename="chat.page"' in answer.headers["Content-Disposition"]
    assert int(answer.headers["Content-Length"]) == len(answer.content)
    assert here.ask("HEAD", "/pages/chat/export").headers["Content-Length"] == str(
        len(answer.content))
    after = next_turn(first, prompt(0, LONG))
    stayed = turn(here, after, n_predict=100)
    here.stop()

    there = start_in(start, tmp_path / "there", "--parallel", "3")
    page = put(there, "moved", answer.content)
    assert page.status_code == 200, page.text
    assert page.json()["name"] == "moved" and page.json()["tokens"] == 1023
    assert page.json()["reason"] == "client_request" and page.json()["pinned"] is False
    back = turn(there, after, n_predict=100)
    assert back["fermata"]["prefix"] == {"from": "disk", "tokens": 1023}
    assert back["timings"]["prompt_n"] == 5
    assert back["tokens"] == stayed["tokens"]
    # What it exports again is the same parcel.
    assert export(there, "moved").content[-100_000:] == answer.content[-100_000:]
    there.stop()
    again = start_in(start, tmp_path / "there")
    assert turn(again, after, n_predict=100)["tokens"] == stayed["tokens"]
    again.check_clean()


def test_whatever_is_not_whole_is_refused(start: Callable[..., Server], tmp_path: Path,
                                          parcel: bytes) -> None:
    """B8: a damaged file was taken, or ended the process."""
    server = start_in(start, tmp_path)
    drawn = random.Random(3)
    cuts = [0, 1, 7, 8, 15, 16, 31, 32, len(parcel) - 1] + [
        drawn.randrange(len(parcel)) for _ in range(20)]
    bad = [parcel[:n] for n in cuts] + [parcel + b"x", b"x" * 1000, bytes(5000)]
    for _ in range(40):
        at = drawn.randrange(len(parcel) if drawn.random() < 0.5 else 6000)
        bad.append(parcel[:at] + bytes([parcel[at] ^ (1 << drawn.randrange(8))]) + parcel[at + 1:])
    for body in bad:
        answer = put(server, "x", body)
        assert answer.status_code == 400, (len(body), answer.text)
        assert "export it again" in answer.json()["error"]["message"]
    assert pages(server) == []
    assert put(server, "x", parcel).status_code == 200
    server.check_alive()


def test_a_name_that_another_conversation_has(start: Callable[..., Server], tmp_path: Path,
                                              parcel: bytes) -> None:
    server, first = with_chat(start, tmp_path, 200)
    assert put(server, "chat", parcel).status_code == 409
    kept = export(server, "chat").content
    second = turn(server, next_turn(first, prompt(0)), conversation="chat")
    wait_until(lambda: pages(server)[0]["tokens"] > 223, "the second turn")
    longer = export(server, "chat").content
    # The page went on: an older one does not take its place, a longer one does.
    assert put(server, "chat", kept).status_code == 409
    assert put(server, "other", kept).status_code == 200
    assert put(server, "other", longer).json()["tokens"] == len(next_turn(first, prompt(0))) + len(
        second["tokens"]) - 1
    assert put(server, "other", longer).status_code == 200
    assert {page["name"] for page in pages(server) if page["named"]} == {"chat", "other"}
    for name in BAD_NAMES:
        assert put(server, name, kept).status_code in (400, 404), name
        assert export(server, name).status_code in (400, 404), name
    assert put(server, "id." + "0" * 32, kept).status_code == 400
    assert export(server, "nobody").status_code == 404
    assert server.ask("POST", "/pages/chat/export").status_code == 404
    server.check_alive()


def test_other_keys_cannot_take_it_away(start: Callable[..., Server], tmp_path: Path) -> None:
    """B7: one user's conversation was another's prefix."""
    server = start_in(start, tmp_path, "--api-key", "one,two")
    one, two = ({"Authorization": f"Bearer {key}"} for key in ("one", "two"))
    server.headers = one
    first = turn(server, prompt(0), conversation="chat")
    page, = wait_pages(server, 1)
    assert export(server, "chat", headers=two).status_code == 404
    assert export(server, page["name"], headers=two).status_code == 404
    assert export(server, "chat", headers={"Authorization": "Bearer no"}).status_code == 401
    body = export(server, "chat").content
    assert bytes.fromhex(page["owner"]) not in body and b"chat" not in body
    server.headers = two
    assert put(server, "mine", body).status_code == 200
    assert [p["name"] for p in pages(server)] == ["mine"]
    back = turn(server, next_turn(first, prompt(0)))
    assert back["timings"]["prompt_n"] == 5
    server.headers = one
    assert [p["name"] for p in pages(server)] == ["chat"]


@pytest.mark.parametrize("flags", [("-ctk", "q8_0"), ("-ctv", "q4_0", "-fa", "on")])
def test_cells_of_another_type_are_foreign(start: Callable[..., Server], tmp_path: Path,
                                           parcel: bytes, flags: tuple[str, ...]) -> None:
    server = start_in(start, tmp_path, *flags)
    answer = put(server, "x", parcel)
    assert answer.status_code == 409 and "--cache-type-k" in answer.json()["error"]["message"]
    _, first = server, turn(server, prompt(0), conversation="chat")
    wait_pages(server, 1)
    body = export(server, "chat").content
    server.stop()
    again = start_in(start, tmp_path / "again", *flags)
    assert put(again, "chat", body).status_code == 200
    assert turn(again, next_turn(first, prompt(0)))["timings"]["prompt_n"] == 5


@pytest.mark.parametrize("kind", ["recurrent", "hybrid", "sliding-window"])
def test_what_cannot_be_checked_is_not_taken(start: Callable[..., Server], tmp_path: Path,
                                             kind: str, parcel: bytes,
                                             random_model: Callable[[str], Path]) -> None:
    server = start(*ARGS, "--page-dir", str(tmp_path / "pages"), model=random_model(kind))
    turn(server, prompt(0, 60), conversation="chat")
    wait_pages(server, 1)
    body = export(server, "chat")
    assert body.status_code == 200 and len(body.content) == int(body.headers["Content-Length"])
    for given in (body.content, parcel):
        answer = put(server, "x", given)
        assert answer.status_code == 501 and "--page-dir" in answer.json()["error"]["message"]
    server.check_alive()


def test_a_body_above_the_limit(start: Callable[..., Server], tmp_path: Path,
                                parcel: bytes) -> None:
    server = start_in(start, tmp_path, "--body-max-mib", "1")
    answer = put(server, "x", parcel * (2 + (1 << 20) // len(parcel)))
    assert answer.status_code == 413
    server.check_alive()


def test_who_leaves_in_the_middle_of_an_export(start: Callable[..., Server],
                                               tmp_path: Path) -> None:
    server, _ = with_chat(start, tmp_path)
    for _ in range(20):
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE_S)
        connection.request("GET", "/pages/chat/export")
        connection.getresponse().read(1000)
        connection.close()
    assert server.ask("DELETE", "/pages/chat").status_code == 200
    wait_until(lambda: values_of(server)["fermata_store_pages"] == 0, "the page to go")
    server.check_clean()


def test_a_page_that_goes_in_the_middle_of_an_export_is_seen_to_be_cut(
        start: Callable[..., Server], tmp_path: Path) -> None:
    server = start_in(start, tmp_path, "--ctx-size", "16384")
    turn(server, prompt(0, 8000), conversation="chat")
    wait_pages(server, 1)
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE_S)
    connection.request("GET", "/pages/chat/export")
    answer = connection.getresponse()
    answer.read(1000)
    assert server.ask("DELETE", "/pages/chat").status_code == 200
    with pytest.raises(http.client.IncompleteRead):
        answer.read()
    server.check_alive()
