#include "settings/table.h"

#include "core/geometry.h"
#include "core/sampling_params.h"
#include "settings/values.h"
#include "support.h"

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>

#include <gtest/gtest.h>

namespace fermata::settings {
namespace {

bool takes_value(const Row& row) { return !row.placeholder.empty(); }

template <class T>
bool binds(const Row& row) {
  return std::holds_alternative<Member<T>>(row.target);
}

// A value that is not the default, in the words of value_text().
std::string sample(const Row& row) {
  const Settings defaults;
  if (binds<std::vector<std::string>>(row) && !row.accumulates) {
    if (row.choices.empty()) return "first,second";
    return row.separator == '\0' ? "tk" : "temperature;top_k";
  }
  if (!row.choices.empty()) {
    const std::string last(row.choices.back());
    return last == value_text(row, defaults) ? std::string(row.choices.front()) : last;
  }
  if (binds<std::int64_t>(row)) {
    const auto high = static_cast<std::int64_t>(row.range.high);
    const std::string text = std::to_string(high);
    return text == value_text(row, defaults) ? std::to_string(high - 1) : text;
  }
  if (binds<float>(row)) return row.range.low < 0.25 && row.range.high > 0.25 ? "0.25" : "2.5";
  if (row.names.size() > 0 && row.names.back() == "--logit-bias") return "5-1";
  return row.accumulates ? "breaker" : "/some where";
}

std::string written(const Row& row, const std::string& text) {
  return row.accumulates ? "'" + text + "'" : text;
}

TEST(Table, EveryNumberHasARangeThatHoldsItsDefault) {
  const Settings defaults;
  for (const Row* row : table()) {
    if (!row->alias_of.empty()) continue;
    EXPECT_TRUE(is_allowed(*row, defaults)) << title(*row);
    if (binds<std::int64_t>(*row) || binds<float>(*row)) {
      EXPECT_LT(row->range.low, row->range.high) << title(*row);
    }
  }
  EXPECT_EQ(find_fault(defaults), std::nullopt);
}

TEST(Table, EveryDefaultIsAValueTheParserReads) {
  const Settings defaults;
  for (const Row* row : table()) {
    const bool is_empty_text = is_supported(*row) && value_text(*row, defaults).empty();
    if (!is_supported(*row) || !takes_value(*row) || row->accumulates || is_empty_text) continue;
    Settings settings;
    EXPECT_TRUE(set_value(*row, value_text(*row, defaults), settings)) << title(*row);
    EXPECT_EQ(value_text(*row, settings), value_text(*row, defaults));
  }
}

TEST(Table, VariablesAreUnique) {
  std::set<std::string, std::less<>> seen;
  for (const Row* row : table()) {
    if (!row->env.empty()) {
      EXPECT_TRUE(seen.emplace(row->env).second) << row->env;
    }
    if (!off_variable(*row).empty()) {
      EXPECT_TRUE(seen.insert(off_variable(*row)).second);
    }
  }
}

TEST(Table, RowsAreWhole) {
  for (const Row* row : table()) {
    const bool has_target = !std::holds_alternative<std::monostate>(row->target);
    EXPECT_EQ(has_target, is_supported(*row)) << title(*row);
    EXPECT_FALSE(row->names.empty() && row->env.empty());
    if (is_supported(*row)) {
      EXPECT_FALSE(row->help.empty()) << title(*row);
    }
    const bool is_bool_or_valued = binds<bool>(*row) || takes_value(*row);
    EXPECT_TRUE(!has_target || is_bool_or_valued || !row->on_text.empty()) << title(*row);
    EXPECT_EQ(row->off_text.empty(), row->off_names.empty() || binds<bool>(*row) || !has_target)
        << title(*row);
    for (const std::string_view name : row->names) EXPECT_TRUE(name.starts_with('-')) << name;
  }
}

TEST(Table, EverySupportedSettingTakesAValueThroughEachOfItsNames) {
  for (const Row* row : table()) {
    if (!is_supported(*row) || !takes_value(*row)) continue;
    const std::string text = sample(*row);
    for (const std::string_view name : row->names) {
      const auto result = parse({std::string(name), text});
      ASSERT_TRUE(result.ok()) << result.error().message;
      EXPECT_EQ(value_text(*row, result.value()), written(*row, text)) << name;
    }
    if (row->env.empty()) continue;
    const auto result = parse({}, {{std::string(row->env), text}});
    ASSERT_TRUE(result.ok()) << result.error().message;
    EXPECT_EQ(value_text(*row, result.value()), written(*row, text)) << row->env;
  }
}

TEST(Table, EverySwitchWorksBothWays) {
  for (const Row* row : table()) {
    if (!binds<bool>(*row) || row->group == Group::general) continue;
    for (const std::string_view name : row->names) {
      const auto result = parse({std::string(name)});
      ASSERT_TRUE(result.ok()) << result.error().message;
      EXPECT_EQ(value_text(*row, result.value()), "true") << name;
    }
    for (const std::string_view name : row->off_names) {
      const auto result = parse({std::string(name)});
      ASSERT_TRUE(result.ok()) << result.error().message;
      EXPECT_EQ(value_text(*row, result.value()), "false") << name;
    }
    const Settings defaults;
    EXPECT_TRUE(value_text(*row, defaults) == "false" || !row->off_names.empty())
        << title(*row) << " is on and nothing turns it off";
    if (row->env.empty()) continue;
    for (const std::string text : {"true", "false"}) {
      const auto result = parse({}, {{std::string(row->env), text}});
      ASSERT_TRUE(result.ok()) << result.error().message;
      EXPECT_EQ(value_text(*row, result.value()), text) << row->env;
    }
  }
}

// Two rows that write the same member would show here.
TEST(Table, ASettingChangesItselfAndNothingElse) {
  for (const Row* row : table()) {
    if (!is_supported(*row) || row->group == Group::general) continue;
    const bool is_on = binds<bool>(*row) && value_text(*row, Settings{}) == "true";
    std::vector<std::string> words = {std::string(is_on ? row->off_names.back() : title(*row))};
    if (takes_value(*row)) words.push_back(sample(*row));
    const auto result = parse(words);
    ASSERT_TRUE(result.ok()) << result.error().message;
    std::vector<std::string> changed;
    for (const SettingValue& value : list_values(result.value())) {
      if (!value.is_default) changed.emplace_back(value.name);
    }
    std::vector<std::string> expected = {std::string(title(owner(*row))).substr(2)};
    if (expected.front() == "ubatch-size") expected.insert(expected.begin(), "batch-size");
    if (expected.front() == "deterministic") expected.insert(expected.begin(), "kv-unified");
    EXPECT_EQ(changed, expected) << title(*row);
  }
}

TEST(Table, EveryUnsupportedFlagAndVariableAnswers) {
  int answered = 0;
  for (const Row* row : table()) {
    if (row->support != Support::not_yet) continue;
    for (const std::string_view name : row->names) {
      if (!takes_value(*row) && row->only == "true") continue;
      const auto result = parse({std::string(name), "some value"});
      ASSERT_FALSE(result.ok()) << name;
      EXPECT_EQ(result.error().kind, FaultKind::not_supported);
      EXPECT_TRUE(result.error().message.starts_with(std::string(name) + " is not supported yet"))
          << result.error().message;
      ++answered;
      // Without its value the answer is the same.
      EXPECT_EQ(fault_of({std::string(name)}), result.error().message);
    }
    if (row->env.empty()) continue;
    const auto result = parse({}, {{std::string(row->env), "some value"}});
    ASSERT_FALSE(result.ok()) << row->env;
    EXPECT_EQ(result.error().kind, FaultKind::not_supported);
    EXPECT_TRUE(result.error().message.find(row->env) != std::string::npos);
  }
  EXPECT_GT(answered, 200);
}

TEST(Table, OnlyTheNamedValueOfAnUnsupportedSettingIsAccepted) {
  for (const Row* row : table()) {
    if (row->support != Support::not_yet || row->only.empty()) continue;
    if (takes_value(*row)) {
      EXPECT_EQ(warnings_of({std::string(title(*row)), std::string(row->only)}), "");
    } else {
      const bool wants_off = row->only == "false";
      for (const std::string_view name : wants_off ? row->off_names : row->names) {
        EXPECT_EQ(warnings_of({std::string(name)}), "") << name;
      }
      for (const std::string_view name : wants_off ? row->names : row->off_names) {
        EXPECT_EQ(fault_of({std::string(name)}), std::string(name) + " is not supported yet");
      }
    }
  }
}

std::vector<std::string> words_of_text(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

// The list was taken from llama-server: what it understands is known here, by the same names and
// the same variable.
TEST(Table, KnowsEverySettingOfLlamaServer) {
  std::ifstream file(FERMATA_SOURCE_DIR "/tests/unit/settings/llama_server_settings.txt");
  ASSERT_TRUE(file.is_open());
  int known = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#')) continue;
    std::istringstream parts(line);
    std::string names;
    std::string off_names;
    std::string variable;
    std::getline(parts, names, ';');
    std::getline(parts, off_names, ';');
    std::getline(parts, variable, ';');
    const std::vector<std::string> on = words_of_text(names);
    const Row* row = find_row(on.front()).row;
    ASSERT_NE(row, nullptr) << line;
    EXPECT_TRUE(std::equal(on.begin(), on.end(), row->names.begin(), row->names.end())) << line;
    const std::vector<std::string> off = words_of_text(off_names);
    EXPECT_TRUE(std::equal(off.begin(), off.end(), row->off_names.begin(), row->off_names.end()))
        << line;
    const std::vector<std::string> env = words_of_text(variable);
    const std::string expected = env.empty() || env.front() == "HF_TOKEN" ? "" : env.front();
    EXPECT_EQ(row->env, expected) << line;
    ++known;
  }
  EXPECT_GT(known, 250);
}

// settings/ may not include core/; the limits and defaults that both state are held together here.
TEST(Table, AgreesWithCore) {
  EXPECT_EQ(find_row("--ctx-size").row->range.high, static_cast<double>(n_ctx_max.value));
  EXPECT_EQ(find_row("--parallel").row->range.high, n_parallel_max);
  EXPECT_EQ(find_row("--seed").row->range.high, seed_random);
  const Geometry geometry;
  EXPECT_EQ(geometry.n_parallel, n_parallel_auto);

  const SamplingParams core;
  const SamplingSettings ours;
  EXPECT_EQ(ours.temperature, core.temperature);
  EXPECT_EQ(ours.top_k, core.top_k);
  EXPECT_EQ(ours.top_p, core.top_p);
  EXPECT_EQ(ours.min_p, core.min_p);
  EXPECT_EQ(ours.top_n_sigma, core.top_n_sigma);
  EXPECT_EQ(ours.xtc_probability, core.xtc_probability);
  EXPECT_EQ(ours.xtc_threshold, core.xtc_threshold);
  EXPECT_EQ(ours.typical_p, core.typical_p);
  EXPECT_EQ(ours.repeat_last_n, core.repeat_last_n);
  EXPECT_EQ(ours.repeat_penalty, core.repeat_penalty);
  EXPECT_EQ(ours.presence_penalty, core.presence_penalty);
  EXPECT_EQ(ours.frequency_penalty, core.frequency_penalty);
  EXPECT_EQ(ours.dry_multiplier, core.dry_multiplier);
  EXPECT_EQ(ours.dry_base, core.dry_base);
  EXPECT_EQ(ours.dry_allowed_length, core.dry_allowed_length);
  EXPECT_EQ(ours.dry_penalty_last_n, core.dry_penalty_last_n);
  EXPECT_EQ(ours.dry_sequence_breakers, core.dry_sequence_breakers);
  EXPECT_EQ(ours.adaptive_target, core.adaptive_target);
  EXPECT_EQ(ours.adaptive_decay, core.adaptive_decay);
  EXPECT_EQ(ours.dynatemp_range, core.dynatemp_range);
  EXPECT_EQ(ours.dynatemp_exponent, core.dynatemp_exponent);
  EXPECT_EQ(ours.mirostat, core.mirostat);
  EXPECT_EQ(ours.mirostat_eta, core.mirostat_eta);
  EXPECT_EQ(ours.mirostat_tau, core.mirostat_tau);
  EXPECT_EQ(ours.samplers.size(), core.samplers.size());
}

}  // namespace
}  // namespace fermata::settings
