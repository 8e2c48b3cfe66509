// Little-endian numbers and digests to bytes and back. A reader that ran short says so once, at the
// end, and gives zeros meanwhile.
#pragma once

#include "store/page.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

namespace fermata::store {

class ByteWriter {
 public:
  explicit ByteWriter(std::vector<std::byte>& out) : out_(out) {}

  template <class T>
  requires std::is_arithmetic_v<T>
  void number(T value) {
    const auto at = out_.size();
    out_.resize(at + sizeof value);
    std::memcpy(out_.data() + at, &value, sizeof value);
  }
  void bytes(std::span<const std::byte> from) { out_.insert(out_.end(), from.begin(), from.end()); }
  void text(std::string_view from) { bytes(std::as_bytes(std::span(from))); }
  void pad_to(std::size_t multiple) {
    out_.resize((out_.size() + multiple - 1) / multiple * multiple);
  }
  std::size_t size() const { return out_.size(); }

 private:
  std::vector<std::byte>& out_;
};

class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : left_(bytes) {}

  template <class T>
  requires std::is_arithmetic_v<T> T number() {
    T value{};
    const std::span<const std::byte> from = bytes(sizeof value);
    if (!from.empty()) std::memcpy(&value, from.data(), sizeof value);
    return value;
  }
  // Empty when there are not so many.
  std::span<const std::byte> bytes(std::size_t n) {
    if (n > left_.size()) {
      good_ = false;
      left_ = {};
      return {};
    }
    const std::span<const std::byte> out = left_.first(n);
    left_ = left_.subspan(n);
    return out;
  }
  void digest(std::span<std::byte> into) {
    const std::span<const std::byte> from = bytes(into.size());
    if (!from.empty()) std::memcpy(into.data(), from.data(), from.size());
  }

  bool good() const { return good_; }
  std::size_t left() const { return left_.size(); }

 private:
  std::span<const std::byte> left_;
  bool good_ = true;
};

}  // namespace fermata::store
