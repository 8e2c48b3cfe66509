// The messages and tools of a chat, checked, as the template layer takes them.
#pragma once

#include "api/fields.h"

#include <string>

namespace fermata::api {

inline constexpr std::size_t messages_max = 16'384;
inline constexpr std::size_t tools_max = 1024;
inline constexpr std::size_t tool_name_bytes_max = 256;
inline constexpr std::size_t tool_calls_max = 1024;  // Of one message.

// `messages`, each checked. Throws ApiError.
Json read_messages(const Fields& fields);

// `tools`, `tool_choice` and `parallel_tool_calls`.
struct Tools {
  Json list = Json::array();    // What the model may use; one tool where it is named.
  std::string choice = "auto";  // Or none, required.
  bool are_parallel = false;

  bool may_be_called() const { return !list.empty() && choice != "none"; }
};
Tools read_tools(const Fields& fields, bool parallel_by_default);

}  // namespace fermata::api
