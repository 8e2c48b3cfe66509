// Settings of the server around the engine: where it listens, who may ask, what it keeps, its
// limits and its log.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fermata::settings {

struct ServerSettings {
  std::vector<std::string> hosts = {"127.0.0.1"};  // Addresses, or a path that ends in .sock.
  std::int64_t port = 8080;                        // 0: any free one.
  std::string api_prefix;                          // Empty, or "/..." without a closing slash.
  std::int64_t timeout_s = 3600;
  std::int64_t sse_ping_interval_s = 30;  // Below 1: none.
  std::string keepalive = "comment";      // comment, chunk: what a silent stream gets.
  bool reuse_port = false;
  bool metrics = false;
  bool props = false;
  bool slots = true;
  std::string slot_save_path;  // Empty: slots are not saved to files.
  bool slots_debug = false;    // With texts of conversations.
  bool cache_prompt = true;
  std::int64_t cache_ram_mib = 8192;  // -1: no limit; 0: none.
  bool cache_idle_slots = true;
  bool warmup = true;
  bool huge_pages = true;
  std::int64_t sleep_idle_s = -1;    // -1: never.
  std::int64_t sleep_weights_s = 0;  // 0: with the context; -1: never.
};

// Texts as vectors.
struct EmbeddingSettings {
  bool enabled = false;
  std::string pooling = "auto";  // none, mean, cls, last; auto: the model's own.
  std::int64_t normalize = 2;    // -1: not, 0: largest value, 1: sum, above: by that norm.
};

// Conversations on disk.
struct PageSettings {
  std::string folder;  // Empty: none.
  std::int64_t ram_bytes = std::int64_t{512} << 20;
  std::int64_t disk_bytes = -1;  // -1: as far as the disk reaches.
  std::int64_t count = 100'000;
  std::int64_t ttl_s = -1;  // -1: for ever.
  std::int64_t bytes_per_hour = -1;
};

// Who may use the server, and what others learn of the traffic.
struct SecuritySettings {
  std::vector<std::string> api_keys;  // Empty, and no file: everybody may.
  std::string api_key_file;           // Read by the caller.
  std::string ssl_key_file;           // Read by the caller; so is the other one. Both or none.
  std::string ssl_cert_file;
  std::vector<std::string> cors_origins = {"*"};  // "localhost" stands for all of this machine.
  std::string cors_methods = "GET, POST, DELETE, OPTIONS";
  std::string cors_headers = "*";
  bool cors_credentials = true;
};

// Reaching one of these is a named answer to the client, never a queue that grows.
struct LimitSettings {
  std::int64_t queue_max = 1024;
  std::int64_t body_max_mib = 64;
  std::int64_t header_max_kib = 64;
  std::int64_t connections_max = 4096;
  std::int64_t events_per_request_max = 256;
  std::int64_t workers = 2;
  std::int64_t shutdown_timeout_s = 30;
};

struct LogSettings {
  bool disabled = false;
  std::string file;  // Empty: standard error.
  std::int64_t verbosity = 3;
  bool timestamps = true;
  bool prefix = true;           // The level.
  std::string colors = "auto";  // on, off, auto.
  bool jsonl = false;
};
// Steps of LogSettings::verbosity, as llama-server numbers them; above `debug` nothing is added.
inline constexpr std::int64_t verbosity_error = 1;
inline constexpr std::int64_t verbosity_warning = 2;
inline constexpr std::int64_t verbosity_info = 3;
inline constexpr std::int64_t verbosity_debug = 5;

}  // namespace fermata::settings
