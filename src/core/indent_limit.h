// Ends a reply at a line that is indented less than it must be: code that leaves its block.
#pragma once

#include <cstddef>
#include <string>

namespace fermata {

class IndentLimit {
 public:
  // `least` blanks or tabs at the beginning of every line but the first; 0: no limit.
  explicit IndentLimit(std::size_t least) : least_(least) {}

  // Takes the next piece of the reply. True when a line begins too far left: `text` ends before
  // the first character of it that is no blank, and nothing more may be fed. An empty line counts.
  [[nodiscard]] bool feed(std::string& text);

 private:
  std::size_t least_;
  std::size_t blanks_ = 0;
  bool in_indent_ = false;  // At the beginning of a line, or in its blanks.
};

}  // namespace fermata
