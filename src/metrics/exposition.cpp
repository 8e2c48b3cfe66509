#include "metrics/exposition.h"

#include <cmath>
#include <vector>

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

namespace fermata {

struct Exposition::Families {
  std::vector<prometheus::MetricFamily> list;

  prometheus::ClientMetric& add(std::string_view name, std::string_view help,
                                prometheus::MetricType type) {
    prometheus::MetricFamily& family = list.emplace_back();
    family.name = name;
    family.help = help;
    family.type = type;
    return family.metric.emplace_back();
  }
};

Exposition::Exposition() : families_(std::make_unique<Families>()) {}
Exposition::~Exposition() = default;

void Exposition::counter(std::string_view name, std::string_view help, double value) {
  families_->add(name, help, prometheus::MetricType::Counter).counter.value =
      std::isfinite(value) ? value : 0.0;
}

void Exposition::gauge(std::string_view name, std::string_view help, double value) {
  families_->add(name, help, prometheus::MetricType::Gauge).gauge.value =
      std::isfinite(value) ? value : 0.0;
}

std::string Exposition::text() const {
  return prometheus::TextSerializer().Serialize(families_->list);
}

}  // namespace fermata
