// Blocks as files of one folder, each named by its content id.
#pragma once

#include "store/files.h"
#include "store/tier.h"

#include <atomic>
#include <functional>
#include <string>

namespace fermata::store {

class DiskTier final : public Tier {
 public:
  // `aside` gets what is not to be read again: it moves the file of that name away.
  DiskTier(const Clock& clock, const Folder& folder,
           std::function<void(const std::string& name, Outcome why)> aside)
      : Tier(clock), folder_(folder), aside_(std::move(aside)) {}

 protected:
  Outcome do_put(const BlockRef& block, const Fingerprint& fingerprint,
                 std::span<const std::byte> bytes) override;
  Outcome do_get(const BlockRef& block, const Fingerprint& fingerprint, Intake& into) override;
  Outcome do_erase(const BlockRef& block) override;
  void do_condemn(const BlockRef& block, Outcome why) override;
  Outcome do_settle() override;

 private:
  const Folder& folder_;
  std::atomic<int> last_error_{0};  // Of a write; the log tells of the first of many alike.
  const std::function<void(const std::string&, Outcome)> aside_;
};

// What an errno means to who asked.
Outcome outcome_of(int error);

}  // namespace fermata::store
