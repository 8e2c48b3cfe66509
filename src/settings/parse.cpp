#include "settings/parse.h"

#include "settings/nearest.h"
#include "settings/table.h"
#include "settings/values.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <spdlog/fmt/fmt.h>

namespace fermata::settings {
namespace {

constexpr std::size_t quoted_length_max = 60;

// For messages: one line, whatever somebody typed.
std::string printable(std::string_view text) {
  std::string out;
  std::size_t length = std::min(text.size(), quoted_length_max);
  const auto inside_character = [&] {
    return length > 0 && length < text.size() && (text[length] & 0xC0) == 0x80;
  };
  while (inside_character()) --length;
  for (const char c : text.substr(0, length)) {
    out += static_cast<unsigned char>(c) < 0x20 || c == 0x7F ? '?' : c;
  }
  return length < text.size() ? out + "..." : out;
}

// One use of a setting on the command line.
struct Use {
  const Row* row = nullptr;
  bool off = false;
  std::string name;                       // As it was written, without a value.
  std::optional<std::string_view> value;  // Flags mostly have none.
};

// Whether `text` says of an unsupported row that nothing of it is wanted.
bool asks_for_nothing_else(const Row& row, std::string_view text) {
  const std::optional<bool> truth = truth_of(text);
  const bool is_flag = row.placeholder.empty();
  if (is_flag && row.off_names.empty() && truth == false) return true;
  if (row.only.empty()) return false;
  const bool is_switch = is_flag || row.only == "off";
  return text == row.only || (is_switch && truth && truth == truth_of(row.only));
}

// What is wrong with using `row` at all; `where` is the flag or variable as messages show it.
std::optional<SettingsFault> support_fault(const Row& row, std::string_view name,
                                           std::string_view where, std::string_view text) {
  if (row.support == Support::supported || row.support == Support::no_effect) return std::nullopt;
  const auto fault = [name](std::string message) {
    return SettingsFault{FaultKind::not_supported, std::string(name), std::move(message)};
  };
  if (row.support == Support::removed) {
    return fault(fmt::format("{} has been removed, in llama-server too; {}", where, row.help));
  }
  if (asks_for_nothing_else(row, text)) return std::nullopt;
  if (row.support == Support::fixed && !find_row(name).off) {
    return fault(
        fmt::format("{} cannot be \"{}\": it is always on, no other value is supported yet", where,
                    printable(text)));
  }
  if (row.placeholder.empty() || row.only.empty()) {
    return fault(fmt::format("{} is not supported yet", where));
  }
  return fault(
      fmt::format("{} is not supported yet; only the value {} is accepted", where, row.only));
}

SettingsFault bad_value(const Row& row, std::string_view name, std::string_view where,
                        std::string_view text) {
  const std::string shown = row.secret ? "(hidden)" : fmt::format("\"{}\"", printable(text));
  return {FaultKind::bad_value, std::string(name),
          fmt::format("{} cannot be {}: give {}", where, shown, allowed_text(row))};
}

std::string variable_words(const Row& row, std::string_view variable) {
  return row.names.empty() ? fmt::format("environment variable {}", variable)
                           : fmt::format("environment variable {} ({})", variable, title(row));
}

// Reads one command line; the state is how far it got and what it has seen.
class Reader {
 public:
  Reader(std::span<const std::string_view> args, const Environment& environment)
      : args_(args), environment_(environment) {}

  Result<Settings, SettingsFault> read() {
    if (auto fault = scan()) return Err{std::move(*fault)};
    if (settings_.invocation.help || settings_.invocation.version) return std::move(settings_);
    for (const Row* row : table()) {
      if (auto fault = apply_variable(*row)) return Err{std::move(*fault)};
    }
    for (const Use& use : uses_) {
      if (auto fault = apply(use)) return Err{std::move(*fault)};
    }
    warn_of_unknown_variables();
    settle_batch_sizes();
    settle_layout();
    settle_escapes();
    if (auto conflict = find_fault(settings_)) {
      return Err{SettingsFault{FaultKind::conflict, "", std::move(*conflict)}};
    }
    return std::move(settings_);
  }

 private:
  // Finds the rows and values; stops at --help and --version.
  std::optional<SettingsFault> scan() {
    while (next_ < args_.size()) {
      Use use;
      if (auto fault = scan_one(use)) return fault;
      if (use.row->group == Group::general && use.row->support == Support::supported) {
        set_flag(*use.row, false, settings_);
        return std::nullopt;
      }
      if (!used_.insert(&owner(*use.row)).second && !use.row->accumulates && !use.row->joins) {
        warn(
            fmt::format("{} is given more than once; the last one counts", title(owner(*use.row))));
      }
      uses_.push_back(std::move(use));
    }
    return std::nullopt;
  }

