// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/result.h"
#include "fleet/fleet.h"
#include "wire/json_object.h"

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

// Request fields that several handlers read.
namespace baton::api {

// One of the filters that a path takes behind its '?'.
struct Filter {
  std::string_view name;
  std::optional<std::string>* value;  // set where the request names it
};
// An error where the request names anything else.
Result<void> read_filters(std::string_view target, std::span<const Filter> filters);

// The model that `model` of a body names. With a single model it may be absent, as with vLLM's
// servers.
Result<fleet::Fleet::Served> find_model(const fleet::Fleet& fleet, const wire::JsonObject& body);

}  // namespace baton::api
