// Typed reading of a JSON object that a client sent. null means absent; a wrong type or a value out
// of range throws an ApiError that names the field; unknown fields are nobody's business.
#pragma once

#include "api/error.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace fermata::api {

using Json = nlohmann::ordered_json;

// Nesting beyond this is refused before parsing.
inline constexpr int json_depth_max = 128;

// A body as a JSON object, or an ApiError that says what is wrong with it.
Json parse_object(const std::string& body);

// `json` as text, invalid UTF-8 replaced.
std::string dump(const Json& json);

// `text` as a quoted JSON string. REQUIRES: valid UTF-8.
void append_quoted(std::string& out, std::string_view text);

// Adds a member to the object that `out` ends with, which has one already. `json` is its value.
void append_member(std::string& out, std::string_view name, std::string_view json);

// Reads one object; outlived by it.
class Fields {
 public:
  // `prefix` stands before the names in messages: "stream_options.".
  explicit Fields(const Json& object, std::string_view prefix = {})
      : object_(object), prefix_(prefix) {}

  // The value, or nullptr when the field is absent or null.
  const Json* find(std::string_view name) const;
  bool has(std::string_view name) const { return find(name) != nullptr; }

  bool boolean(std::string_view name, bool fallback) const;
  std::int64_t integer(std::string_view name, std::int64_t fallback, std::int64_t low,
                       std::int64_t high) const;
  // Finite, within [low, high].
  float number(std::string_view name, float fallback, float low, float high) const;
  std::string string(std::string_view name, std::string fallback) const;
  // A string counts as a list of one.
  std::vector<std::string> strings(std::string_view name, std::vector<std::string> fallback,
                                   std::size_t most) const;

 private:
  [[noreturn]] void fail(std::string_view name, const std::string& what) const;

  const Json& object_;
  std::string prefix_;
};

}  // namespace fermata::api
