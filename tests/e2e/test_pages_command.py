"""fermata pages: a folder that no server has open, looked at from outside."""

import pathlib
import subprocess

import pytest

from server import BINARY, PATIENCE_S


def pages(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([BINARY, "pages", *args], capture_output=True, text=True,
                          timeout=PATIENCE_S, check=False)


def test_a_new_folder_is_made_private_and_empty(tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "pages"
    assert pages("gc", str(folder)).returncode == 0
    assert folder.stat().st_mode & 0o777 == 0o700
    assert all(entry.stat().st_mode & 0o077 == 0 for entry in folder.iterdir())
    listed = pages("ls", str(folder))
    assert listed.returncode == 0
    assert listed.stdout.splitlines()[-1].startswith("0 pages, 0 different blocks, 0 bytes")
    assert pages("verify", str(folder)).returncode == 0


def test_foreign_files_are_put_aside_and_links_not_followed(tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "pages"
    canary = tmp_path / "canary"
    canary.write_text("untouched")
    pages("gc", str(folder))
    (folder / "blocks" / "link").symlink_to(canary)
    (folder / "pages" / "notes.txt").write_text("mine")
    done = pages("gc", str(folder))
    assert done.returncode == 1
    assert "foreign   blocks/link" in done.stdout
    assert "foreign   pages/notes.txt" in done.stdout
    assert len(list((folder / "quarantine").iterdir())) == 2
    assert canary.read_text() == "untouched"
    linked = tmp_path / "linked"
    linked.symlink_to(folder)
    refused = pages("gc", str(linked))
    assert refused.returncode == 1
    assert "symlink" in refused.stderr


def test_a_folder_of_other_files_is_refused_and_left_alone(tmp_path: pathlib.Path) -> None:
    (tmp_path / "thesis.txt").write_text("precious")
    refused = pages("gc", str(tmp_path))
    assert refused.returncode == 1
    assert "other files" in refused.stderr
    assert [entry.name for entry in tmp_path.iterdir()] == ["thesis.txt"]


@pytest.mark.parametrize("args", [[], ["ls"], ["mend", "x"], ["show", "x"], ["ls", "x", "y"]])
def test_wrong_usage_is_refused(args: list[str]) -> None:
    assert pages(*args).returncode == 2
