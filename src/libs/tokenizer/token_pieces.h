// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "libs/tokenizer/token.h"
#include "libs/tokenizer/tokenizer.h"

#include <span>
#include <string>
#include <vector>

namespace baton::tokenizer {

// The text that each token adds when decoded, special tokens included. A token that is only a part
// of a character is shown as it decodes alone.
std::vector<std::string> token_pieces(const Tokenizer& tokenizer, std::span<const TokenId> ids);

}  // namespace baton::tokenizer
