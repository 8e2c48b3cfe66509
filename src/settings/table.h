// The one table that describes every setting. From it come the parser, --help, docs/settings.md,
// validation and the listing for /props. Constant data; thread-safe.
#pragma once

#include "base/check.h"
#include "settings/settings.h"

#include <array>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace fermata::settings {

// Chapters of the documentation; help_text() gathers them into llama-server's sections.
enum class Group : std::uint8_t {
  general,  // Flags that print something and leave.
  threads,
  context,
  batch,
  model,
  logging,
  sampling,
  chat,
  server,
  security,
  limits,
  // Chapters that hold only what is not supported yet.
  preemption,
  sources,
  devices,
  rope,
  adapters,
  media,
  embedding,
  interface,
  router,
  speculation,
};

// What a later change of the running server costs.
enum class Change : std::uint8_t {
  live,     // Taken over between two steps.
  rebuild,  // A new context; conversations are paused, not lost.
  start,    // A new process.
};

enum class Support : std::uint8_t {
  supported,
  fixed,      // Always on; turning it off is a fault.
  no_effect,  // Accepted with a warning, as llama-server does.
  not_yet,    // llama-server or our own plan has it: a fault, never ignored.
  removed,    // llama-server refuses it too.
};

// Names of one setting, in llama-server's order. At most four; more do not compile.
class Names {
 public:
  constexpr Names() = default;
  constexpr Names(std::initializer_list<std::string_view> names) {
    for (const std::string_view name : names) {
      FERMATA_CHECK(count_ < all_.size(), "a setting with too many names");
      all_[count_++] = name;
    }
  }
  constexpr const std::string_view* begin() const { return all_.data(); }
  constexpr const std::string_view* end() const { return all_.data() + count_; }
  constexpr std::size_t size() const { return count_; }
  constexpr bool empty() const { return count_ == 0; }
  constexpr std::string_view back() const { return all_[count_ - 1]; }

 private:
  std::array<std::string_view, 4> all_{};
  std::size_t count_ = 0;
};

// Which numbers are allowed; both ends belong to it unless `above` leaves the lower one out.
inline constexpr double whole_max = 2147483647;
inline constexpr double number_max = std::numeric_limits<float>::max();
struct Range {
  double low = 0;
  double high = 0;
  bool above = false;
  std::optional<double> also = std::nullopt;  // One more value, outside of the range.
};

// Another way to write a value.
struct Synonym {
  std::string_view text;
  std::string_view value;
};

// The member of Settings that a row reads and writes.
template <class T>
struct Member {
  T& (*of)(Settings&);
  const T& (*in)(const Settings&);
};
using Target = std::variant<std::monostate, Member<bool>, Member<std::int64_t>, Member<float>,
                            Member<std::string>, Member<std::vector<std::string>>>;

// bind<&Settings::batch, &BatchSettings::n_batch, &Tokens::value>()
template <auto... Path>
constexpr auto bind() {
  using T = std::remove_cvref_t<decltype((std::declval<Settings&>().*....*Path))>;
  return Member<T>{[](Settings& s) -> T& { return (s.*....*Path); },
                   [](const Settings& s) -> const T& { return (s.*....*Path); }};
}

struct Row {
  Names names = {};                   // Empty: only an environment variable.
  Names off_names = {};               // The names that turn it off.
  std::string_view env = {};          // Empty: none.
  std::string_view env_too = {};      // Read when `env` is not set.
  std::string_view placeholder = {};  // Empty: a flag, which takes no value.
  std::string_view help = {};  // Lines split by \n; "{default}" marks the place of the default.
  std::string_view default_text = {};  // How the default is worded; empty: the value.
  std::string_view note = {};          // What special values mean, beside the default.
  Group group = Group::general;
  Change change = Change::start;
  Support support = Support::supported;
  std::string_view unit = {};
  Range range = {};                                // Numbers have one.
  std::span<const std::string_view> choices = {};  // Empty: any text.
  std::span<const Synonym> synonyms = {};
  char separator = '\0';           // Between the items of a list; '\0': each letter is one item.
  bool accumulates = false;        // A list that takes one item at each use.
  bool joins = false;              // A list with a separator that grows with each use.
  bool secret = false;             // No message and no listing shows the value.
  std::string_view on_text = {};   // What a flag writes into a member that is no bool ...
  std::string_view off_text = {};  // ... and what its twin writes.
  std::string_view alias_of = {};  // The name of the setting that this is another way to write.
  bool deprecated = false;         // Say `alias_of` instead.
  std::string_view replaces =
      {};                      // The text setting that this one empties: they exclude each other.
  std::string_view only = {};  // fixed, not_yet: the one value that asks for nothing else.
  Target target = {};          // Empty unless supported.
};

// Rows in the order of --help.
std::span<const Row* const> table();
// The row of a flag as written ("-c", "--no-slots"), and whether it turns the setting off.
struct NamedRow {
  const Row* row = nullptr;  // Null: nobody knows the name.
  bool off = false;
};
NamedRow find_row(std::string_view name);
// The row whose setting this one writes: itself unless it is an alias.
const Row& owner(const Row& row);
// The longest spelling, as messages and listings show it; the variable where there is no flag.
std::string_view title(const Row& row);
// "LLAMA_ARG_NO_X": set to anything it turns the row off. Empty where there is no twin.
std::string off_variable(const Row& row);

// The parts of the table, joined by table().
std::span<const Row> engine_rows();
std::span<const Row> sampling_rows();
std::span<const Row> server_rows();
std::span<const Row> security_rows();
std::span<const Row> unsupported_rows();

}  // namespace fermata::settings
