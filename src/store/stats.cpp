#include "store/stats.h"

#include <initializer_list>

namespace fermata::store {
namespace {

double number(const Counter& counter) { return static_cast<double>(counter.value()); }
double number(const Gauge& gauge) { return static_cast<double>(gauge.value()); }

void write(Exposition& out, std::string_view name, std::string_view help,
           const OutcomeCounters& counters, std::initializer_list<Outcome> which,
           std::string_view tier) {
  for (const Outcome outcome : which) {
    Labels labels;
    if (!tier.empty()) labels.emplace_back("tier", tier);
    labels.emplace_back("outcome", name_of(outcome));
    out.counter(name, help, static_cast<double>(counters[outcome]), labels);
  }
}

}  // namespace

std::string_view name_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::done:
      return "done";
    case Outcome::full:
      return "full";
    case Outcome::missing:
      return "missing";
    case Outcome::damaged:
      return "damaged";
    case Outcome::foreign:
      return "foreign";
    case Outcome::busy:
      return "busy";
    case Outcome::stopping:
      return "stopping";
    case Outcome::refused_rate:
      return "refused_rate";
    case Outcome::failed:
      return "failed";
    case Outcome::taken:
      return "taken";
  }
  return "?";
}

std::string_view name_of(Eviction why) {
  switch (why) {
    case Eviction::bytes:
      return "bytes";
    case Eviction::count:
      return "count";
    case Eviction::age:
      return "age";
    case Eviction::replaced:
      return "replaced";
    case Eviction::erased:
      return "erased";
    case Eviction::damaged:
      return "damaged";
  }
  return "?";
}

void write(Exposition& out, const TierStats& stats, std::string_view tier) {
  const Labels labels = {{"tier", tier}};
  out.gauge("fermata_store_tier_bytes", "Bytes of blocks in the tier.", number(stats.bytes),
            labels);
  out.gauge("fermata_store_tier_blocks", "Blocks in the tier.", number(stats.blocks), labels);
  out.counter("fermata_store_tier_read_bytes_total", "Bytes of blocks read from the tier.",
              number(stats.bytes_read), labels);
  out.counter("fermata_store_tier_written_bytes_total", "Bytes of blocks written to the tier.",
              number(stats.bytes_written), labels);
  out.counter("fermata_store_tier_erased_total", "Blocks removed from the tier.",
              number(stats.erased), labels);
  write(out, "fermata_store_tier_puts_total", "Blocks given to the tier, by outcome.", stats.puts,
        {Outcome::done, Outcome::full, Outcome::failed}, tier);
  write(out, "fermata_store_tier_gets_total",
        "Blocks asked of the tier, by outcome: done is a hit, missing a miss.", stats.gets,
        {Outcome::done, Outcome::missing, Outcome::damaged, Outcome::foreign, Outcome::failed},
        tier);
  out.histogram("fermata_store_tier_put_seconds", "Time to store a block.", stats.put_time, labels);
  out.histogram("fermata_store_tier_get_seconds", "Time to read and check a block.", stats.get_time,
                labels);
}

void write(Exposition& out, const StoreStats& stats) {
  out.gauge("fermata_store_pages", "Stored conversations.", number(stats.pages));
  out.gauge("fermata_store_pinned", "Stored conversations that are never evicted.",
            number(stats.pinned));
  out.gauge("fermata_store_blocks", "Different blocks they refer to.", number(stats.blocks));
  out.gauge("fermata_store_bytes", "Bytes of their blocks and manifests, shared ones once.",
            number(stats.bytes));
  out.counter("fermata_store_lookups_total", "Searches for a stored prefix.",
              number(stats.lookups));
  out.counter("fermata_store_lookup_hits_total", "Searches that found one.",
              number(stats.lookup_hits));
  out.counter("fermata_store_found_tokens_total", "Tokens of the prefixes that were found.",
              number(stats.tokens_found));
  write(out, "fermata_store_saves_total", "Conversations to be stored, by outcome.", stats.saves,
        {Outcome::done, Outcome::full, Outcome::stopping, Outcome::refused_rate, Outcome::failed},
        "");
  write(out, "fermata_store_loads_total",
        "Conversations to be read, by outcome: all but done are computed again.", stats.loads,
        {Outcome::done, Outcome::missing, Outcome::damaged, Outcome::foreign, Outcome::stopping,
         Outcome::failed},
        "");
  for (std::size_t i = 0; i < evictions; ++i) {
    out.counter("fermata_store_evictions_total", "Conversations that left the store, by reason.",
                number(stats.evicted[i]), {{"reason", name_of(static_cast<Eviction>(i))}});
  }
  out.counter("fermata_store_written_bytes_total", "Bytes written: blocks, manifests, journal.",
              number(stats.bytes_written));
  out.counter("fermata_store_quarantined_total", "Files put aside because they were not right.",
              number(stats.quarantined));
  out.counter("fermata_store_collected_total", "Files removed that nothing referred to.",
              number(stats.collected));
}

}  // namespace fermata::store
