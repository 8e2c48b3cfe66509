#include "kv/page_desk.h"

#include <utility>

namespace fermata::kv {

void ImportGate::change(const store::Fingerprint& fingerprint, store::Kind kind,
                        std::shared_ptr<const engine::RangeCheck> check) {
  const std::lock_guard lock(mutex_);
  fingerprint_ = fingerprint;
  kind_ = kind;
  check_ = std::move(check);
}

Result<PageImport, PageOutcome> ImportGate::check(PageCommand command) const {
  store::Fingerprint fingerprint{};
  std::shared_ptr<const engine::RangeCheck> ranges;
  {
    const std::lock_guard lock(mutex_);
    fingerprint = fingerprint_;
    if (kind_ == store::Kind::blocks) ranges = check_;
  }
  if (ranges == nullptr) return Err{PageOutcome::unsupported};
  PageImport out;
  out.body = std::make_shared<const std::string>(std::move(command.body));
  out.command = std::move(command);
  store::Decoded<store::Parcel> read = store::read_parcel(std::as_bytes(std::span(*out.body)));
  if (!read.value) return Err{PageOutcome::no_parcel};
  out.parcel = std::move(*read.value);
  const store::Page& page = out.parcel.page;
  if (page.fingerprint != fingerprint || page.kind != store::Kind::blocks) {
    return Err{PageOutcome::foreign};
  }
  Tokens begin;
  for (std::size_t i = 0; i < out.parcel.blocks.size(); ++i) {
    const Tokens end = begin + store::tokens_of_block(page.kind, page.tokens, i);
    if (!ranges->is_sound(out.parcel.blocks[i], begin, end)) return Err{PageOutcome::no_parcel};
    begin = end;
  }
  return out;
}

}  // namespace fermata::kv
