// The request target of HTTP as path and query. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace fermata::http {

struct Target {
  std::string path;   // Percent-decoded; '+' stays '+'. Starts with '/', or is "*".
  std::string query;  // As it came, without '?'.
};

// Takes "/path?query", "http://host/path?query" and "*". Empty: anything else, a broken percent
// code, or one that stands for NUL.
std::optional<Target> parse_target(std::string_view raw);

// `path` without `prefix` ("" or "/prefix"), at least "/". Empty: the path is not below the prefix.
// "*" is below every prefix.
std::optional<std::string> strip_prefix(std::string_view path, std::string_view prefix);

}  // namespace fermata::http
