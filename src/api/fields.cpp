#include "api/fields.h"

#include <array>
#include <cmath>

namespace fermata::api {
namespace {

// Brackets outside strings; cheap, and the parser never sees what is too deep.
bool is_too_deep(std::string_view text) {
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\') ++i;
      if (c == '"') quoted = false;
    } else if (c == '"') {
      quoted = true;
    } else if (c == '[' || c == '{') {
      if (++depth > json_depth_max) return true;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return false;
}

[[noreturn]] void fail(std::string_view name, const std::string& what) {
  throw bad_request(std::string(name) + ": " + what);
}

template <class Number>
std::string range_text(Number low, Number high) {
  Json bounds = Json::array({low, high});
  return "between " + bounds[0].dump() + " and " + bounds[1].dump();
}

}  // namespace

Json parse_object(const std::string& body) {
  if (is_too_deep(body)) {
    throw bad_request("the body is nested more than " + std::to_string(json_depth_max) +
                      " levels deep");
  }
  std::string_view text = body;
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  // The parser takes one for the end, and would drop what follows.
  if (text.find('\0') != std::string_view::npos) {
    throw bad_request("the body is not valid JSON: it holds a NUL byte");
  }
  Json json;
  try {
    json = Json::parse(text);
  } catch (const nlohmann::json::exception& error) {
    throw bad_request(std::string("the body is not valid JSON: ") + error.what());
  }
  if (!json.is_object()) throw bad_request("the body must be a JSON object");
  return json;
}

std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void append_quoted(std::string& out, std::string_view text) {
  constexpr std::string_view hex = "0123456789abcdef";
  out += '"';
  for (const char c : text) {
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
          out += "\\u00";
          out += hex[static_cast<std::size_t>(static_cast<unsigned char>(c) >> 4)];
          out += hex[static_cast<std::size_t>(c & 0xF)];
        } else {
          out += c;
        }
    }
  }
  out += '"';
}

void append_member(std::string& out, std::string_view name, std::string_view json) {
  out.back() = ',';
  append_quoted(out, name);
  out += ':';
  out += json;
  out += '}';
}

const Json* Fields::find(std::string_view name) const {
  const auto found = object_.find(name);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

bool Fields::boolean(std::string_view name, bool fallback) const {
  const Json* value = find(name);
  if (value == nullptr) return fallback;
  if (!value->is_boolean()) fail(name, "must be true or false");
  return value->get<bool>();
}

std::int64_t Fields::integer(std::string_view name, std::int64_t fallback, std::int64_t low,
                             std::int64_t high) const {
  const Json* value = find(name);
  if (value == nullptr) return fallback;
  if (!value->is_number()) fail(name, "must be an integer");
  // 5.0 is an integer to many clients; 5.5 is a mistake.
  const auto number = value->get<double>();
  if (std::floor(number) != number) fail(name, "must be an integer");
  if (!(number >= static_cast<double>(low) && number <= static_cast<double>(high))) {
    fail(name, "must be " + range_text(low, high));
  }
  const bool exact = value->is_number_integer();
  const std::int64_t out = exact ? value->get<std::int64_t>() : static_cast<std::int64_t>(number);
  if (out < low || out > high) fail(name, "must be " + range_text(low, high));
  return out;
}

float Fields::number(std::string_view name, float fallback, float low, float high) const {
  const Json* value = find(name);
  if (value == nullptr) return fallback;
  if (!value->is_number()) fail(name, "must be a number");
  const auto number = value->get<double>();
  if (!(number >= static_cast<double>(low) && number <= static_cast<double>(high))) {
    fail(name, "must be " + range_text(low, high));
  }
  return static_cast<float>(number);
}

std::string Fields::string(std::string_view name, std::string fallback) const {
  const Json* value = find(name);
  if (value == nullptr) return fallback;
  if (!value->is_string()) fail(name, "must be a string");
  return value->get<std::string>();
}

std::vector<std::string> Fields::strings(std::string_view name, std::vector<std::string> fallback,
                                         std::size_t most) const {
  const Json* value = find(name);
  if (value == nullptr) return fallback;
  if (value->is_string()) return {value->get<std::string>()};
  if (!value->is_array()) fail(name, "must be a string or a list of strings");
  if (value->size() > most) fail(name, "holds more than " + std::to_string(most) + " entries");
  std::vector<std::string> out;
  for (const Json& entry : *value) {
    if (!entry.is_string()) fail(name, "must hold strings only");
    out.push_back(entry.get<std::string>());
  }
  return out;
}

}  // namespace fermata::api
