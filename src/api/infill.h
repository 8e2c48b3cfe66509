// POST /infill: text between a prefix and a suffix, for models whose vocabulary marks the parts.
#pragma once

#include "api/context.h"
#include "api/exchange.h"
#include "api/fields.h"

#include <memory>
#include <vector>

namespace fermata::api {

// What a prompt for infill is made of, as tokens.
struct InfillParts {
  std::vector<TokenId> prefix, suffix;
  std::vector<TokenId> prompt;  // The beginning of what comes between.
  std::vector<TokenId> extra;   // Other files, the most important ones last.
};

// How much of the parts goes in.
struct InfillLimits {
  Tokens batch;  // Three quarters for the prefix, one for suffix and prompt.
  Tokens extra;
  bool suffix_first = false;
};

// The parts in llama-server's order: extra files, begin of text, prefix with the prompt, suffix,
// and the mark of the middle. The end of the prefix and the beginning of the suffix stay, and of
// the other files the end. REQUIRES: the vocabulary has the three marks.
std::vector<TokenId> infill_prompt(const engine::SpecialTokens& special, InfillParts parts,
                                   const InfillLimits& limits);

std::unique_ptr<Exchange> infill(const Json& body, const Context& context);

}  // namespace fermata::api
