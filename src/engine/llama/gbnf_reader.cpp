#include "engine/llama/gbnf_reader.h"

#include "engine/llama/grammar_guard.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>

namespace fermata::engine::llama {
namespace {

constexpr std::int64_t repeats_max = 2000;      // The library's own limit.
constexpr std::int64_t elements_max = 1 << 20;  // 8 bytes each, in a few copies.
constexpr std::int64_t no_most = std::numeric_limits<std::int64_t>::max();

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }
bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || is_digit(c);
}

class GbnfReader {
 public:
  GbnfReader(std::string_view text, const std::function<bool(std::string_view)>& is_token)
      : text_(text), is_token_(is_token) {}

  Result<Gbnf, std::string> read() {
    space(true);
    while (ok() && !at_end()) rule();
    if (ok()) check_names();
    if (!ok()) return Err{std::move(fault_)};
    return std::move(out_);
  }

 private:
  // The part of a sequence that a repeat applies to.
  struct Last {
    std::size_t begin = 0;    // Index of its first item.
    std::int64_t weight = 1;  // Rules in it, as the library counts them for its limit.
  };

  bool ok() const { return fault_.empty(); }
  bool at_end() const { return at_ == text_.size(); }
  char peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }

  void fail(const std::string& what) {
    if (!ok()) return;
    const auto line =
        1 + std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(at_), '\n');
    fault_ = "line " + std::to_string(line) + ": " + what;
  }
  bool expect(char c) {
    if (peek() != c) {
      fail(std::string("expected '") + c + "'");
      return false;
    }
    ++at_;
    return true;
  }

  void space(bool newlines) {
    while (!at_end()) {
      const char c = peek();
      if (c == '#') {
        while (!at_end() && peek() != '\r' && peek() != '\n') ++at_;
      } else if (c == ' ' || c == '\t' || (newlines && (c == '\r' || c == '\n'))) {
        ++at_;
      } else {
        return;
      }
    }
  }

  std::string_view word() {
    const std::size_t begin = at_;
    while (is_word(peek())) ++at_;
    if (at_ == begin) fail("expected the name of a rule");
    return text_.substr(begin, at_ - begin);
  }

  std::int64_t integer() {
    std::int64_t value = 0;
    if (!is_digit(peek())) fail("expected a number");
    while (is_digit(peek())) {
      value = std::min<std::int64_t>(value * 10 + (peek() - '0'), 1'000'000'000);
      ++at_;
    }
    return value;
  }

  std::int32_t named(std::string_view name) {
    const auto [found, is_new] =
        names_.try_emplace(std::string(name), static_cast<std::int32_t>(out_.rules.size()));
    if (is_new) out_.rules.emplace_back();
    return found->second;
  }
  std::int32_t unnamed() {
    out_.rules.emplace_back();
    return static_cast<std::int32_t>(out_.rules.size()) - 1;
  }

  void spend(std::int64_t elements) {
    elements_ += elements;
    if (elements_ > elements_max) fail("it expands to more than 1,000,000 elements");
  }

  void rule() {
    const std::int32_t id = named(word());
    space(false);
    if (!ok()) return;
    if (text_.substr(at_, 3) != "::=") return fail("expected ::=");
    at_ += 3;
    space(true);
    alternatives(id, 0);
    if (!ok()) return;
    if (peek() == '\r') {
      at_ += peek(1) == '\n' ? 2 : 1;
    } else if (peek() == '\n') {
      ++at_;
    } else if (!at_end()) {
      return fail("expected a new line");
    }
    space(true);
  }

  void alternatives(std::int32_t id, int nesting) {
    if (nesting > grammar_nesting_max) {
      return fail("nested more than " + std::to_string(grammar_nesting_max) + " deep");
    }
    std::vector<GbnfSequence> found;
    found.push_back(sequence(nesting));
    while (ok() && peek() == '|') {
      ++at_;
      space(true);
      found.push_back(sequence(nesting));
    }
    spend(static_cast<std::int64_t>(found.size()));
    out_.rules[static_cast<std::size_t>(id)].alternatives = std::move(found);
  }

  GbnfSequence sequence(int nesting) {
    GbnfSequence items;
    Last last;
    while (ok() && !at_end()) {
      const char c = peek();
      if (c == '*' || c == '+' || c == '?' || c == '{') {
        repeat(items, last, nesting > 0);
        continue;
      }
      const std::size_t begin = items.size();
      std::int64_t weight = 1;
      if (c == '"') {
        literal(items);
      } else if (c == '[') {
        character_class(items);
      } else if (c == '<' || c == '!') {
        token(items);
      } else if (c == '(') {
        weight = group(items, nesting);
      } else if (c == '.') {
        ++at_;
        items.push_back(GbnfItem{});
      } else if (is_word(c)) {
        items.push_back(GbnfItem{named(word())});
      } else {
        break;
      }
      last = Last{begin, weight};
      for (std::size_t i = begin; i < items.size(); ++i) spend(items[i].elements);
      space(nesting > 0);
    }
    return items;
  }

  void character() {
    if (peek() != '\\') {
      ++at_;
      while ((static_cast<unsigned char>(peek()) & 0xC0U) == 0x80U) ++at_;
      return;
    }
    const char kind = peek(1);
    const int digits = kind == 'x' ? 2 : kind == 'u' ? 4 : kind == 'U' ? 8 : 0;
    if (digits == 0 && std::string_view("trn\\\"[]-").find(kind) == std::string_view::npos) {
      return fail("unknown escape");
    }
    at_ += 2;
    for (int i = 0; i < digits; ++i) {
      if (!is_hex(peek())) return fail("expected " + std::to_string(digits) + " hex digits");
      ++at_;
    }
  }

  void literal(GbnfSequence& items) {
    ++at_;
    std::int32_t count = 0;
    while (ok() && peek() != '"') {
      if (at_end()) return fail("a literal does not end");
      character();
      ++count;
    }
    ++at_;
    if (count > 0) items.push_back(GbnfItem{-1, count});
  }

  void character_class(GbnfSequence& items) {
    ++at_;
    if (peek() == '^') ++at_;
    std::int32_t count = 0;
    while (ok() && peek() != ']') {
      if (at_end()) return fail("a character class does not end");
      character();
      ++count;
      if (peek() == '-' && peek(1) != ']') {
        ++at_;
        if (at_end()) return fail("a character class does not end");
        character();
        ++count;
      }
    }
    ++at_;
    if (count == 0) return fail("an empty character class");
    items.push_back(GbnfItem{-1, count});
  }

  void token(GbnfSequence& items) {
    if (peek() == '!') ++at_;
    const std::size_t begin = at_;
    if (!expect('<')) return;
    if (peek() == '[') {
      ++at_;
      const std::int64_t id = integer();
      if (id >= 1'000'000'000) return fail("no such token");
      if (!expect(']') || !expect('>')) return;
    } else {
      while (!at_end() && peek() != '>') ++at_;
      if (!expect('>')) return;
      if (!is_token_(text_.substr(begin, at_ - begin))) return fail("<...> must name one token");
    }
    items.push_back(GbnfItem{});
  }

  std::int64_t group(GbnfSequence& items, int nesting) {
    ++at_;
    space(true);
    const std::size_t before = out_.rules.size();
    const std::int32_t id = unnamed();
    alternatives(id, nesting + 1);
    items.push_back(GbnfItem{id});
    if (ok()) expect(')');
    return std::max<std::int64_t>(1, static_cast<std::int64_t>(out_.rules.size() - before));
  }

  void repeat(GbnfSequence& items, Last& last, bool newlines) {
    std::int64_t least = 0;
    std::int64_t most = no_most;
    const char kind = peek();
    ++at_;
    space(newlines);
    if (kind == '+') least = 1;
    if (kind == '?') most = 1;
    if (kind == '{') bounds(least, most, newlines);
    if (!ok()) return;
    if (last.begin >= items.size()) return fail("nothing to repeat");
    if (least > repeats_max) return fail("2,000 repeats or more");
    if (most != no_most && most > repeats_max) most = no_most;
    if (most < least) return fail("a repeat whose most is below its least");
    const std::int64_t total =
        most != no_most && most > 0 ? most : std::max<std::int64_t>(1, least);
    if (last.weight * total >= repeats_max) return fail("2,000 repeats or more");
    last.weight *= total;
    expand(items, last.begin, least, most);
    space(newlines);
  }

  void bounds(std::int64_t& least, std::int64_t& most, bool newlines) {
    least = integer();
    space(newlines);
    most = least;
    if (peek() == ',') {
      ++at_;
      space(newlines);
      most = is_digit(peek()) ? integer() : no_most;
      space(newlines);
    }
    if (ok()) expect('}');
  }

  // S{m,n} as m times S and n - m optional ones in nested rules, S{m,} with one recursive rule.
  void expand(GbnfSequence& items, std::size_t begin, std::int64_t least, std::int64_t most) {
    const GbnfSequence symbol(items.begin() + static_cast<std::ptrdiff_t>(begin), items.end());
    std::int64_t cost = 0;
    for (const GbnfItem& item : symbol) cost += item.elements;
    const std::int64_t optional = most == no_most ? 1 : most - least;
    spend((std::max<std::int64_t>(0, least - 1) + optional) * cost + 3 * optional);
    if (!ok()) return;
    if (least == 0) items.resize(begin);
    for (std::int64_t i = 1; i < least; ++i) {
      items.insert(items.end(), symbol.begin(), symbol.end());
    }
    std::int32_t inner = -1;
    for (std::int64_t i = 0; i < optional; ++i) {
      const std::int32_t id = unnamed();
      GbnfSequence body = symbol;
      if (most == no_most) {
        body.push_back(GbnfItem{id});
      } else if (i > 0) {
        body.push_back(GbnfItem{inner});
      }
      out_.rules[static_cast<std::size_t>(id)].alternatives = {std::move(body), GbnfSequence{}};
      inner = id;
    }
    if (inner >= 0) items.push_back(GbnfItem{inner});
  }

  void check_names() {
    for (const auto& [name, id] : names_) {
      if (out_.rules[static_cast<std::size_t>(id)].alternatives.empty()) {
        fault_ = "rule '" + name.substr(0, 64) + "' is not defined";
        return;
      }
    }
    const auto root = names_.find("root");
    if (root == names_.end()) {
      fault_ = "there is no rule 'root'";
      return;
    }
    out_.root = root->second;
  }

  std::string_view text_;
  const std::function<bool(std::string_view)>& is_token_;
  std::size_t at_ = 0;
  std::string fault_;
  std::int64_t elements_ = 0;
  std::map<std::string, std::int32_t> names_;
  Gbnf out_;
};

}  // namespace

Result<Gbnf, std::string> read_gbnf(std::string_view text,
                                    const std::function<bool(std::string_view)>& is_token) {
  return GbnfReader(text, is_token).read();
}

}  // namespace fermata::engine::llama
