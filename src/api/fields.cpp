#include "api/fields.h"

#include <algorithm>
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

template <class Number>
std::string range_text(Number low, Number high) {
  Json bounds = Json::array({low, high});
  return "between " + bounds[0].dump() + " and " + bounds[1].dump();
}

// What the parser found, in words of JSON and not of the parser.
std::string_view syntax_words(std::string_view what) {
  const auto tells = [what](std::string_view part) { return what.find(part) != what.npos; };
  if (tells("number overflow")) return "a number is too large";
  if (tells("surrogate")) return "half of a surrogate pair";
  if (tells("UTF-8")) return "text that is not UTF-8";
  if (tells("control character")) return "a control character inside a string; escape it";
  if (tells("missing closing quote")) return "a string without its closing quote";
  if (tells("unexpected end of input")) return "it ends too early";
  return "unexpected text";
}

// `byte` counts from 1, as the parser does; 0: it does not tell.
std::string place_words(std::string_view text, std::size_t byte) {
  if (byte == 0) return "";
  const std::string_view before = text.substr(0, std::min(byte - 1, text.size()));
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const std::size_t begin = before.rfind('\n');
  const std::size_t column = before.size() - (begin == before.npos ? 0 : begin + 1) + 1;
  return " at line " + std::to_string(line) + ", column " + std::to_string(column);
}

[[noreturn]] void fail_to_parse(std::string_view text, const std::exception& error) {
  const auto* syntax = dynamic_cast<const nlohmann::json::parse_error*>(&error);
  throw bad_request("the body is not valid JSON" +
                    place_words(text, syntax != nullptr ? syntax->byte : 0) + ": " +
                    std::string(syntax_words(error.what())));
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
    fail_to_parse(text, error);
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

void Fields::fail(std::string_view name, const std::string& what) const {
  throw bad_request(prefix_ + std::string(name) + ": " + what);
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
