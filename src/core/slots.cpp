#include "core/slots.h"

#include "core/utf8.h"

#include <algorithm>
#include <array>

namespace fermata {
namespace {

constexpr std::size_t name_bytes_max = 250;
constexpr std::string_view unfinished = ".part";
constexpr std::string_view forbidden = "/\\:*?\"<>|\x7f";
// Full stop, slashes and a backslash of other widths; controls; a mark of byte order; what stands
// for a bad character.
constexpr auto forbidden_characters =
    std::to_array<std::string_view>({"\uFF0E", "\u2215", "\u2216", "\uFEFF", "\uFFFD"});

bool has_control(std::string_view name) {
  for (std::size_t i = 0; i < name.size(); ++i) {
    const auto byte = static_cast<unsigned char>(name[i]);
    if (byte < 0x20) return true;
    // U+0080 to U+009F.
    const bool is_second = i > 0 && static_cast<unsigned char>(name[i - 1]) == 0xC2;
    if (is_second && byte < 0xA0) return true;
  }
  return false;
}

}  // namespace

bool is_slot_file_name(std::string_view name) {
  if (name.empty() || name.size() > name_bytes_max || !is_valid_utf8(name)) return false;
  if (name.find_first_of(forbidden) != std::string_view::npos || has_control(name)) return false;
  const auto holds = [&](std::string_view part) {
    return name.find(part) != std::string_view::npos;
  };
  if (std::any_of(forbidden_characters.begin(), forbidden_characters.end(), holds)) return false;
  if (name.front() == ' ' || name.back() == ' ' || name.back() == '.') return false;
  return !holds("..") && !name.ends_with(unfinished);
}

}  // namespace fermata
