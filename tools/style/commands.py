"""The checks that other programs make: clang-format, bash, shellcheck and clang-tidy."""

import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from style.source import Source

CLANG_TIDY = "clang-tidy-16"
RESULTS_MAX = 5000  # Results of clang-tidy that are kept, an empty file each.
# What clang needs to understand a file; the rest is for the compiler that builds.
PARSING_FLAGS = re.compile(r"-(I|isystem|D|U|std=|pthread|include)")


def clang_format(paths: Iterable[Path], rewrite: bool) -> list[str]:
    mode = ["-i"] if rewrite else ["--dry-run", "-Werror"]
    found = subprocess.run(["clang-format", *mode, *map(str, paths)], capture_output=True,
                           text=True, check=False)
    files = dict.fromkeys(re.findall(r"^([^:\n]+):\d+:\d+: error: ", found.stderr, re.MULTILINE))
    return [f"{file}:1: [format] clang-format would change it; run: make format" for file in files]


def shell(paths: list[Path]) -> list[str]:
    problems = []
    for path in paths:
        parsed = subprocess.run(["bash", "-n", str(path)], capture_output=True, text=True,
                                check=False)
        problems += [f"{path}:1: [shell] {line}" for line in parsed.stderr.splitlines()]
    linted = subprocess.run(["shellcheck", "--format=gcc", *map(str, paths)], capture_output=True,
                            text=True, check=False)
    return problems + [line.replace(": ", ": [shell] ", 1) for line in linted.stdout.splitlines()]


class ClangTidy:
    """Runs clang-tidy over the sources of a build folder and remembers what was clean.

    A result is known by everything that goes into it: the flags, the settings, and the text of the
    file and of every header of ours that it reaches.
    """

    def __init__(self, root: Path, build: Path, cache: Path) -> None:
        self.root, self.build, self.cache = root, build, cache
        version = subprocess.run([CLANG_TIDY, "--version"], capture_output=True, text=True,
                                 check=True).stdout
        settings = (root / ".clang-tidy").read_text(encoding="utf-8")
        self.common = f"{version}\n{settings}"

    def run(self, jobs: int) -> list[str]:
        commands = dict(self._commands())
        todo = {file: key for file, flags in commands.items()
                if not (self.cache / (key := self._key(file, flags))).exists()}
        print(f"clang-tidy: {len(commands)} files, {len(todo)} of them new or changed",
              file=sys.stderr)
        self.cache.mkdir(parents=True, exist_ok=True)
        problems: list[str] = []
        with ThreadPoolExecutor(jobs) as pool:
            results = pool.map(lambda file: self._check(file, commands[file]), todo)
            for number, (file, found) in enumerate(zip(todo, results), 1):
                print(f"[{number}/{len(todo)}] {file}{'' if found else ': clean'}", file=sys.stderr)
                problems += found
                if not found and self._key(file, commands[file]) == todo[file]:  # Not edited since.
                    (self.cache / todo[file]).touch()
        self._forget_old()
        return list(dict.fromkeys(problems))  # A header speaks once for all who include it.

    def _commands(self) -> Iterator[tuple[str, list[str]]]:
        """Every source below src/ with the flags that matter for parsing it."""
        database = self.build / "compile_commands.json"
        for entry in json.loads(database.read_text(encoding="utf-8")):
            file = os.path.relpath(entry["file"], self.root)
            if not file.startswith("src/") or not (self.root / file).exists():
                continue
            words, flags = iter(shlex.split(entry["command"])), []
            for word in words:
                if PARSING_FLAGS.match(word):
                    flags.append(word)
                    if word in ("-I", "-isystem", "-D", "-U", "-include"):
                        flags.append(next(words))
            yield file, flags

    def _key(self, file: str, flags: list[str]) -> str:
        digest = hashlib.sha256(self.common.encode())
        digest.update(" ".join(flags).replace(str(self.root), "").encode())
        waiting, seen = [file], {file}
        while waiting:
            path = waiting.pop()
            text = (self.root / path).read_text(encoding="utf-8")
            digest.update(f"\0{path}\0{text}".encode())
            reached = {f"src/{header}" for _, header in Source(path, text).includes} - seen
            ours = sorted(header for header in reached if (self.root / header).exists())
            waiting += ours
            seen.update(ours)
        return digest.hexdigest()

    def _check(self, file: str, flags: list[str]) -> list[str]:
        done = subprocess.run([CLANG_TIDY, "--quiet", file, "--", *flags, "-Wall", "-Wextra"],
                              cwd=self.root, capture_output=True, text=True, check=False)
        found = [line.replace(f"{self.root}/", "") for line in done.stdout.splitlines()
                 if re.search(r": (warning|error): ", line)]
        if done.returncode != 0 and not found:
            found = [f"{file}:1: clang-tidy ended with {done.returncode}: {done.stderr.strip()}"]
        return found

    def _forget_old(self) -> None:
        results = sorted(self.cache.iterdir(), key=lambda file: file.stat().st_mtime, reverse=True)
        for file in results[RESULTS_MAX:]:
            file.unlink(missing_ok=True)
