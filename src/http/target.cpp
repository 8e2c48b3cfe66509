#include "http/target.h"

namespace fermata::http {
namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::optional<std::string> percent_decode(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out.push_back(text[i]);
      continue;
    }
    if (i + 2 >= text.size()) return std::nullopt;
    const int high = hex_digit(text[i + 1]);
    const int low = hex_digit(text[i + 2]);
    if (high < 0 || low < 0 || high + low == 0) return std::nullopt;
    out.push_back(static_cast<char>(high * 16 + low));
    i += 2;
  }
  return out;
}

// "http://host:port/path" -> "/path"; what has no scheme comes back as it is.
std::string_view without_authority(std::string_view raw) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!raw.starts_with(scheme)) continue;
    const std::size_t slash = raw.find_first_of("/?", scheme.size());
    return slash == std::string_view::npos ? std::string_view("/") : raw.substr(slash);
  }
  return raw;
}

}  // namespace

std::optional<Target> parse_target(std::string_view raw) {
  if (raw == "*") return Target{.path = "*", .query = ""};
  const std::string_view whole = raw;
  raw = without_authority(raw);
  const std::size_t question = raw.find('?');
  std::optional<std::string> path = percent_decode(raw.substr(0, question));
  if (!path) return std::nullopt;
  if (path->empty() && raw.size() != whole.size()) *path = "/";  // "http://host?query"
  if (!path->starts_with('/')) return std::nullopt;
  Target target{.path = std::move(*path), .query = ""};
  if (question != std::string_view::npos) target.query = raw.substr(question + 1);
  return target;
}

std::optional<std::string> strip_prefix(std::string_view path, std::string_view prefix) {
  if (prefix.empty() || path == "*") return std::string(path);
  if (!path.starts_with(prefix)) return std::nullopt;
  const std::string_view rest = path.substr(prefix.size());
  if (rest.empty()) return "/";
  if (rest.front() != '/') return std::nullopt;
  return std::string(rest);
}

}  // namespace fermata::http
