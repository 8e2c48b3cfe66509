#include "settings/values.h"

#include <algorithm>
#include <cctype>
#include <charconv>

#include <spdlog/fmt/fmt.h>

namespace fermata::settings {
namespace {

using Texts = std::vector<std::string>;

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](unsigned char c) { return std::tolower(c); });
  return out;
}

std::string_view resolved(const Row& row, std::string_view text) {
  const auto same = [text](const Synonym& synonym) { return synonym.text == text; };
  const auto found = std::ranges::find_if(row.synonyms, same);
  return found == row.synonyms.end() ? text : found->value;
}

std::string_view short_form(const Row& row, std::string_view value) {
  const auto same = [value](const Synonym& synonym) { return synonym.value == value; };
  const auto found = std::ranges::find_if(row.synonyms, same);
  return found == row.synonyms.end() ? value : found->text;
}

bool is_choice(const Row& row, std::string_view text) {
  return row.choices.empty() || std::ranges::find(row.choices, text) != row.choices.end();
}

// In the precision of T, so that 0.99F counts as 0.99. Not-a-number is in no range.
template <class T>
bool in_range(const Range& range, T value) {
  if (range.also && value == static_cast<T>(*range.also)) return true;
  const T low = static_cast<T>(range.low);
  const T high = static_cast<T>(range.high);
  return range.above ? (value > low && value <= high) : (value >= low && value <= high);
}

template <class T>
std::optional<T> number_of(std::string_view text) {
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

template <class T>
bool set_number(const Row& row, std::string_view text, T& member) {
  const std::optional<T> value = number_of<T>(resolved(row, text));
  if (!value || !in_range(row.range, *value)) return false;
  member = *value;
  return true;
}

bool set_list(const Row& row, std::string_view text, Texts& member) {
  Texts items;
  while (!text.empty()) {
    const std::size_t length = row.separator == '\0' ? 1 : text.find(row.separator);
    std::string item(trimmed(text.substr(0, length)));
    text.remove_prefix(std::min(text.size(), length == std::string_view::npos
                                                 ? text.size()
                                                 : length + (row.separator == '\0' ? 0 : 1)));
    if (item.empty()) continue;
    if (!row.choices.empty()) item = resolved(row, lower(item));
    if (!is_choice(row, item)) return false;
    items.push_back(std::move(item));
  }
  if (items.empty()) return false;
  member = std::move(items);
  return true;
}

bool add_item(std::string_view text, Texts& member) {
  if (text.empty()) return false;
  if (text == "none") {
    member.clear();
  } else {
    member.emplace_back(text);
  }
  return true;
}

std::string quoted_items(const Texts& items) {
  std::string out;
  for (const std::string& item : items) {
    out += fmt::format("{}'{}'", out.empty() ? "" : ", ", item == "\n" ? "\\n" : item);
  }
  return out.empty() ? "none" : out;
}

std::string list_text(const Row& row, const Texts& items) {
  if (row.accumulates) return quoted_items(items);
  std::string out;
  for (const std::string& item : items) {
    if (row.separator == '\0') {
      out += short_form(row, item);
    } else {
      if (!out.empty()) out += row.separator;
      out += item;
    }
  }
  return out;
}

std::string joined(std::span<const std::string_view> items) {
  return fmt::format("{}", fmt::join(items, ", "));
}

std::string number_words(const Range& range) {
  std::string out = "a number";
  if (range.high < number_max) {
    out += fmt::format(" from {} to {}", range.low, range.high);
  } else if (range.low > -number_max) {
    out += fmt::format("{} {}", range.above ? " above" : ", at least", range.low);
  }
  return out;
}

std::string whole_words(const Row& row) {
  std::string out = fmt::format("a whole number from {} to {}", row.range.low, row.range.high);
  if (row.range.also) out += fmt::format(", or {}", *row.range.also);
  for (const Synonym& synonym : row.synonyms) out += fmt::format(", or {}", synonym.text);
  return out;
}

std::string list_words(const Row& row) {
  if (row.accumulates) return "text, one item at each use, or none";
  if (row.separator != '\0') {
    const std::string items = row.choices.empty() ? "" : ", of: " + joined(row.choices);
    return fmt::format("items separated by '{}'{}", row.separator, items);
  }
  std::string out = "letters:";
  for (const Synonym& synonym : row.synonyms) {
    out += fmt::format("{} {} ({})", out.back() == ':' ? "" : ",", synonym.text, synonym.value);
  }
  return out;
}

}  // namespace

std::optional<bool> truth_of(std::string_view text) {
  if (text == "1" || text == "true" || text == "on" || text == "enabled") return true;
  if (text == "0" || text == "false" || text == "off" || text == "disabled") return false;
  return std::nullopt;
}

