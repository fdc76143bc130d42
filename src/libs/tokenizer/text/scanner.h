// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "libs/tokenizer/text/matcher.h"

#include <memory>
#include <string_view>

namespace baton::tokenizer {

// The regular expression of ByteLevel with `use_regex`, GPT-2's.
extern const std::string_view kGpt2Pattern;

// A matcher written by hand for one of the regular expressions that most models use (GPT-2's, those
// of the cl100k, o200k and Tekken families, DeepSeek's), compared by its text; null for any other.
// It finds what Pattern finds, some times as fast.
std::unique_ptr<const Matcher> scanner_for(std::string_view pattern);

}  // namespace baton::tokenizer
