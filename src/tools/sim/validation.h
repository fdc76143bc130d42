// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
// How the request models of vLLM and SGLang judge the types of a body, and how each says so.
#pragma once

#include "core/result.h"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace baton::sim {

// Python's repr of a text in single quotes, and of a JSON value.
std::string python_repr(std::string_view text);
std::string python_value(const nlohmann::json& value);

// An error of the model itself. The engine tells those apart from all others by their type.
inline constexpr Errc kValidation = Errc::InvalidJson;

// Role. The type errors of one body.
// Confinement. A value.
class ValidationErrors {
 public:
  void add(std::string_view type, std::string loc, std::string_view message,
           const nlohmann::json& input);
  // Adds the error of a union; the first branch's error stands for all.
  void add_union(std::size_t branches, std::string_view type, std::string loc,
                 std::string_view message, const nlohmann::json& input);
  // With what Python adds for errors of its own: `context` is a dict's text.
  void add_with(std::string_view context, std::string_view type, std::string loc,
                std::string_view message, const nlohmann::json& input);
  bool empty() const { return entries_.empty(); }
  // vLLM's form: one line for each, and the first place as the parameter.
  Error error() const;
  // SGLang's form: the lines, the function that serves the request (method and path), and all of it
  // once more.
  Error sglang_error(std::string_view function, std::string_view request) const;

 private:
  struct Entry {
    std::string type;
    std::string loc;
    std::string message;
    std::string summary;  // of the input
    std::string input;    // as Python writes it
    std::string context;
  };

  std::vector<Entry> entries_;
  std::size_t untold_ = 0;
};

enum class FieldKind { Number, Integer, Bool, Text, Object, List, Model };

// One field that may be absent, or null where `nullable`.
struct FieldRule {
  std::string_view name;
  FieldKind kind = FieldKind::Text;
  bool nullable = true;
};

// A field's value as the model takes it, where that is not what was sent: numbers and booleans
// written as text, whole numbers with a fraction of zero. nullopt where it is right as it is, or
// wrong, which `errors` then has.
std::optional<nlohmann::json> read_field(const FieldRule& rule, const nlohmann::json& value,
                                         const std::string& loc, ValidationErrors& errors);

}  // namespace baton::sim