std::string unescaped(std::string_view text) {
  constexpr std::string_view letters = "ntr\\'\"";
  constexpr std::string_view meanings = "\n\t\r\\'\"";
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto known =
        text[i] == '\\' && i + 1 < text.size() ? letters.find(text[i + 1]) : std::string_view::npos;
    if (known == std::string_view::npos) {
      out += text[i];
    } else {
      out += meanings[known];
      ++i;
    }
  }
  return out;
}

bool set_value(const Row& row, std::string_view text, Settings& settings) {
  return std::visit(Overloaded{[](std::monostate) { return false; },
                               [&](const Member<bool>& member) {
                                 const std::optional<bool> truth = truth_of(text);
                                 if (truth) member.of(settings) = *truth;
                                 return truth.has_value();
                               },
                               [&](const Member<std::int64_t>& member) {
                                 return set_number(row, text, member.of(settings));
                               },
                               [&](const Member<float>& member) {
                                 return set_number(row, text, member.of(settings));
                               },
                               [&](const Member<std::string>& member) {
                                 const std::string_view value = resolved(row, text);
                                 if (!is_choice(row, value)) return false;
                                 member.of(settings) = value;
                                 return true;
                               },
                               [&](const Member<Texts>& member) {
                                 return row.accumulates ? add_item(text, member.of(settings))
                                                        : set_list(row, text, member.of(settings));
                               }},
                    row.target);
}

void set_flag(const Row& row, bool off, Settings& settings) {
  FERMATA_CHECK(row.placeholder.empty(), "a flag that takes a value");
  const bool is_bool = std::holds_alternative<Member<bool>>(row.target);
  const std::string_view text =
      is_bool ? (off ? "false" : "true") : (off ? row.off_text : row.on_text);
  const bool done = set_value(owner(row), text, settings);
  FERMATA_CHECK(done, "a flag whose meaning is not allowed");
}

void clear_list(const Row& row, Settings& settings) {
  const auto* member = std::get_if<Member<Texts>>(&row.target);
  FERMATA_CHECK(row.accumulates && member != nullptr, "a row that does not accumulate");
  member->of(settings).clear();
}

bool is_allowed(const Row& row, const Settings& settings) {
  return std::visit(
      Overloaded{
          [](std::monostate) { return true; }, [](const Member<bool>&) { return true; },
          [&](const Member<std::int64_t>& member) {
            return in_range(row.range, member.in(settings));
          },
          [&](const Member<float>& member) { return in_range(row.range, member.in(settings)); },
          [&](const Member<std::string>& member) { return is_choice(row, member.in(settings)); },
          [&](const Member<Texts>& member) {
            static const Settings defaults;
            const Texts& items = member.in(settings);
            if (items.empty()) return row.accumulates || member.in(defaults).empty();
            return std::ranges::all_of(
                items, [&](const std::string& item) { return is_choice(row, item); });
          }},
      row.target);
}

std::string value_text(const Row& row, const Settings& settings) {
  return std::visit(
      Overloaded{
          [](std::monostate) -> std::string {
            FERMATA_CHECK(false, "the value of a setting that has none");
            return {};
          },
          [&](const Member<bool>& member) -> std::string {
            return member.in(settings) ? "true" : "false";
          },
          [&](const Member<std::int64_t>& member) {
            const std::string number = std::to_string(member.in(settings));
            return std::string(short_form(row, number));
          },
          [&](const Member<float>& member) { return fmt::format("{}", member.in(settings)); },
          [&](const Member<std::string>& member) { return member.in(settings); },
          [&](const Member<Texts>& member) { return list_text(row, member.in(settings)); }},
      row.target);
}

std::string allowed_text(const Row& row) {
  return std::visit(Overloaded{[](std::monostate) -> std::string { return "nothing else"; },
                               [](const Member<bool>&) -> std::string {
                                 return "true, on, enabled or 1; false, off, disabled or 0";
                               },
                               [&](const Member<std::int64_t>&) { return whole_words(row); },
                               [&](const Member<float>&) { return number_words(row.range); },
                               [&](const Member<std::string>&) -> std::string {
                                 return row.choices.empty() ? "text"
                                                            : "one of: " + joined(row.choices);
                               },
                               [&](const Member<Texts>&) { return list_words(row); }},
                    row.target);
}

std::vector<SettingValue> list_values(const Settings& settings) {
  static const Settings defaults;
  std::vector<SettingValue> out;
  for (const Row* row : table()) {
    const bool has_value = !std::holds_alternative<std::monostate>(row->target);
    if (!has_value || !row->alias_of.empty() || row->group == Group::general) continue;
    std::string value = value_text(*row, settings);
    const bool is_default = value == value_text(*row, defaults);
    if (row->secret && !value.empty()) value = "set";
    std::string_view name = title(*row);
    name.remove_prefix(name.find_first_not_of('-'));
    out.push_back({name, std::move(value), is_default, row->change});
  }
  return out;
}

}  // namespace fermata::settings
