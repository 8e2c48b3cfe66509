#include "kv/vault.h"

#include "base/check.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>
#include <utility>

#include <xxhash.h>

namespace fermata::kv {
namespace {

// Of buffers that hold nothing, kept for the next copy.
constexpr Bytes spare_max{std::int64_t{256} << 20};
constexpr std::size_t spares_max = 256;

// Up to an eighth more, so that a tail that grew by some tokens finds the buffer of the last one.
std::size_t rounded(Bytes bytes) {
  const auto size = static_cast<std::size_t>(std::max<std::int64_t>(bytes.value, 1));
  const std::size_t grain = std::max<std::size_t>(std::bit_floor(size) / 8, 64);
  return (size + grain - 1) / grain * grain;
}

Bytes capacity(const ByteBuffer& buffer) {
  return Bytes(static_cast<std::int64_t>(buffer.capacity()));
}

}  // namespace

struct Piece::Stored {
  ByteBuffer bytes;
  std::uint64_t digest = 0;          // 0: may be stored a second time.
  std::array<int, holds> holders{};  // By Hold.

  int shares() const { return std::accumulate(holders.begin(), holders.end(), 0); }
  int& of(Hold hold) { return holders[static_cast<std::size_t>(hold)]; }
  Hold charged_as() const {
    for (const Hold hold : {Hold::parked, Hold::mirror, Hold::cached}) {
      if (holders[static_cast<std::size_t>(hold)] > 0) return hold;
    }
    return Hold::passing;
  }
};

Piece::Piece(Piece&& other) noexcept
    : vault_(std::exchange(other.vault_, nullptr)),
      stored_(std::exchange(other.stored_, nullptr)),
      hold_(other.hold_),
      tokens_(other.tokens_) {}

Piece& Piece::operator=(Piece&& other) noexcept {
  if (this == &other) return *this;
  let_go();
  vault_ = std::exchange(other.vault_, nullptr);
  stored_ = std::exchange(other.stored_, nullptr);
  hold_ = other.hold_;
  tokens_ = other.tokens_;
  return *this;
}

Piece::~Piece() { let_go(); }

std::span<const std::byte> Piece::bytes() const {
  if (stored_ == nullptr) return {};
  return stored_->bytes;
}

void Piece::hold_as(Hold hold) {
  if (stored_ == nullptr || hold == hold_) return;
  vault_->count(*stored_, -1);
  --stored_->of(hold_);
  ++stored_->of(hold);
  vault_->count(*stored_, 1);
  hold_ = hold;
}

Piece Piece::share() const {
  if (stored_ == nullptr) return {};
  vault_->count(*stored_, -1);
  ++stored_->of(hold_);
  vault_->count(*stored_, 1);
  return {*vault_, *stored_, hold_, tokens_};
}

bool Piece::is_shared() const { return stored_ != nullptr && stored_->shares() > 1; }

void Piece::let_go() {
  if (stored_ == nullptr) return;
  vault_->count(*stored_, -1);
  --stored_->of(hold_);
  if (stored_->shares() > 0) {
    vault_->count(*stored_, 1);
  } else {
    vault_->release(*stored_);
  }
  stored_ = nullptr;
}

Vault::Vault(const Budgets& budgets) : budgets_(budgets) {}

Vault::~Vault() { FERMATA_CHECK(stored_.empty(), "pieces outlive their vault"); }

ByteBuffer Vault::buffer(Bytes expected) {
  if (auto used = spare(expected)) return std::move(*used);
  ByteBuffer fresh;
  if (expected > Bytes(0)) (void)resize(fresh, rounded(expected));
  return fresh;
}

std::optional<ByteBuffer> Vault::spare(Bytes expected) {
  auto best = spares_.end();
  for (auto it = spares_.begin(); it != spares_.end(); ++it) {
    if (capacity(*it) < expected) continue;
    if (best == spares_.end() || capacity(*it) <= capacity(*best)) best = it;
  }
  // A much larger one would hide its size from the budget.
  if (best == spares_.end() || capacity(*best) > expected + expected / 4) return std::nullopt;
  spare_ -= capacity(*best);
  ByteBuffer out = std::move(*best);
  spares_.erase(best);
  return out;
}

void Vault::give_back(ByteBuffer buffer) {
  if (buffer.capacity() == 0) return;
  spare_ += capacity(buffer);
  spares_.push_back(std::move(buffer));
  while (!spares_.empty() && spares_too_much()) {
    spare_ -= capacity(spares_.front());
    spares_.erase(spares_.begin());
  }
}

bool Vault::spares_too_much() const {
  if (spares_.size() > spares_max || spare_ > spare_max) return true;
  if (!budgets_.preempt || !budgets_.cache) return false;
  return parked() + mirrored() + cached() + spare_ > *budgets_.preempt + *budgets_.cache;
}

bool Vault::has_room(Bytes more, Hold hold) const {
  if (hold == Hold::cached) return !budgets_.cache || cached() + more <= *budgets_.cache;
  if (hold == Hold::passing) return passing() + more <= budgets_.passing;
  return !budgets_.preempt || parked() + mirrored() + more <= *budgets_.preempt;
}

Piece Vault::put(ByteBuffer bytes, Tokens tokens, Hold hold, bool once) {
  FERMATA_CHECK(has_room(Bytes(static_cast<std::int64_t>(bytes.size())), hold), "over the budget");
  const std::uint64_t digest = once ? XXH3_64bits(bytes.data(), bytes.size()) | 1U : 0;
  Piece::Stored* stored = once ? find_equal(bytes, digest) : nullptr;
  if (stored != nullptr) {
    count(*stored, -1);
    give_back(std::move(bytes));
  } else {
    auto made = std::make_unique<Piece::Stored>();
    stored = made.get();
    stored->bytes = std::move(bytes);
    stored->digest = digest;
    stored_.emplace(stored, std::move(made));
    if (once) by_digest_.emplace(digest, stored);
  }
  ++stored->of(hold);
  count(*stored, 1);
  return {*this, *stored, hold, tokens};
}

Piece::Stored* Vault::find_equal(const ByteBuffer& bytes, std::uint64_t digest) {
  const auto [first, last] = by_digest_.equal_range(digest);
  for (auto it = first; it != last; ++it) {
    const ByteBuffer& other = it->second->bytes;
    if (other.size() == bytes.size() &&
        std::memcmp(other.data(), bytes.data(), bytes.size()) == 0) {
      return it->second;
    }
  }
  return nullptr;
}

void Vault::count(const Piece::Stored& stored, int sign) {
  const auto size = static_cast<std::int64_t>(stored.bytes.size());
  charged_[index(stored.charged_as())] += Bytes(sign * size);
}

void Vault::release(Piece::Stored& stored) {
  const auto [first, last] = by_digest_.equal_range(stored.digest);
  const auto named = std::find_if(first, last, [&](const auto& e) { return e.second == &stored; });
  if (named != last) by_digest_.erase(named);
  const auto found = stored_.find(&stored);
  ByteBuffer bytes = std::move(found->second->bytes);
  stored_.erase(found);
  give_back(std::move(bytes));
}

}  // namespace fermata::kv
