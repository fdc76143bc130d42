// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "libs/tokenizer/error.h"
#include "libs/tokenizer/text/normalizer.h"

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace baton::tokenizer {

// Role. Precompiled: SentencePiece's own table of replacements, applied to graphemes and characters
//   as the Hugging Face tokenizers do, with all their oddities.
// Confinement. Immutable; any thread.
class PrecompiledNormalizer : public Normalizer {
 public:
  // Base64 of: the trie's size in bytes, the trie (a Darts double array), replacements each ended by
  // a zero byte.
  static Result<std::unique_ptr<const PrecompiledNormalizer>> from_base64(std::string_view text);

  std::string_view apply(std::string_view text, std::string& buffer) const override;

 private:
  PrecompiledNormalizer(std::vector<std::uint32_t> trie, std::string replacements);

  // Replacement of a grapheme or character: the shortest prefix of it that the trie knows decides.
  std::optional<std::string_view> replacement(std::string_view part) const;

  std::vector<std::uint32_t> trie_;
  std::string replacements_;
  std::array<bool, 128> ascii_changes_{};
};

}  // namespace baton::tokenizer
