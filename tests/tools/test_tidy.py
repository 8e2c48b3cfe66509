"""Every rule of the style gate, fed with text that keeps it and text that breaks it."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))

from style import commands, rules  # noqa: E402
from style.functions import functions  # noqa: E402
from style.source import Source, language_of  # noqa: E402


def broken(path: str, text: str) -> set[str]:
    return {rule for _, rule, _ in rules.check(Source(path, text))}


def body(lines: int) -> str:
    return "int f() {\n" + "  g();\n" * (lines - 2) + "}\n"


# Rule, path, text that keeps it, text that breaks it.
CASES: list[tuple[str, str, str, str]] = [
    ("columns", "src/kv/a.cpp", "x" * 100, "x" * 101),
    ("columns", "tools/a.sh", "x" * 100, "x" * 101),
    ("length", "src/kv/a.cpp", "\n" * 600, "\n" * 601),
    ("length", "tools/a.py", "\n" * 600, "\n" * 601),
    ("length", "src/kv/a.h", "\n" * 200, "\n" * 201),
    ("function", "src/kv/a.cpp", body(70), body(71)),
    ("function", "src/kv/a.h", f"class A : B {{\n{body(70)}}};", f"class A : B {{\n{body(71)}}};"),
    ("function", "src/kv/a.cpp", "A::A() : a_{1}, b_(2) {}\n" * 71,
     "A::A(int x = {})\n    : a_{1},\n      b_(2) {\n" + "  g();\n" * 70 + "}\n"),
    ("function", "tools/a.py", "def f():\n" + "  g()\n" * 69, "def f():\n" + "  g()\n" * 70),
    ("include", "src/core/a.h", '#include "base/types.h"', '#include "kv/ledger.h"'),
    ("include", "src/base/a.h", '#include "base/types.h"', '#include "core/request.h"'),
    ("include", "src/policy/a.cpp", '#include "core/request.h"', '#include "engine/engine.h"'),
    ("include", "src/api/a.cpp", '#include "engine/chat.h"', '#include "engine/llama/chat.h"'),
    ("include", "src/api/a.cpp", '#include "scheduler/a.h"', '#include "http/server.h"'),
    ("include", "src/engine/fake/a.cpp", '#include "engine/a.h"', '#include "engine/llama/a.h"'),
    ("include", "src/engine/a.cpp", '#include "engine/b.h"', '#include "engine/fake/a.h"'),
    ("include", "src/kv/a.cpp", '#include "store/ram/a.h"', '#include "ledger.h"'),
    ("include", "src/app/a.cpp", '#include "engine/llama/a.h"', '#include "nowhere/a.h"'),
    ("include", "src/kv/a.cpp", "#include <vector>", '  #  include "http/server.h"'),
    ("llama", "src/engine/llama/a.cpp", "#include <llama.h>", ""),
    ("llama", "tools/make-model/main.cpp", "#include <gguf.h>", ""),
    ("llama", "src/engine/a.h", '#include "base/log.h"', "#include <llama.h>"),
    ("llama", "src/app/a.cpp", "", '#include "ggml-backend.h"'),
    ("llama", "tests/unit/kv/a.cpp", "", "#include <sampling.h>"),
    ("json", "src/api/a.cpp", "#include <nlohmann/json.hpp>", ""),
    ("json", "tests/unit/kv/a.cpp", "#include <nlohmann/json.hpp>", ""),
    ("json", "src/scheduler/a.cpp", "", "#include <nlohmann/json.hpp>"),
    ("clock", "src/base/a.cpp", "std::chrono::steady_clock::now();", ""),
    ("clock", "src/kv/a.cpp", "// steady_clock is for base/", "std::chrono::steady_clock::now();"),
    ("clock", "src/kv/a.cpp", "operand(1);", "std::random_device device;"),
    ("clock", "src/kv/a.cpp", "clock.time(x);", "std::time(nullptr);"),
    ("clock", "src/kv/a.cpp", "brand();", "rand();"),
    ("clock", "src/kv/a.cpp", "", "getrandom(a, b, 0);"),
    ("ownership", "src/kv/a.cpp", "A(A&&) = delete;", "delete a;"),
    ("ownership", "src/kv/a.cpp", 'log("new");  // new', "auto* a = new A;"),
    ("ownership", "src/kv/a.cpp", "unique_ptr<A> a(new A);", "A* a(new A);"),
    ("ownership", "src/kv/a.cpp", "return std::unique_ptr<A>(\n    new A(1));", "f(new A(1));"),
    ("ownership", "src/kv/a.cpp", "pool.free(x); renew(y);", "std::free(x);"),
    ("ownership", "src/kv/a.cpp", "llama_free(x);", "void* p = malloc(8);"),
    ("detach", "tests/unit/kv/a.cpp", "asio::detached;", "thread.detach();"),
    ("stdout", "src/app/a.cpp", "std::cout << 1;", ""),
    ("stdout", "src/kv/a.cpp", "snprintf(b, 1, f);", 'printf("x");'),
    ("stdout", "src/kv/a.cpp", "fmt::print(x);", "std::cout << 1;"),
    ("stderr", "src/base/check.cpp", "std::fprintf(stderr, x);", ""),
    ("stderr", "src/kv/a.cpp", "log_error(x);", "std::cerr << x;"),
    ("queue", "src/base/a.h", "std::deque<int> q;", ""),
    ("queue", "src/kv/a.h", "BoundedQueue<int> q;", "std::queue<int> q;"),
    ("queue", "src/kv/a.h", "std::vector<int> q;", "boost::lockfree::queue<int> q;"),
    ("sleep", "tests/unit/kv/a.cpp", "wait_for(lock, limit);", "std::this_thread::sleep_for(t);"),
    ("pragma-once", "src/kv/a.h", "// What it is.\n#pragma once\n", "int x;\n#pragma once\n"),
    ("unfinished", "docs/a.md", "method to do", "TO" + "DO: more"),
    ("unfinished", "src/kv/a.cpp", "mktemp a.XXXXXX", "// FIX" + "ME"),
    ("machine", "docs/a.md", "see docs/wor" + "k/plan.md", "see /wor" + "k/main"),
    ("machine", "tools/a.sh", "rootless/", "cat /roo" + "t/x"),
    ("registry", "tools/a.sh", "npm pack x", "curl registry." + "example.org/x"),
    ("registry", "docs/a.md", "www.debian.org", "deb." + "debian.org"),
    ("commented-out", "src/kv/a.cpp", "// first the head;\n// then the tail.", "// return x;"),
    ("commented-out", "src/kv/a.cpp", "// REQUIRES: a == f(b);", "// a.b = f(c);"),
    ("commented-out", "src/kv/a.cpp", "f();  // once;", "// if (a) {"),
    ("commented-out", "src/kv/a.cpp", 'R"(\n// f(x);\n)";', "/*\n * f(x);\n */"),
    ("commented-out", "tools/a.py", "# as f(x) does\n# noqa: E402", "# f(x)"),
    ("commented-out", "tools/a.py", "x = 1  # y = 2", "# import os"),
]


@pytest.mark.parametrize("rule,path,good,bad", CASES)
def test_rule(rule: str, path: str, good: str, bad: str) -> None:
    assert rule not in broken(path, good)
    assert bad == "" or rule in broken(path, bad)


def test_every_rule_has_a_case_that_breaks_it() -> None:
    tested = {rule for rule, _, _, bad in CASES if bad}
    assert tested == {rule.name for rule in rules.RULES}


def test_an_exemption_needs_its_reason() -> None:
    text = "std::deque<int> q;"
    assert "queue" not in broken("src/kv/a.h", f"// tidy: allow queue: at most n_parallel\n{text}")
    assert "queue" in broken("src/kv/a.h", f"// tidy: allow queue:\n{text}")
    assert "queue" in broken("src/kv/a.h", f"// tidy: allow clock: wrong rule\n{text}")


def test_a_folder_of_src_that_the_table_does_not_know() -> None:
    assert "include" in broken("src/attic/a.cpp", "")


def test_arrows_of_includes_form_no_circle() -> None:
    done: list[str] = []
    while len(done) < len(rules.MAY_INCLUDE):
        free = [folder for folder, others in rules.MAY_INCLUDE.items()
                if folder not in done and others <= set(done)]
        assert free, f"a circle among {set(rules.MAY_INCLUDE) - set(done)}"
        done += free


def test_functions_are_found_where_they_are() -> None:
    text = """namespace a::b {
template <class T>
class X : public Y<T> {
 public:
  X() : a_{1}, b_(2) {
    if (x) { y(); }
  }
  int f(int x = {}) const override {
    return '{' + 16'384;
  }
  int n_{5};
  enum class K : int { a, b };
};
constexpr int t[] = {1, 2};
#define M(x) do { \\
   x
auto r() -> std::map<int, int> {
  auto l = [] { return 1; };
}
}
"""
    assert list(functions(Source("src/a.cpp", text))) == [(5, 7), (8, 10), (17, 19)]


@pytest.mark.parametrize("path,text,language", [
    ("a.h", "", "cpp"), ("tools/tidy", "#!/usr/bin/python3\n", "python"),
    (".ci/run", "#!/bin/bash\n", "shell"), ("Makefile", "", "make"), ("a.md", "", "text"),
    ("model.gguf", "GGUF", "")])
def test_language(path: str, text: str, language: str) -> None:
    assert language_of(path, text) == language


def test_shell_scripts(tmp_path: Path) -> None:
    good, bad, careless = tmp_path / "good", tmp_path / "bad", tmp_path / "careless"
    good.write_text('#!/bin/bash\necho "$1"\n')
    bad.write_text("#!/bin/bash\nif true; then\n")
    careless.write_text("#!/bin/bash\nrm -r $1\n")
    assert commands.shell([good]) == []
    assert any(str(bad) in problem for problem in commands.shell([bad]))
    assert any("SC2086" in problem for problem in commands.shell([careless]))


def test_format(tmp_path: Path) -> None:
    (tmp_path / ".clang-format").write_text((ROOT / ".clang-format").read_text())
    file = tmp_path / "a.cpp"
    file.write_text("int  x ;\n")
    assert len(commands.clang_format([file], rewrite=False)) == 1
    commands.clang_format([file], rewrite=True)
    assert commands.clang_format([file], rewrite=False) == []
    assert file.read_text() == "int x;\n"


class Tree:
    """A small tree with one source and one header, as clang-tidy is to see it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "src" / "a").mkdir(parents=True)
        (root / "build").mkdir()
        (root / ".clang-tidy").write_text((ROOT / ".clang-tidy").read_text())
        self.write("a.h", "#pragma once\nint f();\n")
        self.write("a.cpp", '#include "a/a.h"\nint f() { return 1; }\n')
        flags = f"c++ -I{root}/src -std=c++20 -fno-such-flag-in-clang"
        (root / "build" / "compile_commands.json").write_text(
            f'[{{"directory": "{root}", "command": "{flags} -c {root}/src/a/a.cpp",'
            f' "file": "{root}/src/a/a.cpp"}}]')

    def write(self, name: str, text: str) -> None:
        (self.root / "src" / "a" / name).write_text(text)

    def run(self) -> list[str]:
        return commands.ClangTidy(self.root, self.root / "build", self.root / "cache").run(1)


def test_clang_tidy_remembers_what_was_clean(
        tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tree = Tree(tmp_path)
    assert tree.run() == []
    assert "1 of them new or changed" in capsys.readouterr().err
    assert tree.run() == []
    assert "0 of them new or changed" in capsys.readouterr().err


def test_clang_tidy_sees_a_changed_header(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    assert tree.run() == []
    tree.write("a.h", "#pragma once\nint f();\nclass lower { int member; };\n")
    problems = tree.run()
    assert any("src/a/a.h:3" in problem and "'lower'" in problem for problem in problems)
    assert any("'member'" in problem for problem in problems)
    assert tree.run() == problems  # Trouble is not remembered as clean.


def test_clang_tidy_reports_what_does_not_parse(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    tree.write("a.cpp", "int f( { return 1; }\n")
    assert any("src/a/a.cpp:1" in problem for problem in tree.run())
