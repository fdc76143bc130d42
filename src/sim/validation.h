// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
// How vLLM's request model judges the types of a body, and how it says so.
#pragma once

#include "core/result.h"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace baton::sim {

// As Python writes a text in single quotes.
std::string python_repr(std::string_view text);

// An error of the model itself. The engine tells those apart from all others by their type.
inline constexpr Errc kValidation = Errc::InvalidJson;

// Role. What is wrong with the types of one body.
// Confinement. A value.
class ValidationErrors {
 public:
  void add(std::string_view type, std::string loc, std::string_view message,
           const nlohmann::json& input);
  // Of a union, of whose branches the first error stands for all.
  void add_union(std::size_t branches, std::string_view type, std::string loc,
                 std::string_view message, const nlohmann::json& input);
  bool empty() const { return entries_.empty(); }
  Error error() const;

 private:
  std::string first_loc_;
  std::vector<std::string> entries_;
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
