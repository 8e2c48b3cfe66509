"""The style rules of the tree. A rule reads one file and yields (line, what is wrong).

A line is exempt from a rule by a comment on it or on the line before, with the reason:
`tidy: allow RULE: reason`.
"""

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from style.functions import functions
from style.source import Source

Problems = Iterator[tuple[int, str]]

COLUMNS_MAX = 100
SOURCE_LINES_MAX = 600
HEADER_LINES_MAX = 200
FUNCTION_LINES_MAX = 70

# Which folder of src/ may include which others. Each may include itself.
# Folders below a listed one belong to it. app, tests and tools may include everything.
MAY_INCLUDE: dict[str, set[str]] = {
    "base": set(),
    "core": {"base"},
    "metrics": {"base"},
    "settings": {"base"},
    "engine": {"core", "metrics", "base"},
    "engine/llama": {"engine", "core", "metrics", "base"},
    "engine/fake": {"engine", "core", "metrics", "base"},
    "store": {"core", "metrics", "base"},
    "kv": {"engine", "store", "core", "metrics", "base"},
    "policy": {"core", "base"},
    "reconfigure": {"kv", "engine", "core", "base"},
    "scheduler": {"reconfigure", "policy", "kv", "engine", "core", "metrics", "base"},
    "sim": {"scheduler", "reconfigure", "policy", "kv", "engine", "engine/fake", "core", "metrics",
            "base"},
    # Of engine it uses the chat front alone: templates, tokens, tool calls.
    "api": {"reconfigure", "scheduler", "engine", "settings", "core", "metrics", "base"},
    "http": {"api", "metrics", "base"},
    "bench": {"scheduler", "kv", "engine", "engine/fake", "engine/llama", "store", "core", "base"},
}
MAY_INCLUDE["app"] = set(MAY_INCLUDE)


@dataclass(frozen=True)
class Rule:
    name: str
    applies: Callable[[Source], bool]
    check: Callable[[Source], Problems]


RULES: list[Rule] = []


def rule(name: str, applies: Callable[[Source], bool]) -> Callable:
    def register(check: Callable[[Source], Problems]) -> Callable[[Source], Problems]:
        RULES.append(Rule(name, applies, check))
        return check
    return register


def is_code(source: Source) -> bool:
    return source.language != "text"


def is_cpp(source: Source) -> bool:
    return source.language == "cpp"


def in_src(source: Source) -> bool:
    return is_cpp(source) and source.path.startswith("src/")


def under(source: Source, *folders: str) -> bool:
    return source.path.startswith(tuple(f"{folder}/" for folder in folders))


def folder_of(path: str) -> str:
    """The longest folder of the table that holds `path` (relative to src/), or ""."""
    parts = path.split("/")[:-1]
    for length in range(len(parts), 0, -1):
        name = "/".join(parts[:length])
        if name in MAY_INCLUDE:
            return name
    return ""


@rule("columns", is_code)
def columns(source: Source) -> Problems:
    for number, line in enumerate(source.lines, 1):
        if len(line) > COLUMNS_MAX:
            yield number, f"{len(line)} columns; at most {COLUMNS_MAX}"


@rule("length", lambda source: source.language in ("cpp", "python", "shell"))
def length(source: Source) -> Problems:
    limit = HEADER_LINES_MAX if source.is_header else SOURCE_LINES_MAX
    if len(source.lines) > limit:
        yield limit + 1, f"{len(source.lines)} lines; at most {limit}: split by purpose"


@rule("function", lambda source: source.language in ("cpp", "python"))
def function(source: Source) -> Problems:
    for first, last in functions(source):
        if last - first + 1 > FUNCTION_LINES_MAX:
            yield first, f"a function of {last - first + 1} lines; at most {FUNCTION_LINES_MAX}"


@rule("include", in_src)
def include(source: Source) -> Problems:
    own = folder_of(source.path.removeprefix("src/"))
    if not own:
        yield 1, "not in a folder of the table in tools/style/rules.py"
        return
    for number, path in source.includes:
        if f'"{path}"' not in source.lines[number - 1]:
            continue
        other = folder_of(path)
        if not other:
            yield number, f'"{path}" is not written from src/'
        elif other != own and other not in MAY_INCLUDE[own]:
            yield number, f"{own} must not include {other}"


LLAMA_HEADER = re.compile(
    r"(llama|llama-cpp|ggml[\w-]*|gguf|common|chat[\w-]*|sampling|speculative|reasoning-budget"
    r"|json-schema-to-grammar|jinja/.*)\.h")


@rule("llama", lambda source: is_cpp(source)
      and not under(source, "src/engine/llama", "tests/unit/engine_llama", "tools"))
def llama(source: Source) -> Problems:
    for number, path in source.includes:
        if LLAMA_HEADER.fullmatch(path):
            yield number, f"{path} belongs to libllama: only src/engine/llama/ includes it"


@rule("json", lambda source: in_src(source)
      and not under(source, "src/api", "src/http", "src/app", "src/bench", "src/engine/llama"))
def json(source: Source) -> Problems:
    for number, path in source.includes:
        if path.startswith("nlohmann/"):
            yield number, "JSON is for src/api/, src/http/, src/app/ and src/bench/ only"


@rule("pragma-once", lambda source: is_cpp(source) and source.is_header)
def pragma_once(source: Source) -> Problems:
    if not re.match(r"\s*#pragma once\n", source.code):
        yield 1, "a header begins with #pragma once (after its comment)"


