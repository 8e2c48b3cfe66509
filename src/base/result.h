// Result<T, E>: a value or a named trouble. The expected-failure half of our error rules; broken
// invariants use FERMATA_CHECK. (std::expected is C++23.)
#pragma once

#include "base/check.h"

#include <utility>
#include <variant>

namespace fermata {

// Wraps an error so that Result<T, E> can be built without ambiguity when T and E are alike.
template <class E>
struct Err {
  E error;
};
template <class E>
Err(E) -> Err<E>;

template <class T, class E>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  template <class F>
  Result(Err<F> err) : state_(std::in_place_index<1>, std::move(err.error)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  // REQUIRES: ok().
  T& value() & {
    FERMATA_CHECK(ok(), "value() of a failed Result");
    return std::get<0>(state_);
  }
  const T& value() const& {
    FERMATA_CHECK(ok(), "value() of a failed Result");
    return std::get<0>(state_);
  }
  T&& value() && {
    FERMATA_CHECK(ok(), "value() of a failed Result");
    return std::get<0>(std::move(state_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  // REQUIRES: !ok().
  const E& error() const {
    FERMATA_CHECK(!ok(), "error() of a good Result");
    return std::get<1>(state_);
  }

 private:
  std::variant<T, E> state_;
};

template <class E>
class [[nodiscard]] Result<void, E> {
 public:
  Result() = default;
  template <class F>
  Result(Err<F> err) : state_(std::in_place_index<1>, std::move(err.error)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }
  const E& error() const {
    FERMATA_CHECK(!ok(), "error() of a good Result");
    return std::get<1>(state_);
  }

 private:
  std::variant<std::monostate, E> state_;
};

}  // namespace fermata
