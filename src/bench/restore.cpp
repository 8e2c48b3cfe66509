// restore: how fast a conversation of 2,000 tokens comes back into an empty seat from RAM, against
// a plain copy of as many bytes; and from disk into RAM, against a plain read of one file.
#include "base/clock.h"
#include "bench/models.h"
#include "bench/scratch.h"
#include "bench/turns.h"
#include "bench/workloads.h"
#include "engine/model.h"
#include "kv/pool.h"
#include "store/files.h"
#include "store/store.h"

#include <algorithm>
#include <cstring>
#include <semaphore>

#include <fcntl.h>

namespace fermata::bench {
namespace {

constexpr int prompt_tokens = 2000;
constexpr Seat seat{0};
constexpr std::size_t read_bytes = std::size_t{1} << 20;  // Of one call of the plain read.

double seconds(Micros took) {
  return static_cast<double>(std::max<std::int64_t>(took.value, 1)) / 1e6;
}

kv::PoolOptions pool_options() {
  kv::PoolOptions out;
  out.budgets.cache = std::nullopt;
  return out;
}

// A pool whose shelf holds the conversation, and whose seats hold nothing.
class Rig {
 public:
  explicit Rig(engine::Engine& engine) : engine_(engine), pool_(engine, pool_options()) {
    for (const int token : prompt_of(prompt_tokens, 0)) tokens_.push_back(TokenId{token});
  }

  // False: the library failed.
  bool compute() {
    (void)pool_.take(seat, Tokens(0));
    engine::RowGroup group;
    group.seat = seat;
    group.tokens = tokens_;
    engine::GroupResult result;
    if (engine_.step({&group, 1}, {&result, 1}) != engine::StepOutcome::done) return false;
    pool_.appended(seat, tokens_);
    pool_.release(seat, true, Micros(0));
    pool_.evict(seat);
    return pool_.shelf().size() == 1;
  }
  // Into the seat and away again: what bringing it back takes, or 0.
  Micros restore() {
    std::vector<TokenId> prompt = tokens_;
    prompt.push_back(TokenId{300});
    const Micros began = clock_.now();
    const kv::Offer offer = pool_.offer(prompt);
    const Tokens restored = pool_.take_shelved(seat, prompt, offer);
    const Micros took = clock_.now() - began;
    pool_.release(seat, false, Micros(0));
    return restored == Tokens(prompt_tokens) ? took : Micros(0);
  }
  // What the shelf holds, as it is to be saved.
  std::vector<store::BlockBytes> blocks() const {
    std::vector<store::BlockBytes> out;
    pool_.shelf().for_each([&](const kv::Image& entry) {
      for (const kv::Piece& piece : entry.pieces) out.push_back({piece.bytes(), nullptr});
    });
    return out;
  }
  void forget() { pool_.forget_bytes(); }
  // What a load brought, onto the shelf and from there to the seat and away. 0: it failed.
  Micros arrive(const store::Completion& loaded) {
    std::vector<ByteBuffer> blocks = loaded.blocks;
    const Micros began = clock_.now();
    if (!pool_.shelve(loaded.tokens, std::move(blocks), Tokens(0), {})) return Micros(0);
    const Micros shelved = clock_.now() - began;
    const Micros restored = restore();
    return restored == Micros(0) ? restored : shelved + restored;
  }
  const std::vector<TokenId>& tokens() const { return tokens_; }