def code_rule(name: str, applies: Callable[[Source], bool], pattern: str, message: str) -> None:
    """A rule that a pattern must not occur in C++ code outside comments and strings.

    A match of its group `fine` is no problem.
    """
    compiled = re.compile(pattern)

    def check(source: Source) -> Problems:
        for match in compiled.finditer(source.code):
            if match.groupdict().get("fine"):
                continue
            yield source.line_of(match.start()), f"{match.group().strip()}: {message}"
    RULES.append(Rule(name, applies, check))


SPEAKS_TO_THE_USER = ("src/app", "src/bench", "tools")

code_rule("clock", lambda source: in_src(source) and not under(source, "src/base"),
          r"\b(steady_clock|system_clock|high_resolution_clock|random_device|mt19937(_64)?"
          r"|clock_gettime|gettimeofday|getrandom|s?rand(?=\s*\()"
          r"|time(?=\s*\(\s*(nullptr|NULL|0|&)))",
          "time and chance come from base/clock.h and base/random.h")
code_rule("ownership", in_src,
          r"(?P<fine>\bunique_ptr<[^<>;]*>\s*\w*\(\s*new\b)"  # For private constructors.
          r"|\bnew\b|(?<!=)(?<!= )\bdelete\b"
          r"|(?<![\w.>:])(std::)?\b(malloc|calloc|realloc|free)\s*\(",
          "std::make_unique, a container or a handle owns memory")
code_rule("detach", is_cpp, r"\.detach\s*\(",
          "every thread is joined by its owner")
code_rule("stdout", lambda source: is_cpp(source) and not under(source, *SPEAKS_TO_THE_USER),
          r"\bstd::cout\b|(?<![\w.>:])(std::)?(printf|puts|putchar)\s*\(",
          "the subcommands and tools/ alone write to standard output; log with base/log.h")
code_rule("stderr", lambda source: in_src(source)
          and not under(source, "src/base", *SPEAKS_TO_THE_USER),
          r"\bstd::(cerr|clog)\b|(?<![\w.>:])(std::)?fprintf\s*\(",
          "log with base/log.h")
code_rule("queue", lambda source: in_src(source) and not under(source, "src/base"),
          r"\bstd::(queue|deque|priority_queue)\b|\bboost::lockfree\b",
          "not bounded; use base/bounded_queue.h, or allow it and name the bound")
code_rule("sleep", is_cpp, r"\b(sleep_for|sleep_until|usleep|nanosleep)\b",
          "wait for the event itself, with a time limit")


def text_rule(name: str, pattern: str, message: str) -> None:
    """A rule that a pattern must not occur anywhere in any file."""
    compiled = re.compile(pattern)

    def check(source: Source) -> Problems:
        for number, line in enumerate(source.lines, 1):
            if match := compiled.search(line):
                yield number, f"{match.group().strip()}: {message}"
    RULES.append(Rule(name, lambda source: True, check))


# The brackets keep a pattern from finding itself.
text_rule("unfinished", r"\b(TOD[O]|FIXM[E]|XX[X])\b", "finish it, or write an issue")
text_rule("machine", r"(?<![\w.])/(wor[k]|roo[t]|home/\w+|tmp/np[m])/|\bshare[d]/\w+\.md\b",
          "a path of one machine")
text_rule("registry", r"\bregistr[y]\.[\w-]+\.(org|com|io|dev|net)\b|\bpyp[i]\.org\b"
          r"|\bcrate[s]\.io\b|\b(deb|ftp|security|snapshot)\.debia[n]\.org\b|\bprox[y]\.golang\b",
          "hosts of package registries are the user's configuration")

# The shapes of a whole line of C++; prose may end in a semicolon too.
COMMENTED_CODE = re.compile(
    r"[{}]+;?"  # A brace alone.
    r"|(return|break|continue|using|throw|delete|co_return|co_await)\b[^.]*;"
    r"|(const|auto|int|bool|char|float|double|unsigned|void|std::\w|static|constexpr)\b.*[;{]"
    r"|[\w.:>\[\]*&<-]+\([^;]*\);"  # A call.
    r"|[\w.:>\[\]*&<,-]+( [\w.:>\[\]*&<-]+)? [-+*/|&^]?= .*;"  # An assignment.
    r"|.*\)( const| override| noexcept)* \{|\}? ?else.* \{|(namespace|class|struct|enum)\b.*\{")


@rule("commented-out", is_cpp)
def commented_out(source: Source) -> Problems:
    for comment in source.comments:
        if comment.whole_line and COMMENTED_CODE.fullmatch(comment.text):
            yield comment.line, "commented-out code: delete it, the history has it"


@rule("commented-out", lambda source: source.language == "python")
def commented_out_python(source: Source) -> Problems:
    for comment in source.comments:
        try:
            statements = ast.parse(comment.text).body if comment.whole_line else []
        except SyntaxError:
            continue
        if any(not isinstance(statement, (ast.Expr, ast.AnnAssign)) or
               isinstance(getattr(statement, "value", None), ast.Call) for statement in statements):
            yield comment.line, "commented-out code: delete it, the history has it"


def allowed(source: Source, number: int, name: str) -> bool:
    lines = source.lines[max(0, number - 2):number]
    return any(re.search(rf"tidy: allow {re.escape(name)}: \S", line) for line in lines)


def check(source: Source) -> Iterator[tuple[int, str, str]]:
    """Line, rule and message of everything wrong in one file."""
    if not source.language:
        return
    for each in RULES:
        if each.applies(source):
            for number, message in each.check(source):
                if not allowed(source, number, each.name):
                    yield number, each.name, message
