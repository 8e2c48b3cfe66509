// Texts as vectors: /embedding and /embeddings in llama-server's shape, /v1/embeddings in OpenAI's.
#pragma once

#include "api/context.h"
#include "api/exchange.h"
#include "api/fields.h"
#include "engine/embedder.h"

#include <memory>
#include <string>

namespace fermata::api {

std::unique_ptr<Exchange> native_embeddings(const Json& body, const Context& context);
std::unique_ptr<Exchange> openai_embeddings(const Json& body, const Context& context);

// Divides a vector as --embd-normalize says: -1 by nothing, 0 by its largest value (so that it fits
// 16-bit numbers), 1 by the sum of values, 2 by its length, above by that norm. Zeros stay zeros.
void normalize(engine::Vector& vector, std::int64_t how);

// The bytes of its numbers, least significant first, as base64.
std::string base64_of(const engine::Vector& vector);

}  // namespace fermata::api
