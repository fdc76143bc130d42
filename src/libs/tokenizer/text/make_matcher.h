// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "libs/tokenizer/error.h"
#include "libs/tokenizer/text/matcher.h"
#include "libs/tokenizer/text/pattern_syntax.h"

#include <simdjson.h>

#include <memory>
#include <string_view>

namespace baton::tokenizer {

// The fastest matcher for a regular expression: a scanner, a run of characters, or PCRE2.
Result<std::unique_ptr<const Matcher>> match_regex(std::string_view pattern, Dialect dialect);
// A string as it is. The empty string is found between any two characters and at both ends.
Result<std::unique_ptr<const Matcher>> match_string(std::string_view literal);
// {"String": ...} or {"Regex": ...}, as tokenizer.json has it.
Result<std::unique_ptr<const Matcher>> match_json(simdjson::dom::element pattern);

}  // namespace baton::tokenizer
