// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/result.h"
#include "prompt/tokenizer/bpe_model.h"

#include <string_view>

namespace baton::prompt {

// Reads a tiktoken rank file: a token in base64, a space and its rank on each line. The rank is the
// token's id, and how early two neighbours become it.
Result<BpeModel::Source> read_tiktoken(std::string_view ranks);

}  // namespace baton::prompt
