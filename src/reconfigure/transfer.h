// Cells of one engine to another of the same model and KV types, in slices between steps.
#pragma once

#include "base/clock.h"
#include "engine/engine.h"
#include "kv/pool.h"

#include <optional>
#include <vector>

namespace fermata::reconfigure {

// The scheduler thread's own. Lives shorter than its engines and pool.
class Transfer {
 public:
  struct Item {
    Seat from, to;
  };
  // The seats of `to` are empty, and only the transfer touches them. Prefixes that seats share are
  // shared there as well.
  Transfer(engine::Engine& from, engine::Engine& to, const kv::Pool& pool,
           const std::vector<Item>& items, const Clock& clock, Tokens block);

  // Copies blocks for so long, one at least; idle seats to their end. What has changed meanwhile is
  // copied again. True: only a few tokens of those that grow are missing, or where ranges cannot be
  // moved all of theirs.
  bool advance(Micros budget);
  // Copies what is missing. Those that could not be copied are left out of the answer.
  std::vector<kv::Adopted> finish();

  Bytes moved() const { return moved_; }
  Micros out_time() const { return out_; }
  Micros in_time() const { return in_; }

 private:
  struct Copy {
    Item item;
    std::uint64_t version = 0;  // Of the seat, when the copy was begun.
    Tokens copied{0};
    std::optional<std::size_t> like = {};  // It begins with cells of that one.
    Tokens shared{0};
    bool failed = false;
  };

  void refresh();
  void start_over(std::size_t index);
  void share(std::size_t index);
  Tokens next_piece(const Copy& copy) const;
  bool copy_piece(Copy& copy, Tokens end);
  bool copy_block(Copy& copy, Tokens end);
  bool copy_whole(Copy& copy, Tokens length);
  void fail(std::size_t index);

  engine::Engine& from_;
  engine::Engine& to_;
  const kv::Pool& pool_;
  const Clock& clock_;
  const Tokens block_;
  std::vector<Copy> copies_;
  ByteBuffer buffer_;
  Bytes moved_{0};
  Micros out_{0}, in_{0};
};

}  // namespace fermata::reconfigure
