// The known word that somebody probably meant.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace fermata::settings {

// Letters to insert, delete, replace or swap with a neighbour to make one of the other.
std::size_t edit_distance(std::string_view a, std::string_view b);

// The first of the nearest words; empty when none is near enough to be a slip of the fingers.
std::string_view nearest(std::string_view word, std::span<const std::string_view> known);

}  // namespace fermata::settings
