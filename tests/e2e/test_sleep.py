"""--sleep-idle-seconds: an idle server gives its memory back, and nobody notices."""

import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from server import TINY, Server, wait_until
from test_cache import next_turn, prompt, turn
from test_info import parse_metrics
from test_overload import is_sanitized
from test_page_routes import wait_pages

SLEEPY = ("-c", "2048", "-np", "2", "--metrics", "--sleep-idle-seconds", "1")


def is_asleep(server: Server) -> bool:
    return bool(server.get("/props").json()["is_sleeping"])


def wait_asleep(server: Server) -> None:
    wait_until(lambda: is_asleep(server), "the server to fall asleep")


def values(server: Server) -> dict[str, float]:
    return parse_metrics(server.get("/metrics").text)


def resident_kib(server: Server) -> int:
    lines = Path(f"/proc/{server.process.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))


@pytest.mark.parametrize("kept", ["ram", "disk"])
def test_a_conversation_sleeps_and_goes_on(start: Callable[..., Server], tmp_path: Path,
                                           kept: str) -> None:
    """After an idle hour everything was gone, and each conversation was computed again."""
    where = ("--page-dir", str(tmp_path / "pages"), "-cram", "1") if kept == "disk" else ()
    server = start(*SLEEPY, *where)
    first = turn(server, prompt(0))
    for other in range(1, 7) if kept == "disk" else ():
        turn(server, prompt(other))  # More than RAM may keep.
    wait_asleep(server)
    found = values(server)
    assert found["fermata_sleep_depth"] == 2 and found["fermata_sleeps_total"] == 1
    after = next_turn(first, prompt(0))
    second = turn(server, after)
    assert second["timings"]["prompt_n"] == 5
    assert second["fermata"]["prefix"]["from"] == kept
    assert not is_asleep(server)
    assert values(server)["fermata_wakes_total"] == 1
    straight = start("-c", "2048", "-np", "2")
    turn(straight, prompt(0))
    assert turn(straight, after)["tokens"] == second["tokens"]
    server.check_clean()


@pytest.mark.parametrize("kind", ["sliding-window", "recurrent", "hybrid"])
def test_every_memory_sleeps(start: Callable[..., Server], tmp_path: Path, kind: str,
                             random_model: Callable[[str], Path]) -> None:
    """B2: a restore was told of, and the next request computed everything again."""
    ways = (*SLEEPY, "--page-dir", str(tmp_path / "pages"))
    server = start(*ways, model=random_model(kind))
    first = turn(server, prompt(0))
    wait_asleep(server)
    second = turn(server, next_turn(first, prompt(0)))
    assert second["timings"]["prompt_n"] == 5
    server.check_clean()
    after = next_turn(second, next_turn(first, prompt(0)))
    wait_asleep(server)
    server.stop()
    again = start(*ways, model=random_model(kind))
    third = turn(again, after)
    assert third["timings"]["prompt_n"] == 5
    assert third["fermata"]["prefix"]["from"] == "disk"
    if kind != "sliding-window":  # Its sums run in another order: docs/parking.md.
        straight = start("-c", "2048", "-np", "2", model=random_model(kind))
        turn(straight, prompt(0))
        turn(straight, next_turn(first, prompt(0)))
        assert turn(straight, after)["tokens"] == third["tokens"]


def test_who_only_looks_neither_wakes_nor_delays(start: Callable[..., Server]) -> None:
    """I1: a scraper kept the server awake, or woke it each time."""
    server = start(*SLEEPY)
    server.complete(prompt="x", n_predict=3)
    end = time.monotonic() + 30
    while not is_asleep(server):
        assert time.monotonic() < end
        for path in ("/health", "/metrics", "/v1/models", "/slots", "/reconfigure"):
            assert server.get(path).status_code == 200
    for path in ("/health", "/metrics", "/v1/models", "/slots", "/reconfigure", "/props"):
        assert server.get(path).status_code == 200
    assert server.post("/tokenize", {"content": "hello"}).status_code == 200
    assert server.post("/apply-template", {"messages": []}).status_code in (200, 400)
    found = values(server)
    assert found["fermata_wakes_total"] == 0 and is_asleep(server)
    assert found["llamacpp:tokens_predicted_total"] == 3
    assert len(server.slots()) == 2


def test_memory_comes_back_to_the_machine(start: Callable[..., Server],
                                          random_model: Callable[[str], Path]) -> None:
    """H6: a released context left its memory behind."""
    server = start("-c", "32768", "-np", "2", "--metrics", "--sleep-idle-seconds", "1",
                   "--no-mmap", model=random_model("dense"))
    server.complete(prompt=[7] * 3000, n_predict=3)
    awake = resident_kib(server)
    wait_asleep(server)
    asleep = resident_kib(server)
    released = values(server)["fermata_sleep_released_bytes"]
    if not is_sanitized(server):  # The address sanitizer keeps what was freed.
        assert released > 0
        assert asleep < awake
    sizes = []
    for _ in range(4):
        server.complete(prompt=[7] * 3000, n_predict=3)
        wait_asleep(server)
        sizes.append(resident_kib(server))
    if not is_sanitized(server):
        assert sizes[-1] <= max(asleep, sizes[0]) * 1.02 + 1024, (asleep, sizes)


def test_weights_can_stay(start: Callable[..., Server]) -> None:
    server = start(*SLEEPY, "--sleep-weights-seconds", "-1")
    wait_asleep(server)
    assert values(server)["fermata_sleep_depth"] == 1
    server.check_alive()


def test_weights_go_later(start: Callable[..., Server]) -> None:
    server = start(*SLEEPY, "--sleep-weights-seconds", "3")
    wait_asleep(server)
    assert values(server)["fermata_sleep_depth"] == 1
    wait_until(lambda: values(server)["fermata_sleep_depth"] == 2, "the weights to go")
    server.check_alive()


def test_embeddings_do_not_need_the_context(start: Callable[..., Server]) -> None:
    server = start(*SLEEPY, "--embeddings", "--pooling", "mean")
    before = server.post("/v1/embeddings", {"input": "hello"}).json()["data"][0]["embedding"]
    wait_asleep(server)
    again = server.post("/v1/embeddings", {"input": "hello"}).json()["data"][0]["embedding"]
    assert again == before
    assert is_asleep(server)
    assert values(server)["fermata_wakes_total"] == 0
    wait_until(lambda: values(server)["fermata_sleep_depth"] == 2, "the weights to go again")
    server.check_alive()


def test_a_change_wakes_it_in_the_new_geometry(start: Callable[..., Server]) -> None:
    server = start(*SLEEPY)
    first = turn(server, prompt(0))
    wait_asleep(server)
    receipt = server.post("/reconfigure", {"n_ctx": 4096, "n_parallel": 3})
    assert receipt.status_code == 200, receipt.text
    assert receipt.json()["path"] == "in_place"
    assert server.get("/props").json()["total_slots"] == 3
    second = turn(server, next_turn(first, prompt(0)))
    assert second["timings"]["prompt_n"] == 5
    wait_asleep(server)
    assert server.get("/props").json()["context_geometry"]["allocated_tokens"] == 4096
    assert server.complete(prompt=[50] * 3000, n_predict=1)["tokens_predicted"] == 1


def test_pages_are_looked_after_asleep(start: Callable[..., Server], tmp_path: Path) -> None:
    server = start(*SLEEPY, "--page-dir", str(tmp_path / "pages"),
                   "--slot-save-path", str(tmp_path / "slots"))
    first = turn(server, prompt(0), id_slot=0, conversation="chat")
    saved = server.ask("POST", "/slots/0?action=save", json={"filename": "a"})
    assert saved.status_code == 200
    wait_pages(server, 1)
    wait_asleep(server)
    assert server.get("/pages/chat").json()["tokens"] == 223
    assert server.ask("POST", "/pages/chat?action=pin").status_code == 200
    assert server.ask("POST", "/pages/chat?action=fork&to=other").status_code == 200
    assert server.ask("POST", "/slots/0?action=page_out&page=x").status_code == 404
    assert server.ask("POST", "/slots/0?action=erase").json()["n_erased"] == 0
    assert is_asleep(server) and values(server)["fermata_wakes_total"] == 0
    # What needs cells wakes it.
    back = server.ask("POST", "/slots/1?action=page_in&page=chat")
    assert back.status_code == 200, back.text
    assert back.json()["tier"] == "pool"
    second = turn(server, next_turn(first, prompt(0)), id_slot=1)
    assert second["timings"]["prompt_n"] == 5
    wait_asleep(server)
    restored = server.ask("POST", "/slots/0?action=restore", json={"filename": "a"})
    assert restored.status_code == 200 and restored.json()["n_restored"] == 223


def test_a_model_that_went_away(start: Callable[..., Server], tmp_path: Path) -> None:
    """The file was deleted while the server slept: requests hung, or the process died."""
    model = tmp_path / "model.gguf"
    shutil.copy(TINY, model)
    server = start(*SLEEPY, model=model)
    first = turn(server, prompt(0))
    wait_asleep(server)
    model.unlink()
    refused = server.post("/completion", {"prompt": "x", "n_predict": 1})
    assert refused.status_code == 503 and refused.headers["Retry-After"]
    assert "the log says why" in refused.json()["error"]["message"]
    assert server.get("/health").status_code == 200
    model.write_bytes(TINY.read_bytes()[:-4096] + bytes(4096))
    assert server.post("/completion", {"prompt": "x", "n_predict": 1}).status_code == 503
    wait_until(lambda: any("another model" in line for line in server.errors), "a line in the log")
    shutil.copy(TINY, model)
    body = {"prompt": "x", "n_predict": 1}
    wait_until(lambda: server.post("/completion", body).status_code == 200, "the model to be there")
    assert turn(server, next_turn(first, prompt(0)))["timings"]["prompt_n"] == 5
    server.check_clean()


def test_a_signal_ends_a_sleeper(start: Callable[..., Server], tmp_path: Path) -> None:
    """K3"""
    server = start(*SLEEPY, "--page-dir", str(tmp_path / "pages"))
    first = turn(server, prompt(0))
    wait_asleep(server)
    begun = time.monotonic()
    assert server.stop() == 0
    assert time.monotonic() - begun < 5
    again = start(*SLEEPY, "--page-dir", str(tmp_path / "pages"))
    assert turn(again, next_turn(first, prompt(0)))["timings"]["prompt_n"] == 5


def test_who_is_parked_by_hand_is_waited_for(start: Callable[..., Server]) -> None:
    server = start(*SLEEPY)
    answers: list[Any] = []
    body = {"prompt": "Count", "n_predict": 300, "ignore_eos": True}
    thread = threading.Thread(target=lambda: answers.append(server.complete(**body)))
    thread.start()
    wait_until(lambda: not server.is_idle(), "the request to run")
    busy = next(slot["id"] for slot in server.slots() if slot["is_processing"])
    held = server.ask("POST", f"/slots/{busy}?action=park")
    assert held.status_code == 200, held.text
    time.sleep(1.5)  # Longer than it takes to fall asleep.
    assert not is_asleep(server)
    task = next(slot["id_task"] for slot in server.slots() if slot["id"] < 0)
    assert server.ask("POST", f"/slots/-1?action=unpark&id_task={task}").status_code == 200
    thread.join(20)
    assert answers and answers[0]["tokens_predicted"] == 300
