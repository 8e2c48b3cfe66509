#include "api/conversation.h"

#include "api/error.h"
#include "base/check.h"
#include "core/pages.h"

#include <array>

#include <fmt/format.h>
#include <openssl/evp.h>

namespace fermata::api {
namespace {

constexpr std::size_t id_bytes_max = 256;
constexpr const char* header_field = "X-Conversation-Id";

std::string hex_digest(std::string_view text) {
  std::array<unsigned char, 32> digest;
  const int done =
      EVP_Digest(text.data(), text.size(), digest.data(), nullptr, EVP_sha256(), nullptr);
  FERMATA_CHECK(done == 1, "OpenSSL has SHA-256");
  std::string out;
  for (const unsigned char byte : digest) out += fmt::format("{:02x}", byte);
  return out;
}

std::string read_from(const Fields& fields, std::string_view field) {
  const std::string id = fields.string(field, "");
  if (id.empty() || id.size() > id_bytes_max) {
    throw bad_request(fmt::format("{}: must be 1 to {} bytes", field, id_bytes_max));
  }
  return page_of_conversation(id);
}

}  // namespace

std::string page_of_conversation(std::string_view id) {
  id = id.substr(0, id.rfind("::"));
  if (id.empty()) throw bad_request("the id of a conversation is empty before its ::model");
  return may_name_page(id) ? std::string(id) : "sha256-" + hex_digest(id);
}

void take_conversation_header(const Inquiry& inquiry, Json& body) {
  for (const auto& [name, value] : inquiry.headers) {
    if (name == "x-conversation-id") body[header_field] = value;
  }
}

std::string read_conversation(const Fields& fields) {
  for (const char* field : {header_field, "conversation"}) {
    if (fields.has(field)) return read_from(fields, field);
  }
  return {};
}

}  // namespace fermata::api