  std::optional<SettingsFault> scan_one(Use& use) {
    const std::string_view word = args_[next_++];
    split(word, use);
    if (use.row == nullptr) return unknown(word, use.name);
    const Row& row = *use.row;
    const bool takes_value = !row.placeholder.empty();
    if (use.value && !takes_value && (use.off || !row.on_text.empty())) {
      return SettingsFault{FaultKind::unexpected_argument, use.name,
                           fmt::format("{} takes no value", use.name)};
    }
    if (takes_value && !use.value) {
      if (next_ < args_.size() && !is_setting(args_[next_])) use.value = args_[next_++];
    }
    // Before a missing value is noticed: that the setting does not exist is the better answer.
    if (auto fault = support_fault(row, use.name, use.name,
                                   use.value.value_or(use.off ? "false" : "true"))) {
      return fault;
    }
    if (takes_value && !use.value) {
      return SettingsFault{FaultKind::missing_value, use.name,
                           fmt::format("{} needs a value: give {}", use.name, wanted(row))};
    }
    return std::nullopt;
  }

  static std::string wanted(const Row& row) {
    const bool any_text =
        std::holds_alternative<Member<std::string>>(row.target) && row.choices.empty();
    const bool named = row.support != Support::supported || any_text;
    return named ? std::string(row.placeholder) : allowed_text(row);
  }

  // "--name=value" as well as "--name"; '_' in a long name stands for '-', as in llama-server.
  static void split(std::string_view word, Use& use) {
    std::string_view name = word;
    if (word.starts_with("--")) {
      const auto equals = word.find('=');
      name = word.substr(0, equals);
      if (equals != std::string_view::npos) use.value = word.substr(equals + 1);
    }
    use.name = name;
    if (word.starts_with("--")) std::ranges::replace(use.name, '_', '-');
    const NamedRow found = find_row(use.name);
    use.row = found.row;
    use.off = found.off;
  }

  static bool is_setting(std::string_view word) {
    Use use;
    split(word, use);
    return use.row != nullptr;
  }

  static SettingsFault unknown(std::string_view word, const std::string& name) {
    if (!word.starts_with('-')) {
      return {FaultKind::unexpected_argument, std::string(word),
              fmt::format("unexpected argument \"{}\": settings begin with a dash, see --help",
                          printable(word))};
    }
    std::vector<std::string_view> known;
    for (const Row* row : table()) {
      known.insert(known.end(), row->names.begin(), row->names.end());
      known.insert(known.end(), row->off_names.begin(), row->off_names.end());
    }
    const std::string_view near = nearest(name, known);
    const std::string mend = near.empty() ? "see --help" : fmt::format("did you mean {}?", near);
    return {FaultKind::unknown_argument, name,
            fmt::format("unknown argument {}: {}", printable(name), mend)};
  }

  std::optional<SettingsFault> apply_variable(const Row& row) {
    const std::string off_name = off_variable(row);
    if (!off_name.empty() && environment_.contains(off_name)) {
      return apply_variable(row, off_name, "false");
    }
    for (const std::string_view name : {row.env, row.env_too}) {
      const auto found = name.empty() ? environment_.end() : environment_.find(name);
      if (found == environment_.end() || found->second.empty()) continue;
      return apply_variable(row, name, found->second);
    }
    return std::nullopt;
  }

  std::optional<SettingsFault> apply_variable(const Row& row, std::string_view variable,
                                              std::string_view text) {
    const std::string where = variable_words(row, variable);
    if (auto fault = support_fault(row, variable, where, text)) return fault;
    if (row.support == Support::no_effect) {
      warn(fmt::format("{} is deprecated and has no effect", where));
    }
    if (row.support != Support::supported) return std::nullopt;
    if (used_.contains(&owner(row))) {
      warn(fmt::format("{} is overridden by the command line", where));
      return std::nullopt;
    }
    if (row.deprecated) warn(fmt::format("{} is deprecated; use {}", where, row.alias_of));
    give(row);
    if (!row.on_text.empty()) {
      const std::optional<bool> truth = truth_of(text);
      if (!truth) return bad_switch(variable, where, text);
      if (*truth || !row.off_text.empty()) set_flag(row, !*truth, settings_);
      return std::nullopt;
    }
    if (set_value(row, text, settings_)) return std::nullopt;
    return bad_value(row, variable, where, text);
  }

