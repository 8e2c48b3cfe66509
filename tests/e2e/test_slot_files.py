"""llama-server's files of slots: POST /slots/{id}?action=save|restore|erase; and pages by slot."""

import os
import struct
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from server import Server, wait_until
from test_cache import next_turn, prompt, turn
from test_page_routes import pages, wait_pages
from test_slot_actions import Stream

ARGS = ("-c", "2048", "-np", "2", "--metrics")
HEADER = struct.Struct("<III")
BAD_NAMES = ["", ".", "..", "../x", "a/../../x", "/tmp/x", "a/b", "a\\b", "x" * 300, "a\u0000b",
             "x.", "x ", " x", "a\nb", "a:b", "a*b", "\ufeffx", "\uff0e", "a..b", "x.part"]
RESTORE = "Unable to restore slot: "
NOT_A_FILE = RESTORE + "No available space in KV cache or invalid slot save file"


def start_in(start: Callable[..., Server], folder: Path, *more: str, **kwargs: Any) -> Server:
    return start(*ARGS, "--slot-save-path", str(folder / "slots"), *more, **kwargs)


def act(server: Server, slot: int, action: str, filename: Any = None, **kwargs: Any) -> Any:
    body = {} if filename is None else {"filename": filename}
    return server.ask("POST", f"/slots/{slot}?action={action}", json=body, **kwargs)


def fill(server: Server, slot: int, tokens: list[int]) -> dict[str, Any]:
    return turn(server, tokens, id_slot=slot)


def check_error(answer: Any, status: int, message: str) -> None:
    assert answer.status_code == status, answer.text
    error = answer.json()["error"]
    assert error["code"] == status and message in error["message"], error


@pytest.mark.parametrize("other", [("-c", "2048", "-np", "2"), ("-c", "1900", "-np", "3")],
                         ids=["same", "other_geometry"])
def test_a_restored_slot_is_gone_on_from(start: Callable[..., Server], tmp_path: Path,
                                         other: tuple[str, ...]) -> None:
    """B1: restore told of all its tokens, and the next request computed them again."""
    server = start_in(start, tmp_path)
    first = fill(server, 0, prompt(0))
    saved = act(server, 0, "save", "chat.bin")
    assert saved.status_code == 200, saved.text
    receipt = saved.json()
    path = tmp_path / "slots" / "chat.bin"
    assert receipt["id_slot"] == 0 and receipt["filename"] == "chat.bin"
    assert receipt["n_saved"] == 223 and receipt["timings"]["save_ms"] > 0
    assert receipt["n_written"] == path.stat().st_size
    assert path.stat().st_mode & 0o777 == 0o600
    server.stop()

    again = start(*other, "--slot-save-path", str(tmp_path / "slots"))
    restored = act(again, 1, "restore", "chat.bin")
    assert restored.status_code == 200, restored.text
    assert restored.json()["n_restored"] == 223
    assert restored.json()["n_read"] == receipt["n_written"]
    assert restored.json()["timings"]["restore_ms"] > 0
    after = next_turn(first, prompt(0))
    back = turn(again, after, id_slot=1)
    assert back["timings"]["prompt_n"] == 5 and back["timings"]["cache_n"] == 223
    straight = start(*ARGS)
    turn(straight, prompt(0))
    assert turn(straight, after)["tokens"] == back["tokens"]
    again.check_clean()


def test_the_file_is_llama_servers(start: Callable[..., Server], tmp_path: Path) -> None:
    server = start_in(start, tmp_path)
    first = fill(server, 0, prompt(0))
    act(server, 0, "save", "chat.bin")
    content = (tmp_path / "slots" / "chat.bin").read_bytes()
    magic, version, words = HEADER.unpack_from(content)
    assert magic == 0x67677371 and version == 3
    payload = struct.unpack_from(f"<{words}i", content, HEADER.size)
    tokens = prompt(0) + first["tokens"][:-1]
    assert payload == (-1, 1, len(tokens), *tokens, 0)
    # What older servers wrote is still taken: the tokens alone.
    legacy = HEADER.pack(magic, version, len(tokens)) + struct.pack(f"<{len(tokens)}i", *tokens)
    (tmp_path / "slots" / "old.bin").write_bytes(legacy + content[HEADER.size + 4 * words:])
    assert act(server, 1, "restore", "old.bin").json()["n_restored"] == len(tokens)


