// A page as one run of bytes, to be moved to another server: docs/store-format.md. Pure.
#pragma once

#include "store/format.h"

#include <cstddef>
#include <span>
#include <vector>

namespace fermata::store {

// The beginning and then the bytes of each of its blocks are the parcel. It is nobody's and has no
// name, no pin and no extra bytes.
std::vector<std::byte> parcel_beginning(Manifest manifest);

struct Parcel {
  Page page;
  std::vector<TokenId> tokens;
  std::vector<std::span<const std::byte>> blocks;  // block_count() of them, of `bytes`.
};

// Checks everything but what the bytes of the blocks mean. Takes as long as hashing them.
Decoded<Parcel> read_parcel(std::span<const std::byte> bytes);

}  // namespace fermata::store
