// A folder for one test, pages with bytes that their seed tells, and a system that refuses writes.
#pragma once

#include "base/clock.h"
#include "base/random.h"
#include "store/files.h"
#include "store/keeper.h"
#include "unit/store/test_folder.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace fermata::store {

inline std::vector<TokenId> tokens_of(std::uint64_t seed, std::size_t n) {
  Random random(seed);
  std::vector<TokenId> out(n);
  for (TokenId& token : out) token = TokenId{static_cast<std::int32_t>(random.between(0, 999))};
  return out;
}

inline std::vector<std::byte> bytes_of(std::uint64_t seed, std::size_t n) {
  Random random(seed);
  std::vector<std::byte> out(n);
  for (std::byte& b : out) b = static_cast<std::byte>(random.between(0, 255));
  return out;
}

// A short name for one; of "": nobody.
inline Owner owner_of(std::string_view name) {
  Owner out;
  std::memcpy(out.bytes.data(), name.data(), std::min(name.size(), out.bytes.size()));
  return out;
}

// A page to be stored, with its bytes.
struct Given {
  Draft draft;
  std::vector<std::vector<std::byte>> bytes;

  std::vector<BlockBytes> blocks() const {
    std::vector<BlockBytes> out;
    for (const std::vector<std::byte>& block : bytes) out.push_back({block, nullptr});
    return out;
  }
};

// Equal tokens have equal bytes, so that pages with a common beginning share blocks.
inline Given page_of(std::vector<TokenId> tokens, std::size_t block_size = 500,
                     Kind kind = Kind::blocks) {
  Given out;
  out.draft.kind = kind;
  out.draft.price_seconds = 1;
  out.draft.tokens = std::move(tokens);
  const auto n = Tokens(static_cast<std::int64_t>(out.draft.tokens.size()));
  const std::vector<BlockKey> chain = chain_of(root_key({}, {}, kind), out.draft.tokens);
  for (std::size_t i = 0; i < block_count(kind, n); ++i) {
    const std::uint64_t seed =
        std::hash<BlockKey>{}(kind == Kind::blocks ? chain[i] : chain.back());
    out.bytes.push_back(bytes_of(seed, block_size));
  }
  return out;
}
inline Given page_of(std::uint64_t seed, std::size_t n, std::size_t block_size = 500) {
  return page_of(tokens_of(seed, n), block_size);
}
inline Given named(Given given, std::string name) {
  given.draft.name = std::move(name);
  return given;
}

// Lets so many changes happen; then everything fails as if the process had ended, or as a full
// disk.
class StopWrites final : public FileGate {
 public:
  static constexpr std::int64_t never = std::int64_t{1} << 60;
  explicit StopWrites(std::int64_t after = never, int error = EIO) : left_(after), error_(error) {}

  int ask(FileOp op, std::size_t& bytes) override {
    ++asked_;
    if (left_ > 0) {
      --left_;
      return 0;
    }
    // The write that meets the end is done in part.
    if (op == FileOp::write && !stopped_) bytes /= 2;
    stopped_ = true;
    // A full disk still lets go of files.
    if (error_ == ENOSPC && (op == FileOp::remove || op == FileOp::truncate)) return 0;
    return error_;
  }
  void allow(std::int64_t more) {
    left_ = more;
    stopped_ = false;
  }
  std::int64_t asked() const { return asked_; }
  bool stopped() const { return stopped_; }

 private:
  std::int64_t left_;
  const int error_;
  std::int64_t asked_ = 0;
  bool stopped_ = false;
};

// The bytes of a loaded page are those of a page of its tokens.
inline void expect_its_own_bytes(const Loaded& loaded, Kind kind, std::size_t block_size) {
  const Given right = page_of(loaded.tokens, block_size, kind);
  for (std::size_t i = 0; i < loaded.blocks.size(); ++i) {
    EXPECT_TRUE(std::equal(loaded.blocks[i].begin(), loaded.blocks[i].end(), right.bytes[i].begin(),
                           right.bytes[i].end()));
  }
}

struct KeeperRig {
  TestFolder folder;
  SteadyClock clock;
  std::int64_t now = 1'000'000;
  KeeperOptions options;
  std::unique_ptr<Keeper> keeper;

  explicit KeeperRig(KeeperOptions with = {}) : options(std::move(with)) { open(); }

  void open() {
    keeper.reset();
    options.folder = folder.path();
    options.now = [this] { return now; };
    auto opened = Keeper::open(options, clock);
    ASSERT_TRUE(opened.ok()) << opened.error();
    keeper = std::move(*opened);
  }
  // Why it cannot be opened, or nothing.
  std::string trouble() {
    keeper.reset();
    options.folder = folder.path();
    auto opened = Keeper::open(options, clock);
    return opened.ok() ? "" : opened.error();
  }
  Outcome save(const Given& given, Page* page = nullptr) {
    Page saved;
    const std::vector<BlockBytes> blocks = given.blocks();
    const Outcome outcome = keeper->save(given.draft, blocks, saved);
    if (page != nullptr) *page = saved;
    return outcome;
  }
  std::optional<Match> find(const std::vector<TokenId>& tokens, Kind kind = Kind::blocks) {
    return keeper->find({}, {}, kind, tokens);
  }
  // Loads what fits the given page best and compares every byte of it.
  Outcome check(const Given& given) {
    const Draft& draft = given.draft;
    const auto match = keeper->find(draft.owner, draft.fingerprint, draft.kind, draft.tokens);
    if (!match) return Outcome::missing;
    Loaded loaded;
    const Outcome outcome = keeper->load(match->page, draft.fingerprint, match->blocks, loaded);
    if (outcome != Outcome::done) return outcome;
    EXPECT_EQ(loaded.blocks.size(), match->blocks);
    EXPECT_TRUE(std::equal(draft.tokens.begin(), draft.tokens.begin() + match->tokens.value,
                           loaded.tokens.begin()));
    expect_its_own_bytes(loaded, draft.kind, given.bytes[0].size());
    return outcome;
  }
};

}  // namespace fermata::store
