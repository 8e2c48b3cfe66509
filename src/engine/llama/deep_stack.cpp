#include "engine/llama/deep_stack.h"

#include "base/check.h"

#include <algorithm>
#include <exception>

#include <pthread.h>

namespace fermata::engine::llama {
namespace {

// Measured: 355 bytes for each character. The rest is margin.
constexpr std::size_t stack_per_byte = 1024;
constexpr std::size_t stack_base = std::size_t{1} << 20;

struct Job {
  const std::function<void()>* work;
  std::exception_ptr thrown;
};

void* run(void* argument) {
  auto* job = static_cast<Job*>(argument);
  try {
    (*job->work)();
  } catch (...) {
    job->thrown = std::current_exception();
  }
  return nullptr;
}

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

// The longest stretch without a line end, or of nothing but white space.
std::size_t longest_run(std::string_view text) {
  std::size_t longest = 0;
  std::size_t line = 0;
  std::size_t gap = 0;
  for (const char c : text) {
    line = c == '\n' || c == '\r' ? 0 : line + 1;
    gap = is_space(c) ? gap + 1 : 0;
    longest = std::max({longest, line, gap});
  }
  return longest;
}

}  // namespace

std::vector<std::string_view> matchable_pieces(std::string_view text, std::size_t piece_bytes) {
  FERMATA_CHECK(piece_bytes >= 8, "pieces shorter than a character");
  if (text.size() <= piece_bytes || longest_run(text) <= piece_bytes) return {text};
  std::vector<std::string_view> pieces;
  while (text.size() > piece_bytes) {
    std::size_t end = piece_bytes;
    // Not inside a UTF-8 sequence; text of continuation bytes only is cut anywhere.
    while (end > piece_bytes - 4 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
    pieces.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  pieces.push_back(text);
  return pieces;
}

bool run_on_deep_stack(std::size_t text_bytes, const std::function<void()>& work) {
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return false;
  const std::size_t bytes = stack_base + std::min(text_bytes, deep_text_bytes) * stack_per_byte;
  Job job{&work, nullptr};
  pthread_t thread{};
  const bool started = pthread_attr_setstacksize(&attributes, bytes) == 0 &&
                       pthread_create(&thread, &attributes, run, &job) == 0;
  pthread_attr_destroy(&attributes);
  if (!started) return false;
  pthread_join(thread, nullptr);
  if (job.thrown) std::rethrow_exception(job.thrown);
  return true;
}

}  // namespace fermata::engine::llama
