"""One file of the tree, prepared for the rules: its language, its lines, its code alone."""

import functools
import io
import re
import tokenize
from dataclasses import dataclass

LANGUAGES = {".cpp": "cpp", ".h": "cpp", ".py": "python", ".sh": "shell", ".cmake": "cmake",
             ".md": "text", ".txt": "text", ".json": "text", ".yml": "text", ".yaml": "text",
             ".html": "text", ".js": "text", ".mjs": "text", ".css": "text"}
NAMES = {"Makefile": "make", "CMakeLists.txt": "cmake", ".clang-format": "text",
         ".clang-tidy": "text", ".gitignore": "text", "LICENSE": "text"}

# Comments, raw strings, strings and characters; a quote after a digit separates thousands.
CPP_TOKEN = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(?P<mark>[^()\s\\]{0,16})\(.*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9A-Fa-f])'(?:\\.|[^'\\\n])+'", re.DOTALL)


@dataclass(frozen=True)
class Comment:
    line: int
    text: str  # Without its mark.
    whole_line: bool


def language_of(path: str, text: str) -> str:
    """One of cpp, python, shell, cmake, make, text, or "" for a file that no rule reads."""
    name = path.rsplit("/", 1)[-1]
    if name in NAMES:
        return NAMES[name]
    first = text.split("\n", 1)[0]
    if first.startswith("#!"):
        return "python" if "python" in first else "shell"
    suffix = "." + name.rsplit(".", 1)[-1] if "." in name else ""
    return LANGUAGES.get(suffix, "")


def blank(text: str) -> str:
    return re.sub(r"[^\n]", " ", text)


@dataclass(frozen=True)
class Source:
    path: str  # From the root of the tree, with "/".
    text: str

    @functools.cached_property
    def language(self) -> str:
        return language_of(self.path, self.text)

    @functools.cached_property
    def lines(self) -> list[str]:
        return self.text.splitlines()

    @functools.cached_property
    def is_header(self) -> bool:
        return self.path.endswith(".h")

    def line_of(self, offset: int) -> int:
        return self.text.count("\n", 0, offset) + 1

    @functools.cached_property
    def code(self) -> str:
        """C++ with comments and the insides of strings blanked out; offsets stay the same."""
        def hide(match: re.Match[str]) -> str:
            token = match.group()
            return blank(token) if token.startswith("/") else f'"{blank(token[1:-1])}"'
        return CPP_TOKEN.sub(hide, self.text)

    @functools.cached_property
    def includes(self) -> list[tuple[int, str]]:
        pattern = re.compile(r'\s*#\s*include\s*[<"]([^>"]+)[>"]')
        matches = ((number, pattern.match(line)) for number, line in enumerate(self.lines, 1))
        return [(number, match.group(1)) for number, match in matches if match]

    @functools.cached_property
    def comments(self) -> list[Comment]:
        if self.language == "cpp":
            return list(self._cpp_comments())
        if self.language == "python":
            return list(self._python_comments())
        return []

    def _cpp_comments(self):  # -> Iterator[Comment]
        for match in CPP_TOKEN.finditer(self.text):
            if not match.group().startswith("/"):
                continue
            before = self.text[self.text.rfind("\n", 0, match.start()) + 1:match.start()]
            first = self.line_of(match.start())
            for offset, line in enumerate(match.group().splitlines()):
                yield Comment(first + offset, re.sub(r"^[\s/*]+", "", line).rstrip(" */"),
                              offset > 0 or not before.strip())

    def _python_comments(self):  # -> Iterator[Comment]
        try:
            tokens = list(tokenize.generate_tokens(io.StringIO(self.text).readline))
        except (tokenize.TokenError, SyntaxError):
            return
        for token in tokens:
            if token.type == tokenize.COMMENT:
                yield Comment(token.start[0], token.string.lstrip("# ").rstrip(),
                              not token.line[:token.start[1]].strip())
