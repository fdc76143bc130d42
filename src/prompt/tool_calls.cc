// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "prompt/tool_calls.h"

#include "prompt/refusal.h"

#include <fmt/format.h>

#include <optional>
#include <string_view>
#include <utility>

namespace baton::prompt {
namespace {

using namespace std::string_view_literals;

using jinja::Dict;
using jinja::Kind;
using jinja::Value;

constexpr std::string_view kSpace = " \t\r\n";

// nullopt where they are no JSON object.
std::optional<Value> arguments_of(const Value* arguments) {
  if (!arguments || arguments->is_none()) return Value(Dict());
  if (arguments->is_dict()) return *arguments;
  if (!arguments->is_string()) return std::nullopt;
  const std::string_view text = arguments->as_string();
  if (text.find_first_not_of(kSpace) == std::string_view::npos) return Value(Dict());
  auto parsed = jinja::value_from_json(text);
  if (!parsed || !parsed->is_dict()) return std::nullopt;
  return std::move(*parsed);
}

}  // namespace

Result<ToolCalls> tool_calls_of(const Value& calls, std::size_t index) {
  const auto place = [&](std::size_t call, std::string_view member) {
    return fmt::format("messages[{}].tool_calls[{}]{}", index, call, member);
  };
  if (!calls.is_list()) {
    return refuse(fmt::format("messages[{}].tool_calls", index), "must be a list");
  }
  ToolCalls reshaped;
  reshaped.calls.reserve(calls.as_list().size());
  for (const Value& value : calls.as_list()) {
    const std::size_t number = reshaped.calls.size();
    if (!value.is_dict()) return refuse(place(number, ""), "must be an object");
    const Dict& call = value.as_dict();
    const Value* const function = call.find("function"sv);
    if (!function || !function->is_dict()) {
      return refuse(place(number, ".function"), "must be an object");
    }
    auto arguments = arguments_of(function->as_dict().find("arguments"sv));
    if (!arguments) {
      // Some releases refuse this, some hand it on, others take it for an empty object.
      if (reshaped.inexact.empty()) {
        reshaped.inexact = place(number, ".function.arguments is no JSON object");
      }
      arguments = Value(Dict());
    }
    Dict callee;
    callee.reserve(2);
    callee.set("arguments"sv, std::move(*arguments));
    if (const Value* const name = function->as_dict().find("name"sv)) callee.set("name"sv, *name);
    Dict out;
    out.reserve(3);
    if (const Value* const id = call.find("id"sv)) out.set("id"sv, *id);
    out.set("function"sv, Value(std::move(callee)));
    if (const Value* const type = call.find("type"sv)) out.set("type"sv, *type);
    reshaped.calls.emplace_back(std::move(out));
  }
  return reshaped;
}

}  // namespace baton::prompt
