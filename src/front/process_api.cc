// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "front/process_api.h"

#include "wire/http_status.h"
#include "wire/json_object.h"

#include <fmt/format.h>

#include <utility>

namespace baton::front {

std::vector<Route> process_routes(std::string version) {
  const auto alive = [](Call call) {
    return respond_json(std::move(call), wire::kOk, R"({"status":"ok"})");
  };
  const auto release = [json = fmt::format(R"({{"version":{}}})", wire::json_quote(version))](
                           Call call) { return respond_json(std::move(call), wire::kOk, json); };
  return {
      {"GET", "/health", Access::Open, alive},
      {"GET", "/ping", Access::Open, alive},
      {"POST", "/ping", Access::Open, alive},
      {"GET", "/version", Access::Open, release},
  };
}

}  // namespace baton::front
