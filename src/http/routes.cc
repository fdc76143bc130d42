// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "http/routes.h"

#include "pipeline/error_body.h"

#include <fmt/format.h>

namespace baton::http {
namespace {

bool takes_path(const Route& route, std::string_view path) {
  if (!route.path.ends_with('/')) return route.path == path;
  return path.starts_with(route.path) && path.size() > route.path.size();
}

}  // namespace

Result<const Route*> Routes::find(std::string_view method, std::string_view path) const {
  const std::string_view wanted = method == "HEAD" ? "GET" : method;
  for (const Route& route : routes_) {
    if (takes_path(route, path) && route.method == wanted) return &route;
  }
  const std::string allowed = allowed_methods(path);
  if (allowed.empty()) return fail(Errc::NotFound, fmt::format("there is nothing at {}", path));
  return fail(Errc::MethodNotAllowed, fmt::format("{} takes {}, not {}", path, allowed, method));
}

std::string Routes::allowed_methods(std::string_view path) const {
  std::string methods;
  for (const Route& route : routes_) {
    if (!takes_path(route, path)) continue;
    methods += route.method == "GET" ? "GET, HEAD, " : route.method + ", ";
  }
  return methods.empty() ? methods : methods + "OPTIONS";
}

awaitable<void> respond_json(Call call, int status, std::string json) {
  wire::Headers headers;
  headers.add("Content-Type", "application/json");
  co_await call.response.respond(status, headers, json);
}

awaitable<void> respond_error(Call call, Error error) {
  co_await call.response.respond(error.http_status(), pipeline::error_headers(error),
                                 pipeline::error_body(error));
}

awaitable<void> respond(Call call, Result<std::string> json) {
  if (!json) return respond_error(std::move(call), std::move(json.error()));
  return respond_json(std::move(call), 200, *std::move(json));
}

}  // namespace baton::http
