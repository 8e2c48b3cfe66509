// Numbers as Prometheus text (version 0.0.4). One Exposition is filled and written per scrape; the
// components know names, units and help of their own numbers.
#pragma once

#include "metrics/histogram.h"

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fermata {

// Name and value of each label.
using Labels = std::vector<std::pair<std::string_view, std::string_view>>;

class Exposition {
 public:
  Exposition();
  ~Exposition();
  Exposition(const Exposition&) = delete;
  Exposition& operator=(const Exposition&) = delete;

  // Names follow Prometheus' rules, colons allowed. A value that is not finite is written as 0.
  // Several calls of one name in a row differ in their labels.
  void counter(std::string_view name, std::string_view help, double value,
               const Labels& labels = {});
  void gauge(std::string_view name, std::string_view help, double value, const Labels& labels = {});
  // In seconds.
  void histogram(std::string_view name, std::string_view help, const TimeHistogram& times,
                 const Labels& labels = {});

  std::string text() const;

 private:
  struct Families;
  std::unique_ptr<Families> families_;
};

}  // namespace fermata