def test_damaged_files_are_refused_and_the_slot_stays(start: Callable[..., Server],
                                                      tmp_path: Path) -> None:
    """B4: restoring what is no file wiped the slot, or ended the process."""
    server = start_in(start, tmp_path)
    folder = tmp_path / "slots"
    first = fill(server, 0, prompt(0))
    assert act(server, 0, "save", "good").status_code == 200
    good = (folder / "good").read_bytes()
    words = HEADER.unpack_from(good)[2]
    state = HEADER.size + 4 * words
    files = {
        "empty": b"", "one": b"x", "cut_header": good[:10], "cut_tokens": good[:HEADER.size + 4],
        "cut_state": good[:-1], "more": good + b"x", "no_state": good[:state],
        "magic": b"XXXX" + good[4:], "version": good[:4] + b"\x63\0\0\0" + good[8:],
        "words": good[:8] + b"\xff\xff\xff\xff" + good[12:],
        "count": good[:20] + b"\xff\xff\xff\x7f" + good[24:],
        "token": good[:24] + b"\xfe\xff\xff\xff" + good[28:],
        "cells": good[:state + 12] + b"\xff\xff\xff\x7f" + good[state + 16:],
        "position": good[:state + 16] + b"\x05\0\0\0" + good[state + 20:],
        "zeros": good[:state] + bytes(len(good) - state),
    }
    for name, content in files.items():
        (folder / name).write_bytes(content)
    (folder / "folder").mkdir()
    os.mkfifo(folder / "pipe")
    for name in (*files, "folder", "pipe", "nope.bin"):
        check_error(act(server, 0, "restore", name), 400, NOT_A_FILE)
    (folder / "tokens_version").write_bytes(good[:16] + b"\x63\0\0\0" + good[20:])
    check_error(act(server, 0, "restore", "tokens_version"), 400,
                RESTORE + "Unsupported server tokens state version")
    back = turn(server, next_turn(first, prompt(0)), id_slot=0)
    assert back["timings"]["cache_n"] == 223
    server.check_clean()
    server.check_alive()


def test_an_empty_slot_is_not_saved(start: Callable[..., Server], tmp_path: Path) -> None:
    """B4, B10: a save of nothing that told of success."""
    server = start_in(start, tmp_path)
    check_error(act(server, 0, "save", "x"), 400, "Unable to save slot")
    assert list((tmp_path / "slots").iterdir()) == []
    assert act(server, 0, "erase").json() == {"id_slot": 0, "n_erased": 0}


@pytest.mark.parametrize("name", BAD_NAMES)
def test_names_that_leave_the_folder(start: Callable[..., Server], tmp_path: Path,
                                     name: str) -> None:
    """B5: a filter of names that a link or a path led astray."""
    (tmp_path / "x").write_text("untouched")
    server = start_in(start, tmp_path)
    fill(server, 0, prompt(0))
    for action in ("save", "restore"):
        check_error(act(server, 0, action, name), 400, "Invalid filename")
    assert (tmp_path / "x").read_text() == "untouched"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["slots", "x"]
    assert list((tmp_path / "slots").iterdir()) == []


def test_links_are_not_followed(start: Callable[..., Server], tmp_path: Path) -> None:
    """B5: a link inside the folder redirected the write."""
    canary = tmp_path / "canary"
    canary.write_text("untouched")
    server = start_in(start, tmp_path)
    link = tmp_path / "slots" / "link"
    link.symlink_to(canary)
    fill(server, 0, prompt(0))
    check_error(act(server, 0, "restore", "link"), 400, NOT_A_FILE)
    assert act(server, 0, "save", "link").status_code == 200
    assert canary.read_text() == "untouched" and not link.is_symlink()


