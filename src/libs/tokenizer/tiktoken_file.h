// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "libs/tokenizer/bpe_model.h"
#include "libs/tokenizer/error.h"

#include <string_view>

namespace baton::tokenizer {

// Reads a tiktoken rank file: a token in base64, a space and its rank on each line. The rank is the
// token's id, and how early two neighbours become it.
Result<BpeModel::Source> read_tiktoken(std::string_view ranks);

}  // namespace baton::tokenizer
