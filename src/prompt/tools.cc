// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "prompt/tools.h"

#include "prompt/members.h"
#include "prompt/refusal.h"

#include <fmt/format.h>

#include <cstddef>
#include <string_view>
#include <utility>

namespace baton::prompt {
namespace {

using namespace std::string_view_literals;

using jinja::Dict;
using jinja::List;
using jinja::Value;

// A tool's `defer_loading` applies to its function, unless the function sets its own.
Dict function_of(const Dict& function, const Value* deferred) {
  Dict out;
  out.reserve(5);
  for (const std::string_view key : {"name", "description", "parameters"}) {
    const Value* const value = function.find(key);
    out.set(key, value ? *value : Value::none());
  }
  if (const Value* const strict = find_present(function, "strict")) out.set("strict"sv, *strict);
  const Value* const own = find_present(function, "defer_loading");
  if (own || deferred) out.set("defer_loading"sv, own ? *own : *deferred);
  return out;
}

}  // namespace

Result<Value> tools_of(const Value& tools) {
  if (!tools.is_list()) return refuse("tools", "must be a list");
  List out;
  out.reserve(tools.as_list().size());
  for (const Value& value : tools.as_list()) {
    const auto place = [&](std::string_view member) {
      return fmt::format("tools[{}]{}", out.size(), member);
    };
    if (!value.is_dict()) return refuse(place(""), "must be an object");
    const Dict& tool = value.as_dict();
    const Value* const function = tool.find("function"sv);
    if (!function || !function->is_dict()) return refuse(place(".function"), "must be an object");
    const Value* const name = function->as_dict().find("name"sv);
    if (!name || !name->is_string()) return refuse(place(".function.name"), "must be a string");

    const Value* const deferred = find_present(tool, "defer_loading");
    Dict reshaped;
    reshaped.reserve(3);
    const Value* const type = tool.find("type"sv);
    reshaped.set("type"sv, type ? *type : Value("function"));
    reshaped.set("function"sv, Value(function_of(function->as_dict(), deferred)));
    if (deferred) reshaped.set("defer_loading"sv, *deferred);
    out.emplace_back(std::move(reshaped));
  }
  return Value(std::move(out));
}

}  // namespace baton::prompt