def test_what_cannot_be_asked(start: Callable[..., Server], tmp_path: Path) -> None:
    server = start_in(start, tmp_path)
    for body in ({}, {"filename": None}, {"filename": 5}, {"filename": ["x"]}):
        answer = server.ask("POST", "/slots/0?action=save", json=body)
        assert answer.status_code == 400
    for slot in ("2", "-1", "x", "99999999999"):
        check_error(server.ask("POST", f"/slots/{slot}?action=save", json={"filename": "x"}), 400,
                    "Invalid slot ID")
    check_error(server.ask("POST", "/slots/0?action=dance"), 400, "Invalid action")
    plain = start(*ARGS)
    for action in ("save", "restore", "erase"):
        check_error(act(plain, 0, action, "x"), 501,
                    "This server does not support slots action. Start it with `--slot-save-path`")
    for action in ("page_out", "page_in"):
        check_error(server.ask("POST", f"/slots/0?action={action}&page=x"), 501, "--page-dir")


def test_erase_forgets(start: Callable[..., Server], tmp_path: Path) -> None:
    server = start_in(start, tmp_path)
    fill(server, 0, prompt(0))
    assert act(server, 0, "erase").json() == {"id_slot": 0, "n_erased": 223}
    assert turn(server, prompt(0) + [350])["timings"]["cache_n"] == 0


def test_a_busy_slot_is_saved_at_once_and_erased_later(start: Callable[..., Server],
                                                       tmp_path: Path) -> None:
    """B10: a busy slot is saved at a token boundary; what changes it waits for its end."""
    server = start_in(start, tmp_path)
    stream = Stream(server, "/completion", {"prompt": prompt(0), "n_predict": 400, "id_slot": 0,
                                            "ignore_eos": True, "temperature": 0})
    stream.read_until(lambda event: event.startswith("data:"))
    erased: list[Any] = []
    waiter = threading.Thread(target=lambda: erased.append(act(server, 0, "erase")))
    waiter.start()
    saved = act(server, 0, "save", "now").json()
    assert 200 <= saved["n_saved"] < 600
    stream.rest()
    waiter.join()
    assert erased[0].json()["n_erased"] == 599
    restored = act(server, 1, "restore", "now")
    assert restored.json()["n_restored"] == saved["n_saved"]
    server.check_clean()


def test_one_that_does_not_fit(start: Callable[..., Server], tmp_path: Path) -> None:
    """B7: a restore into a pool without room leaves everything as it was."""
    server = start_in(start, tmp_path)
    fill(server, 0, prompt(0, 1000))
    assert act(server, 0, "save", "large").status_code == 200
    small = start("-c", "512", "-np", "2", "--slot-save-path", str(tmp_path / "slots"))
    check_error(act(small, 0, "restore", "large"), 400,
                RESTORE + "Restored prompt does not fit in the slot context")
    # Idle conversations make room.
    fill(server, 1, prompt(1, 900))
    restored = act(server, 0, "restore", "large")
    assert restored.status_code == 200
    assert turn(server, prompt(0, 1000), id_slot=0)["timings"]["cache_n"] == 999
    small.check_alive()


@pytest.mark.parametrize("kind", ["recurrent", "hybrid"])
def test_memory_that_files_cannot_hold(start: Callable[..., Server], tmp_path: Path,
                                       random_model: Callable[..., Path], kind: str) -> None:
    """B2: a file that restores and then serves for nothing is refused when it is saved."""
    server = start_in(start, tmp_path, model=random_model(kind))
    fill(server, 0, prompt(0))
    check_error(act(server, 0, "save", "x"), 501, "--page-dir")
    server.check_alive()


