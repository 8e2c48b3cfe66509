#include "metrics/exposition.h"

#include <cmath>
#include <limits>
#include <vector>

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

namespace fermata {

struct Exposition::Families {
  std::vector<prometheus::MetricFamily> list;

  prometheus::ClientMetric& add(std::string_view name, std::string_view help,
                                prometheus::MetricType type, const Labels& labels) {
    if (list.empty() || list.back().name != name) {
      prometheus::MetricFamily& family = list.emplace_back();
      family.name = name;
      family.help = help;
      family.type = type;
    }
    prometheus::ClientMetric& metric = list.back().metric.emplace_back();
    for (const auto& [label, value] : labels) {
      metric.label.push_back({std::string(label), std::string(value)});
    }
    return metric;
  }
};

namespace {

double finite(double value) { return std::isfinite(value) ? value : 0.0; }
double seconds(std::uint64_t us) { return static_cast<double>(us) / 1e6; }

}  // namespace

Exposition::Exposition() : families_(std::make_unique<Families>()) {}
Exposition::~Exposition() = default;

void Exposition::counter(std::string_view name, std::string_view help, double value,
                         const Labels& labels) {
  families_->add(name, help, prometheus::MetricType::Counter, labels).counter.value = finite(value);
}

void Exposition::gauge(std::string_view name, std::string_view help, double value,
                       const Labels& labels) {
  families_->add(name, help, prometheus::MetricType::Gauge, labels).gauge.value = finite(value);
}

void Exposition::histogram(std::string_view name, std::string_view help, const TimeHistogram& times,
                           const Labels& labels) {
  prometheus::ClientMetric::Histogram& out =
      families_->add(name, help, prometheus::MetricType::Histogram, labels).histogram;
  // The count is that of the buckets, so that they agree whatever is counted meanwhile.
  for (std::size_t i = 0; i < TimeHistogram::buckets; ++i) {
    out.sample_count += times.count(i);
    const bool last = i == TimeHistogram::bounds.size();
    const double bound = last ? std::numeric_limits<double>::infinity()
                              : static_cast<double>(TimeHistogram::bounds[i].value) / 1e6;
    out.bucket.push_back({out.sample_count, bound});
  }
  out.sample_sum = seconds(times.sum_us());
}

std::string Exposition::text() const {
  return prometheus::TextSerializer().Serialize(families_->list);
}

}  // namespace fermata
