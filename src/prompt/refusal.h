// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/result.h"

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

namespace baton::prompt {

// The client's fault, at a place of the body: "messages[3].role must be a string".
inline std::unexpected<Error> refuse(std::string place, std::string_view problem) {
  Error error(Errc::InvalidRequest, fmt::format("{} {}", place, problem));
  error.with_param(std::move(place));
  return fail(std::move(error));
}

}  // namespace baton::prompt
