// A block's bytes as a tier gives them: they are hashed while the caches hold them, and while the
// medium brings the next ones.
#pragma once

#include "store/page.h"

#include <memory>
#include <span>

struct XXH3_state_s;

namespace fermata::store {

// Of one thread. The bytes outlive it.
class Intake {
 public:
  Intake(const Fingerprint& fingerprint, std::span<std::byte> bytes);

  // Where they go: all of the block.
  std::span<std::byte> bytes() const { return bytes_; }
  // The first `count` are there and stay as they are. Never less than before.
  void came(std::size_t count);
  // content_id() of all the bytes, as they are now but for those that came before.
  ContentId id();

 private:
  struct Free {
    void operator()(XXH3_state_s* state) const;
  };

  std::span<std::byte> bytes_;
  std::size_t hashed_ = 0;
  std::unique_ptr<XXH3_state_s, Free> state_;
};

}  // namespace fermata::store