  static SettingsFault bad_switch(std::string_view variable, std::string_view where,
                                  std::string_view text) {
    return {FaultKind::bad_value, std::string(variable),
            fmt::format("{} cannot be \"{}\": give true or false", where, printable(text))};
  }

  std::optional<SettingsFault> apply(const Use& use) {
    const Row& row = *use.row;
    if (row.support == Support::no_effect) {
      warn(fmt::format("{} is deprecated and has no effect", use.name));
    }
    if (row.support != Support::supported) return std::nullopt;
    if (row.deprecated) warn(fmt::format("{} is deprecated; use {}", use.name, row.alias_of));
    const bool is_first = give(row);
    if (!use.value) {
      set_flag(row, use.off, settings_);
      return std::nullopt;
    }
    if (row.accumulates && is_first) clear_list(row, settings_);
    std::string text;
    if (row.joins && !is_first) text = value_text(row, settings_) + row.separator;
    text += *use.value;
    if (set_value(row, text, settings_)) return std::nullopt;
    return bad_value(row, use.name, use.name, *use.value);
  }

  // Notes that the row gets a value. True for the first one.
  bool give(const Row& row) {
    if (const Row* replaced = find_row(row.replaces).row; given_.erase(replaced) > 0) {
      warn(fmt::format("{} replaces {}", title(row), title(*replaced)));
      const bool emptied = set_value(*replaced, "", settings_);
      FERMATA_CHECK(emptied, "a replaced setting that cannot be empty");
    }
    return given_.insert(&owner(row)).second;
  }

  void warn_of_unknown_variables() {
    std::vector<std::string_view> known;
    std::vector<std::string> off_names;
    for (const Row* row : table()) {
      if (!row->env.empty()) known.push_back(row->env);
      if (std::string off = off_variable(*row); !off.empty()) off_names.push_back(std::move(off));
    }
    known.insert(known.end(), off_names.begin(), off_names.end());
    for (const auto& [name, value] : environment_) {
      const bool theirs = name.starts_with("LLAMA_ARG_");
      if (!theirs && !name.starts_with("FERMATA_")) continue;
      if (std::ranges::find(known, name) != known.end()) continue;
      const std::string_view near = nearest(name, known);
      if (!theirs && edit_distance(name, near) > 2) continue;
      const std::string mend = near.empty() ? "" : fmt::format("; did you mean {}?", near);
      warn(fmt::format("environment variable {} is not known and was ignored{}", printable(name),
                       mend));
    }
  }

  void settle_batch_sizes() {
    const bool batch_given = given_.contains(find_row("--batch-size").row);
    const bool ubatch_given = given_.contains(find_row("--ubatch-size").row);
    BatchSettings& batch = settings_.batch;
    if (!ubatch_given) batch.n_ubatch = std::min(batch.n_ubatch, batch.n_batch);
    if (!batch_given) batch.n_batch = std::max(batch.n_batch, batch.n_ubatch);
  }

  void settle_layout() {
    const bool layout_given = given_.contains(find_row("--kv-unified").row);
    if (settings_.context.deterministic && !layout_given) settings_.context.kv_unified = false;
  }

  void settle_escapes() {
    SamplingSettings& sampling = settings_.sampling;
    if (!sampling.escape) return;
    for (std::string& word : sampling.reverse_prompts) word = unescaped(word);
    if (!given_.contains(find_row("--dry-sequence-breaker").row)) return;
    for (std::string& word : sampling.dry_sequence_breakers) word = unescaped(word);
  }

  void warn(std::string line) { settings_.invocation.warnings.push_back(std::move(line)); }

  std::span<const std::string_view> args_;
  const Environment& environment_;
  std::size_t next_ = 0;
  std::vector<Use> uses_;
  std::set<const Row*> used_;   // Owners of what the command line names.
  std::set<const Row*> given_;  // Owners of what has got a value.
  Settings settings_;
};

}  // namespace

Environment environment_of(const char* const* block) {
  Environment environment;
  for (; block != nullptr && *block != nullptr; ++block) {
    const std::string_view entry = *block;
    const auto equals = entry.find('=');
    if (equals == std::string_view::npos) continue;
    environment.emplace(entry.substr(0, equals), entry.substr(equals + 1));
  }
  return environment;
}

Result<Settings, SettingsFault> parse_settings(std::span<const std::string_view> args,
                                               const Environment& environment) {
  return Reader(args, environment).read();
}

}  // namespace fermata::settings
