// Contexts of the library, made from values that are known not to abort it.
#pragma once

#include "base/result.h"
#include "base/types.h"
#include "core/geometry.h"
#include "engine/llama/model.h"
#include "engine/model.h"

#include <cstddef>
#include <string>
#include <vector>

#include <llama-cpp.h>

namespace fermata::engine::llama {

// Whether sequences can share cells and move as ranges: plain attention in the pooled layout. Such
// a context has one sequence more than seats, as scratch.
bool has_scratch(const LlamaModel& model, Layout layout);

// REQUIRES: geometry without fault, n_ctx resolved.
llama_context_params context_params(const LlamaModel& model, const Geometry& geometry,
                                    const EngineOptions& options);

// Empty, or why the library would refuse, abort or exhaust the machine: one line.
std::string find_build_fault(const LlamaModel& model, const Geometry& geometry,
                             const EngineOptions& options);

// What a context of this shape will take, cells and work buffers: an estimate, rather high.
Bytes estimated_bytes(const LlamaModel& model, const Geometry& geometry,
                      const EngineOptions& options);

struct OneTokenState {
  std::vector<std::byte> bytes;  // As llama_state_seq_get_data writes them.
  Bytes partial_bytes;           // The part of them that is not one cell a token.
};
// Computes one token in a small context and returns what it left. Error: one line.
Result<OneTokenState, std::string> state_of_one_token(llama_model* model);

}  // namespace fermata::engine::llama
