#include "engine/llama/grammar_guard.h"

#include "core/utf8.h"
#include "engine/llama/gbnf_reader.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace fermata::engine::llama {
namespace {

// Ways to begin one rule. The library tries all of them at once, comparing each with each.
constexpr std::int64_t beginnings_max = 1 << 16;
// Rules that begin with a rule that begins with a rule ...: the library recurses.
constexpr std::int32_t chain_max = 4096;

std::size_t index(std::int32_t rule) { return static_cast<std::size_t>(rule); }

// Which rules can be empty: those with an alternative of nothing but such rules.
class EmptyRules {
 public:
  explicit EmptyRules(const Gbnf& grammar)
      : can_be_(grammar.rules.size()), used_in_(grammar.rules.size()) {
    for (std::size_t i = 0; i < grammar.rules.size(); ++i) {
      for (const GbnfSequence& sequence : grammar.rules[i].alternatives) add(i, sequence);
    }
    while (!found_.empty()) {
      const std::size_t rule = found_.back();
      found_.pop_back();
      for (const std::size_t sequence : used_in_[rule]) {
        if (--sequences_[sequence].open == 0) mark(sequences_[sequence].owner);
      }
    }
  }
  const std::vector<bool>& all() const { return can_be_; }

 private:
  struct Sequence {
    std::size_t owner;
    std::size_t open;  // Items that are not known to be empty.
  };

  void mark(std::size_t rule) {
    if (can_be_[rule]) return;
    can_be_[rule] = true;
    found_.push_back(rule);
  }
  void add(std::size_t owner, const GbnfSequence& sequence) {
    if (sequence.empty()) return mark(owner);
    const bool has_terminal = std::any_of(sequence.begin(), sequence.end(),
                                          [](const GbnfItem& item) { return item.rule < 0; });
    if (has_terminal) return;
    for (const GbnfItem& item : sequence) used_in_[index(item.rule)].push_back(sequences_.size());
    sequences_.push_back(Sequence{owner, sequence.size()});
  }

  std::vector<bool> can_be_;
  std::vector<std::vector<std::size_t>> used_in_;  // Rule to sequences.
  std::vector<Sequence> sequences_;
  std::vector<std::size_t> found_;
};

// The library's own, shorter idea: rules with an alternative of nothing at all.
std::vector<bool> plainly_empty_rules(const Gbnf& grammar) {
  std::vector<bool> out;
  for (const GbnfRule& rule : grammar.rules) {
    out.push_back(std::any_of(rule.alternatives.begin(), rule.alternatives.end(),
                              [](const GbnfSequence& sequence) { return sequence.empty(); }));
  }
  return out;
}

// A rule begins with another: `grows` when something is left to match behind it.
struct Beginning {
  std::int32_t rule;
  bool grows;
};

std::vector<std::vector<Beginning>> beginnings_of(const Gbnf& grammar,
                                                  const std::vector<bool>& empty) {
  std::vector<std::vector<Beginning>> out(grammar.rules.size());
  for (std::size_t i = 0; i < grammar.rules.size(); ++i) {
    for (const GbnfSequence& sequence : grammar.rules[i].alternatives) {
      for (std::size_t j = 0; j < sequence.size(); ++j) {
        const std::int32_t rule = sequence[j].rule;
        if (rule < 0) break;
        out[i].push_back(Beginning{rule, j + 1 < sequence.size()});
        if (!empty[index(rule)]) break;
      }
    }
  }
  return out;
}

// Groups of rules that begin with each other (Tarjan's algorithm, without recursion), numbered so
// that what a group begins with has a lower number.
class Groups {
 public:
  explicit Groups(const std::vector<std::vector<Beginning>>& edges)
      : edges_(edges), order_(edges.size(), -1), low_(edges.size()), of_(edges.size(), -1) {
    for (std::size_t i = 0; i < edges.size(); ++i) {
      if (order_[i] < 0) visit(i);
    }
  }
  std::int32_t of(std::size_t rule) const { return of_[rule]; }

