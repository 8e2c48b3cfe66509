#include "core/pages.h"

#include <algorithm>

namespace fermata {
namespace {

constexpr std::size_t name_bytes_max = 128;
constexpr std::string_view nameless = "id.";

bool is_name_letter(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '_' || c == '-';
}

}  // namespace

bool is_page_name(std::string_view name) {
  return !name.empty() && name.size() <= name_bytes_max && name.front() != '.' &&
         std::all_of(name.begin(), name.end(), is_name_letter);
}

bool may_name_page(std::string_view name) {
  return is_page_name(name) && !name.starts_with(nameless);
}

}  // namespace fermata
