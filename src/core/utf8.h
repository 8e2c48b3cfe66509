// Whole characters out of bytes that arrive in pieces.
#pragma once

#include <string>
#include <string_view>

namespace fermata {

// True when `text` is well-formed UTF-8: no overlong forms, no surrogates, nothing cut.
bool is_valid_utf8(std::string_view text);

// The length of the longest prefix that does not end inside a character. Bytes that can never be
// part of a character count as one each.
std::size_t whole_characters(std::string_view text);

// `text` with every byte that is not part of a well-formed character replaced by U+FFFD.
std::string replace_invalid_utf8(std::string_view text);

// Cuts a byte stream at character boundaries. The pieces concatenate to the text of the whole, and
// each is valid UTF-8: stray bytes become U+FFFD.
class Utf8Cutter {
 public:
  // Whole characters of all that was fed and not given out yet.
  std::string feed(std::string_view bytes);
  // The rest, at the end of the text: a character that was never finished becomes U+FFFD.
  std::string flush();

 private:
  std::string pending_;  // At most 3 bytes: the beginning of one character.
};

}  // namespace fermata
