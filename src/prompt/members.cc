// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "prompt/members.h"

#include "prompt/refusal.h"

#include <string>

namespace baton::prompt {

bool is_given(const wire::JsonObject& body, std::string_view key) {
  const auto raw = body.find(key);
  return raw && *raw != "null";
}

Result<bool> flag(const wire::JsonObject& body, std::string_view key, bool otherwise) {
  if (!is_given(body, key)) return otherwise;
  const auto value = body.find_bool(key);
  if (!value) return refuse(std::string(key), "must be true or false");
  return *value;
}

const jinja::Value* find_present(const jinja::Dict& dict, std::string_view key) {
  const jinja::Value* const value = dict.find(key);
  return value && !value->is_none() ? value : nullptr;
}

}  // namespace baton::prompt
