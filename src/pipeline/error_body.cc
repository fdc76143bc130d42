// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "pipeline/error_body.h"

#include "wire/json_object.h"

#include <fmt/format.h>

namespace baton::pipeline {
namespace {

std::string own_shape(const Error& error) {
  return fmt::format(R"({{"error":{{"message":{},"type":{},"param":{},"code":{}{}}}}})",
                     wire::json_quote(error.message()), wire::json_quote(error.info().type),
                     error.param() ? wire::json_quote(*error.param()) : "null",
                     wire::json_quote(error.info().label),
                     error.figures() ? R"(,"details":)" + *error.figures() : std::string());
}

}  // namespace

std::string error_body(const Error& error) {
  return error.reply() ? error.reply()->body : own_shape(error);
}

std::string error_event(const Error& error) { return "data: " + own_shape(error) + "\n\n"; }

wire::Headers error_headers(const Error& error) {
  wire::Headers headers;
  if (!error.reply()) {
    headers.add("Content-Type", "application/json");
  } else if (!error.reply()->content_type.empty()) {
    headers.add("Content-Type", error.reply()->content_type);
  }
  if (const auto delay = error.retry_after())
    headers.add("Retry-After", fmt::format("{}", delay->count()));
  if (error.code() == Errc::PoisonRequest) headers.add("X-Should-Retry", "false");
  return headers;
}

}  // namespace baton::pipeline
