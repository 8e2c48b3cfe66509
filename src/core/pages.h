// What may be asked of saved conversations, and what is told of them. Plain values.
#pragma once

#include "base/byte_buffer.h"
#include "base/reply.h"
#include "base/types.h"
#include "core/request.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace fermata {

// A saved conversation.
struct PageInfo {
  std::string name;  // Where nobody gave it one: "id." and 32 digits, its own for as long as it is.
  bool is_named = false;
  Tokens tokens;
  Bytes ram, disk;  // RAM: of the same conversation; it goes when the room is needed.
  bool is_pinned = false;
  std::string_view reason;                  // Why it was saved.
  std::string_view kind;                    // How its bytes are cut.
  std::int64_t created = 0, last_used = 0;  // Seconds since 1970.
  double price_seconds = 0;                 // Of prefill that are lost with it.
  std::string fingerprint, owner;           // Digests, in hex.
};

enum class PageAction : std::uint8_t {
  list,
  get,
  pin,
  unpin,
  rename,
  fork,
  spill,  // Its bytes leave RAM and the pool; they are on disk.
  erase,
  export_part,  // One part of it as a parcel, after the other.
  import,       // A parcel becomes a page.
};

enum class PageOutcome : std::uint8_t {
  done,
  missing,  // The owner has no page of that name.
  taken,    // Another page has the new name.
  full,     // No room under a budget, and nothing to evict.
  damaged,  // It was not right; it is out of the way now.
  busy,     // Too much is under way.
  failed,   // The disk refused; the log says why.
  stopping,
  no_parcel,    // import: it is none, or cut, changed, or its cells cannot be right.
  foreign,      // import: of another model, KV types or layout.
  unsupported,  // import: bytes of this model's memory cannot be checked, so none are taken.
};

struct PageAnswer {
  PageOutcome outcome = PageOutcome::done;
  std::vector<PageInfo> pages{};  // list: at most `limit`; else the one, as it is now.
  std::size_t total = 0;          // list: all that there are.
  // export_part
  ByteBuffer part{};
  bool is_last = false;
  Bytes bytes{};     // With part 0: of all parts.
  std::string id{};  // The name that the page has whatever it is called meanwhile.
  std::shared_ptr<const void> hold{};  // The page stays as long as this does.
};

struct PageCommand {
  PageAction action = PageAction::get;
  Owner owner{};
  std::string name;          // list: what names begin with.
  std::string to;            // rename, fork. REQUIRES: may_name_page(to).
  std::size_t limit = 1000;  // list
  std::size_t part = 0;      // export_part: counted from 0.
  std::string body;          // import: the parcel.
  std::shared_ptr<Reply<PageAnswer>> reply;
};

// 1 to 128 of A-Z a-z 0-9 . _ - and no dot at the start.
bool is_page_name(std::string_view name);
// And none of those that nameless pages have.
bool may_name_page(std::string_view name);

}  // namespace fermata
