// Exact bytes of cells outside the pool, in RAM: of parked sequences, mirrors of running ones, and
// conversations that nobody computes. Counts them against their budgets, stores equal blocks once,
// and keeps buffers for the next copy, since memory that was touched before is filled several times
// faster.
#pragma once

#include "base/byte_buffer.h"
#include "base/types.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

namespace fermata::kv {

// Bytes that are held for several reasons are charged once, to the first of: parked, mirror,
// cached, passing.
enum class Hold : std::uint8_t {
  mirror,   // Of a running sequence: a copy of what is in the cells too. May be dropped.
  parked,   // The only copy.
  cached,   // Of a conversation that nobody computes: for whoever goes on from it.
  passing,  // Of a parked sequence, on the way to what is slower than RAM, or back.
};
inline constexpr std::size_t holds = 4;

// None: no limit.
struct Budgets {
  std::optional<Bytes> preempt;          // Parked and mirrored bytes together.
  std::optional<Bytes> cache{Bytes(0)};  // Cached bytes.
  Bytes passing{0};                      // Passing bytes; 0: there is nothing slower than RAM.
};

class Vault;

// A share of some stored bytes; they go with the last share. Move-only.
class Piece {
 public:
  Piece() = default;
  Piece(Piece&& other) noexcept;
  Piece& operator=(Piece&& other) noexcept;
  Piece(const Piece&) = delete;
  Piece& operator=(const Piece&) = delete;
  ~Piece();

  std::span<const std::byte> bytes() const;
  Tokens tokens() const { return tokens_; }
  Bytes size() const { return Bytes(static_cast<std::int64_t>(bytes().size())); }
  Hold hold() const { return hold_; }
  // May charge the bytes to another budget: see Vault::has_room.
  void hold_as(Hold hold);
  // Another share of the same bytes.
  Piece share() const;
  // Whether there is another share of the same bytes.
  bool is_shared() const;
  bool is_same(const Piece& other) const { return stored_ != nullptr && stored_ == other.stored_; }

 private:
  friend class Vault;
  struct Stored;
  Piece(Vault& vault, Stored& stored, Hold hold, Tokens tokens)
      : vault_(&vault), stored_(&stored), hold_(hold), tokens_(tokens) {}
  void let_go();

  Vault* vault_ = nullptr;
  Stored* stored_ = nullptr;
  Hold hold_ = Hold::mirror;
  Tokens tokens_;
};

// The scheduler thread's own. Outlives its pieces.
class Vault {
 public:
  explicit Vault(const Budgets& budgets);
  ~Vault();
  Vault(const Vault&) = delete;
  Vault& operator=(const Vault&) = delete;

  // For about so many bytes: one that was used before where there is one that fits.
  ByteBuffer buffer(Bytes expected);
  // Only one that was used before.
  std::optional<ByteBuffer> spare(Bytes expected);
  // Takes the buffer back for a later copy, within the budget and a fixed limit.
  void give_back(ByteBuffer buffer);

  // REQUIRES: has_room(the size of `bytes`, hold). With `once`, bytes that are stored already are
  // not stored again.
  Piece put(ByteBuffer bytes, Tokens tokens, Hold hold, bool once);

  Bytes parked() const { return charged_[index(Hold::parked)]; }
  Bytes mirrored() const { return charged_[index(Hold::mirror)]; }
  Bytes cached() const { return charged_[index(Hold::cached)]; }
  Bytes passing() const { return charged_[index(Hold::passing)]; }
  bool has_slower_tier() const { return budgets_.passing > Bytes(0); }
  Bytes passing_max() const { return budgets_.passing; }
  Bytes passing_left() const { return std::max(budgets_.passing - passing(), Bytes(0)); }
  bool has_room(Bytes more, Hold hold) const;

 private:
  friend class Piece;
  void count(const Piece::Stored& stored, int sign);
  void release(Piece::Stored& stored);
  Piece::Stored* find_equal(const ByteBuffer& bytes, std::uint64_t digest);

  static constexpr std::size_t index(Hold hold) { return static_cast<std::size_t>(hold); }
  bool spares_too_much() const;

  const Budgets budgets_;
  std::array<Bytes, holds> charged_{};  // By Hold.
  Bytes spare_{0};
  std::vector<ByteBuffer> spares_;  // The one given back last is at the end.
  std::unordered_map<Piece::Stored*, std::unique_ptr<Piece::Stored>> stored_;
  std::unordered_multimap<std::uint64_t, Piece::Stored*> by_digest_;
};

}  // namespace fermata::kv
