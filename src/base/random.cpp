#include "base/random.h"

#include <sys/random.h>

namespace fermata {

std::uint64_t system_random() {
  std::uint64_t out = 0;
  FERMATA_CHECK(getrandom(&out, sizeof out, 0) == static_cast<ssize_t>(sizeof out),
                "the operating system has no random bytes");
  return out;
}

std::string random_alphanumeric(int length) {
  constexpr char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
  Random random(system_random());
  std::string out(static_cast<std::size_t>(length), ' ');
  for (char& c : out) c = letters[random.between(0, 61)];
  return out;
}

}  // namespace fermata
