#include "engine/llama/schema_guard.h"

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <json.h>

namespace fermata::engine::llama {
namespace {

std::string text_of(const common_json& object, const std::string& key) {
  if (!object.contains(key) || !object.at(key).is_string()) return "";
  return object.at(key).get<std::string>();
}

// The library takes any text where it does not understand a pattern, and says so on standard error.
class PatternWalk {
 public:
  explicit PatternWalk(std::string_view pattern) : pattern_(pattern) {}

  std::string find_fault() {
    if (!pattern_.starts_with('^') || !pattern_.ends_with('$')) {
      return "only patterns from ^ to $ are supported";
    }
    pattern_ = pattern_.substr(1, pattern_.size() - 2);
    for (; at_ < pattern_.size() && fault_.empty(); ++at_) step();
    if (fault_.empty() && depth_ != 0) fault_ = "its parentheses do not match";
    return fault_;
  }

 private:
  static constexpr int depth_max = 100;
  static constexpr std::string_view escapes = R"("$()*+.?[\]^nrtux{|})";
  static constexpr std::string_view class_escapes = R"("[\]nrtux)";

  void step() {
    switch (pattern_[at_]) {
      case '\\':
        return escape(escapes);
      case '[':
        return char_class();
      case '(':
        if (++depth_ > depth_max) fault_ = "it is nested too deep";
        if (next() == '?' && (at_ + 2 >= pattern_.size() || pattern_[at_ + 2] != ':')) {
          fault_ = "groups that begin with (? are not supported";
        }
        return;
      case ')':
        if (--depth_ < 0) fault_ = "its parentheses do not match";
        return;
      case '{':
        return repeat();
      case '}':
        fault_ = "a } must be written \\}";
        return;
      case '^':
      case '$':
        fault_ = "anchors inside are not supported";
        return;
      default:
        return;
    }
  }
  char next() const { return at_ + 1 < pattern_.size() ? pattern_[at_ + 1] : '\0'; }
  void escape(std::string_view known) {
    const char what = next();
    const std::size_t digits = what == 'x' ? 2 : what == 'u' ? 4 : 0;
    const std::string_view hex = pattern_.substr(std::min(at_ + 2, pattern_.size()), digits);
    if (what == '\0' || known.find(what) == std::string_view::npos) {
      fault_ = std::string("the escape \\") + (what == '\0' ? '$' : what) + " is not supported";
    } else if (hex.size() < digits ||
               hex.find_first_not_of("0123456789abcdefABCDEF") != std::string_view::npos) {
      fault_ = "an escape without its digits";
    }
    at_ += 1 + digits;
  }
  void char_class() {
    for (++at_; at_ < pattern_.size() && pattern_[at_] != ']' && fault_.empty(); ++at_) {
      if (pattern_[at_] == '\\') escape(class_escapes);
    }
    if (fault_.empty() && at_ >= pattern_.size()) fault_ = "a [ without its ]";
  }
  void repeat() {
    const std::size_t end = pattern_.find('}', at_);
    const std::string_view inside =
        pattern_.substr(at_ + 1, std::min(end, pattern_.size()) - at_ - 1);
    const bool is_count = end != std::string_view::npos && !inside.empty() && inside.size() < 10 &&
                          inside.find_first_not_of("0123456789,") == std::string_view::npos &&
                          std::count(inside.begin(), inside.end(), ',') <= 1;
    if (!is_count) fault_ = "a { must begin a count, or be written \\{";
    at_ = end == std::string_view::npos ? pattern_.size() : end;
  }

  std::string_view pattern_;
  std::size_t at_ = 0;
  int depth_ = 0;
  std::string fault_;
};

// Empty when there is no pattern.
std::string find_pattern_fault(const std::string& pattern) {
  return pattern.empty() ? "" : PatternWalk(pattern).find_fault();
}

class SchemaWalk {
 public:
  explicit SchemaWalk(const common_json& root) : root_(root) {}

  std::string find_fault() {
    long visits = schema(root_);
    // The library converts the target of each reference once, however often it is named.
    while (fault_.empty() && !waiting_.empty()) {
      const std::string reference = waiting_.back();
      waiting_.pop_back();
      if (const common_json* target = resolve(reference)) visits += schema(*target);
      check(visits);
    }
    return fault_;
  }

 private:
  void fail(const std::string& what) {
    if (fault_.empty()) fault_ = what;
  }
  void check(long visits) {
    if (visits > schema_visits_max || walked_ > schema_visits_max) {
      fail("it expands to more than " + std::to_string(schema_visits_max) + " schemas");
    }
  }

