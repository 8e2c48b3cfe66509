// Bytes that are sent in one go without being copied together.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include <boost/asio/buffer.hpp>

namespace fermata::http {

class OutputBytes {
 public:
  OutputBytes(std::string_view first, std::string_view second, std::string_view third)
      : parts_{to_buffer(first), to_buffer(second), to_buffer(third)} {}

  const std::array<boost::asio::const_buffer, 3>& buffers() const { return parts_; }
  std::size_t size() const { return boost::asio::buffer_size(parts_); }
  void consume(std::size_t n) {
    for (boost::asio::const_buffer& part : parts_) {
      const std::size_t here = n < part.size() ? n : part.size();
      part += here;
      n -= here;
    }
  }

 private:
  static boost::asio::const_buffer to_buffer(std::string_view bytes) {
    return {bytes.data(), bytes.size()};
  }
  std::array<boost::asio::const_buffer, 3> parts_;
};

}  // namespace fermata::http
