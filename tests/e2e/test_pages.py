"""A conversation outlives the process: --page-dir."""

import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from server import Server, wait_until
from test_cache import next_turn, prompt, turn, values_of

ARGS = ("-c", "2048", "-np", "2", "--metrics")


def saved(server: Server) -> int:
    return int(values_of(server)["fermata_store_pages"])


def wait_saved(server: Server, n: int) -> None:
    wait_until(lambda: saved(server) >= n, f"{n} conversations on disk")


def start_in(start: Callable[..., Server], folder: Path, *more: str, **kwargs: Any) -> Server:
    return start(*ARGS, "--page-dir", str(folder), *more, **kwargs)


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL], ids=["stopped", "killed"])
def test_the_next_turn_after_a_restart_computes_only_its_new_tokens(
        start: Callable[..., Server], tmp_path: Path, how: int) -> None:
    """B1: after a restart every conversation was computed again."""
    tokens = prompt(0, 1000)
    first_server = start_in(start, tmp_path / "pages")
    first = turn(first_server, tokens)
    wait_saved(first_server, 1)
    first_server.stop(how)

    stayed = start(*ARGS)
    assert turn(stayed, tokens)["tokens"] == first["tokens"]
    again = start_in(start, tmp_path / "pages")
    assert saved(again) == 1
    after = next_turn(first, tokens)
    back, straight = (turn(s, after, n_predict=100) for s in (again, stayed))
    assert back["fermata"]["prefix"] == {"from": "disk", "tokens": 1023}
    assert back["timings"]["prompt_n"] == 5
    assert back["tokens"] == straight["tokens"]
    again.check_clean()


@pytest.mark.parametrize("other", [("-c", "1900", "-np", "2"), ("-c", "2048", "-np", "5")],
                         ids=["smaller_window", "more_slots"])
def test_another_geometry_finds_it_too(start: Callable[..., Server], tmp_path: Path,
                                       other: tuple[str, ...]) -> None:
    """B1: a window that was a little smaller after the restart discarded every page."""
    first_server = start_in(start, tmp_path / "pages")
    first = turn(first_server, prompt(0, 600))
    first_server.stop()
    again = start("--page-dir", str(tmp_path / "pages"), *other)
    back = turn(again, next_turn(first, prompt(0, 600)))
    assert back["fermata"]["prefix"]["from"] == "disk"
    assert back["timings"]["prompt_n"] == 5


def test_who_waits_for_the_disk_is_not_admitted_before(start: Callable[..., Server],
                                                       tmp_path: Path) -> None:
    """B1: the server that parks nobody ended when a prompt's beginning was being loaded."""
    folder = tmp_path / "pages"
    first_server = start_in(start, folder)
    first = turn(first_server, prompt(0, 600))
    first_server.stop()
    again = start_in(start, folder, "--preempt-policy", "admission-only")
    back = turn(again, next_turn(first, prompt(0, 600)))
    assert back["fermata"]["prefix"]["from"] == "disk"
    again.check_alive()


def test_other_weights_get_nothing(start: Callable[..., Server], tmp_path: Path,
                                   random_model: Callable[..., Path]) -> None:
    """B8: bytes of one model were loaded into another of the same shape."""
    first_server = start_in(start, tmp_path / "pages")
    first = turn(first_server, prompt(0))
    first_server.stop()
    after = next_turn(first, prompt(0))
    for more, model in ((("-ctk", "q8_0"), None), ((), random_model("dense"))):
        kwargs = {"model": model} if model else {}
        other = start_in(start, tmp_path / "pages", *more, **kwargs)
        assert turn(other, after)["fermata"]["prefix"] == {"from": "none", "tokens": 0}
        other.stop()
    same = start_in(start, tmp_path / "pages")
    assert turn(same, after)["fermata"]["prefix"]["from"] == "disk"


@pytest.mark.parametrize("kind", ["recurrent", "hybrid", "sliding-window"])
def test_every_kind_of_memory_survives(start: Callable[..., Server], tmp_path: Path,
                                       random_model: Callable[..., Path], kind: str) -> None:
    """B2: hybrid, recurrent and sliding-window models restored and then computed all again."""
    model = random_model(kind)
    first_server = start_in(start, tmp_path / "pages", "--swa-full", model=model)
    first = turn(first_server, prompt(0))
    first_server.stop()
    again = start_in(start, tmp_path / "pages", "--swa-full", model=model)
    after = next_turn(first, prompt(0))
    back = turn(again, after)
    assert back["fermata"]["prefix"]["from"] == "disk"
    assert back["timings"]["prompt_n"] == 5
    fresh = start(*ARGS, "--swa-full", model=model)
    turn(fresh, prompt(0))
    assert turn(fresh, after)["tokens"] == back["tokens"]


def test_a_growing_conversation_is_one_page(start: Callable[..., Server], tmp_path: Path) -> None:
    server = start_in(start, tmp_path / "pages")
    tokens = prompt(0)
    done = 'fermata_store_saves_total{outcome="done"}'
    for i in range(4):
        tokens = next_turn(turn(server, tokens), tokens)
        wait_until(lambda i=i: values_of(server).get(done, 0) > i, "the turn on disk")
    assert saved(server) == 1
    server.stop()
    again = start_in(start, tmp_path / "pages")
    assert saved(again) == 1


@pytest.mark.parametrize("damage", ["flipped", "cut", "gone"])
def test_damage_is_a_miss_never_a_wrong_token(start: Callable[..., Server], tmp_path: Path,
                                              damage: str) -> None:
    """A block file with a wrong bit must end in a computed prompt and a line for the operator."""
    folder = tmp_path / "pages"
    first_server = start_in(start, folder)
    first = turn(first_server, prompt(0))
    first_server.stop()
    largest = max((f for f in folder.rglob("*") if f.is_file()), key=lambda f: f.stat().st_size)
    if damage == "gone":
        largest.unlink()
    elif damage == "cut":
        largest.write_bytes(largest.read_bytes()[:-7])
    else:
        content = bytearray(largest.read_bytes())
        content[len(content) // 2] ^= 1
        largest.write_bytes(content)
    again = start_in(start, folder)
    after = next_turn(first, prompt(0))
    back = turn(again, after)
    assert back["timings"]["cache_n"] == 0
    fresh = start(*ARGS)
    assert turn(fresh, after)["tokens"] == back["tokens"]
    again.check_clean()
    again.check_alive()


def test_two_servers_do_not_share_a_folder(start: Callable[..., Server], tmp_path: Path) -> None:
    start_in(start, tmp_path / "pages")
    with pytest.raises(RuntimeError, match="--page-dir"):
        start_in(start, tmp_path / "pages")


def test_needs_ram_to_bring_them_back(start: Callable[..., Server], tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="--cache-ram"):
        start_in(start, tmp_path / "pages", "--cache-ram", "0")