 private:
  engine::Engine& engine_;
  kv::Pool pool_;
  SteadyClock clock_;
  std::vector<TokenId> tokens_;
};

// The conversation in a folder of pages, and the same bytes in one file in another folder.
class Disk {
 public:
  // Error: one line.
  Result<void, std::string> save(const Rig& rig) {
    for (auto* folder : {&pages_, &plain_}) {
      auto made = ScratchFolder::make();
      if (!made) return Err(made.error());
      *folder = std::move(*made);
    }
    store::StoreOptions options;
    options.keeper.folder = pages_->path().string();
    options.wake = [this] { done_.release(); };
    auto opened = store::Store::open(std::move(options));
    if (!opened) return Err(opened.error());
    store_ = std::move(*opened);

    const std::vector<store::BlockBytes> blocks = rig.blocks();
    std::vector<std::span<const std::byte>> pieces;
    for (const store::BlockBytes& block : blocks) {
      pieces.push_back(block.bytes);
      sizes_.push_back(block.bytes.size());
      bytes_ += block.bytes.size();
    }
    store::Draft draft;
    draft.tokens = rig.tokens();
    if (store_->save(store::Ticket(1), draft, blocks) != store::Submit::accepted) {
      return Err(std::string("the store does not take the conversation"));
    }
    const store::Completion saved = wait();
    if (saved.outcome != store::Outcome::done) {
      return Err("saving: " + std::string(name_of(saved.outcome)));
    }
    id_ = saved.page.id;
    into_ = ByteBuffer(bytes_, std::byte{1});
    int error = store::Folder::open(plain_->path().string(), false, nullptr, plain_folder_);
    if (error == 0) error = plain_folder_.write_file("plain", pieces);
    if (error != 0) return Err("the plain file: " + std::string(strerror(error)));
    return {};
  }

  // From the request to the bytes, into buffers that were used before, as the server's are; the
  // outcome tells of failures.
  store::Completion load(Micros& took) {
    if (used_.empty()) {
      for (const std::size_t size : sizes_) used_.emplace_back(size, std::byte{3});
    }
    const Micros began = clock_.now();
    store::Completion none;
    none.outcome = store::Outcome::busy;
    const auto given =
        store_->load(store::Ticket(2), id_, store::Fingerprint{}, sizes_.size(), std::move(used_));
    store::Completion out = given == store::Submit::accepted ? wait() : std::move(none);
    took = clock_.now() - began;
    return out;
  }
  // The buffers of a load, for the next.
  void reuse(store::Completion loaded) { used_ = std::move(loaded.blocks); }
  // Into memory that was touched before. 0: it cannot be read.
  Micros read_plain() {
    const Micros began = clock_.now();
    store::Fd file;
    std::uint64_t size = 0;
    if (plain_folder_.open_file("plain", O_RDONLY, file, size) != 0) return Micros(0);
    std::size_t got = 0;
    for (std::size_t at = 0; at < bytes_; at += got) {
      const auto part = std::span(into_).subspan(at, std::min(read_bytes, bytes_ - at));
      if (store::read_at(file, part, at, got) != 0 || got == 0) return Micros(0);
    }
    return clock_.now() - began;
  }
  Result<double, std::string> push_out() const {
    auto pages = pages_->push_out(), plain = plain_->push_out();
    if (!pages) return pages;
    if (!plain) return plain;
    return std::max(*pages, *plain);
  }
  // Between memory that was touched before.
  Micros copy() {
    if (from_.empty()) from_ = ByteBuffer(bytes_, std::byte{2});
    const Micros began = clock_.now();
    std::memcpy(into_.data(), from_.data(), bytes_);
    const Micros took = clock_.now() - began;
    sum_ += static_cast<int>(into_[bytes_ / 2]);  // It is read, so it is copied.
    return took;
  }
  std::size_t bytes() const { return bytes_; }

 private:
  store::Completion wait() {
    std::vector<store::Completion> out;
    while (out.empty()) {
      done_.acquire();
      store_->reap(out);
    }
    return std::move(out.front());
  }

