// Which web pages may use the server: the Access-Control-* headers. Pure.
#pragma once

#include "api/exchange.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fermata::http {

struct CorsOptions {
  // "*": all. "localhost": every page of this machine, whatever its port.
  std::vector<std::string> origins = {"*"};
  std::string methods = "GET, POST, DELETE, OPTIONS";
  std::string headers = "*";  // "*": those that the page asks for.
  bool credentials = true;
};

using HeaderLines = std::vector<std::pair<std::string, std::string>>;

// Adds what every answer to a request from `origin` carries; empty: the request named none.
void add_cors(const CorsOptions& options, std::string_view origin, HeaderLines& out);

// The answer to OPTIONS, without what add_cors() adds.
api::Head preflight_head(const CorsOptions& options, const api::Inquiry& inquiry);

}  // namespace fermata::http
