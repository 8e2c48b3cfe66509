"""Where the functions of a file begin and end: by braces in C++, by the syntax tree in Python."""

import ast
import re
from collections.abc import Iterator

from style.source import Source, blank

# What opens a brace in which functions are looked for.
CONTAINER = re.compile(r'\b(?:namespace|class|struct|union)\b|\bextern\s*"[^"]*"\s*$')
# The end of a constructor's "..., member_" in front of the brace that holds its value.
MEMBER_VALUE = re.compile(r"\).*(?<!:)[:,]\s*\w+(?:<.*>)?\s*$", re.DOTALL)


def cpp_functions(source: Source) -> Iterator[tuple[int, int]]:
    """First and last line of every function that is not inside another one."""
    # Directives may hold half a block; without them braces match.
    code = re.sub(r"^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", lambda m: blank(m.group()), source.code,
                  flags=re.MULTILINE)
    opened: list[str] = []  # Per open bracket: container, function, or inner (of no interest).
    start = 0
    head_begin = 0  # Where the text in front of the next brace begins.
    for match in re.finditer(r"[(){};]|\b(?:public|private|protected)\s*:(?!:)", code):
        token, offset = match.group(), match.start()
        outside = not opened or opened[-1] == "container"
        if token in "({":
            kind = "inner"
            if outside and token == "{":
                kind = kind_of(code[head_begin:offset])
            opened.append(kind)
            if kind == "function":
                start = offset - len(code[head_begin:offset].lstrip())
        elif token in ")}" and opened:
            closed = opened.pop()
            if closed == "function":
                yield source.line_of(start), source.line_of(offset)
            outside = closed in ("container", "function")
        if outside and token not in "()" and (not opened or opened[-1] != "inner"):
            head_begin = match.end()


def kind_of(head: str) -> str:
    """What a brace opens, from the text in front of it."""
    plain = re.sub(r"\btemplate\s*<(?:[^<>]|<[^<>]*>)*>", " ", head)
    match = CONTAINER.search(plain)
    if match and "(" not in re.sub(r"\balignas\s*\(.*?\)", "", plain[:match.start()]):
        return "container"
    return "inner" if "(" not in plain or MEMBER_VALUE.search(plain) else "function"


def python_functions(source: Source) -> Iterator[tuple[int, int]]:
    try:
        tree = ast.parse(source.text)
    except SyntaxError:
        return
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.lineno, node.end_lineno or node.lineno


def functions(source: Source) -> Iterator[tuple[int, int]]:
    yield from cpp_functions(source) if source.language == "cpp" else python_functions(source)