  std::unique_ptr<ScratchFolder> pages_, plain_;
  std::counting_semaphore<> done_{0};
  std::unique_ptr<store::Store> store_;  // Ends before its folder and what it wakes.
  store::Folder plain_folder_;
  SteadyClock clock_;
  store::PageId id_;
  std::vector<std::size_t> sizes_;  // Of the blocks.
  std::vector<ByteBuffer> used_;
  std::size_t bytes_ = 0;
  ByteBuffer from_, into_;
  int sum_ = 0;
};

struct Figures {
  // Of RAM and of the disk: bytes of ours per second over those of the plain way; seconds.
  std::vector<double> ram_ratio, ram_s, copy_s;
  std::vector<double> disk_ratio, disk_s, read_s, arrive_s;
  std::vector<double> left;  // Shares of the files that stayed in memory.
};

Result<void, std::string> from_ram(Rig& rig, Disk& disk, int pairs, Figures& out) {
  for (int pair = 0; pair <= pairs; ++pair) {
    const Micros restored = rig.restore();
    if (restored == Micros(0)) return Err(std::string("the conversation did not come back"));
    const Micros copied = disk.copy();
    if (pair == 0) continue;  // It touches the buffers.
    out.ram_ratio.push_back(seconds(copied) / seconds(restored));
    out.ram_s.push_back(seconds(restored));
    out.copy_s.push_back(seconds(copied));
  }
  return {};
}

Result<void, std::string> from_disk(Rig& rig, Disk& disk, int pairs, Figures& out) {
  for (int pair = 0; pair <= pairs; ++pair) {
    const auto left = disk.push_out();
    if (!left) return Err(left.error());
    Micros loaded{0}, read{0};
    // Who reads first is taken in turns.
    if (pair % 2 == 0) read = disk.read_plain();
    store::Completion page = disk.load(loaded);
    if (pair % 2 != 0) read = disk.read_plain();
    if (page.outcome != store::Outcome::done) {
      return Err("loading: " + std::string(name_of(page.outcome)));
    }
    if (read == Micros(0)) return Err(std::string("the plain file cannot be read"));
    rig.forget();
    const Micros arrived = rig.arrive(page);
    if (arrived == Micros(0)) return Err(std::string("what was loaded did not come back"));
    disk.reuse(std::move(page));
    if (pair == 0) continue;
    out.disk_ratio.push_back(seconds(read) / seconds(loaded));
    out.disk_s.push_back(seconds(loaded));
    out.read_s.push_back(seconds(read));
    out.arrive_s.push_back(seconds(arrived));
    out.left.push_back(*left);
    progress("restore pair " + std::to_string(pair) + ": loaded in " +
             std::to_string(seconds(loaded) * 1e3) + " ms, plain read " +
             std::to_string(seconds(read) * 1e3) + " ms");
  }
  return {};
}

Json figures_of(const Figures& all, std::size_t bytes, const BenchOptions& options) {
  const double gb = static_cast<double>(bytes) / 1e9;
  Json out = {{"workload", "restore"},
              {"ratio", median(all.ram_ratio)},
              {"ratio_of", "bytes/s from RAM into an empty seat over those of memcpy"},
              {"ram_gb_per_s", gb / median(all.ram_s)},
              {"memcpy_gb_per_s", gb / median(all.copy_s)},
              {"disk_ratio", median(all.disk_ratio)},
              {"disk_ratio_of", "bytes/s of loading the page over those of reading one file"},
              {"disk_gb_per_s", gb / median(all.disk_s)},
              {"read_gb_per_s", gb / median(all.read_s)},
              {"disk_load_ms", median(all.disk_s) * 1e3},
              {"loaded_to_seat_ms", median(all.arrive_s) * 1e3}};
  const double left = *std::max_element(all.left.begin(), all.left.end());
  if (left > 0.01) {
    out["not_from_disk"] = left;
    progress("restore: the file system keeps files in memory: these are no figures of the disk");
  }
  out["bytes"] = bytes;
  out["tokens"] = prompt_tokens;
  out["threads"] = options.threads;
  out["ram_pairs"] = all.ram_s.size();
  out["disk_pairs"] = all.disk_s.size();
  return out;
}

}  // namespace

Result<Json, std::string> run_restore(const BenchOptions& options) {
  const auto made = bench_engine({.n_ctx = Tokens(4096), .n_parallel = 2}, options.threads);
  if (!made) return Err(made.error());

  Rig rig(*made->engine);
  progress("restore: computing " + std::to_string(prompt_tokens) + " tokens");
  if (!rig.compute()) return Err(std::string("the library could not compute or move the cells"));
  Disk disk;
  if (auto done = disk.save(rig); !done) return Err(done.error());
  Figures all;
  // Those from RAM take milliseconds.
  if (auto done = from_ram(rig, disk, options.pairs * 4, all); !done) return Err(done.error());
  if (auto done = from_disk(rig, disk, options.pairs * 2, all); !done) return Err(done.error());
  return figures_of(all, disk.bytes(), options);
}

}  // namespace fermata::bench
