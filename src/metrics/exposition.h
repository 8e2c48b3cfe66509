// Numbers as Prometheus text (version 0.0.4). One Exposition is filled and written per scrape; the
// components know names, units and help of their own numbers.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace fermata {

class Exposition {
 public:
  Exposition();
  ~Exposition();
  Exposition(const Exposition&) = delete;
  Exposition& operator=(const Exposition&) = delete;

  // Names follow Prometheus' rules, colons allowed. A value that is not finite is written as 0.
  void counter(std::string_view name, std::string_view help, double value);
  void gauge(std::string_view name, std::string_view help, double value);

  std::string text() const;

 private:
  struct Families;
  std::unique_ptr<Families> families_;
};

}  // namespace fermata
