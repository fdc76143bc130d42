// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/result.h"
#include "engine/shared/dialect.h"
#include "wire/json_object.h"

#include <string>
#include <string_view>

namespace baton::engine {

// The hand-off in modes whose decode leg needs nothing from the prefill's answer.
inline constexpr std::string_view kNothingToHandOver = "{}";

// Role. The part of a prefill worker's answer that all dialects read first.
// Lifetime. The answer's text must outlive it.
struct PrefillAnswer {
  wire::JsonObject completion;
  wire::JsonObject choice;  // the first, and only one asked for
  std::string finish_reason;
};

// An error where the answer is none, or holds an error of the engine.
Result<PrefillAnswer> parse_prefill_answer(const std::string& json);
// The same, where a prefill that was given up is an error, too.
Result<PrefillAnswer> parse_sound_prefill_answer(const std::string& json);

}  // namespace baton::engine
