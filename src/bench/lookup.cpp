// lookup: the longest stored prefix among 10,000 pages of 8 blocks, and opening their folder.
#include "base/clock.h"
#include "base/random.h"
#include "bench/workloads.h"
#include "store/files.h"
#include "store/format.h"
#include "store/keeper.h"

#include <array>
#include <filesystem>
#include <memory>

#include <unistd.h>

namespace fermata::bench {
namespace {

constexpr double aim_us = 50.0;
constexpr std::size_t pages = 10'000, lookups = 2'000;
constexpr std::size_t full_blocks = 7, tail_tokens = 100;  // 8 blocks.
constexpr std::size_t shared_blocks = 2;                   // One system prompt for all.

std::vector<TokenId> tokens_of(std::uint64_t page) {
  std::vector<TokenId> out;
  Random random(page + 1);
  const auto shared = static_cast<std::int32_t>(shared_blocks * 256);
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(full_blocks * 256 + tail_tokens); ++i) {
    out.push_back(TokenId{i < shared ? i : static_cast<std::int32_t>(random.between(0, 30'000))});
  }
  return out;
}

// A folder as a server with so many pages leaves it, but for the files of blocks and manifests:
// opening reads neither.
int write_folder(const std::string& path) {
  store::Folder folder;
  int error = store::Folder::open(path, true, nullptr, folder);
  std::vector<std::byte> records;
  for (std::uint64_t i = 0; i < pages && error == 0; ++i) {
    const std::vector<TokenId> tokens = tokens_of(i);
    store::Entry entry;
    store::Page& page = entry.page;
    page.tokens = Tokens(static_cast<std::int64_t>(tokens.size()));
    entry.chain = store::chain_of(root_key(page.owner, page.fingerprint, page.kind), tokens);
    entry.tail_first = tokens[full_blocks * 256];
    entry.tail_last = tokens.back();
    entry.sequence = i + 1;
    page.end = entry.chain.back();
    for (std::size_t block = 0; block <= full_blocks; ++block) {
      store::BlockRef ref{{}, tokens_of_block(page.kind, page.tokens, block), Bytes(1000)};
      ref.id = store::content_id({}, entry.chain[block].bytes);
      entry.blocks.push_back(ref);
    }
    page.id.bytes = store::content_id({}, page.end.bytes).bytes;
    append_put(records, entry);
  }
  append_mark(records, store::RecordType::closed);
  const auto header = store::encode_journal_header();
  const std::array<std::span<const std::byte>, 2> pieces = {header, records};
  if (error == 0) error = folder.write_file("journal", pieces);
  return error;
}

struct Figures {
  double open_ms = 0;
  std::vector<double> lookup_us;
  std::string trouble;
};

Figures measure(const std::string& path) {
  Figures out;
  const SteadyClock clock;
  store::KeeperOptions options;
  options.folder = path;
  const Micros began = clock.now();
  auto keeper = store::Keeper::open(std::move(options), clock);
  out.open_ms = static_cast<double>((clock.now() - began).value) / 1e3;
  if (!keeper.ok()) {
    out.trouble = keeper.error();
    return out;
  }
  Random random(7);
  for (std::size_t i = 0; i < lookups; ++i) {
    std::vector<TokenId> tokens = tokens_of(
        static_cast<std::uint64_t>(random.between(0, static_cast<std::int64_t>(pages) - 1)));
    tokens.resize(tokens.size() + 50);
    const Micros start = clock.now();
    // Several, since one takes few ticks of the clock.
    constexpr int repeats = 10;
    std::optional<store::Match> match;
    for (int repeat = 0; repeat < repeats; ++repeat) {
      match = (*keeper)->find({}, {}, store::Kind::blocks, tokens);
    }
    out.lookup_us.push_back(static_cast<double>((clock.now() - start).value) / repeats);
    if (!match || match->blocks != full_blocks + 1) out.trouble = "a stored page was not found";
  }
  return out;
}

}  // namespace

Result<Json, std::string> run_lookup(const BenchOptions& options) {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("fermata-lookup-" + std::to_string(getpid())))
          .string();
  std::vector<double> medians, p99s, opens;
  std::string trouble;
  for (int pair = 0; pair < options.pairs && trouble.empty(); ++pair) {
    if (write_folder(path) != 0) trouble = "cannot write to " + path;
    const Figures figures = trouble.empty() ? measure(path) : Figures{};
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
    if (!figures.trouble.empty()) trouble = figures.trouble;
    if (!trouble.empty()) break;
    medians.push_back(median(figures.lookup_us));
    p99s.push_back(percentile(figures.lookup_us, 99.0));
    opens.push_back(figures.open_ms);
    progress("lookup round " + std::to_string(pair + 1) + ": median " +
             std::to_string(medians.back()) + " us, p99 " + std::to_string(p99s.back()) +
             " us; opened in " + std::to_string(opens.back()) + " ms");
  }
  if (!trouble.empty()) return Err(trouble);
  return Json{{"workload", "lookup"},
              {"ratio", median(medians) / aim_us},
              {"ratio_of", "finding the longest prefix among 10,000 pages of 8 blocks over 50 us"},
              {"lookup_us", median(medians)},
              {"lookup_p99_us", median(p99s)},
              {"open_ms", median(opens)},
              {"pages", pages},
              {"pairs", options.pairs}};
}

}  // namespace fermata::bench
