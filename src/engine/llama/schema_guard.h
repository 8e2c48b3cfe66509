// JSON schemas come from clients, and the library turns them into grammars by recursion: a schema
// that refers to itself through allOf overflows its stack, one that doubles at every level never
// ends. They are walked here first.
#pragma once

#include <cstddef>
#include <string>

class common_json;

namespace fermata::engine::llama {

inline constexpr std::size_t schema_bytes_max = std::size_t{512} << 10;
inline constexpr std::size_t schema_members_max = 512;      // Of one object.
inline constexpr std::size_t schema_name_bytes_max = 1024;  // Of a property.
inline constexpr std::size_t schema_references_max = 512;   // Different ones.
inline constexpr long schema_visits_max = 100'000;          // Of sub-schemas, repeats included.

// Empty when the library can convert the schema; else what is wrong, in one line.
// REQUIRES: nested at most json_nesting_max deep.
std::string find_schema_fault(const common_json& schema);

// Takes out what the library cannot express or compile in reasonable time: patterns it does not
// understand, and counts above repeats_max. REQUIRES: nested at most json_nesting_max deep.
inline constexpr double repeats_max = 1000;
void relax_schema(common_json& schema);

}  // namespace fermata::engine::llama
