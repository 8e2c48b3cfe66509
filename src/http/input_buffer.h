// Bytes that came from a socket and were not consumed yet, in one piece.
#pragma once

#include "base/check.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>

namespace fermata::http {

// prepare() lends space to a read that may be under way while bytes before it are consumed; nothing
// moves until the read is committed. (A Beast flat_buffer would move its ends under the read.)
class InputBuffer {
 public:
  std::string_view view() const { return {data_.get() + begin_, end_ - begin_}; }
  bool empty() const { return begin_ == end_; }
  std::size_t size() const { return end_ - begin_; }

  // REQUIRES: n <= size().
  void consume(std::size_t n) {
    FERMATA_CHECK(n <= size(), "more consumed than there is");
    begin_ += n;
  }

  // Space for `n` more bytes, valid until commit(). An empty buffer much larger than needed gives
  // its memory back. REQUIRES: the last prepare() was committed.
  std::span<char> prepare(std::size_t n) {
    FERMATA_CHECK(!lent_, "one read at a time");
    lent_ = true;
    const std::size_t kept = size();
    if (kept == 0) begin_ = end_ = 0;
    const bool oversized = kept == 0 && capacity_ >= 4 * n;
    if (end_ + n > capacity_ || oversized) relocate(kept + n);
    return {data_.get() + end_, n};
  }

  // Ends the loan; `n` bytes have been written to its front.
  void commit(std::size_t n) {
    FERMATA_CHECK(lent_, "nothing was prepared");
    FERMATA_CHECK(end_ + n <= capacity_, "more written than was lent");
    lent_ = false;
    end_ += n;
  }

 private:
  void relocate(std::size_t needed) {
    const std::size_t kept = size();
    if (needed <= capacity_ && kept > 0) {
      std::memmove(data_.get(), data_.get() + begin_, kept);
    } else {
      const std::size_t larger = kept > 0 ? std::max(needed, 2 * capacity_) : needed;
      auto fresh = std::make_unique_for_overwrite<char[]>(larger);
      if (kept > 0) std::memcpy(fresh.get(), data_.get() + begin_, kept);
      data_ = std::move(fresh);
      capacity_ = larger;
    }
    begin_ = 0;
    end_ = kept;
  }

  std::unique_ptr<char[]> data_;
  std::size_t capacity_ = 0;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  bool lent_ = false;
};

}  // namespace fermata::http