def test_keys_have_files_of_their_own(start: Callable[..., Server], tmp_path: Path) -> None:
    """C1: what came by one key is nothing that another starts from."""
    server = start_in(start, tmp_path, "--api-key", "one,two")
    one, two = ({"Authorization": f"Bearer {key}"} for key in ("one", "two"))
    server.headers = one
    fill(server, 0, prompt(0))
    assert act(server, 0, "save", "x").status_code == 200
    server.headers = two
    check_error(act(server, 0, "save", "y"), 400, "Unable to save slot")
    check_error(act(server, 1, "restore", "x"), 400, NOT_A_FILE)
    assert act(server, 0, "erase").json()["n_erased"] == 0
    server.headers = one
    assert act(server, 1, "restore", "x").status_code == 200


def test_pages_by_slot(start: Callable[..., Server], tmp_path: Path) -> None:
    """B1, B7: out under a name, a restart, and in again into another slot."""
    server = start(*ARGS, "--page-dir", str(tmp_path / "pages"))
    first = fill(server, 0, prompt(0))
    out = server.ask("POST", "/slots/0?action=page_out&page=chat")
    assert out.status_code == 200, out.text
    receipt = out.json()
    assert receipt["ms"] > 0 and receipt["bytes"] > 0
    assert {k: receipt[k] for k in ("id_slot", "page", "n_tokens", "tier")} == {
        "id_slot": 0, "page": "chat", "n_tokens": 223, "tier": "disk"}
    assert server.ask("POST", "/slots/0?action=page_out&page=chat").status_code == 200
    fill(server, 1, prompt(1))
    taken = server.ask("POST", "/slots/1?action=page_out&page=chat")
    check_error(taken, 409, "chat")
    wait_pages(server, 2)
    # Once the turn was stored without a name this was answered 200; the name stayed the other's.
    taken = server.ask("POST", "/slots/1?action=page_out&page=chat")
    check_error(taken, 409, "chat")
    check_error(server.ask("POST", "/slots/0?action=page_out&page=../x"), 400, "page")
    check_error(server.ask("POST", "/slots/0?action=page_in&page=nope"), 404, "nope")
    server.stop()

    again = start(*ARGS, "--page-dir", str(tmp_path / "pages"))
    back = again.ask("POST", "/slots/1?action=page_in&page=chat")
    assert back.status_code == 200, back.text
    assert back.json()["tier"] == "pool" and back.json()["n_tokens"] == 223
    after = turn(again, next_turn(first, prompt(0)), id_slot=1)
    assert after["timings"]["prompt_n"] == 5
    assert after["fermata"]["prefix"]["from"] == "pool"
    check_error(again.ask("POST", "/slots/0?action=page_out&page=x"), 404, "no conversation")
    other = start("-c", "512", "-np", "1")
    other.check_alive()


def test_a_page_of_another_model_stays(start: Callable[..., Server], tmp_path: Path) -> None:
    """B8: a state of other weights or KV types is refused, and kept."""
    server = start(*ARGS, "--page-dir", str(tmp_path / "pages"))
    fill(server, 0, prompt(0))
    assert server.ask("POST", "/slots/0?action=page_out&page=chat").status_code == 200
    server.stop()
    other = start(*ARGS, "--page-dir", str(tmp_path / "pages"), "-ctk", "q8_0")
    check_error(other.ask("POST", "/slots/0?action=page_in&page=chat"), 400, "another model")
    assert [page["name"] for page in pages(other)] == ["chat"]


def test_a_busy_slot_gets_its_page_to_ram(start: Callable[..., Server], tmp_path: Path) -> None:
    server = start(*ARGS, "--page-dir", str(tmp_path / "pages"))
    fill(server, 1, prompt(0))
    assert server.ask("POST", "/slots/1?action=page_out&page=chat").status_code == 200
    stream = Stream(server, "/completion", {"prompt": prompt(2), "n_predict": 400, "id_slot": 0,
                                            "ignore_eos": True})
    stream.read_until(lambda event: event.startswith("data:"))
    moved = server.ask("POST", "/slots/0?action=page_out&page=running")
    assert moved.status_code == 200 and moved.json()["n_tokens"] >= 200
    into = server.ask("POST", "/slots/0?action=page_in&page=chat")
    assert into.status_code == 200 and into.json()["tier"] == "ram"
    stream.rest()
    wait_until(server.is_idle, "the reply's end")
