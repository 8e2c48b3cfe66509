// A vocabulary of single bytes with a few control tokens: every multi-byte character is split over
// several tokens, and any text can be forced.
#pragma once

#include "engine/vocabulary.h"

#include <memory>

namespace fermata::engine::fake {

inline constexpr std::int32_t n_byte_tokens = 256;
inline constexpr TokenId eos_token{256};
inline constexpr TokenId turn_begin_token{257};
inline constexpr TokenId turn_end_token{258};  // Ends a reply, like eos.
inline constexpr std::int32_t n_vocab = 259;

// The samplers of this vocabulary read the engine's hash of a sequence's cells: temperature 0 takes
// the token it names, a higher one mixes in the seeded state. A grammar of the one form
// `root ::= "TEXT"` (escapes \" \\ \n) forces TEXT and then the end; `root ::= ()` is a dead end at
// the first token; anything else is a SamplerFault.
// The template writes "<turn_begin>ROLE\nCONTENT<turn_end>" for each message.
std::unique_ptr<Vocabulary> make_vocabulary();

}  // namespace fermata::engine::fake
