// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "api/process_api.h"

#include "wire/http_status.h"
#include "wire/json_object.h"

#include <fmt/format.h>

#include <utility>

namespace baton::api {

std::vector<http::Route> process_routes(std::string version) {
  const auto alive = [](http::Call call) {
    return http::respond_json(std::move(call), wire::kOk, R"({"status":"ok"})");
  };
  const auto release =
      [json = fmt::format(R"({{"version":{}}})", wire::json_quote(version))](http::Call call) {
        return http::respond_json(std::move(call), wire::kOk, json);
      };
  return {
      {"GET", "/health", http::Access::Open, alive},
      {"GET", "/ping", http::Access::Open, alive},
      {"POST", "/ping", http::Access::Open, alive},
      {"GET", "/version", http::Access::Open, release},
  };
}

}  // namespace baton::api
