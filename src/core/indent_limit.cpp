#include "core/indent_limit.h"

namespace fermata {

bool IndentLimit::feed(std::string& text) {
  if (least_ == 0) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool blank = text[i] == ' ' || text[i] == '\t';
    if (in_indent_ && blank) {
      ++blanks_;
      continue;
    }
    if (in_indent_ && blanks_ < least_) {
      text.resize(i);
      return true;
    }
    in_indent_ = text[i] == '\n';
    blanks_ = 0;
  }
  return false;
}

}  // namespace fermata
