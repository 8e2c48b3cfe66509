#include "core/utf8.h"

#include <algorithm>
#include <utility>

namespace fermata {
namespace {

constexpr std::string_view replacement = "\xEF\xBF\xBD";

enum class Form : unsigned char { whole, cut, invalid };
struct Scanned {
  Form form;
  std::size_t length;  // Of the character; `cut` and `invalid`: of its beginning, at least 1.
};

// The bytes that may follow a lead byte differ only in the second place (RFC 3629, section 4).
struct Lead {
  std::size_t length;
  unsigned char second_low, second_high;
};

Lead lead_of(unsigned char c) {
  if (c < 0x80) return {1, 0, 0};
  if (c >= 0xC2 && c <= 0xDF) return {2, 0x80, 0xBF};
  if (c == 0xE0) return {3, 0xA0, 0xBF};
  if (c == 0xED) return {3, 0x80, 0x9F};
  if (c >= 0xE1 && c <= 0xEF) return {3, 0x80, 0xBF};
  if (c == 0xF0) return {4, 0x90, 0xBF};
  if (c >= 0xF1 && c <= 0xF3) return {4, 0x80, 0xBF};
  if (c == 0xF4) return {4, 0x80, 0x8F};
  return {0, 0, 0};
}

// REQUIRES: text is not empty.
Scanned scan(std::string_view text) {
  const Lead lead = lead_of(static_cast<unsigned char>(text[0]));
  if (lead.length == 0) return {Form::invalid, 1};
  const std::size_t there = std::min(lead.length, text.size());
  for (std::size_t i = 1; i < there; ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    const unsigned char low = i == 1 ? lead.second_low : 0x80;
    const unsigned char high = i == 1 ? lead.second_high : 0xBF;
    if (c < low || c > high) return {Form::invalid, i};
  }
  return {there == lead.length ? Form::whole : Form::cut, there};
}

}  // namespace

bool is_valid_utf8(std::string_view text) {
  while (!text.empty()) {
    const Scanned next = scan(text);
    if (next.form != Form::whole) return false;
    text.remove_prefix(next.length);
  }
  return true;
}

std::size_t whole_characters(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const Scanned next = scan(text.substr(at));
    if (next.form == Form::cut) break;
    at += next.length;
  }
  return at;
}

std::string replace_invalid_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Scanned next = scan(text);
    if (next.form == Form::whole) {
      out += text.substr(0, next.length);
    } else {
      out += replacement;
    }
    text.remove_prefix(next.length);
  }
  return out;
}

std::string Utf8Cutter::feed(std::string_view bytes) {
  std::string text = std::exchange(pending_, std::string());
  text += bytes;
  const std::size_t whole = whole_characters(text);
  pending_.assign(text, whole, std::string::npos);
  text.resize(whole);
  return is_valid_utf8(text) ? text : replace_invalid_utf8(text);
}

std::string Utf8Cutter::flush() {
  return replace_invalid_utf8(std::exchange(pending_, std::string()));
}

}  // namespace fermata
