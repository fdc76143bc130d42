// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "libs/tokenizer/token_pieces.h"

#include <utility>

namespace baton::tokenizer {

std::vector<std::string> token_pieces(const Tokenizer& tokenizer, std::span<const TokenId> ids) {
  std::vector<std::string> pieces;
  pieces.reserve(ids.size());
  std::string before;
  for (std::size_t at = 0; at < ids.size(); ++at) {
    std::string alone = tokenizer.decode(ids.subspan(at, 1), SkipSpecial::No);
    std::string piece = alone;
    if (at > 0) {
      // Decoders treat the beginning of a text differently, so a token is read behind another.
      const std::string both = tokenizer.decode(ids.subspan(at - 1, 2), SkipSpecial::No);
      if (both.size() > before.size() && both.starts_with(before)) {
        piece = both.substr(before.size());
      }
    }
    pieces.push_back(std::move(piece));
    before = std::move(alone);
  }
  return pieces;
}

}  // namespace baton::tokenizer
