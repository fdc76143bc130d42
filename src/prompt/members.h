// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/result.h"
#include "libs/jinja/value.h"
#include "wire/json_object.h"

#include <string_view>

namespace baton::prompt {

// Members that are absent and members that are null mean the same in requests.

bool is_given(const wire::JsonObject& body, std::string_view key);
// A boolean member; any other value is the client's error.
Result<bool> flag(const wire::JsonObject& body, std::string_view key, bool otherwise);
// Null where it is not given.
const jinja::Value* find_present(const jinja::Dict& dict, std::string_view key);

}  // namespace baton::prompt
