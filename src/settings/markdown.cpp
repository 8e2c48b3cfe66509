#include "settings/describe.h"
#include "settings/help.h"
#include "settings/table.h"
#include "settings/values.h"

#include <spdlog/fmt/fmt.h>

namespace fermata::settings {
namespace {

constexpr std::string_view introduction = R"(# Settings

This page is made from the table in `src/settings/`:
`FERMATA_UPDATE_DOCS=1 build/release/tests/settings_test --gtest_filter='Docs.*'`

Names, variables and defaults are those of llama-server. A setting comes from its default, then from
its environment variable, then from the command line; the later one counts.

* Values follow their flag as the next word. After a long name `--name=value` works too. A word that
  is itself a flag is never taken as a value, unless it is written with `=`.
* `_` in a long name stands for `-`.
* On/off settings take no value on the command line; most have a twin that turns them off. In
  variables (and after `=`) 1, true, on, enabled and 0, false, off, disabled are understood. Where a
  twin exists, `LLAMA_ARG_NO_X`, set to anything, turns `LLAMA_ARG_X` off.
* An empty variable counts as not set.
* Of a flag given twice the last one counts, with a warning; so does the last one of
  `--chat-template` and `--chat-template-file`. Uses of `--host` and of `--api-key` add up.
* An unknown flag, a bad value, a missing value or a setting that is not supported yet ends the
  program with one line that says what is wrong and the mend. An unknown `LLAMA_ARG_*` variable is a
  warning.
* Numbers are read strictly: `12abc` is no number here.

What differs from llama-server:

* `--kv-unified` stays on when `-np` is given. `--no-kv-unified` turns it off.
* Of `-b` and `-ub` the one that nobody gave gives way to the other. Both given, `-ub` above `-b` is
  a fault.
* `--help` lists only what works, so a tool that looks for a flag there finds the truth.
* `HF_TOKEN` is not read, because nothing is downloaded.
* Configuration files of llama.cpp are not read.

*Change* says what changing the setting of a running server costs: **live** takes effect between two
steps, **rebuild** needs a new context (conversations pause), **start** needs a new process.
)";

struct Chapter {
  Group group;
  std::string_view title;
};
constexpr Chapter chapters[] = {{Group::general, "General"},
                                {Group::model, "Model"},
                                {Group::context, "Context and KV cache"},
                                {Group::batch, "Batching and generation"},
                                {Group::threads, "Threads"},
                                {Group::sampling, "Sampling defaults"},
                                {Group::chat, "Chat"},
                                {Group::server, "Server"},
                                {Group::security, "Keys, TLS, CORS"},
                                {Group::limits, "Limits"},
                                {Group::logging, "Logging"},
                                {Group::preemption, "Preemption and pages"},
                                {Group::sources, "Model sources"},
                                {Group::devices, "Devices and weights"},
                                {Group::rope, "Rope"},
                                {Group::adapters, "Adapters"},
                                {Group::media, "Images, sound, video"},
                                {Group::embedding, "Embeddings and ranking"},
                                {Group::interface, "Web interface and tools"},
                                {Group::router, "Router"},
                                {Group::speculation, "Speculation"}};

std::string cell(std::string_view text) {
  return replaced(replaced(text, "|", "\\|"), "\n", "<br/>");
}

std::string code(std::string_view text) {
  return text.empty() ? "" : fmt::format("`{}`", cell(text));
}

std::string names_words(const Row& row) {
  std::string out = fmt::format("{}", fmt::join(accepted_names(row), ", "));
  if (!row.placeholder.empty()) out += fmt::format(" {}", row.placeholder);
  return code(out);
}

std::string_view change_word(Change change) {
  switch (change) {
    case Change::live:
      return "live";
    case Change::rebuild:
      return "rebuild";
    case Change::start:
      return "start";
  }
  return "";
}

// Flags need no words for it.
std::string allowed_words(const Row& row) {
  if (row.placeholder.empty()) return "";
  const std::string unit = row.unit.empty() ? "" : fmt::format(" ({})", row.unit);
  return allowed_text(row) + unit;
}

std::string chapter_text(const Chapter& chapter) {
  std::string out;
  for (const Row* row : table()) {
    const bool works = row->support == Support::supported || row->support == Support::fixed;
    if (!works || row->group != chapter.group) continue;
    const bool is_command = row->group == Group::general;
    out +=
        fmt::format("| {} | {} | {} | {} | {} |\n", names_words(*row), code(row->env),
                    cell(meaning(*row)), cell(allowed_words(*row)),
                    is_command || row->support == Support::fixed ? "" : change_word(row->change));
  }
  if (out.empty()) return out;
  return fmt::format(
      "\n## {}\n\n| setting | variable | meaning | allowed | change |\n|---|---|---|---|---|\n{}",
      chapter.title, out);
}

// One line for each row of this kind, sorted by chapter.
std::string list_of(Support support) {
  std::string out;
  for (const Chapter& chapter : chapters) {
    for (const Row* row : table()) {
      if (row->support != support || row->group != chapter.group) continue;
      const std::string_view last = support == Support::not_yet ? row->only : row->help;
      out += fmt::format("| {} | {} | {} | {} |\n", chapter.title, names_words(*row),
                         code(row->env), support == Support::not_yet ? code(last) : cell(last));
    }
  }
  return out;
}

}  // namespace

std::string settings_markdown() {
  std::string out(introduction);
  for (const Chapter& chapter : chapters) out += chapter_text(chapter);
  out += fmt::format(
      "\n## Not supported yet\n\n"
      "Using one of these is a fault, as flag and as variable; nothing is ignored in silence. "
      "Where a "
      "value is\nnamed, that value is accepted, because it asks for what happens anyway (flags: "
      "the "
      "twin).\n\n"
      "| chapter | setting | variable | accepted value |\n|---|---|---|---|\n{}",
      list_of(Support::not_yet));
  out += fmt::format(
      "\n## Accepted without effect\n\n"
      "Deprecated in llama-server; a warning says so.\n\n"
      "| chapter | setting | variable | |\n|---|---|---|---|\n{}",
      list_of(Support::no_effect));
  out += fmt::format(
      "\n## Removed\n\n"
      "llama-server refuses these as well.\n\n"
      "| chapter | setting | variable | instead |\n|---|---|---|---|\n{}",
      list_of(Support::removed));
  return out;
}

}  // namespace fermata::settings