  // Null when there is no such place; the library says so itself.
  const common_json* resolve(const std::string& reference) const {
    if (!reference.starts_with("#")) return nullptr;
    const common_json* at = &root_;
    std::size_t begin = reference.find('/');
    while (begin != std::string::npos) {
      const std::size_t end = reference.find('/', begin + 1);
      const std::string name =
          reference.substr(begin + 1, end == std::string::npos ? end : end - begin - 1);
      if (at->is_object() && at->contains(name)) {
        at = &at->at(name);
      } else if (at->is_array() && !name.empty() && name.size() < 8 &&
                 std::all_of(name.begin(), name.end(),
                             [](char c) { return c >= '0' && c <= '9'; }) &&
                 std::stoul(name) < at->size()) {
        at = &at->at(std::stoul(name));
      } else {
        return nullptr;
      }
      begin = end;
    }
    return at;
  }

  void remember(const std::string& reference) {
    if (!seen_.insert(reference).second) return;
    if (seen_.size() > schema_references_max) {
      return fail("more than " + std::to_string(schema_references_max) + " different $ref");
    }
    waiting_.push_back(reference);
  }

  long each(const common_json& list) {
    long visits = 0;
    if (!list.is_array()) return schema(list);
    for (const common_json& one : list) visits += schema(one);
    return visits;
  }

  long properties_of(const common_json& node) {
    if (!node.is_object() || !node.contains("properties")) return 0;
    const common_json& properties = node.at("properties");
    if (!properties.is_object()) return 0;
    if (properties.size() > schema_members_max) {
      fail("an object of more than " + std::to_string(schema_members_max) + " properties");
      return 0;
    }
    long visits = 0;
    for (const auto& [name, value] : properties.items()) {
      if (name.size() > schema_name_bytes_max) fail("a property with a very long name");
      visits += schema(value);
    }
    return visits;
  }

  // A part of allOf: what it refers to is expanded in place, every time.
  long component(const common_json& part) {
    ++walked_;
    check(0);
    if (!fault_.empty() || !part.is_object()) return 1;
    const std::string reference = text_of(part, "$ref");
    if (reference.empty()) return 1 + properties_of(part);
    if (!expanding_.insert(reference).second) {
      fail("a schema that contains itself through allOf");
      return 1;
    }
    const common_json* target = resolve(reference);
    const long visits = target == nullptr ? 1 : component(*target);
    expanding_.erase(reference);
    return visits;
  }

  long all_of(const common_json& node) {
    long visits = 0;
    if (!node.at("allOf").is_array()) return 1;
    for (const common_json& part : node.at("allOf")) {
      if (part.is_object() && part.contains("anyOf") && part.at("anyOf").is_array()) {
        for (const common_json& alternative : part.at("anyOf")) visits += component(alternative);
      } else {
        visits += component(part);
      }
    }
    return visits;
  }

  // How many schemas the library visits for this one.
  long schema(const common_json& node) {
    ++walked_;
    check(0);
    if (!fault_.empty() || !node.is_object()) return 1;
    if (const std::string reference = text_of(node, "$ref"); !reference.empty()) {
      remember(reference);
      return 1;
    }
    if (const std::string what = find_pattern_fault(text_of(node, "pattern")); !what.empty()) {
      fail("pattern: " + what);
    }
    long visits = 1 + properties_of(node);
    for (const char* key : {"oneOf", "anyOf", "items", "prefixItems", "additionalProperties"}) {
      if (node.contains(key)) visits += each(node.at(key));
    }
    if (node.contains("allOf")) visits += all_of(node);
    // Once for each of its types.
    if (node.contains("type") && node.at("type").is_array()) {
      visits *= std::max<long>(
          1, static_cast<long>(std::min<std::size_t>(node.at("type").size(), schema_visits_max)));
    }
    check(visits);
    return std::min(visits, schema_visits_max + 1);
  }

  const common_json& root_;
  std::string fault_;
  long walked_ = 0;
  std::set<std::string> seen_;
  std::vector<std::string> waiting_;
  std::set<std::string> expanding_;
};

}  // namespace

void relax_schema(common_json& schema) {
  if (schema.is_object()) {
    if (!find_pattern_fault(text_of(schema, "pattern")).empty()) schema.erase("pattern");
    for (const char* bound : {"minLength", "maxLength", "minItems", "maxItems"}) {
      if (schema.contains(bound) && schema.at(bound).is_number() &&
          schema.at(bound).get<double>() > repeats_max) {
        schema.erase(bound);
      }
    }
    for (const auto& [name, value] : schema.items()) {
      const bool is_data =
          name == "enum" || name == "const" || name == "default" || name == "examples";
      if (!is_data) relax_schema(schema.at(name));
    }
  } else if (schema.is_array()) {
    for (std::size_t i = 0; i < schema.size(); ++i) relax_schema(schema.at(i));
  }
}

std::string find_schema_fault(const common_json& schema) { return SchemaWalk(schema).find_fault(); }

}  // namespace fermata::engine::llama
