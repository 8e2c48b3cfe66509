#include "app/pages.h"

#include "base/clock.h"
#include "base/log.h"
#include "store/keeper.h"

#include <cinttypes>
#include <cstdio>
#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace fermata::app {
namespace {

using store::Finding;
using store::Keeper;
using store::Page;

std::string time_of(std::int64_t seconds) {
  const std::time_t at = seconds;
  std::tm parts{};
  char text[32];
  if (gmtime_r(&at, &parts) == nullptr) return std::to_string(seconds);
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

std::string shown_name(const Page& page) { return page.name.empty() ? "-" : page.name; }

std::unique_ptr<Keeper> open(const std::string& folder, bool read_only) {
  static const SteadyClock clock;
  store::KeeperOptions options;
  options.folder = folder;
  options.read_only = read_only;
  auto keeper = Keeper::open(std::move(options), clock);
  if (keeper.ok()) return std::move(*keeper);
  std::fprintf(stderr, "error: %s\n", keeper.error().c_str());
  return nullptr;
}

void print_line(const Page& page) {
  std::printf("%s  %8" PRId64 "  %12" PRId64 "  %-8s  %s  %s%s\n", to_hex(page.id).c_str(),
              page.tokens.value, page.bytes.value, std::string(name_of(page.kind)).c_str(),
              time_of(page.last_used).c_str(), shown_name(page).c_str(),
              page.pinned ? "  (pinned)" : "");
}

void print_findings(const std::vector<Finding>& findings) {
  for (const Finding& finding : findings) {
    std::printf("%-8s  %s: %s\n", std::string(name_of(finding.outcome)).c_str(),
                finding.file.c_str(), finding.what.c_str());
  }
}

int list(const std::string& folder) {
  const auto keeper = open(folder, true);
  if (keeper == nullptr) return 1;
  std::printf("%-32s  %8s  %12s  %-8s  %-20s  %s\n", "page", "tokens", "bytes", "kind", "last used",
              "name");
  for (const Page& page : keeper->list(std::nullopt, {})) print_line(page);
  const store::OpenReport& report = keeper->opened();
  std::printf("%zu pages, %zu different blocks, %" PRId64 " bytes%s%s\n", report.pages,
              report.blocks, report.bytes.value, report.rebuilt ? "; the journal is damaged" : "",
              report.unclean ? "; not closed by the last server" : "");
  return 0;
}

int verify(const std::string& folder) {
  const auto keeper = open(folder, true);
  if (keeper == nullptr) return 1;
  const std::vector<Finding> findings = keeper->verify();
  print_findings(findings);
  const bool journal = keeper->opened().rebuilt;
  if (journal)
    std::printf("%-8s  journal: a server would find the pages by their manifests\n", "damaged");
  std::printf("%zu pages, %zu blocks: %zu wrong\n", keeper->opened().pages, keeper->opened().blocks,
              findings.size() + (journal ? 1 : 0));
  return findings.empty() && !journal ? 0 : 1;
}

int show(const std::string& folder, const std::string& which) {
  const auto keeper = open(folder, true);
  if (keeper == nullptr) return 1;
  int shown = 0;
  for (const Page& page : keeper->list(std::nullopt, {})) {
    if (which != page.name && which != to_hex(page.id)) continue;
    ++shown;
    std::printf("page         %s\nname         %s\nowner        %s\nfingerprint  %s\n",
                to_hex(page.id).c_str(), shown_name(page).c_str(), to_hex(page.owner).c_str(),
                store::to_hex(page.fingerprint).c_str());
    std::printf("kind         %s\nreason       %s\npinned       %s\ntokens       %" PRId64
                "\nbytes        %" PRId64 "\nprice        %.3f s of prefill\n",
                std::string(name_of(page.kind)).c_str(), std::string(name_of(page.reason)).c_str(),
                page.pinned ? "yes" : "no", page.tokens.value, page.bytes.value,
                page.price_seconds);
    std::printf("created      %s\nlast used    %s\n", time_of(page.created).c_str(),
                time_of(page.last_used).c_str());
  }
  if (shown == 0) std::fprintf(stderr, "error: no page has the name or id '%s'\n", which.c_str());
  return shown == 0 ? 1 : 0;
}

int collect(const std::string& folder) {
  const auto keeper = open(folder, false);
  if (keeper == nullptr) return 1;
  const store::GcReport gc = keeper->gc();
  print_findings(gc.findings);
  std::printf("%zu files of no use removed (%" PRId64 " bytes), %zu foreign ones put aside\n",
              gc.removed, gc.bytes_removed.value, gc.quarantined);
  return gc.findings.empty() ? 0 : 1;
}

}  // namespace

int run_pages(std::span<const std::string_view> args) {
  CLI::App app(
      "Looks after a folder of saved conversations (--page-dir) that no server has open."
      "\nExit code 1: it cannot be opened, or something in it is wrong.",
      "fermata pages");
  std::string folder, which;
  const auto with_folder = [&](const char* name, const char* what) {
    CLI::App* command = app.add_subcommand(name, what);
    command->add_option("folder", folder, "what --page-dir names")->required();
    return command;
  };
  const CLI::App* ls = with_folder("ls", "every page, the last used first");
  const CLI::App* verifies = with_folder("verify", "read everything and compare every checksum");
  CLI::App* shows = with_folder("show", "all that is known of a page");
  shows->add_option("page", which, "its name or its id")->required();
  with_folder("gc", "remove files that nothing refers to, put foreign ones into quarantine/");
  app.require_subcommand(1);
  std::vector<std::string> words(args.rbegin(), args.rend());
  try {
    app.parse(std::move(words));
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (ls->parsed()) return list(folder);
  if (verifies->parsed()) return verify(folder);
  if (shows->parsed()) return show(folder, which);
  return collect(folder);
}

}  // namespace fermata::app
