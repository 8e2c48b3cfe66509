// What operators do with the conversation of a slot: files as llama-server has them, and pages.
// Plain values.
#pragma once

#include "base/reply.h"
#include "base/types.h"
#include "core/request.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace fermata {

enum class SlotAction : std::uint8_t {
  save,      // To a file, at the next token boundary.
  restore,   // From a file, once the slot is idle.
  erase,     // Once the slot is idle.
  page_out,  // To a page, at the next token boundary.
  page_in,   // From a page: to the slot's cells, or to RAM where they cannot be had.
};

enum class SlotOutcome : std::uint8_t {
  done,
  empty,          // The slot holds nothing of this owner.
  missing,        // No such page.
  bad_file,       // No such file, or none that can be read.
  other_version,  // The file's tokens are written in a way that is not known.
  other_model,    // The page is another model's.
  too_long,       // Longer than a slot can be.
  no_room,        // Cells or RAM could not be had.
  unsupported,    // Not with this kind of memory or layout.
  taken,          // Another conversation has that name.
  full,           // No room on disk, or for more bytes in an hour.
  busy,           // Too much is under way.
  failed,         // The disk refused; the log says why.
  no_seat,        // The geometry has changed meanwhile.
  no_engine,      // No context could be built for a while.
  stopping,
};

struct SlotAnswer {
  SlotOutcome outcome = SlotOutcome::done;
  Tokens tokens = {};
  Bytes bytes = {};
  Micros took = {};
  std::string_view tier = {};  // Where a page is now: pool, ram, disk.
};

struct SlotCommand {
  SlotAction action = SlotAction::save;
  Seat seat;
  Owner owner{};
  std::string name;  // Of the file, or of the page. REQUIRES: is_slot_file_name(), or a page's.
  std::shared_ptr<Reply<SlotAnswer>> reply;
  Micros asked{0};  // Set by the scheduler.
};

// Whether llama-server would take it: 1 to 250 bytes of UTF-8, one component of a path, nothing
// that another system reads as more, and no name of an unfinished file.
bool is_slot_file_name(std::string_view name);

}  // namespace fermata