 private:
  void enter(std::size_t rule) {
    order_[rule] = low_[rule] = next_order_++;
    open_.push_back(rule);
    path_.emplace_back(rule, 0);
  }
  void visit(std::size_t start) {
    enter(start);
    while (!path_.empty()) {
      const std::size_t rule = path_.back().first;
      if (path_.back().second < edges_[rule].size()) {
        const std::size_t to = index(edges_[rule][path_.back().second++].rule);
        if (order_[to] < 0) {
          enter(to);
        } else if (of_[to] < 0) {
          low_[rule] = std::min(low_[rule], order_[to]);
        }
        continue;
      }
      path_.pop_back();
      if (!path_.empty()) {
        const std::size_t parent = path_.back().first;
        low_[parent] = std::min(low_[parent], low_[rule]);
      }
      if (low_[rule] == order_[rule]) close(rule);
    }
  }
  void close(std::size_t rule) {
    std::size_t member = 0;
    do {
      member = open_.back();
      open_.pop_back();
      of_[member] = next_group_;
    } while (member != rule);
    ++next_group_;
  }

  const std::vector<std::vector<Beginning>>& edges_;
  std::vector<std::int32_t> order_, low_, of_;
  std::vector<std::size_t> open_;
  std::vector<std::pair<std::size_t, std::size_t>> path_;  // A rule and its next edge.
  std::int32_t next_order_ = 0;
  std::int32_t next_group_ = 0;
};

constexpr const char* left_recursion = "a rule begins with itself (left recursion)";

bool has_circle(const std::vector<std::vector<Beginning>>& edges) {
  const Groups groups(edges);
  for (std::size_t i = 0; i < edges.size(); ++i) {
    for (const Beginning& edge : edges[i]) {
      if (groups.of(index(edge.rule)) == groups.of(i)) return true;
    }
  }
  return false;
}

// Empty, or why beginning a rule would take for ever or too much.
std::string find_beginning_fault(const Gbnf& grammar) {
  // What the library sees it refuses itself, but not without losing memory.
  if (has_circle(beginnings_of(grammar, plainly_empty_rules(grammar)))) return left_recursion;
  const auto edges = beginnings_of(grammar, EmptyRules(grammar).all());
  const Groups groups(edges);
  std::vector<std::pair<std::int32_t, std::size_t>> by_group;
  for (std::size_t i = 0; i < edges.size(); ++i) by_group.emplace_back(groups.of(i), i);
  std::sort(by_group.begin(), by_group.end());

  std::vector<std::int64_t> ways(edges.size());      // Of a group.
  std::vector<std::int32_t> chain(edges.size(), 1);  // Of a group.
  for (const auto& [group, rule] : by_group) {
    ways[index(group)] += 1 + static_cast<std::int64_t>(grammar.rules[rule].alternatives.size());
    for (const Beginning& edge : edges[rule]) {
      const std::int32_t other = groups.of(index(edge.rule));
      if (other == group && edge.grows) return left_recursion;
      if (other == group) continue;
      ways[index(group)] += ways[index(other)];
      chain[index(group)] = std::max(chain[index(group)], chain[index(other)] + 1);
    }
    if (ways[index(group)] > beginnings_max) {
      return "a rule can begin in more than " + std::to_string(beginnings_max) + " ways";
    }
    if (chain[index(group)] > chain_max) {
      return "more than " + std::to_string(chain_max) + " rules begin with one another";
    }
  }
  return "";
}

}  // namespace

std::string find_grammar_fault(const std::string& grammar, const IsToken& is_token) {
  if (grammar.size() > grammar_bytes_max) {
    return "longer than " + std::to_string(grammar_bytes_max) + " bytes";
  }
  if (grammar.starts_with("%llguidance")) return "llguidance grammars are not supported; use GBNF";
  if (!is_valid_utf8(grammar) || grammar.find('\0') != std::string::npos) {
    return "it is not UTF-8 text";
  }
  const auto read = read_gbnf(grammar, is_token);
  if (!read) return read.error();
  return find_beginning_fault(*read);
}

std::string find_nesting_fault(std::string_view json) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > json_nesting_max) {
        return "nested more than " + std::to_string(json_nesting_max) + " deep";
      }
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return "";
}

}  // namespace fermata::engine::llama
