// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/memory_budget.h"
#include "core/result.h"
#include "libs/scan/json_text.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

namespace baton::wire {

// Checks that `text` is one JSON object, all of it, and says what is wrong where it is not
// (InvalidJson). Numbers of any size are fine: they are passed on, not computed with.
Result<void> validate_json_object(std::string_view text);
// The same, and passes to `use`, for the duration of the call, the object's structure that the
// check found, in order: each bracket, comma and colon outside of strings, and the first byte of
// each string, number and literal.
using Structure = std::span<const std::uint32_t>;
Result<void> validate_json_object(std::string_view text, const std::function<void(Structure)>& use,
                                  MemoryShare* memory = nullptr);

// The functions that read valid JSON text in place.
using scan::plain_size;
using scan::skip_space;
using scan::skip_value;
using scan::string_at;
using scan::StringAt;
using scan::unescape;
using scan::unescape_to;

}  // namespace baton::wire
