#include "settings/help.h"

#include "support.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#include <gtest/gtest.h>

namespace fermata::settings {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// What a tool finds that looks for flags in the column of names.
std::set<std::string, std::less<>> flags_in(const std::string& help) {
  std::set<std::string, std::less<>> flags;
  for (const std::string& line : lines_of(help)) {
    if (!line.starts_with('-') || line.starts_with("-----")) continue;
    std::istringstream words(line.substr(0, line.find("   ", 7)));
    for (std::string word; words >> word;) {
      if (word.ends_with(',')) word.pop_back();
      if (word.starts_with('-')) flags.insert(word);
    }
  }
  return flags;
}

TEST(Help, HasTheLayoutOfLlamaServer) {
  const std::string help = help_text();
  EXPECT_TRUE(
      help.starts_with("----- common params -----\n\n"
                       "-h,    --help, --usage                  print this text and leave\n"));
  EXPECT_NE(help.find("\n\n\n----- sampling params -----\n\n"), std::string::npos);
  EXPECT_NE(help.find("\n\n\n----- example-specific params -----\n\n"), std::string::npos);
  // Padding after a short first name, text in column 40, default and variable at the end.
  EXPECT_NE(help.find("\n-c,    --ctx-size N                     size of the context"),
            std::string::npos);
  EXPECT_NE(help.find("(default: 0, 0 = loaded from model)\n"
                      "                                        (env: LLAMA_ARG_CTX_SIZE)\n"),
            std::string::npos);
  // Names that leave no room put the text on the next line.
  EXPECT_NE(help.find("\n-kvu,  --kv-unified, -no-kvu, --no-kv-unified\n"
                      "                                        one KV pool"),
            std::string::npos);
  EXPECT_NE(help.find("\n--sampler-seq, --sampling-seq SEQUENCE\n"), std::string::npos);
  EXPECT_NE(help.find("\n-lv,   --verbosity, --log-verbosity N   what is logged"),
            std::string::npos);
  EXPECT_NE(help.find("\n--temp, --temperature N                 temperature (default: 0.80, "),
            std::string::npos);
  EXPECT_NE(help.find("\n--metrics                               serve"), std::string::npos);
}

TEST(Help, EveryLineFits) {
  for (const std::string& line : lines_of(help_text())) {
    EXPECT_LE(line.size(), static_cast<std::size_t>(help_columns)) << line;
    EXPECT_TRUE(line.empty() || line.back() != ' ') << line;
    EXPECT_EQ(line.find('{' + std::string("default}")), std::string::npos) << line;
  }
  EXPECT_GT(lines_of(help_text(70)).size(), lines_of(help_text()).size());
  EXPECT_EQ(flags_in(help_text(70)), flags_in(help_text()));
}

TEST(Help, ListsWhatWorksAndNothingElse) {
  const std::string help = help_text();
  const auto flags = flags_in(help);
  for (const Row* row : table()) {
    const bool works = is_supported(*row) || row->support == Support::fixed;
    for (const std::string_view name : row->names) {
      EXPECT_EQ(flags.contains(name), works) << name;
    }
    for (const std::string_view name : row->off_names) {
      EXPECT_EQ(flags.contains(name), is_supported(*row)) << name;
    }
    if (works && !row->env.empty()) {
      EXPECT_NE(help.find("(env: " + std::string(row->env) + ")"), std::string::npos) << row->env;
    }
  }
  // A front end takes this name as a promise.
  EXPECT_NE(help.find("preempt-ram"), std::string::npos);
}

TEST(Docs, AreUpToDate) {
  const std::string path = FERMATA_SOURCE_DIR "/docs/settings.md";
  const std::string expected = settings_markdown();
  if (std::getenv("FERMATA_UPDATE_DOCS") != nullptr) std::ofstream(path) << expected;
  std::ifstream file(path);
  std::stringstream found;
  found << file.rdbuf();
  EXPECT_TRUE(found.str() == expected)
      << "docs/settings.md is not what the table of settings says. Make it anew with\n"
         "  FERMATA_UPDATE_DOCS=1 build/release/tests/settings_test --gtest_filter='Docs.*'";
}

TEST(Docs, NameEverySetting) {
  const std::string docs = settings_markdown();
  for (const Row* row : table()) {
    EXPECT_NE(docs.find(title(*row)), std::string::npos) << title(*row);
    EXPECT_NE(docs.find(row->env), std::string::npos) << row->env;
  }
  const auto later = docs.find("## Not supported yet");
  ASSERT_NE(later, std::string::npos);
  EXPECT_GT(docs.find("--log-prompts-dir"), later);
}

TEST(Docs, TablesHaveAsManyCellsAsTheirHead) {
  std::size_t cells = 0;
  for (std::string line : lines_of(settings_markdown())) {
    if (!line.starts_with('|')) {
      cells = 0;
      continue;
    }
    for (auto at = line.find("\\|"); at != std::string::npos; at = line.find("\\|")) {
      line.replace(at, 2, "/");
    }
    const auto bars = static_cast<std::size_t>(std::ranges::count(line, '|'));
    if (cells == 0) cells = bars;
    EXPECT_EQ(bars, cells) << line;
  }
}

}  // namespace
}  // namespace fermata::settings
