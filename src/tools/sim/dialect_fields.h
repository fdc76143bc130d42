// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
// How the dialects look into a body that may hold anything.
#pragma once

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>

namespace baton::sim {

// Null and absent are the same to the engines.
inline const nlohmann::json* field(const nlohmann::json& body, const char* key) {
  if (!body.is_object()) return nullptr;
  const auto found = body.find(key);
  return found == body.end() || found->is_null() ? nullptr : &*found;
}

inline const nlohmann::json* string_field(const nlohmann::json& body, const char* key) {
  const nlohmann::json* value = field(body, key);
  return value != nullptr && value->is_string() ? value : nullptr;
}

inline bool is_true(const nlohmann::json& body, const char* key) {
  const nlohmann::json* value = field(body, key);
  return value != nullptr && value->is_boolean() && value->get<bool>();
}

inline std::optional<std::uint16_t> port_of(const nlohmann::json* value) {
  if (value == nullptr || !value->is_number_unsigned() || *value == 0 || *value > 65535) {
    return std::nullopt;
  }
  return value->get<std::uint16_t>();
}

inline std::size_t count_prompts(const nlohmann::json& body) {
  const nlohmann::json* prompt = field(body, "prompt");
  const bool list =
      prompt != nullptr && prompt->is_array() && !prompt->empty() && !prompt->front().is_number();
  return list ? prompt->size() : 1;
}

// Number of samples, for the hand-off only; a wrong `n` is refused elsewhere.
inline std::size_t count_samples(const nlohmann::json& body) {
  const nlohmann::json* n = field(body, "n");
  const bool usable = n != nullptr && n->is_number_unsigned() && *n >= 1 && *n <= 16384;
  return usable ? n->get<std::size_t>() : 1;
}

}  // namespace baton::sim
