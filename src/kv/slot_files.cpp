#include "kv/slot_files.h"

#include "base/check.h"
#include "base/log.h"
#include "store/page.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <span>
#include <utility>

namespace fermata::kv {

Result<std::unique_ptr<SlotFiles>, std::string> SlotFiles::open(SlotFilesOptions options) {
  store::Folder folder;
  const int error = store::Folder::open(options.folder, true, nullptr, folder);
  if (error != 0) {
    const char* const mend = error == ELOOP || error == ENOTDIR
                                 ? "name a folder, not a file or a link to one"
                                 : "name a folder that can be written";
    return Err{options.folder + ": " + std::strerror(error) + "; " + mend};
  }
  return std::unique_ptr<SlotFiles>(new SlotFiles(std::move(options), std::move(folder)));
}

SlotFiles::SlotFiles(SlotFilesOptions options, store::Folder folder)
    : options_(std::move(options)), folder_(std::move(folder)), worker_([this] { work(); }) {}

SlotFiles::~SlotFiles() {
  closing_ = true;
  jobs_.close();
  worker_.join();
}

bool SlotFiles::write(SlotTicket ticket, const Owner& owner, std::string name,
                      std::vector<std::byte> head, ByteBuffer state) {
  return push({.ticket = ticket,
               .owner = owner,
               .name = std::move(name),
               .is_write = true,
               .head = std::move(head),
               .state = std::move(state),
               .most = {}});
}

bool SlotFiles::read(SlotTicket ticket, const Owner& owner, std::string name, Bytes most) {
  return push({.ticket = ticket,
               .owner = owner,
               .name = std::move(name),
               .is_write = false,
               .head = {},
               .state = {},
               .most = most});
}

bool SlotFiles::push(Job job) {
  if (in_flight_.fetch_add(1) < in_flight_max &&
      jobs_.push(std::move(job)) == PushOutcome::pushed) {
    return true;
  }
  in_flight_.fetch_sub(1);
  return false;
}

void SlotFiles::reap(std::vector<SlotFileDone>& out) {
  done_.drain(reaped_);
  for (SlotFileDone& done : reaped_) {
    in_flight_.fetch_sub(1);
    out.push_back(std::move(done));
  }
  reaped_.clear();
}

void SlotFiles::work() {
  std::vector<Job> batch;
  for (;;) {
    jobs_.wait();
    // Read before the queue: what is in it afterwards came before it was closed.
    const bool is_last = closing_.load();
    jobs_.drain(batch);
    for (const Job& job : batch) {
      SlotFileDone done;
      done.ticket = job.ticket;
      done.error = run(job, done);
      if (done.error != 0) {
        log_warn("--slot-save-path: {} was not {}: {}", job.name, job.is_write ? "written" : "read",
                 std::strerror(done.error));
      }
      const PushOutcome pushed = done_.push(std::move(done));
      FERMATA_CHECK(pushed == PushOutcome::pushed, "there is room for what is in flight");
      if (options_.wake) options_.wake();
    }
    if (is_last) return;
  }
}

int SlotFiles::run(const Job& job, SlotFileDone& done) const {
  const store::Folder* folder = &folder_;
  store::Folder own;
  if (options_.by_owner) {
    const std::string name = store::to_hex(std::span(job.owner).first(16));
    const int error = folder_.open_inside(name.c_str(), job.is_write, own);
    if (error != 0) return error;
    folder = &own;
  }
  if (!job.is_write) {
    return folder->read_file(job.name, static_cast<std::size_t>(job.most.value), done.bytes);
  }
  const std::array<std::span<const std::byte>, 2> pieces{job.head, job.state};
  const int error = folder->write_file(job.name, pieces);
  return error != 0 ? error : folder->sync();
}

}  // namespace fermata::kv
