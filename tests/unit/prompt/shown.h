// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "libs/jinja/value.h"

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace baton::prompt {

// A value as compact JSON, members in their order. For tests: strings are not escaped.
inline std::string shown(const jinja::Value& value) {
  using jinja::Kind;
  switch (value.kind()) {
    case Kind::None:
      return "null";
    case Kind::Bool:
      return value.as_bool() ? "true" : "false";
    case Kind::Int:
      return fmt::format("{}", value.as_int());
    case Kind::Float:
      return fmt::format("{}", value.as_float());
    case Kind::String:
      return fmt::format("\"{}\"", value.as_string());
    case Kind::List: {
      std::string text = "[";
      for (const jinja::Value& item : value.as_list()) {
        if (text.size() > 1) text += ',';
        text += shown(item);
      }
      return text + "]";
    }
    case Kind::Dict: {
      std::string text = "{";
      for (const auto& [key, member] : value.as_dict()) {
        if (text.size() > 1) text += ',';
        text += shown(key) + ":" + shown(member);
      }
      return text + "}";
    }
    default:
      return "?";
  }
}

inline std::string shown(const jinja::List& list) { return shown(jinja::Value(list)); }

// JSON that a test knows to be right.
inline jinja::Value from_json(std::string_view json) {
  return jinja::value_from_json(json).value();
}

}  // namespace baton::prompt
