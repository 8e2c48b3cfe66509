// Whole characters out of bytes that arrive in pieces.
#pragma once

#include <string>
#include <string_view>

namespace fermata {

// True when `text` is well-formed UTF-8: no overlong forms, no surrogates, nothing cut.
bool is_valid_utf8(std::string_view text);

// The length of the longest prefix that does not end inside a character that may still be whole.
std::size_t whole_characters(std::string_view text);

// `text` with U+FFFD in place of what is not well-formed: one for each longest beginning of a
// character that broke off, one for each other byte. The practice of Unicode, section 3.9, and of
// browsers and Python.
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
